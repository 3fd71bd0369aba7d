"""Jensen-Shannon divergence between student and hinted teacher (SD-Search, arXiv 2605.18299).

    L_t = β KL(p_T ‖ m) + (1 − β) KL(p_S ‖ m),   m = β p_T + (1 − β) p_S

With β = ½ it is symmetric and at most ln 2 nats, so that no token can dominate. SD-Search truncates to the top 50 and
does not say whose; here it is the union of both, renormalised.
"""

from dataclasses import dataclass, field

from hindsearch.interfaces import Cap, Support, Tail
from hindsearch.maths.caps import NoCap
from hindsearch.maths.divergences import jsd_terms
from hindsearch.maths.supports import UnionTopK
from hindsearch.maths.tails import Renormalised
from hindsearch.tensors import HindsightInputs, LossOutput


@dataclass(frozen=True)
class Jsd:
    """Generalised Jensen-Shannon divergence over a support, in nats; ``beta`` is the teacher's share of the mixture."""

    support: Support = UnionTopK(50)
    tail: Tail = Renormalised()
    cap: Cap = NoCap()
    beta: float = 0.5
    needs_teacher: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if not 0 < self.beta < 1:
            raise ValueError(f"beta={self.beta} is no mixture; use more than 0 and less than 1, or loss=forward_kl")
        if self.support.size < 1:
            raise ValueError("a divergence is summed over a support, and this one is empty; use UnionTopK with k: 50")

    def __call__(self, inputs: HindsightInputs) -> LossOutput:
        student_NK, valid_NK = self.tail(inputs.student_NK, inputs.valid_NK)
        teacher_NK, _ = self.tail(inputs.teacher_NK.detach(), inputs.valid_NK)
        loss_N = self.cap(jsd_terms(student_NK, teacher_NK, valid_NK, self.beta))
        return LossOutput(loss_N, {"divergence": loss_N.detach()})
