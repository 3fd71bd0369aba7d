"""SSPO's evidence anchors (arXiv 2608.12764): passages that support the gold answer, and that the given one was wrong.

The paper has a language model find the evidence on the web. Here it is the data's supporting passages, or, where the
data names none, a passage that the group itself retrieved and that holds a gold alias (arXiv 2608.01359 finds that this
costs little).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Protocol

from hindsearch.errors import UserError
from hindsearch.hints import Encoder, clean, hint_block
from hindsearch.leaks import Haystack
from hindsearch.types import NO_CRITIQUE, Critique, CritiqueOutcome, Passage, Question, Rollout, Score


class Fallback(Protocol):
    """Where evidence comes from for a question whose data names none."""

    def check(self, questions: Sequence[Question]) -> None:
        """Raise ``UserError`` at start where some question would never have any."""
        ...

    def __call__(self, question: Question, rollouts_G: Sequence[Rollout]) -> list[Passage]: ...


@dataclass(frozen=True)
class FirstRetrieved:
    """The first passage with a gold alias that a rollout of the group found; none where they all missed it."""

    def check(self, questions: Sequence[Question]) -> None:
        """Any question may come to have some."""

    def __call__(self, question: Question, rollouts_G: Sequence[Rollout]) -> list[Passage]:
        found = (passage for rollout in rollouts_G for turn in rollout.turns for passage in turn.passages)
        holding = (p for p in found if Haystack(f"{p.title} {p.text}").holds(question.golds))
        first = next(holding, None)
        return [first] if first else []


@dataclass(frozen=True)
class NoFallback:
    """Nowhere: the data must know its evidence."""

    def check(self, questions: Sequence[Question]) -> None:
        bare = next((question for question in questions if not question.evidence), None)
        if bare:
            raise UserError(
                f"critique=anchors without a fallback needs supporting passages, and question {bare.id} of "
                f"{bare.source} has none; use critique.fallback._target_=hindsearch.critiques.anchors.FirstRetrieved"
            )

    def __call__(self, question: Question, rollouts_G: Sequence[Rollout]) -> list[Passage]:
        return []


@dataclass(frozen=True)
class AnchorCritiques:
    """Shows each rollout wanted the evidence for its question; asks no judge.

    Each anchor is a title and the first words of its passage, at most ``max_tokens`` of the student's tokens; at most
    ``max_anchors``. The text may hold the answer, so no leak filter applies; it asks to search for it. ``told`` and
    ``asked`` are the words around them. No evidence: ``UNMATCHED``.
    """

    passages: Sequence[Passage] = field(repr=False)
    questions: Sequence[Question] = field(repr=False)
    tokens: Encoder
    fallback: Fallback = field(default_factory=FirstRetrieved)
    max_anchors: int = 6
    max_tokens: int = 64
    told: str = "your answer {answer} was wrong ,"
    asked: str = "search again step by step , not answer first , evidence :"

    def __post_init__(self) -> None:
        for name in ("max_anchors", "max_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} shows no evidence; use 1 or more")
        self.fallback.check(self.questions)

    @cached_property
    def _by_id(self) -> dict[str, Passage]:
        wanted = {name for question in self.questions for name in question.evidence}
        return {passage.id: passage for passage in self.passages if passage.id in wanted}

    def __call__(
        self, rollouts: Sequence[Rollout], scores: Sequence[Score], wanted: Sequence[bool], step: int
    ) -> list[Critique]:
        critiques = [NO_CRITIQUE] * len(rollouts)
        for _, members in groupby(range(len(rollouts)), key=lambda i: rollouts[i].group):
            places = list(members)
            group = [rollouts[i] for i in places]
            for i in places:
                if wanted[i]:
                    critiques[i] = self._critique(rollouts[i], self._evidence(rollouts[i].question, group))
        return critiques

    def _evidence(self, question: Question, rollouts_G: Sequence[Rollout]) -> list[Passage]:
        named = [self._by_id[name] for name in question.evidence if name in self._by_id]
        return (named or self.fallback(question, rollouts_G))[: self.max_anchors]

    def _critique(self, rollout: Rollout, evidence: Sequence[Passage]) -> Critique:
        if not evidence:
            return Critique(text="", hint="", outcome=CritiqueOutcome.UNMATCHED)
        told = [self.told.format(answer=clean(rollout.answer))] if rollout.answer else []
        anchors = [self._cut(clean(f"{p.title} : {p.text}" if p.title else p.text)) for p in evidence]
        text = " ".join([*told, self.asked, " ; ".join(anchors)])
        return Critique(text=text, hint=hint_block(text), outcome=CritiqueOutcome.KEPT)

    def _cut(self, text: str) -> str:
        words = text.split()
        while len(self.tokens.encode(" ".join(words))) > self.max_tokens:
            words = words[: len(words) * 4 // 5]
        return " ".join(words)
