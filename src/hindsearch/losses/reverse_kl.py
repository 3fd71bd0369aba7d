"""Reverse KL: the student keeps to what the hinted teacher finds likely (Thinking Machines, On-Policy Distillation).

    L_t = Σ_v p_S(v) [log p_S(v) − log p_T(v)]

over a support and what its tail becomes, differentiated through both factors.
"""

from dataclasses import dataclass, field

from hindsearch.interfaces import Cap, Support, Tail
from hindsearch.maths.caps import NoCap
from hindsearch.maths.divergences import reverse_kl_terms
from hindsearch.maths.supports import StudentTopK
from hindsearch.maths.tails import Bucket
from hindsearch.tensors import HindsightInputs, LossOutput


@dataclass(frozen=True)
class ReverseKl:
    """KL(student ‖ teacher) over a support, in nats."""

    support: Support = StudentTopK(100)
    tail: Tail = Bucket()
    cap: Cap = NoCap()
    needs_teacher: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if self.support.size < 1:
            raise ValueError(
                "a divergence is summed over a support, and this one is empty; use StudentTopK with k: 100"
            )

    def __call__(self, inputs: HindsightInputs) -> LossOutput:
        student_NK, valid_NK = self.tail(inputs.student_NK, inputs.valid_NK)
        teacher_NK, _ = self.tail(inputs.teacher_NK.detach(), inputs.valid_NK)
        loss_N = self.cap(reverse_kl_terms(student_NK, teacher_NK, valid_NK))
        return LossOutput(loss_N, {"divergence": loss_N.detach()})
