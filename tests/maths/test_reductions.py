import pytest
import torch

from hindsearch.maths.reductions import SequenceMean, TokenMean

COUNTS = torch.tensor([3, 0, 5, 2])


def test_a_token_mean_weighs_every_token_alike():
    weights = TokenMean()(COUNTS, 10.0, 3.0)
    assert float((weights * COUNTS).sum()) == pytest.approx(1.0)
    assert weights.tolist() == [0.1] * 4


def test_a_sequence_mean_weighs_every_rollout_alike():
    weights = SequenceMean()(COUNTS, 10.0, 3.0)
    assert (weights * COUNTS).tolist() == pytest.approx([1 / 3, 0.0, 1 / 3, 1 / 3])


@pytest.mark.parametrize("reduction", [TokenMean(), SequenceMean()])
def test_a_step_split_over_ranks_weighs_as_a_whole(reduction):
    whole = reduction(COUNTS, 10.0, 3.0)
    halves = torch.cat([reduction(COUNTS[:2], 10.0, 3.0), reduction(COUNTS[2:], 10.0, 3.0)])
    assert whole.tolist() == halves.tolist()


@pytest.mark.parametrize("reduction", [TokenMean(), SequenceMean()])
def test_a_step_without_tokens_divides_by_nothing(reduction):
    assert torch.isfinite(reduction(torch.tensor([0]), 0.0, 0.0)).all()
