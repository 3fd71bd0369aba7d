"""The ablation of HindSearch without the gold answer (arXiv 2608.01597): the judge knows that it failed, not why."""

from dataclasses import dataclass

from hindsearch.interfaces import Finding
from hindsearch.judges.prompted import PromptedJudge
from hindsearch.transcripts import read_critique
from hindsearch.types import Rollout


@dataclass(frozen=True)
class NoAnswerJudge(PromptedJudge):
    """Reads a failed rollout and nothing else; neither its prompt nor its request holds a gold."""

    template: str = "judge/no_answer.jinja"

    def golds(self, rollout: Rollout) -> tuple[str, ...]:
        return ()

    def parse(self, reply: str, rollout: Rollout) -> Finding:
        """Read ``{"critique": …}`` or plain words; raise ``JudgeError`` on anything else."""
        return Finding(read_critique(reply))
