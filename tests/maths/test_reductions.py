"""Each reduction against its formula, with the step's rollouts reduced one by one."""

import pytest
import torch
from torch.testing import assert_close

from hindsearch.maths.reductions import ConstantLength, SequenceMean, SpanMean, TokenMean

TURNS = [
    torch.tensor([0, 0, 1]),
    torch.tensor([], dtype=torch.long),
    torch.tensor([0, 2, 2, 2, 2]),
    torch.tensor([1, 1]),
]
"""The turns of the tokens of four rollouts; the second has none."""

LOSSES = [
    torch.tensor([1.0, 2.0, 4.0]),
    torch.tensor([]),
    torch.tensor([8.0, 1.0, 2.0, 3.0, 2.0]),
    torch.tensor([5.0, 7.0]),
]

REDUCTIONS = [TokenMean(), SequenceMean(), SpanMean(), ConstantLength(4)]


def reduced(reduction, turns=TURNS, losses=LOSSES):
    total = sum(float((reduction.parts(t) * loss).sum()) for t, loss in zip(turns, losses, strict=True))
    return total / sum(reduction.divisor(t) for t in turns)


def test_a_token_mean_weighs_every_token_alike():
    assert reduced(TokenMean()) == pytest.approx((7 + 16 + 12) / 10)


def test_a_sequence_mean_weighs_every_rollout_with_tokens_alike():
    assert reduced(SequenceMean()) == pytest.approx((7 / 3 + 16 / 5 + 6) / 3)


def test_a_span_mean_weighs_every_turn_alike():
    assert reduced(SpanMean()) == pytest.approx((1.5 + 4 + 8 + 2 + 6) / 5)


def test_a_constant_divides_every_rollout_alike():
    assert reduced(ConstantLength(4)) == pytest.approx((7 / 4 + 16 / 4 + 12 / 4) / 3)


@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda r: type(r).__name__)
def test_a_loss_of_one_everywhere_reduces_to_one_but_for_a_constant_length(reduction):
    ones = [torch.ones(t.numel()) for t in TURNS]
    expected = 10 / 4 / 3 if isinstance(reduction, ConstantLength) else 1.0
    assert reduced(reduction, losses=ones) == pytest.approx(expected)


@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda r: type(r).__name__)
def test_the_order_of_rollouts_changes_nothing(reduction):
    assert reduced(reduction, TURNS[::-1], LOSSES[::-1]) == pytest.approx(reduced(reduction))


@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda r: type(r).__name__)
def test_a_rollout_without_tokens_adds_nothing(reduction):
    empty = torch.tensor([], dtype=torch.long)
    assert reduction.divisor(empty) == 0.0
    assert reduction.parts(empty).shape == (0,)


def test_the_share_of_a_turn_does_not_depend_on_where_its_tokens_stand():
    apart, together = SpanMean().parts(torch.tensor([0, 1, 0])), SpanMean().parts(torch.tensor([0, 0, 1]))
    assert_close(apart, torch.tensor([0.5, 1.0, 0.5], dtype=torch.float64))
    assert_close(together, torch.tensor([0.5, 0.5, 1.0], dtype=torch.float64))


def test_no_length_is_refused():
    with pytest.raises(ValueError, match="length=0"):
        ConstantLength(0)
