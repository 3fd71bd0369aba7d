"""What every judge that asks a language model shares: a template, and the rollout that fills it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from hindsearch.interfaces import Asked, JudgeRequest
from hindsearch.prompts import Template
from hindsearch.transcripts import quote, refuse_short, transcript
from hindsearch.types import Rollout


@dataclass(frozen=True)
class PromptedJudge:
    """One request per rollout, everything foreign in it quoted; a kind of judge adds how its reply is read.

    ``template`` is a file of the package or one of your own, ``max_characters`` bounds the transcript (about four
    characters a token in English): passages are cut first. A template may use ``question``, ``golds``, ``transcript``,
    ``answer`` and ``turns``, their number.
    """

    template: str
    max_characters: int = 12_000
    asked: ClassVar[Asked] = Asked.CRITIQUE

    def __post_init__(self) -> None:
        refuse_short(self.max_characters)

    @cached_property
    def _template(self) -> Template:
        return Template.load(self.template)

    @property
    def digests(self) -> dict[str, str]:
        """What identifies the wording."""
        return {self.template: self._template.digest}

    def golds(self, rollout: Rollout) -> tuple[str, ...]:
        """The accepted answers, as far as this judge is shown them."""
        return rollout.question.golds

    def requests(self, rollouts: Sequence[Rollout]) -> list[JudgeRequest]:
        return [self._request(rollout) for rollout in rollouts]

    def _request(self, rollout: Rollout) -> JudgeRequest:
        question, golds = rollout.question.text, self.golds(rollout)
        prompt = self._template.render(
            question=quote(question),
            golds="\n".join(quote(gold) for gold in golds),
            transcript=transcript(rollout, self.max_characters),
            answer=quote(rollout.answer or "(it gave none)"),
            turns=len(rollout.turns),
        )
        return JudgeRequest(prompt, question, rollout.turns, rollout.answer, golds, asked=self.asked)
