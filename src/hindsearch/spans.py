"""Which tokens of a rollout the hindsight loss acts on, as ranges of its completion."""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.types import Span, SpanKind


@dataclass(frozen=True)
class Search:
    """Strictly between ``<search>`` and ``</search>`` (HindSearch, SD-Search): the query, no stop decision."""

    def __call__(self, spans: Sequence[Span]) -> list[tuple[int, int]]:
        return [(s.start, s.end) for s in spans if s.kind is SpanKind.SEARCH]


@dataclass(frozen=True)
class SearchWithTags:
    """The query with both its tags."""

    def __call__(self, spans: Sequence[Span]) -> list[tuple[int, int]]:
        return [(s.outer_start, s.outer_end) for s in spans if s.kind is SpanKind.SEARCH]


@dataclass(frozen=True)
class Answer:
    """Strictly between ``<answer>`` and ``</answer>``."""

    def __call__(self, spans: Sequence[Span]) -> list[tuple[int, int]]:
        return [(s.start, s.end) for s in spans if s.kind is SpanKind.ANSWER]


@dataclass(frozen=True)
class Action:
    """What was searched for and what was answered, without tags and thoughts (EviSD, arXiv 2608.01359)."""

    def __call__(self, spans: Sequence[Span]) -> list[tuple[int, int]]:
        return [(s.start, s.end) for s in spans if s.kind in (SpanKind.SEARCH, SpanKind.ANSWER)]


@dataclass(frozen=True)
class Step:
    """Whole turns that searched or answered, thought included (SSPO, arXiv 2608.12764); invalid turns are out."""

    def __call__(self, spans: Sequence[Span]) -> list[tuple[int, int]]:
        acting = {s.turn for s in spans if s.kind in (SpanKind.SEARCH, SpanKind.ANSWER)}
        return [(s.start, s.end) for s in spans if s.kind is SpanKind.TURN and s.turn in acting]


@dataclass(frozen=True)
class Policy:
    """Everything the student sampled (OpenClaw-RL)."""

    def __call__(self, spans: Sequence[Span]) -> list[tuple[int, int]]:
        return [(s.start, s.end) for s in spans if s.kind is SpanKind.TURN]
