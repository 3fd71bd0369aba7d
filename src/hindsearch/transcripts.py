"""What passes between us and a judge: a transcript to read, a request's name, and the critique in a reply."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from hindsearch.errors import JudgeError
from hindsearch.interfaces import Asked, JudgeRequest
from hindsearch.types import Rollout, Turn, TurnKind

_CUT = " […]"
_UNFINISHED_THOUGHT = re.compile(r"<think>.*", re.S)
_LABEL = re.compile(r"^\W*critique\W*:\s*", re.I)
_REFUSAL = re.compile(
    r"^\W*(i\s*('m|’m| am)?\s*(sorry|unable|afraid|not able)|i\s*(can(no|'|’)t|cannot|won['’]t)|sorry\b|as an ai\b"
    r"|unfortunately,? i\b|n/?a\b|none\b|null\b|no critique\b)",
    re.I,
)
MIN_WORDS = 3
"""A shorter critique tells nobody what to search for."""


def quote(text: str) -> str:
    """Foreign text as a block that cannot pass for anything else: every line starts with a bar.

    Marks of chat templates are broken up, so that no tokenizer reads them as such.
    """
    safe = re.sub(r"<(?=[|｜]|/?s>|/?(start|end)_of_turn>)", "< ", text.strip())
    return "\n".join(f"| {line}" for line in safe.splitlines() or [""])


def transcript(rollout: Rollout, max_characters: int) -> str:
    """A rollout as numbered turns, foreign text quoted, in at most about ``max_characters`` characters.

    Where it is too long the passages are cut first, all to one length; if that is not enough, what the student wrote is
    cut as well. Every turn and its query stay.
    """
    for passage_limit, text_limit in _limits(rollout.turns, max_characters):
        shown = _show(rollout.turns, passage_limit, text_limit)
        if len(shown) <= max_characters:
            return shown
    return shown


def _limits(turns: Sequence[Turn], start: int) -> list[tuple[int, int]]:
    longest = max((len(p.text) for turn in turns for p in turn.passages), default=0)
    widest = max((len(turn.text) for turn in turns), default=0)
    steps = [max(longest, 1)]
    while steps[-1] > 40:
        steps.append(max(steps[-1] * 4 // 5, 40))
    texts = [max(widest, 1)]
    while texts[-1] > 40:
        texts.append(max(texts[-1] * 4 // 5, 40))
    return [(limit, texts[0]) for limit in steps] + [(steps[-1], limit) for limit in texts] + [(0, texts[-1])]


def _show(turns: Sequence[Turn], passage_limit: int, text_limit: int) -> str:
    blocks: list[str] = []
    for number, turn in enumerate(turns, 1):
        blocks.append(f"Turn {number}. The agent wrote:\n{quote(_cut(turn.text, text_limit))}")
        if turn.kind is TurnKind.SEARCH:
            if len(turn.text) > text_limit:
                blocks.append(f"Its search query was:\n{quote(_cut(turn.content, 200))}")
            if passage_limit and turn.passages:
                found = [f"({i}) {p.title}: {_cut(p.text, passage_limit)}" for i, p in enumerate(turn.passages, 1)]
            else:
                found = [f"({i}) {p.title}" for i, p in enumerate(turn.passages, 1)] or ["nothing"]
            blocks.append("The search engine found:\n" + "\n".join(quote(line) for line in found))
        elif turn.kind is TurnKind.INVALID:
            blocks.append("This was neither a search nor an answer.")
    return "\n".join(blocks) or "The agent wrote nothing."


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(limit - len(_CUT), 0)].rstrip() + _CUT


def refuse_short(max_characters: int) -> None:
    """Raise ``ValueError`` where a transcript of so few characters shows nothing."""
    if max_characters < 500:
        raise ValueError(f"max_characters={max_characters} shows no transcript; use 500 or more, say 12000")


def request_hash(request: JudgeRequest) -> str:
    """A request's name: equal requests have equal names, on every machine. 128 bits in hexadecimal."""
    turns = [[t.kind.value, t.text, t.observation, [p.id for p in t.passages]] for t in request.turns]
    parts = [request.prompt, request.question, turns, request.answer, request.golds]
    # what most requests are is left unsaid, so that recordings stay good
    if request.candidate:
        parts.append(request.candidate)
    if request.asked is not Asked.CRITIQUE:
        parts.append(request.asked.value)
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()[:32]


def read_critique(reply: str) -> str:
    """The critique in a judge's reply: of the last JSON object with a text ``critique``, bare, fenced or amid words.

    A reply without any brace is the critique itself. What the judge thought before it does not count.

    Raises:
        JudgeError: the reply is empty, a refusal, JSON cut short or without a critique, or under three words.
    """
    text = _UNFINISHED_THOUGHT.sub("", reply.rpartition("</think>")[2]).strip()
    critique = _from_json(text) if "{" in text else _LABEL.sub("", text.strip("`\n "))
    critique = " ".join(critique.split())
    if _REFUSAL.match(critique) or len(critique.split()) < MIN_WORDS:
        raise JudgeError(f'the judge\'s reply holds no critique: {reply[:120]!r}; expected {{"critique": "…"}}')
    return critique


def read_object(reply: str, key: str) -> dict[str, Any]:
    """The last JSON object with ``key`` in a reply, bare, fenced or amid words; what was thought before is no reply.

    Raises:
        JudgeError: there is none.
    """
    text = _UNFINISHED_THOUGHT.sub("", reply.rpartition("</think>")[2])
    found = [value for value in _objects(text) if key in value]
    if not found:
        raise JudgeError(f'the judge\'s reply holds no object with "{key}": {reply[:120]!r}')
    return found[-1]


def _from_json(text: str) -> str:
    critiques = [value["critique"] for value in _objects(text) if isinstance(value.get("critique"), str)]
    return critiques[-1] if critiques else ""


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, in order; an object within another is not looked at."""
    decoder, place = json.JSONDecoder(strict=False), text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            end = place + 1
        else:
            if isinstance(value, dict):
                yield value
        place = text.find("{", end)
