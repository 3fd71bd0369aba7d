"""The tag grammar of a search agent: what a turn says, and where its parts stand in its text.

A student writes ``<think>…</think>``, ``<search>query</search>`` and ``<answer>…</answer>``; the environment writes
``<information>…</information>`` (Search-R1, arXiv 2503.09516). Tags are exact and lower case.
"""

import re
from dataclasses import dataclass

from hindsearch.types import SpanKind, TurnKind

CLOSING = ("</search>", "</answer>")
"""A turn ends at the first of these."""

_CLOSING = re.compile("|".join(CLOSING))
_OPENING = {"</search>": "<search>", "</answer>": "<answer>"}
_KINDS = {"</search>": (TurnKind.SEARCH, SpanKind.SEARCH), "</answer>": (TurnKind.ANSWER, SpanKind.ANSWER)}
_THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_INFORMATION = re.compile(r"<information>.*?</information>", re.DOTALL)
_ANSWER_PAIR = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


@dataclass(frozen=True)
class CharSpan:
    """A named range of characters: ``start:end`` between the tags, ``outer_start:outer_end`` with them."""

    kind: SpanKind
    start: int
    end: int
    outer_start: int
    outer_end: int


@dataclass(frozen=True)
class ParsedTurn:
    """What one turn is: ``content`` is the stripped query or answer, '' where the turn is invalid."""

    kind: TurnKind
    content: str
    spans: tuple[CharSpan, ...]


def parse_turn(text: str) -> ParsedTurn:
    """Read one sampled turn.

    It ends at its first closing tag, and the opening tag that belongs to it is the nearest before: of
    ``<answer> <answer> X </answer>`` the answer is X. Without either tag, or with an empty query, it is invalid.
    """
    closing = _CLOSING.search(text)
    thinks = tuple(
        CharSpan(SpanKind.THINK, match.start(1), match.end(1), match.start(), match.end())
        for match in _THINK.finditer(text, 0, closing.start() if closing else len(text))
    )
    if closing is None:
        return ParsedTurn(TurnKind.INVALID, "", thinks)
    opening = _OPENING[closing.group()]
    outer_start = text.rfind(opening, 0, closing.start())
    if outer_start < 0:
        return ParsedTurn(TurnKind.INVALID, "", thinks)
    start = outer_start + len(opening)
    content = text[start : closing.start()].strip()
    turn_kind, span_kind = _KINDS[closing.group()]
    if turn_kind is TurnKind.SEARCH and not content:
        return ParsedTurn(TurnKind.INVALID, "", thinks)
    # a think block that holds the action's opening tag is not a think block
    thinks = tuple(span for span in thinks if span.outer_end <= outer_start)
    action = CharSpan(span_kind, start, closing.start(), outer_start, closing.end())
    return ParsedTurn(turn_kind, content, (*thinks, action))


def transcript_answer(text: str) -> str | None:
    """The answer in a foreign transcript, for which no record says who wrote what.

    The last complete ``<answer>`` pair outside closed information blocks, a nested opening tag stripped; ``None`` if
    there is none. In our own rollouts the answer comes from provenance instead.
    """
    matches = _ANSWER_PAIR.findall(_INFORMATION.sub(" ", text))
    return matches[-1].rsplit("<answer>", 1)[-1].strip() if matches else None
