"""Search-R1's transcript (arXiv 2503.09516): one user message, then one continuous assistant turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hindsearch.interfaces import Placement, TurnTokens
from hindsearch.observations import Observations
from hindsearch.placements import UserHead
from hindsearch.prompts import Template
from hindsearch.tokens import Tokens
from hindsearch.types import Passage, Question
from hindsearch.user_prompt import UserPrompt


@dataclass(frozen=True)
class SearchR1:
    """Retrieved text is pasted into the assistant's turn, without role markers.

    The prompt is the tokenizer's chat format around one user message, or plain text where it has none. ``templates``
    is a folder of the package's templates, or your own, with ``prompt``, ``observation`` and ``correction``.
    ``placement`` says where the hint stands.
    """

    tokens: Tokens
    templates: str
    placement: Placement = UserHead()

    @cached_property
    def _prompt(self) -> UserPrompt:
        return UserPrompt(self.tokens, Template.load(f"{self.templates}/prompt.jinja"), self.placement)

    @cached_property
    def _observations(self) -> Observations:
        return Observations(Template.load(f"{self.templates}/observation.jinja"), self.tokens)

    @cached_property
    def _correction(self) -> TurnTokens:
        text = Template.load(f"{self.templates}/correction.jinja").render()
        return TurnTokens(self.tokens.encode(text), text)

    def prompt(self, question: Question, hint: str) -> tuple[int, ...]:
        return self._prompt(question, hint)

    def observation(self, passages: Sequence[Passage], turn_ids: Sequence[int], max_tokens: int) -> TurnTokens:
        text, ids, cut = self._observations(passages, max_tokens)
        return TurnTokens(ids, text, cut)

    def correction(self, turn_ids: Sequence[int]) -> TurnTokens:
        return self._correction

    @property
    def digests(self) -> Mapping[str, str]:
        """Digest of each template, for the fingerprint."""
        names = ("prompt", "observation", "correction")
        return {name: Template.load(f"{self.templates}/{name}.jinja").digest for name in names}
