"""The policy term beside TRL's trainers: same rollouts, same weights; losses and gradients are one.

What differs is a test of its own: how rewards are standardised, groups without a contrast under DAPO, the value of the
KL term off policy and its gradient under GSPO, and whose ratio RLOO takes.
"""

import pytest
import torch

from hindsearch.maths.reductions import ConstantLength, SequenceMean, TokenMean
from hindsearch.policies.dapo import Dapo
from hindsearch.policies.dr_grpo import DrGrpo
from hindsearch.policies.grpo import Grpo
from hindsearch.policies.gspo import Gspo
from hindsearch.policies.kl import K3, Differentiated, Kl
from hindsearch.policies.rloo import Rloo
from parity.our_step import policy_update
from parity.tiny_step import attempts, moved, tiny_gpt2, tiny_llama
from parity.trl_step import MAX_COMPLETION, RlooStep, TrlStep

pytestmark = pytest.mark.slow

REWARDS = [1.0, 0.0, 0.0, 0.2, 1.0, 0.5]
POLICIES = {
    "grpo": (lambda kl: Grpo(kl, SequenceMean()), {"loss_type": "grpo"}),
    "dapo": (lambda kl: Dapo(kl, TokenMean()), {"loss_type": "dapo", "epsilon_high": 0.28}),
    "dr_grpo": (
        lambda kl: DrGrpo(kl, ConstantLength(MAX_COMPLETION)),
        {"loss_type": "dr_grpo", "scale_rewards": "none"},
    ),
    "gspo": (
        lambda kl: Gspo(kl, SequenceMean()),
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 3e-4, "epsilon_high": 4e-4},
    ),
}
"""Ours from a KL term, and TRL's name for it."""

K3_ALONE = {"use_bias_correction_kl": False}
"""TRL's KL term as ours is with ``gradient: Differentiated(K3())``: the gradient of k3 itself."""
LATER = {"num_iterations": 2}
"""TRL's word for more than one update of the same rollouts: it keeps the old log-probabilities."""

MODELS = {"gpt2-float64": (tiny_gpt2, False, 1e-9), "llama-float32-ragged-prompts": (tiny_llama, True, 1e-5)}
"""How it is made, whether prompts may differ in length (TRL pads them on the left), the tolerance."""


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("update", ["first", "later"])
def test_loss_and_gradient(trl, tmp_path, model, policy, beta, update):
    make, ragged, tolerance = MODELS[model]
    build, options = POLICIES[policy]
    student, reference = make(0), make(1)
    now = moved(student, seed=5, by=0.05) if update == "later" else student
    step = attempts(REWARDS, ragged)

    later = LATER if update == "later" else {}
    theirs = TrlStep(student, reference, step, tmp_path, beta=beta, **later, **K3_ALONE, **options)
    batch = theirs.experience()
    assert ("old_per_token_logps" in batch) == (update == "later")
    expected, expected_gradient = theirs.loss(batch, now)

    policy = build(Kl(beta, gradient=Differentiated(K3())))
    got = policy_update(policy, student, now, reference, step, batch["advantages"].tolist())
    torch.testing.assert_close(got.loss, expected.to(got.loss), atol=tolerance, rtol=0.0)
    assert float(expected_gradient.norm()) > 0.1
    torch.testing.assert_close(got.gradient, expected_gradient, atol=tolerance, rtol=tolerance)
    clipped = theirs.trainer._metrics["train"]["clip_ratio/region_mean"][-1]
    assert (clipped > 0.1) == (update == "later")


@pytest.mark.parametrize("policy", POLICIES)
def test_micro_batches_of_both_sides(trl, tmp_path, policy):
    """Two of three rollouts by TRL, one at a time by us. TRL's mean of means needs micro-batches of one size."""
    build, options = POLICIES[policy]
    student, reference = tiny_gpt2(0), tiny_gpt2(1)
    now = moved(student, seed=5, by=0.05)
    step = attempts(REWARDS, ragged_prompts=False)
    options = {**options, **K3_ALONE, **LATER, "gradient_accumulation_steps": 2}
    theirs = TrlStep(student, reference, step, tmp_path, beta=0.04, **options)
    batch = theirs.experience()
    _, expected_gradient = theirs.loss(batch, now)
    policy = build(Kl(0.04, gradient=Differentiated(K3())))
    got = policy_update(policy, student, now, reference, step, batch["advantages"].tolist(), max_tokens=1)
    torch.testing.assert_close(got.gradient, expected_gradient, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
def test_advantages(trl, tmp_path, policy):
    """TRL adds 1e-4 to the spread of a group, we add 1e-6 as Search-R1's code does; else they are one."""
    build, options = POLICIES[policy]
    batch = TrlStep(tiny_gpt2(0), tiny_gpt2(1), attempts(REWARDS, False), tmp_path, **options).experience()
    theirs = batch["advantages"].double().view(2, 3)
    ours = torch.tensor([build(Kl(0.0)).advantages(REWARDS[:3]), build(Kl(0.0)).advantages(REWARDS[3:])]).double()
    if policy != "dr_grpo":
        assert float((ours / theirs - 1).min()) > 1e-4
        spread = torch.tensor(REWARDS).double().view(2, 3).std(dim=1, keepdim=True)
        theirs = theirs * (spread + 1e-4) / (spread + 1e-6)
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0.0)


