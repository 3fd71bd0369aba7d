"""Placebo: real critiques, each shown with a rollout of another question of the same step.

What it gains is due to the presence and the style of hints, not to their content (the control that arXiv 2608.04788
calls for).
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hindsearch.hints import hint_block, hint_text, without_hint
from hindsearch.interfaces import CritiqueGenerator
from hindsearch.leaks import LeakFilter, Reject
from hindsearch.seeding import seed_of
from hindsearch.types import Critique, CritiqueOutcome, Rollout, Score


@dataclass(frozen=True)
class ShuffledCritiques:
    """Takes the critiques that another generator writes, and deals the kept hints anew.

    No rollout gets a hint of its own question. Each hint is dealt once where that can be done, that is, unless one
    question has more than half of them; then the others' hints go round. Where only one question has hints, the
    outcome is ``UNMATCHED``. A dealt hint that holds a gold alias of the receiving question is filtered once more.
    """

    critiques: CritiqueGenerator
    run_seed: int
    leak: LeakFilter = field(default_factory=Reject)

    def __call__(
        self, rollouts: Sequence[Rollout], scores: Sequence[Score], wanted: Sequence[bool], step: int
    ) -> list[Critique]:
        written = self.critiques(rollouts, scores, wanted, step)
        kept = [i for i, critique in enumerate(written) if critique.hint]
        donors = deal([rollouts[i].question.text for i in kept], seed_of(self.run_seed, "shuffled", step))
        dealt = list(written)
        for i, donor in zip(kept, donors, strict=True):
            if donor is None:
                dealt[i] = without_hint(written[i], CritiqueOutcome.UNMATCHED)
            else:
                dealt[i] = self._given(written[kept[donor]], rollouts[i])
        return dealt

    def _given(self, critique: Critique, receiver: Rollout) -> Critique:
        passed = self.leak(hint_text(critique), receiver.question.golds)
        if not passed:
            return without_hint(critique, CritiqueOutcome.LEAKED)
        hint = hint_block(passed)
        return replace(critique, hint=hint, redacted=critique.redacted or hint != critique.hint)


def deal(owners: Sequence[str], seed: int) -> list[int | None]:
    """For each place a place of another owner, or ``None`` where there is one owner only.

    A permutation unless one owner holds more than half of the places. Decided by the arguments alone.
    """
    rng = random.Random(seed)
    places: dict[str, list[int]] = {}
    for place, owner in enumerate(owners):
        places.setdefault(owner, []).append(place)
    if len(places) < 2:
        return [None] * len(owners)
    blocks = list(places.values())
    rng.shuffle(blocks)
    for block in blocks:
        rng.shuffle(block)
    # all places of an owner side by side, on a circle: a turn by the longest block leaves every block
    circle = [place for block in blocks for place in block]
    turn = max(len(block) for block in blocks)
    donors: list[int | None] = [None] * len(owners)
    for i, place in enumerate(circle):
        donor = circle[(i + turn) % len(circle)]
        if owners[donor] == owners[place]:  # only the owner of more than half
            others = [other for other in circle if owners[other] != owners[place]]
            donor = others[i % len(others)]
        donors[place] = donor
    return donors
