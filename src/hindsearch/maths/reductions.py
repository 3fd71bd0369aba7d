"""How a step's per-token losses become one number: ``Σ part · loss / divisor``, over all rollouts of all ranks.

A reduction gives each token its part in its rollout's sum, and says how much the rollout adds to the divisor. Both are
decided once per step from counts, so that micro-batches, ranks and padding change nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from hindsearch.maths.units import sum_per_unit


@dataclass(frozen=True)
class TokenMean:
    """``Σ_i Σ_t l / Σ_i |y_i|``: every token of the step weighs the same (DAPO, arXiv 2503.14476)."""

    def parts(self, turn_N: Tensor) -> Tensor:
        return torch.ones(turn_N.shape, dtype=torch.float64, device=turn_N.device)

    def divisor(self, turn_N: Tensor) -> float:
        return float(turn_N.numel())


@dataclass(frozen=True)
class SequenceMean:
    """``1/R Σ_i 1/|y_i| Σ_t l``: every rollout with tokens weighs the same (GRPO, arXiv 2402.03300)."""

    def parts(self, turn_N: Tensor) -> Tensor:
        return torch.full(turn_N.shape, 1.0 / max(turn_N.numel(), 1), dtype=torch.float64, device=turn_N.device)

    def divisor(self, turn_N: Tensor) -> float:
        return float(turn_N.numel() > 0)


@dataclass(frozen=True)
class SpanMean:
    """``1/S Σ_s 1/|s| Σ_t l``: every turn's tokens weigh the same together; a turn holds at most one query."""

    def parts(self, turn_N: Tensor) -> Tensor:
        return 1.0 / sum_per_unit(torch.ones(turn_N.shape, dtype=torch.float64, device=turn_N.device), turn_N)

    def divisor(self, turn_N: Tensor) -> float:
        return float(self.parts(turn_N).sum().round())


@dataclass(frozen=True)
class ConstantLength:
    """``1/R Σ_i 1/length Σ_t l``: one constant for all rollouts, which favours no length (Dr. GRPO, arXiv 2503.20783).

    ``length`` is in tokens, usually the longest completion allowed.
    """

    length: int

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"length={self.length} divides by nothing; use the most tokens a rollout may have")

    def parts(self, turn_N: Tensor) -> Tensor:
        return torch.full(turn_N.shape, 1.0 / self.length, dtype=torch.float64, device=turn_N.device)

    def divisor(self, turn_N: Tensor) -> float:
        return float(turn_N.numel() > 0)
