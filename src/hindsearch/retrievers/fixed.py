"""Canned passages: for tests, and to see what an agent does with evidence of your choosing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hindsearch.errors import UserError
from hindsearch.types import Passage


@dataclass(frozen=True)
class Fixed:
    """The first ``k`` of ``results[query]``; a query that is not there finds the first ``k`` of ``otherwise``.

    With neither, every search finds nothing: the agent alone, without evidence.
    """

    results: Mapping[str, Sequence[Passage]]
    otherwise: Sequence[Passage] = ()

    def __call__(self, queries: Sequence[str], k: int) -> list[tuple[Passage, ...]]:
        if k < 0:
            raise UserError(f"agent.top_k={k} passages cannot be found; use 0 or more")
        return [tuple(self.results.get(query, self.otherwise))[:k] for query in queries]
