"""HindSearch's judge (arXiv 2608.01597): reads a failed rollout and the gold answer, says what to search for."""

from dataclasses import dataclass

from hindsearch.interfaces import Finding
from hindsearch.judges.prompted import PromptedJudge
from hindsearch.transcripts import read_critique
from hindsearch.types import Rollout


@dataclass(frozen=True)
class GoldJudge(PromptedJudge):
    """Knows the accepted answers; asked for one or two imperative sentences about queries, never for the answer."""

    template: str = "judge/gold.jinja"

    def parse(self, reply: str, rollout: Rollout) -> Finding:
        """Read ``{"critique": …}`` or plain words; raise ``JudgeError`` on anything else."""
        return Finding(read_critique(reply))
