"""From a judge's replies to the hints that the teacher reads; the critique generators share it."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hindsearch.errors import JudgeError
from hindsearch.interfaces import Judge, JudgeBackend, Selection
from hindsearch.leaks import LeakFilter
from hindsearch.types import NO_CRITIQUE, Critique, CritiqueOutcome, Rollout

_TAG = re.compile(r"<\s*/?\s*[A-Za-z_][\w-]*\s*/?>|<[|｜][^<>]{0,40}[|｜]>")
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s|$)")
_ABBREVIATED = re.compile(r"(\b(Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|No|Prof|Gen|Col|Lt|e\.g|i\.e|etc)|\b[A-Z])\.$")


class Encoder(Protocol):
    """Text to ids: all that a length cap needs."""

    def encode(self, text: str) -> Sequence[int]: ...


@dataclass(frozen=True)
class HintRules:
    """What a critique must pass to become a hint: tags removed, length capped, leak filtered.

    ``max_tokens`` counts the student's tokens of the hint's text.
    """

    leak: LeakFilter
    tokens: Encoder
    max_tokens: int

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens={self.max_tokens} leaves no hint; use 1 or more, for example 64")

    def critique(self, text: str, golds: Sequence[str]) -> Critique:
        """The critique that ``text`` becomes."""
        shown = self.cap(clean(text))
        if not shown:
            return Critique(text=text, hint="", outcome=CritiqueOutcome.EMPTY)
        passed = self.leak(shown, golds)
        if not passed:
            return Critique(text=text, hint="", outcome=CritiqueOutcome.LEAKED)
        return Critique(text=text, hint=hint_block(passed), outcome=CritiqueOutcome.KEPT, redacted=passed != shown)

    def cap(self, text: str) -> str:
        """As many whole sentences as fit; of a first sentence that does not fit, as many whole words."""
        if self._fits(text):
            return text
        ends = [m.end() for m in _SENTENCE_END.finditer(text) if not _ABBREVIATED.search(text[: m.end()])]
        for end in reversed(ends):
            if self._fits(text[:end]):
                return text[:end]
        words = text.split()
        while words and not self._fits(" ".join(words)):
            words.pop()
        return " ".join(words)

    def _fits(self, text: str) -> bool:
        return len(self.tokens.encode(text)) <= self.max_tokens


def clean(text: str) -> str:
    """One line without tags, so that a critique can neither close its block nor open another."""
    previous = ""
    while previous != text:
        previous, text = text, _TAG.sub(" ", text)
    return " ".join(text.split())


def hint_block(text: str) -> str:
    """The block that the teacher's prompt shows."""
    return f"<HINT> {text} </HINT>"


def hint_text(critique: Critique) -> str:
    """The words inside a critique's block; '' where it has none."""
    return critique.hint.removeprefix("<HINT> ").removesuffix(" </HINT>")


def write_critiques(
    judge: Judge,
    backend: JudgeBackend,
    rules: HintRules,
    rollouts: Sequence[Rollout],
    wanted: Sequence[bool],
    candidates: int,
    selection: Selection,
) -> list[Critique]:
    """One critique per rollout: those wanted are asked for in one call of the backend, equal requests once.

    Of ``candidates`` replies per rollout, ``selection`` chooses among the different ones that became a hint; where none
    did, the first says why.
    """
    asked = [i for i, is_wanted in enumerate(wanted) if is_wanted]
    critiques = [NO_CRITIQUE] * len(rollouts)
    if not asked:
        return critiques
    requests = judge.requests([rollouts[i] for i in asked])
    numbered = [[replace(request, candidate=n) for n in range(candidates)] for request in requests]
    distinct = {request: place for place, request in enumerate(dict.fromkeys(r for row in numbered for r in row))}
    replies = backend(list(distinct))
    assert len(replies) == len(distinct), f"{len(distinct)} requests, {len(replies)} replies"
    open_rows: list[tuple[int, list[Critique]]] = []
    for i, row in zip(asked, numbered, strict=True):
        written = [_critique(judge, rules, replies[distinct[request]], rollouts[i]) for request in row]
        shown = [c for n, c in enumerate(written) if c.hint and c.hint not in [earlier.hint for earlier in written[:n]]]
        critiques[i] = (shown or written)[0]
        if len(shown) > 1:
            open_rows.append((i, shown))
    if open_rows:
        chosen = selection([rollouts[i] for i, _ in open_rows], [row for _, row in open_rows])
        for (i, row), place in zip(open_rows, chosen, strict=True):
            critiques[i] = row[place]
    return critiques


def _critique(judge: Judge, rules: HintRules, reply: str | Exception, rollout: Rollout) -> Critique:
    if isinstance(reply, Exception):
        return Critique(text=str(reply), hint="", outcome=CritiqueOutcome.FAILED)
    if not reply.strip():
        return Critique(text="", hint="", outcome=CritiqueOutcome.EMPTY)
    try:
        finding = judge.parse(reply, rollout)
    except JudgeError:
        return Critique(text=reply, hint="", outcome=CritiqueOutcome.UNPARSED)
    return replace(rules.critique(finding.text, rollout.question.golds), turn=finding.turn)


def without_hint(critique: Critique, outcome: CritiqueOutcome) -> Critique:
    """The same words, not shown, for another reason."""
    return replace(critique, hint="", outcome=outcome, redacted=False)


def critique_metrics(critiques: Sequence[Critique]) -> dict[str, float]:
    """What became of the critiques that were asked for; those never asked for do not count.

    All but ``hindsight/asked`` (a count) and ``hindsight/hint_words`` (mean words of a shown hint) are shares of what
    was asked for. ``hindsight/leak_rate`` counts rejected and redacted ones; the other outcomes exclude each other.
    Nothing was asked for: only the count, which is 0.
    """
    asked = [c for c in critiques if c.outcome is not CritiqueOutcome.NOT_ASKED]
    metrics = {"hindsight/asked": float(len(asked))}
    if not asked:
        return metrics
    count = Counter(c.outcome for c in asked)
    shown = [len(hint_text(c).split()) for c in asked if c.hint]
    leaked = count[CritiqueOutcome.LEAKED] + sum(c.redacted for c in asked)
    return metrics | {
        "hindsight/yield": count[CritiqueOutcome.KEPT] / len(asked),
        "hindsight/leak_rate": leaked / len(asked),
        "hindsight/parse_failures": count[CritiqueOutcome.UNPARSED] / len(asked),
        "hindsight/judge_failures": count[CritiqueOutcome.FAILED] / len(asked),
        "hindsight/empty": count[CritiqueOutcome.EMPTY] / len(asked),
        "hindsight/unmatched": count[CritiqueOutcome.UNMATCHED] / len(asked),
        "hindsight/hint_words": sum(shown) / len(shown) if shown else 0.0,
    }
