"""The ablation of HindSearch that names the earliest wrong step (arXiv 2608.01597): its hint covers that step alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hindsearch.errors import JudgeError
from hindsearch.interfaces import Asked, Finding, JudgeRequest
from hindsearch.prompts import Template
from hindsearch.transcripts import quote, read_critique, read_object, refuse_short, transcript
from hindsearch.types import Rollout


@dataclass(frozen=True)
class EarliestStepJudge:
    """Knows the accepted answers; asked for the number of the first turn that went wrong and what to search there.

    ``max_characters`` bounds the transcript (about four characters a token in English): passages are cut first.
    """

    template: str = "judge/earliest_step.jinja"
    max_characters: int = 12_000

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
        question = rollout.question
        prompt = self._template.render(
            question=quote(question.text),
            golds="\n".join(quote(gold) for gold in question.golds),
            transcript=transcript(rollout, self.max_characters),
            answer=quote(rollout.answer or "(it gave none)"),
        )
        return JudgeRequest(
            prompt, question.text, rollout.turns, rollout.answer, question.golds, asked=Asked.EARLIEST_STEP
        )

    def parse(self, reply: str, rollout: Rollout) -> Finding:
        """Read ``{"turn": n, "critique": …}``, turns counted from 1; raise ``JudgeError`` if there is no such turn."""
        turn = read_object(reply, "turn")["turn"]
        if isinstance(turn, bool) or not isinstance(turn, int) or not 1 <= turn <= len(rollout.turns):
            raise JudgeError(f"the judge names turn {turn} of a rollout of {len(rollout.turns)}")
        return Finding(read_critique(reply), turn=turn - 1)
