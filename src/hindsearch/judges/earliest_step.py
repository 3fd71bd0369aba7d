"""The ablation of HindSearch that names the earliest wrong step (arXiv 2608.01597): its hint covers that step alone."""

from dataclasses import dataclass
from typing import ClassVar

from hindsearch.errors import JudgeError
from hindsearch.interfaces import Asked, Finding
from hindsearch.judges.prompted import PromptedJudge
from hindsearch.transcripts import read_critique, read_object
from hindsearch.types import Rollout


@dataclass(frozen=True)
class EarliestStepJudge(PromptedJudge):
    """Knows the accepted answers; asked for the first turn that went wrong and for what to search there."""

    template: str = "judge/earliest_step.jinja"
    asked: ClassVar[Asked] = Asked.EARLIEST_STEP

    def parse(self, reply: str, rollout: Rollout) -> Finding:
        """Read ``{"turn": n, "critique": …}``, turns counted from 1; raise ``JudgeError`` if there is no such turn."""
        turn = read_object(reply, "turn")["turn"]
        if isinstance(turn, bool) or not isinstance(turn, int) or not 1 <= turn <= len(rollout.turns):
            raise JudgeError(f"the judge names turn {turn} of a rollout of {len(rollout.turns)}")
        return Finding(read_critique(reply), turn=turn - 1)
