"""Canned passages: for tests, and to see what an agent does with evidence of your choosing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hindsearch.types import Passage


@dataclass(frozen=True)
class Fixed:
    """The first ``k`` of ``results[query]``; a query that is not there finds the first ``k`` of ``otherwise``."""

    results: Mapping[str, Sequence[Passage]]
    otherwise: Sequence[Passage] = ()

    def __call__(self, queries: Sequence[str], k: int) -> list[tuple[Passage, ...]]:
        return [tuple(self.results.get(query, self.otherwise))[:k] for query in queries]
