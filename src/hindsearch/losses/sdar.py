"""SDAR's gated loss (arXiv 2605.15155): a sigmoid of the gap in place of HindSearch's clamp.

    L_t = − sg[σ(β Δ_t)] · log π_S(y_t),   Δ_t = log π_T(y_t) − log π_S(y_t)

The paper writes ``σ(βΔ)(log π_T − log π_S)``; the teacher's term is a constant. At Δ = 0 the gate is ½, not 0: a
teacher that agrees still pulls at the student's own samples, which is why β = 0 makes the paper's strongest "baseline".
"""

from dataclasses import dataclass, field

from hindsearch.interfaces import Support
from hindsearch.maths.supports import SampledToken
from hindsearch.tensors import HindsightInputs, LossOutput


@dataclass(frozen=True)
class Sdar:
    """The sampled token alone; ``beta`` is the gate's steepness, per nat. 0 leaves no information of the teacher."""

    beta: float = 5.0
    support: Support = SampledToken()
    needs_teacher: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if not self.beta >= 0:
            raise ValueError(f"beta={self.beta} would raise what the teacher dislikes; use 0 or more, for example 5")

    def __call__(self, inputs: HindsightInputs) -> LossOutput:
        gap_N = (inputs.teacher_logprobs_N - inputs.logprobs_N).detach()
        gate_N = (self.beta * gap_N).sigmoid()
        return LossOutput(-gate_N * inputs.logprobs_N, {"weight": gate_N})
