"""Forward KL: the student covers what the hinted teacher finds likely (Search-E1, arXiv 2605.22511).

    L_t = Σ_v min(p_T(v) [log p_T(v) − log p_S(v)], κ)

over a support and what its tail becomes; κ caps each entry. The gradient on the logits is that of cross-entropy against
the teacher's distribution, ``p_S − p_T``, where nothing is capped and nothing is dropped.
"""

from dataclasses import dataclass, field

from hindsearch.interfaces import Cap, Support, Tail
from hindsearch.maths.caps import PerEntry
from hindsearch.maths.divergences import forward_kl_terms
from hindsearch.maths.supports import TeacherTopK
from hindsearch.maths.tails import Bucket
from hindsearch.tensors import HindsightInputs, LossOutput


@dataclass(frozen=True)
class ForwardKl:
    """KL(teacher ‖ student) over a support, in nats."""

    support: Support = TeacherTopK(100)
    tail: Tail = Bucket()
    cap: Cap = PerEntry(0.05)
    needs_teacher: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if self.support.size < 1:
            raise ValueError(
                "a divergence is summed over a support, and this one is empty; use TeacherTopK with k: 100"
            )

    def __call__(self, inputs: HindsightInputs) -> LossOutput:
        student_NK, valid_NK = self.tail(inputs.student_NK, inputs.valid_NK)
        teacher_NK, _ = self.tail(inputs.teacher_NK.detach(), inputs.valid_NK)
        loss_N = self.cap(forward_kl_terms(student_NK, teacher_NK, valid_NK))
        return LossOutput(loss_N, {"divergence": loss_N.detach()})
