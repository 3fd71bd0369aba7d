"""BM25 through bm25s (arXiv 2407.03618), in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import bm25s
import numpy as np
import Stemmer

from hindsearch.errors import UserError
from hindsearch.types import Passage

_KEPT = 65536
"""Answers remembered: rollouts ask the same things again."""


@dataclass(frozen=True)
class BM25:
    """Ranks passages by title and text; ties go to the earlier passage.

    ``title_weight`` is how often the title is indexed; ``stopwords`` a language of bm25s ('' keeps all words);
    ``stemmer`` a Snowball language ('' stems nothing). Words are runs of two or more letters and digits of any script,
    as in bm25s. The idf is Lucene's, which is never negative: a word that stands in every passage still ranks.

    A query of no known word finds the first passages, as any k passages rank alike. ``k`` beyond the corpus gives the
    whole corpus.
    """

    passages: Sequence[Passage]
    title_weight: int = 1
    stopwords: str = "en"
    stemmer: str = ""
    k1: float = 1.5
    b: float = 0.75
    _cache: dict[tuple[str, int], tuple[Passage, ...]] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.passages:
            raise UserError("retriever: the corpus has no passages")
        if self.title_weight < 0:
            raise ValueError(f"title_weight={self.title_weight} cannot index a title; use 0 or more")
        _ = self._index  # an index that cannot be made is refused before a run begins

    def __call__(self, queries: Sequence[str], k: int) -> list[tuple[Passage, ...]]:
        if k < 0:
            raise UserError(f"agent.top_k={k} passages cannot be found; use 0 or more")
        new = [query for query in dict.fromkeys(queries) if (query, k) not in self._cache]
        if len(self._cache) + len(new) > _KEPT:
            self._cache.clear()
            new = list(dict.fromkeys(queries))
        for query, words in zip(new, self._words(new) if new else [], strict=True):
            self._cache[query, k] = self._search(words, min(k, len(self.passages)))
        return [self._cache[query, k] for query in queries]

    def _search(self, words: Sequence[str], k: int) -> tuple[Passage, ...]:
        if k == 0:
            return ()
        known = self._vocabulary
        ids = [known[word] for word in words if word in known]
        if not ids:
            return tuple(self.passages[:k])
        scores = self._index.get_scores_from_ids(ids)
        # the k best, then those of the last one's score by row
        threshold = np.partition(scores, -k)[-k]
        rows = np.flatnonzero(scores >= threshold)
        return tuple(self.passages[i] for i in rows[np.argsort(-scores[rows], kind="stable")][:k])

    @cached_property
    def _index(self) -> Any:
        texts = [" ".join([*[p.title] * self.title_weight, p.text]) for p in self.passages]
        vocabulary: dict[str, int] = {}
        ids = [[vocabulary.setdefault(word, len(vocabulary)) for word in words] for words in self._words(texts)]
        if not vocabulary:
            raise UserError("retriever: no passage of the corpus holds a word; see where its texts are")
        index = bm25s.BM25(method="lucene", k1=self.k1, b=self.b)
        corpus = bm25s.tokenization.Tokenized(ids=ids, vocab=vocabulary)
        index.index(corpus, create_empty_token=False, show_progress=False)
        return index

    @property
    def _vocabulary(self) -> dict[str, int]:
        return self._index.vocab_dict

    @cached_property
    def _stem(self) -> Any:
        return Stemmer.Stemmer(self.stemmer) if self.stemmer else None

    def _words(self, texts: Sequence[str]) -> list[list[str]]:
        stopwords: Any = self.stopwords or []
        return bm25s.tokenize(  # type: ignore[return-value]
            list(texts),
            token_pattern=r"(?u)\b\w\w+\b",
            stopwords=stopwords,
            stemmer=self._stem,
            return_ids=False,
            show_progress=False,
        )
