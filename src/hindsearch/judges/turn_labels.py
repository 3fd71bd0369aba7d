"""CriticSearch's judge (arXiv 2511.12159): sees trajectory and gold answer, calls each turn good or bad."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hindsearch.errors import JudgeError
from hindsearch.interfaces import Asked, Finding, JudgeRequest
from hindsearch.prompts import Template
from hindsearch.transcripts import quote, read_object, refuse_short, transcript
from hindsearch.types import Rollout

_LABELS = {"good": True, "bad": False}


@dataclass(frozen=True)
class TurnLabelsJudge:
    """An evaluative judge with the inputs of HindSearch's directive one: ``critique=turn_labels`` asks it.

    ``max_characters`` bounds the transcript (about four characters a token in English): passages are cut first.
    """

    template: str = "judge/turn_labels.jinja"
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
            turns=len(rollout.turns),
        )
        return JudgeRequest(
            prompt, question.text, rollout.turns, rollout.answer, question.golds, asked=Asked.TURN_LABELS
        )

    def parse(self, reply: str, rollout: Rollout) -> Finding:
        """Read ``{"labels": ["good", "bad", …]}``; raise ``JudgeError`` unless there is one per turn."""
        labels = read_object(reply, "labels")["labels"]
        words = [str(label).strip().lower() for label in labels] if isinstance(labels, list) else []
        if len(words) != len(rollout.turns) or not set(words) <= _LABELS.keys():
            raise JudgeError(f"the judge labels {words} for {len(rollout.turns)} turns; good or bad is wanted for each")
        return Finding("", labels=tuple(_LABELS[word] for word in words))
