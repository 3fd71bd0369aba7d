"""LLDS (arXiv 2512.04220): good actions must not lose likelihood.

Search agents collapse because failed rollouts share their first queries with successful ones, and punishing them drags
good actions down. For rollouts with A >= 0, over each action k (a turn) whose likelihood fell since sampling:

    L = weight · 1/Σ|y| Σ_k 1[Σ_{t∈k} D_t > 0] Σ_{t∈k} max(0, D_t),   D_t = log π_old(y_t) − log π(y_t)

The policy's reduction divides; with ``TokenMean`` that is the paper's. At the first update of a rollout batch every D
is 0, so it acts only under several (``updates=several``).
"""

from dataclasses import dataclass, field

import torch

from hindsearch.maths.units import sum_per_unit, turn_units
from hindsearch.tensors import LossOutput, PolicyInputs


@dataclass(frozen=True)
class Llds:
    """``weight`` is the paper's λ."""

    weight: float = 0.2
    active: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if not self.weight > 0:
            raise ValueError(f"anchor.weight={self.weight} holds nothing; use more than 0, or anchor=none")

    def __call__(self, inputs: PolicyInputs) -> LossOutput:
        drop_N = inputs.old_logprobs_N - inputs.logprobs_N
        fell_N = sum_per_unit(drop_N.detach(), turn_units(inputs.rollout_N, inputs.turn_N)) > 0
        acts_N = fell_N & (inputs.advantages_N >= 0)
        loss_N = self.weight * torch.where(acts_N, drop_N.clamp(min=0.0), 0.0)
        return LossOutput(loss_N, {"held": acts_N.to(drop_N.dtype)})
