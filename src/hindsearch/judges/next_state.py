"""OpenClaw-RL's judge (arXiv 2603.10165): looks back from what came next, without question or gold answer."""

from dataclasses import dataclass
from typing import ClassVar

from hindsearch.errors import JudgeError
from hindsearch.interfaces import Asked, Finding
from hindsearch.judges.prompted import PromptedJudge
from hindsearch.transcripts import read_object
from hindsearch.types import Rollout


@dataclass(frozen=True)
class NextStateJudge(PromptedJudge):
    """Votes 1 where what came after a turn teaches how it should have been, with a hint, or −1 for nothing to teach.

    Its template shows what the agent wrote and what came back, and neither question nor answer. A hint of
    ``min_characters`` or fewer is none. OpenClaw-RL asks once per turn; here once per rollout, whose hint is shown to
    all of its turns.
    """

    template: str = "judge/next_state.jinja"
    min_characters: int = 10
    asked: ClassVar[Asked] = Asked.NEXT_STATE

    def golds(self, rollout: Rollout) -> tuple[str, ...]:
        return ()

    def parse(self, reply: str, rollout: Rollout) -> Finding:
        """Read ``{"vote": 1, "hint": …}``; a vote of −1 is a finding without text."""
        found = read_object(reply, "vote")
        if found["vote"] not in (1, -1) or isinstance(found["vote"], bool):
            raise JudgeError(f"the judge votes {found['vote']!r}, where 1 or -1 is wanted")
        hint = found.get("hint") if found["vote"] == 1 else ""
        if not isinstance(hint, str):
            raise JudgeError(f"the judge votes 1 without a hint: {reply[:120]!r}")
        return Finding(hint if len(hint.strip()) > self.min_characters else "")
