"""Search-E1's privileged text (arXiv 2605.22511): the correct rollout of the group with fewest searches."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from hindsearch.hints import clean, hint_block
from hindsearch.siblings import expert_of, sibling_block
from hindsearch.types import NO_CRITIQUE, Critique, CritiqueOutcome, Rollout, Score, TurnKind


class Rendering(Protocol):
    """How much of the expert's rollout the teacher sees."""

    def __call__(self, expert: Rollout) -> str: ...


@dataclass(frozen=True)
class Full:
    """Everything it wrote and read, as in the paper: passages and the answer too."""

    def __call__(self, expert: Rollout) -> str:
        return hint_block(clean(expert.text))


@dataclass(frozen=True)
class NoAnswer:
    """Everything but the turn that answered. The passages may still hold the answer."""

    def __call__(self, expert: Rollout) -> str:
        turns = [turn for turn in expert.turns if turn.kind is not TurnKind.ANSWER]
        return hint_block(clean("".join(turn.text + turn.observation for turn in turns)))


@dataclass(frozen=True)
class QueriesOnly:
    """Its queries, in the sibling block's wording."""

    def __call__(self, expert: Rollout) -> str:
        return sibling_block([("CORRECT", [clean(turn.content) for turn in expert.searches])])


@dataclass(frozen=True)
class ExpertCritiques:
    """Shows each rollout wanted the best of its siblings; asks no judge.

    Where no other rollout of the group is correct, or none differs from this one, the outcome is ``UNMATCHED``. The
    block holds the answer (but for ``QueriesOnly``), so no leak filter applies: that is the method.
    """

    rendering: Rendering = field(default_factory=Full)

    def __call__(
        self, rollouts: Sequence[Rollout], scores: Sequence[Score], wanted: Sequence[bool], step: int
    ) -> list[Critique]:
        critiques = [NO_CRITIQUE] * len(rollouts)
        for _, members in groupby(range(len(rollouts)), key=lambda i: rollouts[i].group):
            group = list(members)
            rollouts_G, scores_G = [rollouts[i] for i in group], [scores[i] for i in group]
            for place, i in enumerate(group):
                if wanted[i]:
                    expert = expert_of(rollouts_G, scores_G, place)
                    critiques[i] = self._critique(None if expert is None else rollouts_G[expert])
        return critiques

    def _critique(self, expert: Rollout | None) -> Critique:
        if expert is None:
            return Critique(text="", hint="", outcome=CritiqueOutcome.UNMATCHED)
        block = self.rendering(expert)
        return Critique(text=block, hint=block, outcome=CritiqueOutcome.KEPT)
