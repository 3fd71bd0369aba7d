"""BM25 through bm25s (arXiv 2407.03618), in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import bm25s
import numpy as np
import Stemmer

from hindsearch.errors import UserError
from hindsearch.types import Passage


@dataclass(frozen=True)
class BM25:
    """Ranks passages by title and text; ties go to the earlier passage.

    ``title_weight`` is how often the title is indexed; ``stopwords`` a language of bm25s ('' keeps all words);
    ``stemmer`` a Snowball language ('' stems nothing). Words are runs of two or more letters and digits of any script,
    as in bm25s. The idf is Lucene's, which is never negative: a word that stands in every passage still ranks.

    A query of no known word finds the first passages, as any k passages rank alike. ``k`` beyond the corpus gives the
    whole corpus. The answers to the last ``cache_size`` distinct queries are kept: rollouts ask the same things again.
    """

    passages: Sequence[Passage] = field(repr=False)
    title_weight: int = 1
    stopwords: str = "en"
    stemmer: str = ""
    k1: float = 1.5
    b: float = 0.75
    cache_size: int = 65536
    _cache: dict[tuple[str, int], tuple[Passage, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        if not self.passages:
            raise UserError("retriever: the corpus has no passages")
        if self.title_weight < 0:
            raise ValueError(f"title_weight={self.title_weight} cannot index a title; use 0 or more")
        if self.stemmer and self.stemmer not in Stemmer.algorithms():
            raise ValueError(f"stemmer={self.stemmer} is not one of {', '.join(Stemmer.algorithms())}, or ''")
        if self.k1 < 0 or not 0 <= self.b <= 1:
            raise ValueError(f"k1={self.k1}, b={self.b} cannot rank; k1 is 0 or more, b from 0 to 1")
        if self.cache_size < 0:
            raise ValueError(f"cache_size={self.cache_size} keeps less than nothing; use 0 or more")
        _ = self._index  # an index that cannot be made is refused before a run begins

    def __call__(self, queries: Sequence[str], k: int) -> list[tuple[Passage, ...]]:
        if k < 0:
            raise UserError(f"agent.top_k={k} passages cannot be found; use 0 or more")
        distinct = list(dict.fromkeys(queries))
        found = {query: self._cache.pop((query, k)) for query in distinct if (query, k) in self._cache}
        new = [query for query in distinct if query not in found]
        for query, words in zip(new, self._words(new) if new else [], strict=True):
            found[query] = self._search(words, min(k, len(self.passages)))
        # a dict keeps its order, so the first entries are those asked for longest ago
        self._cache.update({(query, k): found[query] for query in distinct})
        for old in list(islice(self._cache, max(len(self._cache) - self.cache_size, 0))):
            del self._cache[old]
        return [found[query] for query in queries]

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
