"""Sums and means over the rollouts or turns that tokens belong to."""

import torch
from torch import Tensor


def mean_per_unit(values_N: Tensor, units_N: Tensor) -> Tensor:
    """Each value replaced by the mean over its unit; ``units_N`` numbers units from 0, differentiable in values."""
    return sum_per_unit(values_N, units_N) / sum_per_unit(torch.ones_like(values_N), units_N)


def sum_per_unit(values_N: Tensor, units_N: Tensor) -> Tensor:
    """Each value replaced by the sum over its unit; ``units_N`` numbers units from 0, differentiable in values."""
    count = int(units_N.max()) + 1 if units_N.numel() else 0
    return values_N.new_zeros(count).index_add(0, units_N, values_N)[units_N]


def turn_units(rollout_N: Tensor, turn_N: Tensor) -> Tensor:
    """Numbers the turns of all rollouts, with gaps: what ``sum_per_unit`` adds up over. Turns count from 0."""
    return rollout_N * (int(turn_N.max()) + 1 if turn_N.numel() else 1) + turn_N
