"""RLSD (arXiv 2604.03128): direction from the reward, magnitude from the teacher, token by token.

Â_t = A · [(1 − λ) + λ clip(exp(sign(A) Δ_t), 1 − ε, 1 + ε)],   Δ_t = log π_T(y_t) − log π_S(y_t)
"""

from dataclasses import dataclass, field

from torch import Tensor

from hindsearch.interfaces import Coefficient
from hindsearch.maths.divergences import MAX_LOG_RATIO
from hindsearch.tensors import CreditInputs


@dataclass(frozen=True)
class Rlsd:
    """``share`` is λ by step, at most 1 (SDAR's port: 0.5 down to 0 over 50 steps); ``limit`` is ε."""

    share: Coefficient
    limit: float = 0.2
    needs_teacher: bool = field(default=True, init=False)
    needs_labels: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.limit < 1:
            raise ValueError(f"credit.limit={self.limit} could turn an advantage round; use at least 0 and less than 1")
        if not 0 <= self.share(0) <= 1:
            raise ValueError(f"credit.share is {self.share(0)} at step 0; a share lies within 0 and 1")

    def __call__(self, inputs: CreditInputs) -> Tensor:
        share = self.share(inputs.step)
        signed_N = (inputs.advantages_N.sign() * inputs.gap_N).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
        factor_N = 1.0 - share + share * signed_N.exp().clamp(1.0 - self.limit, 1.0 + self.limit)
        return inputs.advantages_N * factor_N.where(inputs.hindsight_N, factor_N.new_ones(()))
