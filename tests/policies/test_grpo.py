import pytest
import torch
from torch.testing import assert_close

from hindsearch.maths.reductions import TokenMean
from hindsearch.policies.grpo import Grpo
from hindsearch.policies.kl import Kl
from hindsearch.tensors import PolicyInputs

GRPO = Grpo(kl=Kl(0.0), reduction=TokenMean())


def inputs(ratios, advantages):
    old = torch.full((len(ratios),), -2.0, dtype=torch.float64)
    logprobs = (old + torch.tensor(ratios, dtype=torch.float64).log()).requires_grad_()
    zeros = torch.zeros(len(ratios), dtype=torch.long)
    return PolicyInputs(logprobs, old, torch.tensor(advantages, dtype=torch.float64), zeros, zeros)


def test_at_ratio_one_the_gradient_is_minus_the_advantage():
    made = inputs([1.0, 1.0, 1.0], [0.7, -1.2, 0.0])
    GRPO(made).loss_N.sum().backward()
    assert_close(made.logprobs_N.grad, torch.tensor([-0.7, 1.2, 0.0], dtype=torch.float64))


def test_the_clip_on_both_sides_by_hand():
    made = inputs([1.5, 0.5, 1.5, 0.5], [1.0, 1.0, -1.0, -1.0])
    output = GRPO(made)
    # A>0: min(1.5, 1.2), min(.5, .8) -> −1.2, −.5; A<0: the pessimist keeps 1.5 and .8
    assert_close(output.loss_N.detach(), torch.tensor([-1.2, -0.5, 1.5, 0.8], dtype=torch.float64))
    assert output.metrics["clipped"].tolist() == [1.0, 0.0, 0.0, 1.0]
    output.loss_N.sum().backward()
    # d(−A·r)/d log π = −A·r where the clip does not bite
    assert_close(made.logprobs_N.grad, torch.tensor([0.0, -0.5, 1.5, 0.0], dtype=torch.float64))


def test_the_two_sides_of_the_clip_are_set_apart():
    policy = Grpo(kl=Kl(0.0), reduction=TokenMean(), clip_low=0.1, clip_high=0.4)
    output = policy(inputs([1.5, 0.5], [1.0, -1.0]))
    assert_close(output.loss_N.detach(), torch.tensor([-1.4, 0.9], dtype=torch.float64))


@pytest.mark.parametrize("low, high", [(0.0, 0.2), (1.0, 0.2), (0.2, 0.0), (float("nan"), 0.2)])
def test_a_clip_that_leaves_no_room_is_refused(low, high):
    with pytest.raises(ValueError, match="leave no room around ratio 1"):
        Grpo(kl=Kl(0.0), reduction=TokenMean(), clip_low=low, clip_high=high)


def test_an_absurd_ratio_stays_finite():
    made = inputs([1.0], [-1.0])
    far = PolicyInputs(made.logprobs_N + 500.0, made.old_logprobs_N, made.advantages_N, made.rollout_N, made.turn_N)
    assert torch.isfinite(GRPO(far).loss_N).all()


def test_advantages_by_hand():
    # mean .25, unbiased std .5
    expected = [1.5, -0.5, -0.5, -0.5]
    assert GRPO.advantages([1.0, 0.0, 0.0, 0.0]) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("rewards", [[0.1] * 3, [1.0] * 8, [0.0] * 5, [1e8 + 0.1] * 7])
def test_equal_rewards_give_exactly_zero(rewards):
    assert GRPO.advantages(rewards) == [0.0] * len(rewards)


def test_advantages_follow_their_rollouts():
    rewards = [0.0, 1.0, 0.2, 0.7]
    straight, turned = GRPO.advantages(rewards), GRPO.advantages(rewards[::-1])
    assert straight == pytest.approx(turned[::-1])


@pytest.mark.parametrize("rewards", [[1.0, float("nan"), 0.0], [float("inf"), 0.0]])
def test_a_reward_that_is_no_number_is_refused(rewards):
    with pytest.raises(ValueError, match="must be finite"):
        GRPO.advantages(rewards)


def test_a_group_of_one_is_refused():
    with pytest.raises(ValueError, match="a group of 1 has no spread"):
        GRPO.advantages([1.0])
