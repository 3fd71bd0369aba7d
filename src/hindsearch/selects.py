"""Which rollouts the hindsight loss acts on."""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.types import Score


@dataclass(frozen=True)
class Failed:
    """Rollouts with EM 0 (HindSearch, arXiv 2608.01597): a missing answer fails too."""

    def __call__(self, scores_PG: Sequence[Sequence[Score]]) -> list[list[bool]]:
        return [[score.em == 0.0 for score in group] for group in scores_PG]


@dataclass(frozen=True)
class AllFailGroups:
    """Failed rollouts of groups without a success: those that the policy loss learns nothing from."""

    def __call__(self, scores_PG: Sequence[Sequence[Score]]) -> list[list[bool]]:
        return [[all(score.em == 0.0 for score in group)] * len(group) for group in scores_PG]
