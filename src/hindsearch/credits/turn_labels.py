"""CriticSearch (arXiv 2511.12159): a judge's Good or Bad of each turn, mixed into the advantage.

    Â_t = α A^turn_t + (1 − α) A,   A^turn_t = 1[Good] / (Σ Good + ε)

An evaluative judge, where HindSearch has a directive one. The mix is additive: a good turn of a failed rollout can get
a positive advantage, and groups without a contrast learn from their good turns alone. No teacher is read.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from hindsearch.maths.units import sum_per_unit, turn_units
from hindsearch.tensors import CreditInputs


@dataclass(frozen=True)
class TurnLabels:
    """``share`` is α."""

    share: float = 0.25
    needs_teacher: bool = field(default=False, init=False)
    needs_labels: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"credit.share={self.share} is no share; use 0 to 1, for example 0.25")

    def __call__(self, inputs: CreditInputs) -> Tensor:
        good_N = inputs.good_N.to(inputs.advantages_N.dtype)
        # each good turn counts once, however many tokens it has
        per_turn_N = sum_per_unit(torch.ones_like(good_N), turn_units(inputs.rollout_N, inputs.turn_N))
        good_turns_N = sum_per_unit(good_N / per_turn_N, inputs.rollout_N) if good_N.numel() else good_N
        return self.share * good_N / (good_turns_N + 1e-6) + (1.0 - self.share) * inputs.advantages_N
