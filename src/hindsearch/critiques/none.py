"""No critique: the teacher sees nothing, and the hindsight loss acts on no rollout."""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.types import NO_CRITIQUE, Critique, Rollout, Score


@dataclass(frozen=True)
class NoCritiques:
    """Asks nobody."""

    def __call__(
        self, rollouts: Sequence[Rollout], scores: Sequence[Score], wanted: Sequence[bool], step: int
    ) -> list[Critique]:
        return [NO_CRITIQUE] * len(rollouts)
