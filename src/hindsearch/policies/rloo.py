"""RLOO (arXiv 2402.14740): REINFORCE with the mean of the other rollouts of the group as its baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.interfaces import KlTerm, Reduction
from hindsearch.maths.advantages import leave_one_out
from hindsearch.maths.divergences import ratio
from hindsearch.tensors import LossOutput, PolicyInputs


@dataclass(frozen=True)
class Rloo:
    """``−A·r`` per token, unclipped: at ratio 1 its gradient is that of ``−A · log π`` (eq. 3)."""

    kl: KlTerm
    reduction: Reduction

    def advantages(self, rewards_G: Sequence[float]) -> list[float]:
        return leave_one_out(rewards_G)

    def counts(self, rewards_G: Sequence[float]) -> bool:
        return True

    def __call__(self, inputs: PolicyInputs) -> LossOutput:
        ratio_N = ratio(inputs.logprobs_N, inputs.old_logprobs_N)
        return LossOutput(-inputs.advantages_N * ratio_N, {"ratio": ratio_N.detach()})
