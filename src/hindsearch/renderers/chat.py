"""A chat transcript: every observation is a user message of its own, appended in ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hindsearch.errors import UserError
from hindsearch.interfaces import Placement, TurnTokens
from hindsearch.observations import Observations
from hindsearch.placements import UserHead
from hindsearch.prompts import Template
from hindsearch.tokens import Tokens
from hindsearch.types import Passage, Question
from hindsearch.user_prompt import UserPrompt

_USER, _ASSISTANT, _OBSERVATION = "TEXT-OF-THE-USER", "TEXT-OF-THE-ASSISTANT", "TEXT-OF-THE-OBSERVATION"


@dataclass(frozen=True)
class Chat:
    """What stands between messages is taken from the tokenizer's own chat template, once.

    Earlier turns are never rendered again. A template under which they would look different then (one that strips
    thoughts from old turns, say) is refused at construction, with the turn named.
    """

    tokens: Tokens
    templates: str
    placement: Placement = UserHead()

    def __post_init__(self) -> None:
        if not self.tokens.has_chat_template:
            raise ValueError("this tokenizer has no chat template; use renderer=search_r1, which needs none")
        self._refuse_forgetful()

    def _refuse_forgetful(self) -> None:
        """Render a conversation turn by turn: each rendering must begin with the one before."""
        turns = [
            {"role": "user", "content": "Who directed it?"},
            {"role": "assistant", "content": "<think> I look it up. </think>\n<search> director </search>"},
            {"role": "user", "content": "<information> nothing </information>"},
            {"role": "assistant", "content": "<think> Once more. </think>\n<search> the director </search>"},
            {"role": "user", "content": "<information> a name </information>"},
            {"role": "assistant", "content": "<think> Found. </think>\n<answer> a name </answer>"},
        ]
        for end in (1, 3, 5):
            before = self.tokens.render_chat(turns[:end], add_generation_prompt=True) + turns[end]["content"]
            for later in range(end + 1, len(turns) + 1):
                after = self.tokens.render_chat(turns[:later], add_generation_prompt=later % 2 == 1)
                if not after.startswith(before):
                    pairs = zip(before, after, strict=False)
                    place = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(before), len(after)))
                    raise UserError(
                        f"the chat template rewrites turn {end // 2 + 1} of the assistant at message {later}: "
                        f"from character {place} {before[place : place + 20]!r} becomes {after[place : place + 20]!r}; "
                        "training on it would be on text never sampled: use renderer=search_r1"
                    )

    @cached_property
    def _frames(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Ids between a turn and an observation, and after an observation."""
        messages = [
            {"role": "user", "content": _USER},
            {"role": "assistant", "content": _ASSISTANT},
            {"role": "user", "content": _OBSERVATION},
        ]
        text = self.tokens.render_chat(messages, add_generation_prompt=True)
        between, last = text.partition(_ASSISTANT)[2].split(_OBSERVATION)
        return self.tokens.encode_template(between), self.tokens.encode_template(last)

    @cached_property
    def _prompt(self) -> UserPrompt:
        return UserPrompt(self.tokens, Template.load(f"{self.templates}/prompt.jinja"), self.placement)

    @cached_property
    def _observations(self) -> Observations:
        return Observations(Template.load(f"{self.templates}/observation.jinja"), self.tokens)

    def prompt(self, question: Question, hint: str) -> tuple[int, ...]:
        return self._prompt(question, hint)

    def observation(self, passages: Sequence[Passage], turn_ids: Sequence[int], max_tokens: int) -> TurnTokens:
        between, last = self._frames
        text, ids, cut = self._observations(passages, max_tokens, around=len(between) + len(last))
        return self._message(ids, text, turn_ids, cut)

    def correction(self, turn_ids: Sequence[int]) -> TurnTokens:
        text = Template.load(f"{self.templates}/correction.jinja").render().strip()
        return self._message(self.tokens.encode(text), text, turn_ids, 0)

    def _message(self, ids: Sequence[int], text: str, turn_ids: Sequence[int], cut: int) -> TurnTokens:
        between, last = self._frames
        # the student may have sampled the end of its turn itself: it stands once
        ended = bool(turn_ids) and bool(between) and turn_ids[-1] == between[0]
        return TurnTokens((*between[ended:], *ids, *last), text, cut)

    @property
    def digests(self) -> Mapping[str, str]:
        """Digest of each template, for the fingerprint."""
        names = ("prompt", "observation", "correction")
        return {name: Template.load(f"{self.templates}/{name}.jinja").digest for name in names}
