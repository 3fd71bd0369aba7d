"""No hindsight loss. The composition root sees it and builds no judge, no critiques and no teacher for it."""

from dataclasses import dataclass, field

from hindsearch.interfaces import Support
from hindsearch.maths.supports import SampledToken
from hindsearch.tensors import HindsightInputs, LossOutput


@dataclass(frozen=True)
class NoLoss:
    """Zero on every token, with zero gradient."""

    support: Support = SampledToken()
    needs_teacher: bool = field(default=False, init=False)

    def __call__(self, inputs: HindsightInputs) -> LossOutput:
        return LossOutput(inputs.logprobs_N * 0.0, {})
