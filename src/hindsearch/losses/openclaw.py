"""OpenClaw-RL's PPO-clipped top-K surrogate (arXiv 2603.10165 v2), the loss that HindSearch is ablated with.

On the K entries v that the sampling policy finds likeliest, with full-vocabulary log-probabilities throughout:

    A_v = softmax_K(log π_old)_v · clamp(log π_T(v) − log π_old(v), −C, C)        (a constant)
    r_v = π(v) / π_old(v)
    L_t = Σ_v max(−A_v r_v, −A_v clip(r_v, 1 − clip_low, 1 + clip_high))

Ratios are of the full softmax: were they renormalised over the K entries, the student could satisfy the loss by
draining mass out of them. At ratio 1, K = V and no clamp, the gradient is that of KL(π ‖ π_T).
"""

from dataclasses import dataclass, field

import torch

from hindsearch.interfaces import Support
from hindsearch.maths.divergences import clipped_surrogate, ratio, refuse_no_room
from hindsearch.maths.supports import StudentTopK
from hindsearch.tensors import HindsightInputs, LossOutput


@dataclass(frozen=True)
class OpenClaw:
    """Two-sided, over a support; summed over its entries. ``limit`` is C, in nats."""

    support: Support = StudentTopK(4)
    limit: float = 1.0
    clip_low: float = 0.2
    clip_high: float = 0.28
    needs_teacher: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise ValueError(f"limit={self.limit} clamps every gap to nothing; use more than 0, for example 1.0")
        refuse_no_room(self.clip_low, self.clip_high)
        if self.support.size < 1:
            raise ValueError("the loss sums over a support, and this one is empty; use StudentTopK with k: 4")

    def __call__(self, inputs: HindsightInputs) -> LossOutput:
        old_NK = inputs.old_NK.masked_fill(~inputs.valid_NK, -torch.inf)
        share_NK = old_NK.softmax(dim=-1)
        gap_NK = torch.where(inputs.valid_NK, inputs.teacher_NK - inputs.old_NK, 0.0)
        advantages_NK = (share_NK * gap_NK.clamp(-self.limit, self.limit)).detach()
        ratio_NK = ratio(inputs.student_NK, inputs.old_NK)
        loss_NK, clipped_NK = clipped_surrogate(ratio_NK, advantages_NK, self.clip_low, self.clip_high)
        metrics = {
            "weight": advantages_NK.abs().sum(-1),
            "clipped": (clipped_NK & inputs.valid_NK).any(-1).to(loss_NK.dtype),
            "support_mass": torch.where(inputs.valid_NK, inputs.old_NK.exp(), 0.0).sum(-1).detach(),
        }
        return LossOutput(torch.where(inputs.valid_NK, loss_NK, 0.0).sum(-1), metrics)
