"""SSPO (arXiv 2608.12764): the teacher scales the penalty of each step, and never turns it round.

    Â_k = min(exp(sign(A) · Δ_k), 1 + ε) · A,   Δ_k = Σ_{t∈k} [log π_T(y_t) − log π_S(y_t)]

over the selected tokens of step k. With A < 0: a step that the teacher dislikes too is punished up to 1 + ε times as
much, one that it likes hardly at all. A = 0 stays 0, and a rollout that is not selected keeps its advantage.
"""

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from hindsearch.maths.divergences import MAX_LOG_RATIO
from hindsearch.maths.units import mean_per_unit, sum_per_unit, turn_units
from hindsearch.tensors import CreditInputs


class StepGap(Protocol):
    """From the gaps of tokens to the gap of the step they belong to."""

    def __call__(self, gap_M: Tensor, units_M: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Sum:
    """The step's log-ratio, as in the paper: over tens of tokens nearly a switch between 0 and 1 + ε."""

    def __call__(self, gap_M: Tensor, units_M: Tensor) -> Tensor:
        return sum_per_unit(gap_M, units_M)


@dataclass(frozen=True)
class Mean:
    """Per token, so that long steps are not extreme by their length."""

    def __call__(self, gap_M: Tensor, units_M: Tensor) -> Tensor:
        return mean_per_unit(gap_M, units_M)


@dataclass(frozen=True)
class Sspo:
    """``limit`` is ε; no lower bound."""

    limit: float = 0.2
    step_gap: StepGap = Sum()
    needs_teacher: bool = field(default=True, init=False)
    needs_labels: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if not self.limit >= 0:
            raise ValueError(f"credit.limit={self.limit} would weaken every penalty; use 0 or more, for example 0.2")

    def __call__(self, inputs: CreditInputs) -> Tensor:
        chosen_N = inputs.hindsight_N
        units_M = turn_units(inputs.rollout_N[chosen_N], inputs.turn_N[chosen_N])
        gap_M = self.step_gap(inputs.gap_N[chosen_N], units_M)
        signed_M = (inputs.advantages_N[chosen_N].sign() * gap_M).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
        advantages_N = inputs.advantages_N.clone()
        advantages_N[chosen_N] *= signed_M.exp().clamp(max=1.0 + self.limit)
        assert torch.equal(advantages_N.sign(), inputs.advantages_N.sign()), "a credit scales, it does not turn round"
        return advantages_N
