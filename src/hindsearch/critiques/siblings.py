"""SD-Search's block (arXiv 2605.18299): what all rollouts of the group searched for, and which of them were right."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Protocol

from hindsearch.hints import clean
from hindsearch.seeding import seed_of
from hindsearch.siblings import sibling_block
from hindsearch.types import NO_CRITIQUE, Critique, CritiqueOutcome, Rollout, Score


class Labels(Protocol):
    """The labels of a group's rollouts, '' for none."""

    def __call__(self, rollouts_G: Sequence[Rollout], scores_G: Sequence[Score], seed: int) -> list[str]: ...


@dataclass(frozen=True)
class Outcomes:
    """CORRECT where the answer's F1 is above ``threshold``: with 0, as in the paper, any overlap counts."""

    threshold: float = 0.0

    def __call__(self, rollouts_G: Sequence[Rollout], scores_G: Sequence[Score], seed: int) -> list[str]:
        return ["CORRECT" if score.f1 > self.threshold else "INCORRECT" for score in scores_G]


@dataclass(frozen=True)
class Unlabelled:
    """The queries alone (ablation: −1.4 points)."""

    def __call__(self, rollouts_G: Sequence[Rollout], scores_G: Sequence[Score], seed: int) -> list[str]:
        return [""] * len(rollouts_G)


@dataclass(frozen=True)
class ShuffledOutcomes:
    """The group's labels dealt at random among its rollouts (ablation: −2.3 points)."""

    threshold: float = 0.0

    def __call__(self, rollouts_G: Sequence[Rollout], scores_G: Sequence[Score], seed: int) -> list[str]:
        labels = Outcomes(self.threshold)(rollouts_G, scores_G, seed)
        random.Random(seed).shuffle(labels)
        return labels


class Focal(Protocol):
    """Which rollouts of the group stand in the block of one of them."""

    def __call__(self, size: int, focal: int) -> list[int]: ...


@dataclass(frozen=True)
class Included:
    """All of them, the supervised one too, as in the paper."""

    def __call__(self, size: int, focal: int) -> list[int]:
        return list(range(size))


@dataclass(frozen=True)
class LeftOut:
    """The others (ablation: −0.5 points)."""

    def __call__(self, size: int, focal: int) -> list[int]:
        return [i for i in range(size) if i != focal]


@dataclass(frozen=True)
class Alone:
    """Only the supervised one (ablation: −1.0 points)."""

    def __call__(self, size: int, focal: int) -> list[int]:
        return [focal]


class Future(Protocol):
    """What of a rollout is shown."""

    def __call__(self, rollout: Rollout) -> list[str]: ...


@dataclass(frozen=True)
class Masked:
    """Its queries and nothing else: no thought, no passage, no answer."""

    def __call__(self, rollout: Rollout) -> list[str]:
        return [clean(turn.content) for turn in rollout.searches]


@dataclass(frozen=True)
class Unmasked:
    """Its queries with the passages they found, and its answer (ablation: −3.0 points): what later turns will read."""

    def __call__(self, rollout: Rollout) -> list[str]:
        found = [" ".join([turn.content, *(p.text for p in turn.passages)]) for turn in rollout.searches]
        return [clean(text) for text in [*found, rollout.answer or ""] if text.strip()]


@dataclass(frozen=True)
class SiblingCritiques:
    """One block per rollout wanted, made of its group; asks no judge. Golds are needed for the labels alone.

    A block without any query is none: the outcome is ``UNMATCHED``.
    """

    run_seed: int
    labels: Labels = field(default_factory=Outcomes)
    focal: Focal = field(default_factory=Included)
    future: Future = field(default_factory=Masked)

    def __call__(
        self, rollouts: Sequence[Rollout], scores: Sequence[Score], wanted: Sequence[bool], step: int
    ) -> list[Critique]:
        critiques = [NO_CRITIQUE] * len(rollouts)
        for name, members in groupby(range(len(rollouts)), key=lambda i: rollouts[i].group):
            group = list(members)
            labels = self.labels(
                [rollouts[i] for i in group], [scores[i] for i in group], seed_of(self.run_seed, "siblings", step, name)
            )
            shown = [self.future(rollouts[i]) for i in group]
            for place, i in enumerate(group):
                if wanted[i]:
                    chosen = self.focal(len(group), place)
                    critiques[i] = _critique([(labels[j], shown[j]) for j in chosen])
        return critiques


def _critique(attempts: Sequence[tuple[str, Sequence[str]]]) -> Critique:
    if not any(queries for _, queries in attempts):
        return Critique(text="", hint="", outcome=CritiqueOutcome.UNMATCHED)
    block = sibling_block(attempts)
    return Critique(text=block, hint=block, outcome=CritiqueOutcome.KEPT)
