"""The hindsight term from token ids to gradients beside TRL's SDPO: a teacher that reads another prompt."""

import math

import pytest
import torch

from hindsearch.losses.forward_kl import ForwardKl
from hindsearch.losses.jsd import Jsd
from hindsearch.losses.plain_clamp import PlainClamp
from hindsearch.losses.reverse_kl import ReverseKl
from hindsearch.maths.caps import NoCap
from hindsearch.maths.supports import FullVocabulary, StudentTopK
from hindsearch.maths.tails import Bucket, Dropped, Renormalised
from parity.our_step import distillation_update
from parity.tiny_step import attempts, tiny_gpt2
from parity.trl_step import self_distillation

pytestmark = pytest.mark.slow

FULL = {"distillation_mode": "full_logits"}
TOP = {"distillation_mode": "topk_logits", "distillation_topk": 4}
LOSSES = {
    "forward": (ForwardKl(FullVocabulary(), Dropped(), NoCap()), {**FULL, "distillation_alpha": 0.0}),
    "reverse": (ReverseKl(FullVocabulary(), Dropped()), {**FULL, "distillation_alpha": 1.0}),
    "jsd": (Jsd(FullVocabulary(), Dropped()), {**FULL, "distillation_alpha": 0.5}),
    "forward-top": (
        ForwardKl(StudentTopK(4), Renormalised(), NoCap()),
        {**TOP, "distillation_alpha": 0.0, "distillation_add_tail": False},
    ),
    "reverse-top-tail": (
        ReverseKl(StudentTopK(4), Bucket()),
        {**TOP, "distillation_alpha": 1.0, "distillation_add_tail": True},
    ),
    "jsd-top-tail": (
        Jsd(StudentTopK(4), Bucket()),
        {**TOP, "distillation_alpha": 0.5, "distillation_add_tail": True},
    ),
    "sampled": (
        PlainClamp(low=-math.inf, high=math.inf),
        {"distillation_mode": "sampled_token", "distillation_alpha": 1.0},
    ),
}
"""Ours, and the options of TRL's ``SDPOConfig``."""


@pytest.mark.parametrize("name", LOSSES)
def test_loss_and_gradient(trl, name):
    loss, options = LOSSES[name]
    student, teacher = tiny_gpt2(0), tiny_gpt2(1)
    step = attempts([0.0] * 6, ragged_prompts=False)
    expected, expected_gradient = self_distillation(student, teacher, step, distillation_is_clip=None, **options)
    got = distillation_update(loss, student, teacher, step)
    torch.testing.assert_close(got.loss, expected, atol=1e-9, rtol=0.0)
    assert float(expected_gradient.norm()) > 0.1
    torch.testing.assert_close(got.gradient, expected_gradient, atol=1e-9, rtol=1e-9)
