"""Seams between the two sides: who looks back on a rollout, what is said of it, and which tokens it is about."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from hindsearch.types import EVERY_TURN, Critique, Rollout, Score, Span, Turn


class Asked(Enum):
    """What a judge wants back, for a backend that does not read text."""

    CRITIQUE = "critique"
    EARLIEST_STEP = "earliest_step"
    """The first turn that went wrong, and a critique of it."""
    NEXT_STATE = "next_state"
    """Whether what came next teaches anything, and what."""
    TURN_LABELS = "turn_labels"
    """Good or bad, of each turn."""


@dataclass(frozen=True)
class JudgeRequest:
    """What a judge is asked about one rollout.

    ``prompt`` is the rendered request for a language model. ``golds`` is empty where the judge is not shown the
    answer; a backend that does not read text works from ``question``, ``turns``, ``golds`` and ``asked`` and from
    nothing else. ``candidate`` numbers the replies wanted to one request: a backend that samples draws another each.
    """

    prompt: str
    question: str
    turns: tuple[Turn, ...]
    answer: str | None
    golds: tuple[str, ...]
    asked: Asked = Asked.CRITIQUE
    candidate: int = 0


@dataclass(frozen=True)
class Finding:
    """What a judge's reply says: ``text`` of a critique ('' for none), the ``turn`` it is of, ``labels`` of turns."""

    text: str
    turn: int = EVERY_TURN
    labels: tuple[bool, ...] = ()


class JudgeBackend(Protocol):
    """Who writes: one reply per request, or a ``JudgeError`` in its place."""

    def __call__(self, requests: Sequence[JudgeRequest]) -> "list[str | Exception]": ...


class Judge(Protocol):
    """What the judge sees and is asked, and how its reply is read."""

    def requests(self, rollouts: Sequence[Rollout]) -> list[JudgeRequest]: ...

    def parse(self, reply: str, rollout: Rollout) -> Finding:
        """What a reply about ``rollout`` says; raise ``JudgeError`` if it says nothing that can be read."""
        ...


class CritiqueGenerator(Protocol):
    """Writes what the teacher will see, one critique per rollout, in the order given.

    ``wanted`` is true for the rollouts that the hindsight loss selects; the others are there as context.
    """

    def __call__(
        self, rollouts: Sequence[Rollout], scores: Sequence[Score], wanted: Sequence[bool], step: int
    ) -> list[Critique]: ...


class Selection(Protocol):
    """Chooses among the critiques written of one rollout."""

    def __call__(self, rollouts: Sequence[Rollout], candidates: Sequence[Sequence[Critique]]) -> list[int]:
        """For each rollout the place of the one to show; its candidates are never none."""
        ...


class Select(Protocol):
    """Which rollouts the hindsight loss or credit acts on. Both arguments hold one list per group."""

    def __call__(
        self, rollouts_PG: Sequence[Sequence[Rollout]], scores_PG: Sequence[Sequence[Score]]
    ) -> list[list[bool]]: ...


class SpanChoice(Protocol):
    """Which tokens of a rollout the hindsight loss acts on, as ranges of its completion."""

    def __call__(self, spans: Sequence[Span]) -> list[tuple[int, int]]: ...
