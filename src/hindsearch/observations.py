"""Retrieved passages as text that fits a budget of tokens, its tags whole."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hindsearch.errors import UserError
from hindsearch.prompts import Template
from hindsearch.tokens import Tokens
from hindsearch.types import Passage

_KEPT = 4096
"""Observations remembered: rollouts of a group, and of later steps, find the same passages again and again."""


@dataclass(frozen=True)
class Observations:
    """Fills an observation template and encodes it.

    Passages are data: what looks like a special token in them is spelled out, and tags in them are only text.
    """

    template: Template
    tokens: Tokens
    _cache: dict[tuple[tuple[Passage, ...], int, int], tuple[str, tuple[int, ...], int]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def __call__(
        self, passages: Sequence[Passage], max_tokens: int, around: int = 0
    ) -> tuple[str, tuple[int, ...], int]:
        """Text, ids (at most ``max_tokens - around``) and the number of passages shortened or left out to fit.

        Passages are cut from the last one backward, between words. ``around`` tokens of ``max_tokens`` are the
        caller's, for what it puts around the text.
        """
        key = (tuple(passages), max_tokens, around)
        if key not in self._cache:
            if len(self._cache) >= _KEPT:
                self._cache.clear()
            self._cache[key] = self._fit(*key)
        return self._cache[key]

    def _fit(self, passages: tuple[Passage, ...], limit: int, around: int) -> tuple[str, tuple[int, ...], int]:
        max_tokens = limit - around
        text = self.template.render(passages=passages)
        ids = self.tokens.encode(text)
        if len(ids) <= max_tokens:
            return text, ids, 0
        # a passage without text is one word to drop: its title takes room too
        counts = [max(1, len(passage.text.split())) for passage in passages]
        low, high = 0, sum(counts)  # words kept: `low` fits, `high` does not
        best = self._with_words(passages, counts, 0)
        if len(best[1]) > max_tokens:
            raise UserError(
                f"agent.observation_tokens={limit} is too few: an empty {self.template.name} takes "
                f"{len(best[1]) + around} already; use more, for example 256"
            )
        while high - low > 1:
            middle = (low + high) // 2
            attempt = self._with_words(passages, counts, middle)
            if len(attempt[1]) <= max_tokens:
                low, best = middle, attempt
            else:
                high = middle
        return best

    def _with_words(
        self, passages: tuple[Passage, ...], counts: list[int], words: int
    ) -> tuple[str, tuple[int, ...], int]:
        kept: list[Passage] = []
        whole = 0
        for passage, count in zip(passages, counts, strict=True):
            if count <= words:
                kept.append(passage)
                whole += 1
            elif words > 0:
                kept.append(Passage(passage.id, passage.title, " ".join(passage.text.split()[:words])))
            words = max(0, words - count)
        text = self.template.render(passages=kept)
        return text, self.tokens.encode(text), len(passages) - whole
