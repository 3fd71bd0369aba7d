"""OpenClaw-RL v1's distribution loss (arXiv 2603.10165 v1, option B): reverse KL over the teacher's top K and the tail.

    L_t = Σ_{k=1..K+1} p_S(k) [log p_S(k) − log p_T(k)]

with one bin for everything outside the K entries in place of renormalising. No clip, no PPO.
"""

from dataclasses import dataclass, field

from hindsearch.interfaces import Support
from hindsearch.maths.divergences import reverse_kl_terms
from hindsearch.maths.supports import TeacherTopK
from hindsearch.maths.tails import Bucket
from hindsearch.tensors import HindsightInputs, LossOutput


@dataclass(frozen=True)
class TopkTail:
    """KL(student ‖ teacher) over ``k + 1`` bins, in nats."""

    k: int = 50
    needs_teacher: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        TeacherTopK(self.k)

    @property
    def support(self) -> Support:
        return TeacherTopK(self.k)

    def __call__(self, inputs: HindsightInputs) -> LossOutput:
        student_NK, valid_NK = Bucket()(inputs.student_NK, inputs.valid_NK)
        teacher_NK, _ = Bucket()(inputs.teacher_NK.detach(), inputs.valid_NK)
        loss_N = reverse_kl_terms(student_NK, teacher_NK, valid_NK).sum(-1)
        return LossOutput(loss_N, {"divergence": loss_N.detach(), "tail": teacher_NK[:, -1].exp()})
