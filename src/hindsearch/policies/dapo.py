"""DAPO (arXiv 2503.14476): clip-higher, a mean over all tokens, and groups without a contrast left out.

A group whose rewards are all equal has no advantage; its tokens do not count in the divisor either. It is filtered from
the policy term alone: such groups are what a hindsight loss feeds on. Groups are not drawn again in their place, so a
step costs what it costs. Overlong shaping is a reward: ``reward=em_overlong``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.interfaces import KlTerm, Reduction
from hindsearch.maths.advantages import standardised
from hindsearch.maths.divergences import ratio, refuse_no_room
from hindsearch.maths.surrogates import clipped_policy
from hindsearch.tensors import LossOutput, PolicyInputs


@dataclass(frozen=True)
class Dapo:
    """``max(−A·r, −A·clip(r, 1−clip_low, 1+clip_high))`` per token, over groups whose rewards differ."""

    kl: KlTerm
    reduction: Reduction
    clip_low: float = 0.2
    clip_high: float = 0.28

    def __post_init__(self) -> None:
        refuse_no_room(self.clip_low, self.clip_high)

    def advantages(self, rewards_G: Sequence[float]) -> list[float]:
        return standardised(rewards_G)

    def counts(self, rewards_G: Sequence[float]) -> bool:
        return max(rewards_G) > min(rewards_G)

    def __call__(self, inputs: PolicyInputs) -> LossOutput:
        ratio_N = ratio(inputs.logprobs_N, inputs.old_logprobs_N)
        return clipped_policy(inputs, ratio_N, self.clip_low, self.clip_high)
