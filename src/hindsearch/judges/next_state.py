"""OpenClaw-RL's judge (arXiv 2603.10165): looks back from what came next, without question or gold answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hindsearch.errors import JudgeError
from hindsearch.interfaces import Asked, Finding, JudgeRequest
from hindsearch.prompts import Template
from hindsearch.transcripts import read_object, refuse_short, transcript
from hindsearch.types import Rollout


@dataclass(frozen=True)
class NextStateJudge:
    """Votes 1 where what came after a turn teaches how it should have been, with a hint, or −1 for nothing to teach.

    It reads what the agent wrote and what came back, and neither question nor answer. A hint of ``min_characters`` or
    fewer is none. OpenClaw-RL asks once per turn; here once per rollout, whose hint is shown to all of its turns.
    """

    template: str = "judge/next_state.jinja"
    max_characters: int = 12_000
    min_characters: int = 10

    def __post_init__(self) -> None:
        refuse_short(self.max_characters)

    @cached_property
    def _template(self) -> Template:
        return Template.load(self.template)

    @property
    def digests(self) -> dict[str, str]:
        """What identifies the wording."""
        return {self.template: self._template.digest}

    def requests(self, rollouts: Sequence[Rollout]) -> list[JudgeRequest]:
        return [self._request(rollout) for rollout in rollouts]

    def _request(self, rollout: Rollout) -> JudgeRequest:
        prompt = self._template.render(transcript=transcript(rollout, self.max_characters))
        question = rollout.question.text  # for a backend without a language model, which has no other way to see it
        return JudgeRequest(prompt, question, rollout.turns, rollout.answer, golds=(), asked=Asked.NEXT_STATE)

    def parse(self, reply: str, rollout: Rollout) -> Finding:
        """Read ``{"vote": 1, "hint": …}``; a vote of −1 is a finding without text."""
        found = read_object(reply, "vote")
        if found["vote"] not in (1, -1) or isinstance(found["vote"], bool):
            raise JudgeError(f"the judge votes {found['vote']!r}, where 1 or -1 is wanted")
        hint = found.get("hint") if found["vote"] == 1 else ""
        if not isinstance(hint, str):
            raise JudgeError(f"the judge votes 1 without a hint: {reply[:120]!r}")
        return Finding(hint if len(hint.strip()) > self.min_characters else "")
