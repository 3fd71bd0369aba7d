"""Nothing holds the student to the policy that sampled, beyond the clip."""

from dataclasses import dataclass, field

from hindsearch.tensors import LossOutput, PolicyInputs


@dataclass(frozen=True)
class NoAnchor:
    """Zero on every token."""

    active: bool = field(default=False, init=False)

    def __call__(self, inputs: PolicyInputs) -> LossOutput:
        return LossOutput(inputs.logprobs_N * 0.0, {})
