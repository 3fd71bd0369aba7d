"""HindSearch's loss, by hand: L = −clamp(log π_T − log π_S, 0, 1) · log π_S."""

import pytest
import torch
from torch.testing import assert_close

from hindsearch.losses.plain_clamp import Attached, PlainClamp
from loss_inputs import sampled


def f64(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_a_gap_below_inside_and_above_the_clamp():
    # gaps: −1.0, +0.4, +2.5 -> coefficients 0, 0.4, 1
    output = PlainClamp()(sampled([-1.0, -0.9, -3.0], [-2.0, -0.5, -0.5]))
    assert_close(output.loss_N.detach(), f64(0.0, 0.4 * 0.9, 1.0 * 3.0))
    assert_close(output.metrics["weight"], f64(0.0, 0.4, 1.0))
    assert_close(output.metrics["clipped"], f64(0.0, 0.0, 1.0))


def test_its_gradient_is_minus_the_coefficient():
    inputs = sampled([-1.0, -0.9, -3.0], [-2.0, -0.5, -0.5])
    PlainClamp()(inputs).loss_N.sum().backward()
    assert_close(inputs.logprobs_N.grad, f64(0.0, -0.4, -1.0))


def test_an_attached_coefficient_pushes_a_rare_token_eleven_times_harder():
    # d/dl of −(t − l)·l is 2l − t = −t' with gap g = t − l: l − g = −5 − .5
    inputs = sampled([-5.0], [-4.5])
    PlainClamp(graph=Attached())(inputs).loss_N.sum().backward()
    assert_close(inputs.logprobs_N.grad, f64(-5.5))
    inputs = sampled([-5.0], [-4.5])
    PlainClamp()(inputs).loss_N.sum().backward()
    assert_close(inputs.logprobs_N.grad, f64(-0.5))


def test_an_attached_coefficient_beyond_the_clamp_is_the_bound():
    inputs = sampled([-5.0], [-3.0])
    PlainClamp(graph=Attached())(inputs).loss_N.sum().backward()
    assert_close(inputs.logprobs_N.grad, f64(-1.0))


def test_two_sided_bounds_push_down_what_the_teacher_dislikes():
    output = PlainClamp(low=-1.0, high=1.0)(sampled([-1.0], [-4.0]))
    assert_close(output.loss_N.detach(), f64(-1.0))


def test_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match=r"low=1.0 is not below high=0.5; the paper uses 0 and 1"):
        PlainClamp(low=1.0, high=0.5)
