"""Passages as a graph: a passage leads to every passage whose title it mentions. What a patient searcher could find."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hindsearch.interfaces import Retriever
from hindsearch.leaks import COMMON_WORDS, Haystack
from hindsearch.types import Passage

_WORD = re.compile(r"\w+")
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True)
class Step:
    """A search: ``query`` finds the passage of ``title``. ``cue`` is the word before the title where it was found."""

    title: str
    cue: str = ""

    @property
    def query(self) -> str:
        return f"{self.cue} {self.title}".strip()


Chain = tuple[Step, ...]


@dataclass(frozen=True)
class Page:
    """What a search for a title finds, and where it leads."""

    steps: tuple[Step, ...]
    text: Haystack


class Titles:
    """Finds titles in a text, the longest first. A qualifier in brackets need not be there: ``Alien (film)``.

    Titles made of common words, or of one letter, are not looked for.
    """

    def __init__(self, titles: Sequence[str]) -> None:
        self._cased: dict[str, dict[tuple[str, ...], str]] = {}
        self._folded: dict[str, dict[tuple[str, ...], str]] = {}
        for title in titles:
            for form in (title, _QUALIFIER.sub("", title)):
                words = tuple(_WORD.findall(form))
                if not words or len(form) < 2 or all(word.casefold() in COMMON_WORDS for word in words):
                    continue
                folded = tuple(word.casefold() for word in words)
                self._cased.setdefault(words[0], {}).setdefault(words, title)
                self._folded.setdefault(folded[0], {}).setdefault(folded, title)

    def __call__(self, text: str, ignore_case: bool = False) -> Iterator[Step]:
        """Titles in the order of the text, each once, with the word before it (an ``and`` is passed over)."""
        words = _WORD.findall(text)
        keys = [word.casefold() for word in words] if ignore_case else words
        index = self._folded if ignore_case else self._cased
        seen: set[str] = set()
        place = 0
        while place < len(words):
            forms = index.get(keys[place], {})
            found = [form for form in forms if tuple(keys[place : place + len(form)]) == form]
            if not found:
                place += 1
                continue
            form = max(found, key=len)
            title = forms[form]
            if title not in seen:
                seen.add(title)
                before = place - 1
                while before >= 0 and words[before].casefold() == "and":
                    before -= 1
                yield Step(title, words[before] if before >= 0 else "")
            place += len(form)


class PassageGraph:
    """Walks passages through a retriever: the passage of a title is what a search for the title finds first.

    Everything found is kept: a title is searched for once in a run. ``passages`` are read for their titles only.
    """

    def __init__(self, retriever: Retriever, passages: Sequence[Passage]) -> None:
        self._retriever, self._passages = retriever, passages
        self._pages: dict[str, Page] = {}
        self._starts: dict[str, Chain] = {}

    @cached_property
    def _titles(self) -> Titles:
        return Titles([passage.title for passage in self._passages])

    def starts(self, question: str) -> Chain:
        """Titles in a question, in its order; where it has none, that of the passage it finds itself."""
        if question not in self._starts:
            steps = list(self._titles(question)) or list(self._titles(question, ignore_case=True))
            titles = [step.title for step in steps] or [p.title for p in self._retriever([question], 1)[0] if p.title]
            self._starts[question] = tuple(Step(title) for title in titles)
        return self._starts[question]

    def pages(self, titles: Sequence[str]) -> list[Page]:
        """The pages of titles; those not known yet are searched for in one call."""
        unknown = list(dict.fromkeys(title for title in titles if title not in self._pages))
        if unknown:
            for title, row in zip(unknown, self._retriever(unknown, 1), strict=True):
                text = row[0].text if row else ""
                steps = tuple(step for step in self._titles(text) if step.title != title)
                self._pages[title] = Page(steps, Haystack(text))
        return [self._pages[title] for title in titles]

    def shortest_chains(self, question: str, golds: Sequence[str], max_hops: int, max_pages: int) -> list[Chain]:
        """All shortest chains, up to 64, from a title in the question to a passage that holds a gold.

        Breadth first over at most ``max_hops`` passages in a row and ``max_pages`` in all; titles that hold a gold are
        never stepped on, since to search for them is to know the answer. Empty where there is none.
        """
        frontier = [(step,) for step in self.starts(question)]
        visited: set[str] = set()
        for _ in range(max_hops):
            frontier = [chain for chain in frontier if not Haystack(chain[-1].title).holds(golds)]
            room = max_pages - len(visited)
            titles = list(dict.fromkeys(chain[-1].title for chain in frontier))[:room]
            pages = dict(zip(titles, self.pages(titles), strict=True))
            frontier = [chain for chain in frontier if chain[-1].title in pages]
            arrived = [chain for chain in frontier if pages[chain[-1].title].text.holds(golds)]
            if arrived:
                return arrived[:64]
            visited |= pages.keys()
            frontier = [
                (*chain, step)
                for chain in frontier
                for step in pages[chain[-1].title].steps
                if step.title not in visited
            ][: 16 * max_pages]
        return []
