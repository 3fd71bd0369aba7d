"""HindSearch's loss (arXiv 2608.01597): raise what the hinted teacher would rather have typed.

    L_t = − sg[clamp(Δ_t, low, high)] · log π_S(y_t),   Δ_t = log π_T(y_t | hint, context) − log π_S(y_t | context)

The teacher reads the trajectory with the judge's critique in front. Only the sampled token is needed, no distribution.
The paper prints the product without saying whether the coefficient is differentiated; here it is a constant by default,
since in the graph it would push a rare token (log π −5, gap .5) eleven times harder. Bounds 0 and 1 are the paper's.
"""

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from hindsearch.interfaces import Support
from hindsearch.maths.supports import SampledToken
from hindsearch.maths.units import mean_per_unit, turn_units
from hindsearch.tensors import HindsightInputs, LossOutput


class CoefficientGraph(Protocol):
    """Whether gradient flows through the clamped gap."""

    def __call__(self, coefficient_N: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Detached:
    """The coefficient is a constant: the usual policy-gradient reading."""

    def __call__(self, coefficient_N: Tensor) -> Tensor:
        return coefficient_N.detach()


@dataclass(frozen=True)
class Attached:
    """The coefficient is differentiated: the other reading of the paper's formula."""

    def __call__(self, coefficient_N: Tensor) -> Tensor:
        return coefficient_N


class Baseline(Protocol):
    """What is taken off the coefficient: its mean carries no information of the hint."""

    def __call__(self, coefficient_N: Tensor, step_coefficients_A: Tensor, units_N: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class NoBaseline:
    """Nothing, as in the paper."""

    def __call__(self, coefficient_N: Tensor, step_coefficients_A: Tensor, units_N: Tensor) -> Tensor:
        return torch.zeros_like(coefficient_N)


@dataclass(frozen=True)
class BatchMean:
    """The mean over all hindsight tokens of the step, on all ranks, under the policy that sampled."""

    def __call__(self, coefficient_N: Tensor, step_coefficients_A: Tensor, units_N: Tensor) -> Tensor:
        return step_coefficients_A.mean().to(coefficient_N.dtype).expand_as(coefficient_N)


@dataclass(frozen=True)
class SpanMean:
    """The mean over the hindsight tokens of the same turn: what is left tells its tokens apart, and nothing else."""

    def __call__(self, coefficient_N: Tensor, step_coefficients_A: Tensor, units_N: Tensor) -> Tensor:
        return mean_per_unit(coefficient_N, units_N)


@dataclass(frozen=True)
class PlainClamp:
    """Sampled-token loss with the gap clamped to [``low``, ``high``] nats as its coefficient, less a baseline.

    A positive-only coefficient on failed rollouts has a mean that pulls toward failed behaviour; a baseline takes it
    off, and the coefficient may then be negative.
    """

    low: float = 0.0
    high: float = 1.0
    graph: CoefficientGraph = Detached()
    baseline: Baseline = NoBaseline()
    support: Support = SampledToken()
    needs_teacher: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"low={self.low} is not below high={self.high}; the paper uses 0 and 1")

    def __call__(self, inputs: HindsightInputs) -> LossOutput:
        gap_N = inputs.teacher_logprobs_N - inputs.logprobs_N
        coefficient_N = self.graph(gap_N.clamp(self.low, self.high))
        step_coefficients_A = inputs.step_gaps_A.clamp(self.low, self.high)
        units_N = turn_units(inputs.rollout_N, inputs.turn_N)
        coefficient_N = coefficient_N - self.baseline(coefficient_N.detach(), step_coefficients_A, units_N)
        weight_N = coefficient_N.detach()
        clipped_N = (gap_N.detach() > self.high).to(gap_N.dtype)
        return LossOutput(-coefficient_N * inputs.logprobs_N, {"weight": weight_N, "clipped": clipped_N})
