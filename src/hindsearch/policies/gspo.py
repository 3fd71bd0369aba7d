"""GSPO (arXiv 2507.18071): the ratio of a whole rollout, and one decision to clip for all of its tokens.

    s_i = exp(1/|y_i| Σ_t log(π/π_old)),   L_i = max(−A s_i, −A clip(s_i, 1−clip_low, 1+clip_high))     (eq. 5 and 7)

Each token carries its rollout's value, so ``SequenceMean`` gives the paper's mean over rollouts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.interfaces import KlTerm, Reduction
from hindsearch.maths.advantages import standardised
from hindsearch.maths.divergences import ratio, refuse_no_room
from hindsearch.maths.surrogates import clipped_policy
from hindsearch.maths.units import mean_per_unit
from hindsearch.tensors import LossOutput, PolicyInputs


@dataclass(frozen=True)
class Gspo:
    """The clip is of the order of 1e-4, since a mean of log-ratios is that much nearer to 0 than one of them."""

    kl: KlTerm
    reduction: Reduction
    clip_low: float = 3e-4
    clip_high: float = 4e-4

    def __post_init__(self) -> None:
        refuse_no_room(self.clip_low, self.clip_high)

    def advantages(self, rewards_G: Sequence[float]) -> list[float]:
        return standardised(rewards_G)

    def counts(self, rewards_G: Sequence[float]) -> bool:
        return True

    def __call__(self, inputs: PolicyInputs) -> LossOutput:
        mean_N = mean_per_unit(inputs.logprobs_N - inputs.old_logprobs_N, inputs.rollout_N)
        ratio_N = ratio(mean_N, mean_N.new_zeros(()))
        return clipped_policy(inputs, ratio_N, self.clip_low, self.clip_high)
