"""DAPO's soft punishment of overlong rollouts (arXiv 2503.14476, eq. 13), on top of any reward."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hindsearch.interfaces import Reward
from hindsearch.types import Rollout, Score


@dataclass(frozen=True)
class Overlong:
    """Takes from the reward what is due to length; EM and F1 stay.

    Nothing up to ``(1 − soft) · limit`` sampled tokens, 1 at ``limit`` and beyond, a straight line between.
    """

    reward: Reward
    limit: int
    soft: float = 0.2

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"reward.limit={self.limit} punishes every token; use the most that a rollout may sample")
        if not 0 < self.soft <= 1:
            raise ValueError(f"reward.soft={self.soft} is no share of the limit; use more than 0 and at most 1")

    def __call__(self, rollouts: Sequence[Rollout]) -> list[Score]:
        scores = self.reward(rollouts)
        return [replace(s, reward=s.reward - self._due(r)) for r, s in zip(rollouts, scores, strict=True)]

    def _due(self, rollout: Rollout) -> float:
        free = (1.0 - self.soft) * self.limit
        return min(1.0, max(0.0, (sum(rollout.loss_mask) - free) / (self.limit - free)))
