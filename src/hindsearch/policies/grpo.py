"""GRPO (arXiv 2402.03300) as Search-R1 trains with it (arXiv 2503.09516)."""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.interfaces import KlTerm, Reduction
from hindsearch.maths.advantages import standardised
from hindsearch.maths.divergences import ratio, refuse_no_room
from hindsearch.maths.surrogates import clipped_policy
from hindsearch.tensors import LossOutput, PolicyInputs


@dataclass(frozen=True)
class Grpo:
    """``max(−A·r, −A·clip(r, 1−clip_low, 1+clip_high))`` per token, A standardised within the group."""

    kl: KlTerm
    reduction: Reduction
    clip_low: float = 0.2
    clip_high: float = 0.2

    def __post_init__(self) -> None:
        refuse_no_room(self.clip_low, self.clip_high)

    def advantages(self, rewards_G: Sequence[float]) -> list[float]:
        if len(rewards_G) < 2:
            raise ValueError(f"a group of {len(rewards_G)} has no spread to normalise by; use 2 or more")
        return standardised(rewards_G)

    def counts(self, rewards_G: Sequence[float]) -> bool:
        return True

    def __call__(self, inputs: PolicyInputs) -> LossOutput:
        ratio_N = ratio(inputs.logprobs_N, inputs.old_logprobs_N)
        return clipped_policy(inputs, ratio_N, self.clip_low, self.clip_high)
