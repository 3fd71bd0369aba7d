"""OpenClaw-RL v1's token-level loss (arXiv 2603.10165 v1, option A): the gap as a PPO advantage of the sampled token.

    A_t = log π_T(y_t) − log π_old(y_t)   (a constant)
    L_t = max(−A_t r_t, −A_t clip(r_t, 1 − clip_low, 1 + clip_high)),   r_t = π(y_t) / π_old(y_t)

Two-sided and unclamped: one sample's estimate of the gradient of KL(π ‖ π_T).
"""

from dataclasses import dataclass, field

from hindsearch.interfaces import Support
from hindsearch.maths.divergences import clipped_surrogate, ratio, refuse_no_room
from hindsearch.maths.supports import SampledToken
from hindsearch.tensors import HindsightInputs, LossOutput


@dataclass(frozen=True)
class OpenClawToken:
    """The sampled token alone."""

    clip_low: float = 0.2
    clip_high: float = 0.28
    support: Support = SampledToken()
    needs_teacher: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        refuse_no_room(self.clip_low, self.clip_high)

    def __call__(self, inputs: HindsightInputs) -> LossOutput:
        gap_N = (inputs.teacher_logprobs_N - inputs.old_logprobs_N).detach()
        ratio_N = ratio(inputs.logprobs_N, inputs.old_logprobs_N)
        loss_N, clipped_N = clipped_surrogate(ratio_N, gap_N, self.clip_low, self.clip_high)
        return LossOutput(loss_N, {"weight": gap_N, "clipped": clipped_N.to(loss_N.dtype)})