def test_dapo_leaves_out_groups_without_a_contrast_where_trl_counts_their_tokens(trl, tmp_path):
    """The paper draws other groups in their place. TRL's ``dapo`` is the loss alone: it divides by all tokens."""
    student, reference = tiny_gpt2(0), tiny_gpt2(1)
    build, options = POLICIES["dapo"]
    step = attempts([*REWARDS, 0.0, 0.0, 0.0], ragged_prompts=False)
    theirs = TrlStep(student, reference, step, tmp_path, **options)
    batch = theirs.experience()
    expected, expected_gradient = theirs.loss(batch, student)
    got = policy_update(build(Kl(0.0)), student, student, reference, step, batch["advantages"].tolist())
    share = sum(int(a.mask.sum()) for a in step[:6]) / sum(int(a.mask.sum()) for a in step)
    torch.testing.assert_close(got.loss * share, expected.to(got.loss), atol=1e-9, rtol=0.0)
    torch.testing.assert_close(got.gradient * share, expected_gradient, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("policy", ["grpo", "dapo", "dr_grpo"])
@pytest.mark.parametrize("update", ["first", "later"])
def test_the_default_gradient_of_the_kl_is_that_of_both_sides(trl, tmp_path, policy, update):
    """``∇(r · k3) = r · (log π − log ref) ∇log π``, the reverse KL's. TRL reports r · k3, we report k3."""
    build, options = POLICIES[policy]
    student, reference = tiny_gpt2(0), tiny_gpt2(1)
    now = moved(student, seed=5, by=0.05) if update == "later" else student
    step = attempts(REWARDS, ragged_prompts=False)
    options = {**options, **LATER, "beta": 0.04}
    theirs = TrlStep(student, reference, step, tmp_path / "default", **options)
    alone = TrlStep(student, reference, step, tmp_path / "alone", **options, **K3_ALONE)
    batch = theirs.experience()
    expected, expected_gradient = theirs.loss(batch, now)
    of_k3, gradient_of_k3 = alone.loss(batch, now)
    got = policy_update(build(Kl(0.04)), student, now, reference, step, batch["advantages"].tolist())
    torch.testing.assert_close(got.gradient, expected_gradient, atol=1e-9, rtol=1e-9)
    assert float((got.gradient - gradient_of_k3).norm()) > 0.01
    torch.testing.assert_close(got.loss, of_k3.to(got.loss), atol=1e-9, rtol=0.0)
    assert (abs(float(got.loss - expected)) > 1e-4) == (update == "later")


def test_under_gspo_our_kl_keeps_the_ratio_of_the_token_where_trl_takes_the_rollouts(trl, tmp_path):
    """So ours adds the same gradient whatever the policy: what TRL's adds under GRPO."""
    student, reference = tiny_gpt2(0), tiny_gpt2(1)
    now = moved(student, seed=5, by=0.05)
    step = attempts(REWARDS, ragged_prompts=False)

    def added_by_trl(policy: str) -> torch.Tensor:
        gradients = []
        for beta in (0.04, 0.0):
            options = {**POLICIES[policy][1], **LATER, "beta": beta}
            theirs = TrlStep(student, reference, step, tmp_path / f"{policy}{beta}", **options)
            gradients.append(theirs.loss(theirs.experience(), now)[1])
        return gradients[0] - gradients[1]

    with_kl, without = (
        policy_update(POLICIES["gspo"][0](Kl(beta)), student, now, reference, step, [1.0] * len(step)).gradient
        for beta in (0.04, 0.0)
    )
    torch.testing.assert_close(with_kl - without, added_by_trl("grpo"), atol=1e-9, rtol=1e-9)
    assert float((with_kl - without - added_by_trl("gspo")).norm()) > 0.01


def test_rloo(trl, tmp_path):
    """TRL's ratio is of the whole rollout (the product over its tokens), ours of each token: at ratio 1 one gradient.

    Its values differ: TRL's is A for each rollout, ours A for each of its tokens. ``ConstantLength(1)`` sums tokens.
    """
    student, reference = tiny_gpt2(0), tiny_gpt2(1)
    step = attempts(REWARDS, ragged_prompts=False, observations=False)
    theirs = RlooStep(student, reference, step, tmp_path, beta=0.0)
    batch = theirs.experience()
    policy = Rloo(Kl(0.0), ConstantLength(1))
    ours = [*policy.advantages(REWARDS[:3]), *policy.advantages(REWARDS[3:])]
    torch.testing.assert_close(torch.tensor(ours), batch["advantages"], atol=1e-6, rtol=0.0)
    expected, expected_gradient = theirs.loss(batch, student)
    got = policy_update(policy, student, student, reference, step, batch["advantages"].tolist())
    torch.testing.assert_close(got.gradient, expected_gradient, atol=1e-9, rtol=1e-9)
    lengths = torch.tensor([a.mask.sum() for a in step])
    advantages = batch["advantages"].double()
    torch.testing.assert_close(expected.double(), -advantages.mean(), atol=1e-9, rtol=0.0)
    torch.testing.assert_close(got.loss, -(advantages * lengths).mean(), atol=1e-9, rtol=0.0)
