"""Which rollouts the hindsight loss or credit acts on, group by group."""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.siblings import pair_of
from hindsearch.types import Rollout, Score

Groups = Sequence[Sequence[Rollout]]
Scores = Sequence[Sequence[Score]]


@dataclass(frozen=True)
class Failed:
    """Rollouts with EM 0 (HindSearch, arXiv 2608.01597): a missing answer fails too."""

    def __call__(self, rollouts_PG: Groups, scores_PG: Scores) -> list[list[bool]]:
        return [[score.em == 0.0 for score in group] for group in scores_PG]


@dataclass(frozen=True)
class AllFailGroups:
    """Failed rollouts of groups without a success: those that the policy loss learns nothing from."""

    def __call__(self, rollouts_PG: Groups, scores_PG: Scores) -> list[list[bool]]:
        return [[all(score.em == 0.0 for score in group)] * len(group) for group in scores_PG]


@dataclass(frozen=True)
class All:
    """Every rollout, successful or not (SD-Search, OpenClaw-RL)."""

    def __call__(self, rollouts_PG: Groups, scores_PG: Scores) -> list[list[bool]]:
        return [[True] * len(group) for group in scores_PG]


@dataclass(frozen=True)
class Success:
    """Rollouts with EM 1: what is confirmed, and not what is corrected."""

    def __call__(self, rollouts_PG: Groups, scores_PG: Scores) -> list[list[bool]]:
        return [[score.em == 1.0 for score in group] for group in scores_PG]


@dataclass(frozen=True)
class RewardBelow:
    """Rollouts that earned less than ``threshold`` (SSPO, arXiv 2608.12764: less than the full reward)."""

    threshold: float = 1.0

    def __call__(self, rollouts_PG: Groups, scores_PG: Scores) -> list[list[bool]]:
        return [[score.reward < self.threshold for score in group] for group in scores_PG]


@dataclass(frozen=True)
class Pairs:
    """The student's side of the one pair that a group holds; none without a success (Search-E1, arXiv 2605.22511)."""

    def __call__(self, rollouts_PG: Groups, scores_PG: Scores) -> list[list[bool]]:
        pairs = [pair_of(rollouts, scores) for rollouts, scores in zip(rollouts_PG, scores_PG, strict=True)]
        return [
            [pair is not None and i == pair[0] for i in range(len(group))]
            for group, pair in zip(scores_PG, pairs, strict=True)
        ]
