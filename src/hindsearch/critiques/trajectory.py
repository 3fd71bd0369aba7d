"""HindSearch's critiques (arXiv 2608.01597): one of each failed rollout as a whole, shown to all its turns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hindsearch.hints import Encoder, HintRules, write_critiques
from hindsearch.interfaces import Judge, JudgeBackend, Selection
from hindsearch.leaks import LeakFilter, Reject
from hindsearch.types import Critique, Rollout, Score


@dataclass(frozen=True)
class TrajectoryCritiques:
    """Asks the judge about every rollout wanted, all in one call of the backend, equal requests once.

    ``max_tokens`` caps a hint at the end of a sentence; ``leak`` decides about one that holds a gold alias. Of
    ``candidates`` replies per rollout, ``selection`` chooses among those that passed.
    """

    judge: Judge
    judge_backend: JudgeBackend
    tokens: Encoder
    selection: Selection
    leak: LeakFilter = field(default_factory=Reject)
    max_tokens: int = 64
    candidates: int = 1

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise ValueError(f"candidates={self.candidates} asks for no critique; use 1 or more")
        self._rules()

    def _rules(self) -> HintRules:
        return HintRules(self.leak, self.tokens, self.max_tokens)

    def __call__(
        self, rollouts: Sequence[Rollout], scores: Sequence[Score], wanted: Sequence[bool], step: int
    ) -> list[Critique]:
        return write_critiques(
            self.judge, self.judge_backend, self._rules(), rollouts, wanted, self.candidates, self.selection
        )
