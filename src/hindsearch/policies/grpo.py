"""GRPO (arXiv 2402.03300) as Search-R1 trains with it (arXiv 2503.09516)."""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.interfaces import KlTerm, Reduction
from hindsearch.maths.advantages import standardised
from hindsearch.maths.divergences import clipped_surrogate, ratio
from hindsearch.tensors import LossOutput, PolicyInputs


@dataclass(frozen=True)
class Grpo:
    """``max(−A·r, −A·clip(r, 1−clip_low, 1+clip_high))`` per token, A standardised within the group."""

    kl: KlTerm
    reduction: Reduction
    clip_low: float = 0.2
    clip_high: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.clip_low < 1 or not self.clip_high > 0:
            raise ValueError(
                f"clip_low={self.clip_low}, clip_high={self.clip_high} leave no room around ratio 1; "
                "use 0 < clip_low < 1 and clip_high > 0, for example 0.2"
            )

    def advantages(self, rewards_G: Sequence[float]) -> list[float]:
        if len(rewards_G) < 2:
            raise ValueError(f"a group of {len(rewards_G)} has no spread to normalise by; use 2 or more")
        return standardised(rewards_G)

    def __call__(self, inputs: PolicyInputs) -> LossOutput:
        ratio_N = ratio(inputs.logprobs_N, inputs.old_logprobs_N)
        loss_N, clipped_N = clipped_surrogate(ratio_N, inputs.advantages_N, self.clip_low, self.clip_high)
        metrics = {"ratio": ratio_N.detach(), "clipped": clipped_N.to(loss_N.dtype)}
        return LossOutput(loss_N, metrics)
