"""A judge's Good or Bad of each turn (CriticSearch, arXiv 2511.12159): for a credit, not for a teacher."""

from collections.abc import Sequence
from dataclasses import dataclass

from hindsearch.errors import JudgeError
from hindsearch.interfaces import Judge, JudgeBackend
from hindsearch.types import NO_CRITIQUE, Critique, CritiqueOutcome, Rollout, Score


@dataclass(frozen=True)
class LabelCritiques:
    """Asks about every rollout wanted, all in one call of the backend, equal requests once; shows no hint."""

    judge: Judge
    judge_backend: JudgeBackend

    def __call__(
        self, rollouts: Sequence[Rollout], scores: Sequence[Score], wanted: Sequence[bool], step: int
    ) -> list[Critique]:
        asked = [i for i, is_wanted in enumerate(wanted) if is_wanted]
        requests = self.judge.requests([rollouts[i] for i in asked])
        distinct = {request: place for place, request in enumerate(dict.fromkeys(requests))}
        replies = self.judge_backend(list(distinct)) if distinct else []
        critiques = [NO_CRITIQUE] * len(rollouts)
        for i, request in zip(asked, requests, strict=True):
            critiques[i] = self._critique(replies[distinct[request]], rollouts[i])
        return critiques

    def _critique(self, reply: str | Exception, rollout: Rollout) -> Critique:
        if isinstance(reply, Exception):
            return Critique(text=str(reply), hint="", outcome=CritiqueOutcome.FAILED)
        try:
            finding = self.judge.parse(reply, rollout)
        except JudgeError:
            return Critique(text=reply, hint="", outcome=CritiqueOutcome.UNPARSED)
        if not finding.labels:
            return Critique(text=reply, hint="", outcome=CritiqueOutcome.EMPTY)
        return Critique(text=reply, hint="", outcome=CritiqueOutcome.KEPT, labels=finding.labels)
