"""Placebo: raise the student's own sampled tokens by a constant, where the real arm would raise them by a gap.

    L_t = − weight · log π_S(y_t)

No teacher, no hint: what is left of a gain under this loss is not the hint's (the effect of arXiv 2512.04220: a
constant pull on own samples fights likelihood displacement). Give ``weight`` the mean coefficient of the real arm
(``hindsight/weight`` in its log) to compare like with like.
"""

from dataclasses import dataclass, field

import torch

from hindsearch.interfaces import Support
from hindsearch.maths.supports import SampledToken
from hindsearch.tensors import HindsightInputs, LossOutput


@dataclass(frozen=True)
class SelfNll:
    """Constant-weight negative log-likelihood of own samples, on the same tokens as any other hindsight loss."""

    weight: float = 0.1
    support: Support = SampledToken()
    needs_teacher: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if not self.weight > 0:
            raise ValueError(f"weight={self.weight} pulls nowhere; use more than 0, for example 0.1")

    def __call__(self, inputs: HindsightInputs) -> LossOutput:
        weight_N = torch.full_like(inputs.logprobs_N, self.weight)
        return LossOutput(-weight_N * inputs.logprobs_N, {"weight": weight_N.detach()})
