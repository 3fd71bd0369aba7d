"""Outcome rewards: the answer against the golds, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.scoring import exact_match, token_f1
from hindsearch.types import Rollout, Score


def _scores(rollout: Rollout) -> tuple[float, float]:
    """EM and F1 of the student's own answer; no answer earns nothing."""
    if rollout.answer is None:
        return 0.0, 0.0
    golds = rollout.question.golds
    return exact_match(rollout.answer, golds), token_f1(rollout.answer, golds)


@dataclass(frozen=True)
class ExactMatch:
    """Reward 1 for an exact match, else 0 (Search-R1, arXiv 2503.09516)."""

    def __call__(self, rollouts: Sequence[Rollout]) -> list[Score]:
        return [Score(reward=em, em=em, f1=f1) for em, f1 in map(_scores, rollouts)]


@dataclass(frozen=True)
class TokenF1:
    """Reward is token F1; success is still an exact match."""

    def __call__(self, rollouts: Sequence[Rollout]) -> list[Score]:
        return [Score(reward=f1, em=em, f1=f1) for em, f1 in map(_scores, rollouts)]
