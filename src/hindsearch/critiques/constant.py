"""Placebo: one fixed text for every failed rollout. What it gains is due to a hint being there, not to its content."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hindsearch.hints import clean, hint_block
from hindsearch.leaks import LeakFilter, Reject
from hindsearch.types import NO_CRITIQUE, Critique, CritiqueOutcome, Rollout, Score


@dataclass(frozen=True)
class ConstantCritiques:
    """Shows ``text`` for every rollout wanted; asks nobody. ``leak`` decides where it happens to hold a gold alias."""

    text: str
    leak: LeakFilter = field(default_factory=Reject)

    def __post_init__(self) -> None:
        if not clean(self.text):
            raise ValueError("text is empty, so the placebo would show nothing; give it words, or use critique=none")

    def __call__(
        self, rollouts: Sequence[Rollout], scores: Sequence[Score], wanted: Sequence[bool], step: int
    ) -> list[Critique]:
        return [
            self._critique(rollout) if is_wanted else NO_CRITIQUE
            for rollout, is_wanted in zip(rollouts, wanted, strict=True)
        ]

    def _critique(self, rollout: Rollout) -> Critique:
        text = clean(self.text)
        passed = self.leak(text, rollout.question.golds)
        if not passed:
            return Critique(text=self.text, hint="", outcome=CritiqueOutcome.LEAKED)
        return Critique(self.text, hint_block(passed), CritiqueOutcome.KEPT, redacted=passed != text)
