"""Does a hint give the answer away? Where a text holds a gold alias, and what to do about it (design rule 7).

A gold alias leaks where its words follow each other in the text as whole words: case, accents, punctuation and the
articles a, an, the do not matter. Words are told apart in two ways, and either finding is a leak: as the scores do
(SQuAD: punctuation is deleted, so that "1,000" is "1000"), and at every punctuation mark (so that "Paris" is found in
"Paris-based" and in "Paris's"). An alias inside a longer word ("Rome" in "Romeo") is no leak.

Some golds are words that any sentence holds: yes, no, it, us. Their mere presence says nothing, and rejecting it would
cost nearly every hint of a yes/no question. Such an alias counts where the text announces it as the answer ("the answer
is no"), opens with it ("No, …"), quotes it, or writes it with a capital inside a sentence ("watch It"). All other
aliases count however short: a lost hint is cheaper than a leak. So does an alias that the question itself names: to
name one of two candidates is to answer.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from hindsearch.scoring import normalise_answer

ARTICLES = frozenset({"a", "an", "the"})
_COMMON = """
    yes no not none true false it its us we he she him her his they them i me my you your who what when where which that
    this these those and or but if so as at by for from in into of on to up with is are was be do does did has have had
    than then there here now one all any
"""
COMMON_WORDS = ARTICLES | frozenset(_COMMON.split())
"""Words that say nothing by being there."""

_ALNUM = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]|[^\W\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")
_CHUNK = re.compile(r"\w(?:\S*\w)?|[^\w\s]+")  # between spaces, without the signs around it
_ANNOUNCED = re.compile(r"\b(answer|answers|answered|correct|conclude|conclusion|result)\b\W*(\w+\W+){0,3}$", re.I)
_OPENING = re.compile(r"(^|[.!?:;]\s)\W*$")
_QUOTES = "\"'“”‘’«»`"


@dataclass(frozen=True)
class _Word:
    text: str
    start: int
    end: int


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()


def _scored_words(text: str) -> list[_Word]:
    """Words as the scores see them, with their place in the text; articles are gone."""
    return [
        _Word(word, match.start(), match.end())
        for match in _CHUNK.finditer(text)
        for word in normalise_answer(_fold(match.group())).split()
    ]


def _split_words(text: str) -> list[_Word]:
    """Words cut at every punctuation mark; scripts without spaces are cut at every character. Articles included."""
    return [_Word(_fold(match.group()), match.start(), match.end()) for match in _ALNUM.finditer(text)]


def _without_articles(words: Sequence[_Word]) -> list[_Word]:
    return [word for word in words if word.text not in ARTICLES]


@lru_cache(maxsize=4096)
def _alias_words(alias: str) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """An alias in both readings, and whether articles must be kept in the second (it holds nothing else)."""
    split = _split_words(alias)
    bare = _without_articles(split)
    scored = tuple(word.text for word in _scored_words(alias))
    return scored, tuple(word.text for word in bare or split), not bare


def is_common(alias: str) -> bool:
    """Whether an alias is made of common words alone, so that finding it in a text says nothing."""
    words = _split_words(alias)
    return bool(words) and all(word.text in COMMON_WORDS for word in words)


def find_leaks(text: str, golds: Sequence[str]) -> list[tuple[int, int]]:
    """Character ranges of ``text`` that give one of ``golds`` away, in order and without overlap."""
    scored, split = _scored_words(text), _split_words(text)
    bare = _without_articles(split)
    found: list[tuple[int, int]] = []
    for alias in golds:
        alias_scored, alias_split, with_articles = _alias_words(alias)
        ranges = {*_runs(scored, alias_scored), *_runs(split if with_articles else bare, alias_split)}
        if alias.strip() and not alias_split:  # nothing but signs: then only the signs themselves
            ranges = {(m.start(), m.end()) for m in re.finditer(re.escape(alias.strip()), text)}
        if is_common(alias):
            ranges = {r for r in ranges if _is_announced(text, *r)}
        found += ranges
    return _merged(found)


def _runs(words: Sequence[_Word], wanted: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Character ranges where ``wanted`` stands word for word; none for an empty one."""
    width = len(wanted)
    for i in range(len(words) - width + 1 if width else 0):
        if all(words[i + j].text == wanted[j] for j in range(width)):
            yield words[i].start, words[i + width - 1].end


def _is_announced(text: str, start: int, end: int) -> bool:
    before, word = text[:start], text[start:end].strip(_QUOTES + ".,;:!?()")
    opens = bool(_OPENING.search(before))
    quoted = text[start:end][:1] in _QUOTES or (before[-1:] in _QUOTES and text[end : end + 1] in tuple(_QUOTES))
    opening_remark = opens and text[end - 1 : end + 1].rstrip()[-1:] in tuple(",.;:!—-")
    return bool(_ANNOUNCED.search(before)) or quoted or opening_remark or (word[:1].isupper() and not opens)


def _merged(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


class Haystack:
    """A text prepared once, to be asked often whether it holds an alias; common words count like any other."""

    def __init__(self, text: str) -> None:
        split = _split_words(text)
        self._scored = _padded(_scored_words(text))
        self._split, self._bare = _padded(split), _padded(_without_articles(split))

    def holds(self, golds: Sequence[str]) -> bool:
        """Whether any of ``golds`` stands in the text as whole words."""
        for alias in golds:
            scored, split, with_articles = _alias_words(alias)
            if scored and f" {' '.join(scored)} " in self._scored:
                return True
            if split and f" {' '.join(split)} " in (self._split if with_articles else self._bare):
                return True
        return False


def _padded(words: Sequence[_Word]) -> str:
    return f" {' '.join(word.text for word in words)} "


class LeakFilter(Protocol):
    """What becomes of a hint that gives the answer away."""

    def __call__(self, text: str, golds: Sequence[str]) -> str:
        """The text without a leak: itself where it has none, '' where nothing can be shown."""
        ...


@dataclass(frozen=True)
class Reject:
    """A hint that leaks is not shown."""

    def __call__(self, text: str, golds: Sequence[str]) -> str:
        return "" if find_leaks(text, golds) else text


@dataclass(frozen=True)
class Redact:
    """What leaks is replaced by ``placeholder``; a hint of fewer than ``min_words`` other words is not shown."""

    placeholder: str = "[hidden]"
    min_words: int = 3

    def __post_init__(self) -> None:
        if not self.placeholder.strip():
            raise ValueError(
                "placeholder is empty, so a reader could not tell that something was taken out; use [hidden]"
            )
        if self.min_words < 0:
            raise ValueError(f"min_words={self.min_words} is not a number of words; use 0 or more, for example 3")

    def __call__(self, text: str, golds: Sequence[str]) -> str:
        leaks = find_leaks(text, golds)
        if not leaks:
            return text
        parts, place = [], 0
        for start, end in leaks:
            parts.append(text[place:start])
            place = end
        parts.append(text[place:])
        redacted = self.placeholder.join(parts)
        if sum(len(part.split()) for part in parts) < self.min_words or find_leaks(redacted, golds):
            return ""
        return redacted
