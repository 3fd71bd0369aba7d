"""Dr. GRPO (arXiv 2503.20783): neither the spread of a group's rewards nor a rollout's own length divides anything.

Use it with ``maths.reductions.ConstantLength``: GRPO's division by length favours long wrong rollouts, its division by
the spread favours questions that are nearly always, or nearly never, answered.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.interfaces import KlTerm, Reduction
from hindsearch.maths.advantages import centred
from hindsearch.maths.divergences import ratio, refuse_no_room
from hindsearch.maths.surrogates import clipped_policy
from hindsearch.tensors import LossOutput, PolicyInputs


@dataclass(frozen=True)
class DrGrpo:
    """``max(−A·r, −A·clip(r, 1−clip_low, 1+clip_high))`` per token with ``A = R − mean(R)``."""

    kl: KlTerm
    reduction: Reduction
    clip_low: float = 0.2
    clip_high: float = 0.2

    def __post_init__(self) -> None:
        refuse_no_room(self.clip_low, self.clip_high)

    def advantages(self, rewards_G: Sequence[float]) -> list[float]:
        return centred(rewards_G)

    def counts(self, rewards_G: Sequence[float]) -> bool:
        return True

    def __call__(self, inputs: PolicyInputs) -> LossOutput:
        ratio_N = ratio(inputs.logprobs_N, inputs.old_logprobs_N)
        return clipped_policy(inputs, ratio_N, self.clip_low, self.clip_high)
