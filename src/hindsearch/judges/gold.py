"""HindSearch's judge (arXiv 2608.01597): reads a failed rollout and the gold answer, says what to search for."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hindsearch.interfaces import Finding, JudgeRequest
from hindsearch.prompts import Template
from hindsearch.transcripts import quote, read_critique, refuse_short, transcript
from hindsearch.types import Rollout


@dataclass(frozen=True)
class GoldJudge:
    """Knows the accepted answers; asked for one or two imperative sentences about queries, never for the answer.

    ``max_characters`` bounds the transcript (about four characters a token in English): passages are cut first.
    """

    template: str = "judge/gold.jinja"
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
        return JudgeRequest(prompt, question.text, rollout.turns, rollout.answer, question.golds)

    def parse(self, reply: str, rollout: Rollout) -> Finding:
        """Read ``{"critique": …}`` or plain words; raise ``JudgeError`` on anything else."""
        return Finding(read_critique(reply))
