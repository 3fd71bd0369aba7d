"""Ratios, the clipped surrogate and the KL estimators, by hand."""

import math

import torch
from torch.testing import assert_close

from hindsearch.maths.divergences import clipped_surrogate, k1, k2, k3, ratio


def f64(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_a_ratio_stops_at_e_to_the_20_on_both_sides():
    assert_close(
        ratio(f64(-1.0, -0.0, -500.0), f64(-1.5, -500.0, 0.0)), f64(math.exp(0.5), math.exp(20), math.exp(-20))
    )


def test_a_ratio_beyond_its_bound_has_no_gradient():
    logprobs = f64(-1.0, 0.0).requires_grad_()
    ratio(logprobs, f64(-1.0, -500.0)).sum().backward()
    assert_close(logprobs.grad, f64(1.0, 0.0))


def test_a_token_counts_as_clipped_only_where_the_clip_bites():
    loss, clipped = clipped_surrogate(f64(1.0, 1.25, 1.25, 1.0), f64(1.0, 1.0, -1.0, 0.0), low=0.2, high=0.2)
    assert_close(loss, f64(-1.0, -1.2, 1.25, 0.0))
    assert clipped.tolist() == [False, True, False, False]


def test_the_three_estimators_by_hand():
    student, reference = f64(math.log(0.5)), f64(math.log(0.25))
    assert_close(k1(student, reference), f64(math.log(2)))
    assert_close(k2(student, reference), f64(math.log(2) ** 2 / 2))
    assert_close(k3(student, reference), f64(0.5 - 1 + math.log(2)))


def test_k3_stays_finite_where_the_student_would_never_go():
    student = f64(-1000.0).requires_grad_()
    value = k3(student, f64(0.0))
    assert_close(value, f64(math.exp(20) - 21))
    value.sum().backward()
    assert torch.isfinite(student.grad).all()
