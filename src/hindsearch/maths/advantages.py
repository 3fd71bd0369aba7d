"""Advantages of a group of rollouts of one question."""

import math
from collections.abc import Sequence


def centred(rewards_G: Sequence[float]) -> list[float]:
    """Rewards minus their mean; exactly 0 where all are equal, whatever the rounding of the mean."""
    _refuse_unscorable(rewards_G)
    if max(rewards_G) == min(rewards_G):
        return [0.0] * len(rewards_G)
    mean = math.fsum(rewards_G) / len(rewards_G)
    return [reward - mean for reward in rewards_G]


def standardised(rewards_G: Sequence[float]) -> list[float]:
    """Rewards minus their mean over their standard deviation: ``(r − mean) / (std + 1e-6)``, unbiased std.

    GRPO (arXiv 2402.03300, eq. for outcome supervision) as Search-R1's code has it. Equal rewards are told by
    comparing them, not by a float std, whose residue could be divided by itself.
    """
    differences_G = centred(rewards_G)
    if len(rewards_G) < 2:
        return differences_G
    std = math.sqrt(math.fsum(d * d for d in differences_G) / (len(rewards_G) - 1))
    return [difference / (std + 1e-6) for difference in differences_G]


def leave_one_out(rewards_G: Sequence[float]) -> list[float]:
    """Each reward minus the mean of the others (RLOO, arXiv 2402.14740, eq. 3); exactly 0 where all are equal."""
    differences_G = centred(rewards_G)
    if len(rewards_G) < 2:
        return differences_G
    scale = len(rewards_G) / (len(rewards_G) - 1)
    return [scale * difference for difference in differences_G]


def _refuse_unscorable(rewards_G: Sequence[float]) -> None:
    if not rewards_G or not all(math.isfinite(reward) for reward in rewards_G):
        raise ValueError(f"rewards of a group must be finite numbers, saw {list(rewards_G)}")
