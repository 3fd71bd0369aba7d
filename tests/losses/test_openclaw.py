"""OpenClaw-RL's surrogate on a five-word vocabulary, by hand, and the three facts that pin its meaning."""

import math

import pytest
import torch
from torch.testing import assert_close

from hindsearch.losses.openclaw import OpenClaw
from hindsearch.maths.supports import SampledToken, StudentTopK
from loss_inputs import on_support


def logs(*probabilities):
    return torch.tensor([probabilities], dtype=torch.float64).log()


def test_two_entries_of_five_by_hand():
    # vocabulary p_old = (.4 .2 .2 .1 .1); support = its first two; π = (.5 .1), π_T = (.6 .1)
    old, now, teacher = logs(0.4, 0.2), logs(0.5, 0.1), logs(0.6, 0.1)
    output = OpenClaw(support=StudentTopK(2))(on_support(now, old, teacher))
    # share = (2/3, 1/3); gaps = log 1.5, −log 2; A = (.2703, −.2310)
    a, b = 2 / 3 * math.log(1.5), -1 / 3 * math.log(2)
    # ratios 1.25 (inside 1.28: free) and .5 (below .8: the clip is the larger loss, −b·.8)
    assert_close(output.loss_N, torch.tensor([-a * 1.25 + -b * 0.8], dtype=torch.float64))
    assert_close(output.metrics["support_mass"], torch.tensor([0.6], dtype=torch.float64))
    assert_close(output.metrics["clipped"], torch.tensor([1.0], dtype=torch.float64))


def test_ratios_are_of_the_full_softmax_so_draining_the_support_is_seen():
    # both entries lose half their mass to words outside: renormalised over the two, nothing would have moved
    old, now, teacher = logs(0.4, 0.2), logs(0.2, 0.1), logs(0.6, 0.1)
    output = OpenClaw(support=StudentTopK(2))(on_support(now, old, teacher))
    a, b = 2 / 3 * math.log(1.5), -1 / 3 * math.log(2)
    assert_close(output.loss_N, torch.tensor([-a * 0.5 + -b * 0.8], dtype=torch.float64))


def test_the_ratio_may_rise_further_than_it_may_fall():
    # A > 0: free up to 1.28; A < 0: free down to .8
    up = OpenClaw(support=StudentTopK(1))(on_support(logs(0.5 * 1.27), logs(0.5), logs(0.9)))
    above = OpenClaw(support=StudentTopK(1))(on_support(logs(0.5 * 1.29), logs(0.5), logs(0.9)))
    down = OpenClaw(support=StudentTopK(1))(on_support(logs(0.5 * 0.81), logs(0.5), logs(0.1)))
    below = OpenClaw(support=StudentTopK(1))(on_support(logs(0.5 * 0.79), logs(0.5), logs(0.1)))
    clipped = [float(output.metrics["clipped"]) for output in (up, above, down, below)]
    assert clipped == [0.0, 1.0, 0.0, 1.0]


def test_a_gap_beyond_the_limit_counts_as_the_limit():
    old = now = logs(0.1, 0.1)
    teacher = logs(0.9, 0.001)
    output = OpenClaw(support=StudentTopK(2), limit=1.0)(on_support(now, old, teacher))
    assert_close(output.loss_N, torch.tensor([-0.5 * 1.0 + 0.5 * 1.0], dtype=torch.float64))
    assert_close(output.metrics["weight"], torch.tensor([1.0], dtype=torch.float64))


def test_a_ratio_above_its_clip_gives_no_gradient_where_the_teacher_agrees():
    old, teacher = logs(0.4), logs(0.8)
    now = logs(0.6).requires_grad_()
    OpenClaw(support=StudentTopK(1))(on_support(now, old, teacher)).loss_N.sum().backward()
    assert_close(now.grad, torch.zeros_like(now))


def test_entries_that_are_padding_change_nothing():
    old, now, teacher = logs(0.4, 0.2, 0.3), logs(0.5, 0.1, 0.3), logs(0.6, 0.1, 0.9)
    valid = torch.tensor([[True, True, False]])
    padded = OpenClaw(support=StudentTopK(3))(on_support(now, old, teacher, valid))
    bare = OpenClaw(support=StudentTopK(2))(on_support(now[:, :2], old[:, :2], teacher[:, :2]))
    assert_close(padded.loss_N, bare.loss_N)


def test_an_entry_that_is_padding_is_never_counted_as_clipped():
    old, now, teacher = logs(0.4, 0.2), logs(0.4, 0.9), logs(0.6, 0.9)
    valid = torch.tensor([[True, False]])
    output = OpenClaw(support=StudentTopK(2))(on_support(now, old, teacher, valid))
    assert float(output.metrics["clipped"]) == 0.0
    assert_close(output.metrics["support_mass"], torch.tensor([0.4], dtype=torch.float64))


@pytest.fixture
def logits():
    generator = torch.Generator().manual_seed(3)
    student = torch.randn(1, 7, generator=generator, dtype=torch.float64, requires_grad=True)
    teacher = torch.randn(1, 7, generator=generator, dtype=torch.float64).log_softmax(-1)
    return student, teacher


def reverse_kl_gradient(student, teacher):
    logprobs = student.log_softmax(-1)
    (logprobs.exp() * (logprobs - teacher)).sum().backward()
    gradient, student.grad = student.grad.clone(), None
    return gradient


def test_over_the_whole_vocabulary_at_ratio_1_its_gradient_is_that_of_reverse_kl(logits):
    student, teacher = logits
    expected = reverse_kl_gradient(student, teacher)
    logprobs = student.log_softmax(-1)
    OpenClaw(support=StudentTopK(7), limit=1e9)(
        on_support(logprobs, logprobs.detach(), teacher)
    ).loss_N.sum().backward()
    assert_close(student.grad, expected, atol=1e-12, rtol=0)


def test_the_expected_sampled_token_gradient_is_the_same(logits):
    student, teacher = logits
    expected = reverse_kl_gradient(student, teacher)
    logprobs = student.log_softmax(-1)
    gap = (teacher - logprobs).detach()
    # enumerate what would be sampled: Σ_v p(v) · (−gap_v · log π(v))
    (logprobs.detach().exp() * -gap * logprobs).sum().backward()
    assert_close(student.grad, expected, atol=1e-12, rtol=0)


def test_a_kl_collapsed_to_one_number_teaches_nothing_in_expectation(logits):
    student, teacher = logits
    logprobs = student.log_softmax(-1)
    collapsed = (logprobs.exp() * (logprobs - teacher)).sum().detach()
    (logprobs.detach().exp() * collapsed * logprobs).sum().backward()
    assert_close(student.grad, torch.zeros_like(student), atol=1e-15, rtol=0)


def test_a_loss_over_no_support_is_refused():
    with pytest.raises(ValueError, match="sums over a support, and this one is empty"):
        OpenClaw(support=SampledToken())


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan])
def test_a_limit_that_leaves_no_gap_is_refused(limit):
    with pytest.raises(ValueError, match="clamps every gap to nothing"):
        OpenClaw(limit=limit)


@pytest.mark.parametrize("low, high", [(0.0, 0.28), (1.0, 0.28), (0.2, 0.0), (0.2, -0.5), (math.nan, 0.28)])
def test_a_clip_that_leaves_no_room_is_refused(low, high):
    with pytest.raises(ValueError, match="leave no room around ratio 1"):
        OpenClaw(clip_low=low, clip_high=high)
