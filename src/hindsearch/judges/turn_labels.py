"""CriticSearch's judge (arXiv 2511.12159): sees trajectory and gold answer, calls each turn good or bad."""

from dataclasses import dataclass
from typing import ClassVar

from hindsearch.errors import JudgeError
from hindsearch.interfaces import Asked, Finding
from hindsearch.judges.prompted import PromptedJudge
from hindsearch.transcripts import read_object
from hindsearch.types import Rollout

_LABELS = {"good": True, "bad": False}


@dataclass(frozen=True)
class TurnLabelsJudge(PromptedJudge):
    """An evaluative judge with the inputs of HindSearch's directive one: ``critique=turn_labels`` asks it."""

    template: str = "judge/turn_labels.jinja"
    asked: ClassVar[Asked] = Asked.TURN_LABELS

    def parse(self, reply: str, rollout: Rollout) -> Finding:
        """Read ``{"labels": ["good", "bad", …]}``; raise ``JudgeError`` unless there is one per turn."""
        labels = read_object(reply, "labels")["labels"]
        words = [str(label).strip().lower() for label in labels] if isinstance(labels, list) else []
        if len(words) != len(rollout.turns) or not set(words) <= _LABELS.keys():
            raise JudgeError(f"the judge labels {words} for {len(rollout.turns)} turns; good or bad is wanted for each")
        return Finding("", labels=tuple(_LABELS[word] for word in words))
