"""Divergences between student and teacher, per token, beside TRL's: values, and gradients on the student's logits."""

import math

import pytest
import torch
from torch import Tensor

from hindsearch.interfaces import HindsightLoss
from hindsearch.losses.forward_kl import ForwardKl
from hindsearch.losses.jsd import Jsd
from hindsearch.losses.plain_clamp import PlainClamp
from hindsearch.losses.reverse_kl import ReverseKl
from hindsearch.maths.caps import NoCap
from hindsearch.maths.supports import FullVocabulary, StudentTopK, TeacherTopK, UnionTopK
from hindsearch.maths.tails import Bucket, Dropped, Renormalised
from loss_inputs import on_support, sampled

pytestmark = pytest.mark.slow

VOCABULARY = 23
TOKENS = 40
BETAS = [0.0, 0.3, 0.5, 1.0]
"""TRL's interpolation: 0 is the forward KL, 1 the reverse, between them the teacher's share of the mixture."""
TAILS = [(Bucket(), 1), (Bucket(), 4), (Renormalised(), 2), (Renormalised(), 4)]
"""With how many entries: one alone, renormalised, is 1 on both sides."""


def loss_of(beta: float, support, tail) -> HindsightLoss:
    """Ours for TRL's ``beta``. What is compared is uncapped."""
    if beta == 0.0:
        return ForwardKl(support, tail, NoCap())
    if beta == 1.0:
        return ReverseKl(support, tail, NoCap())
    return Jsd(support, tail, NoCap(), beta)


def logits(sharpness: float) -> tuple[Tensor, Tensor]:
    """Of a student, with gradient, and of a teacher that disagrees with it."""
    generator = torch.Generator().manual_seed(int(sharpness))
    student_NV, teacher_NV = sharpness * torch.randn((2, TOKENS, VOCABULARY), generator=generator, dtype=torch.float64)
    return student_NV.requires_grad_(), teacher_NV


def ours(loss: HindsightLoss, student_logits_NV: Tensor, teacher_logits_NV: Tensor) -> Tensor:
    student_NV, teacher_NV = student_logits_NV.log_softmax(-1), teacher_logits_NV.log_softmax(-1)
    ids_NK, valid_NK = loss.support(student_NV.detach(), teacher_NV)
    student_NK, teacher_NK = student_NV.gather(-1, ids_NK), teacher_NV.gather(-1, ids_NK)
    return loss(on_support(student_NK, student_NK.detach(), teacher_NK, valid_NK)).loss_N


def assert_same(got_N: Tensor, expected_N: Tensor, student_logits_NV: Tensor) -> None:
    """Per-token values, and the gradient of a sum in which every token weighs something else."""
    assert float(expected_N.detach().abs().max()) > 1e-3
    torch.testing.assert_close(got_N, expected_N, atol=1e-10, rtol=1e-10)
    weights_N = torch.linspace(0.5, 1.5, TOKENS, dtype=torch.float64)
    got_NV, expected_NV = (
        torch.autograd.grad((loss_N * weights_N).sum(), student_logits_NV, retain_graph=True)[0]
        for loss_N in (got_N, expected_N)
    )
    assert float(expected_NV.norm()) > 1e-3
    torch.testing.assert_close(got_NV, expected_NV, atol=1e-10, rtol=1e-8)


@pytest.mark.parametrize("sharpness", [1.0, 6.0])
@pytest.mark.parametrize("beta", BETAS)
def test_the_whole_vocabulary(trl, beta, sharpness):
    from trl.experimental.gkd import GKDTrainer
    from trl.experimental.sdft.loss_utils import compute_full_logit_self_distillation_loss as sdft
    from trl.experimental.sdpo.loss_utils import compute_full_logit_self_distillation_loss as sdpo

    student_NV, teacher_NV = logits(sharpness)
    for tail in (Dropped(), Renormalised()):
        got_N = ours(loss_of(beta, FullVocabulary(), tail), student_NV, teacher_NV)
        for theirs in (sdpo, sdft):
            assert_same(got_N, theirs(student_NV, teacher_NV, distillation_alpha=beta), student_NV)
        gkd_N = GKDTrainer.generalized_jsd_loss(student_NV, teacher_NV, beta=beta, reduction="none").sum(-1)
        assert_same(got_N, gkd_N, student_NV)


@pytest.mark.parametrize(("tail", "k"), [*TAILS, (Bucket(), VOCABULARY), (Renormalised(), VOCABULARY)])
@pytest.mark.parametrize("beta", BETAS)
def test_the_students_top_k_of_self_distillation(trl, beta, tail, k):
    """SDPO's and SDFT's: with a tail bucket, or renormalised over the support."""
    from trl.experimental.sdft.loss_utils import compute_topk_self_distillation_loss as sdft
    from trl.experimental.sdpo.loss_utils import compute_topk_self_distillation_loss as sdpo

    student_NV, teacher_NV = logits(2.0)
    got_N = ours(loss_of(beta, StudentTopK(k), tail), student_NV, teacher_NV)
    for theirs in (sdpo, sdft):
        expected_N = theirs(
            student_NV,
            teacher_NV,
            distillation_topk=k,
            distillation_alpha=beta,
            distillation_add_tail=isinstance(tail, Bucket),
        )
        assert_same(got_N, expected_N, student_NV)


@pytest.mark.parametrize(("tail", "k"), TAILS)
@pytest.mark.parametrize("beta", BETAS)
def test_a_support_that_follows_the_direction(trl, beta, tail, k):
    """Distillation's: the teacher's top-k forward, the student's in reverse, the union of both for a mixture."""
    from trl.experimental.iw_opd.iw_opd_trainer import IWOPDTrainer

    support = {0.0: TeacherTopK(k), 1.0: StudentTopK(k)}.get(beta, UnionTopK(k))
    student_NV, teacher_NV = logits(2.0)
    got_N = ours(loss_of(beta, support, tail), student_NV, teacher_NV)
    expected_NK = IWOPDTrainer.generalized_jsd_loss(
        student_NV, teacher_NV, beta=beta, reduction="none", top_k=k, add_tail=isinstance(tail, Bucket)
    )
    assert_same(got_N, expected_NK.sum(-1), student_NV)


def test_the_sampled_token_without_a_clamp(trl):
    """SDPO's ``sampled_token`` is the plain clamp with its bounds taken away: ``sg[log π − log π_T] · log π``."""
    from trl.experimental.sdpo.loss_utils import compute_sampled_token_self_distillation_loss as theirs

    student_NV, teacher_NV = logits(2.0)
    ids_N = torch.arange(TOKENS) % VOCABULARY
    expected_N = theirs(student_NV, teacher_NV, ids_N, distillation_alpha=1.0)
    chosen = [values.log_softmax(-1)[torch.arange(TOKENS), ids_N] for values in (student_NV, teacher_NV)]
    inputs = sampled(*(values_N.detach().tolist() for values_N in chosen))
    loss_N = PlainClamp(low=-math.inf, high=math.inf)(inputs).loss_N
    torch.testing.assert_close(loss_N, expected_N, atol=1e-10, rtol=1e-10)
    (got_N,) = torch.autograd.grad(loss_N.sum(), inputs.logprobs_N)
    (expected_NV,) = torch.autograd.grad(expected_N.sum(), student_NV, retain_graph=True)
    # from the log-probability of the sampled token to the logits: one-hot minus softmax
    through_NV = torch.autograd.grad((chosen[0] * got_N).sum(), student_NV)[0]
    torch.testing.assert_close(through_NV, expected_NV, atol=1e-10, rtol=1e-10)
