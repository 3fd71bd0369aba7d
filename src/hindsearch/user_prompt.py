"""The one message a rollout begins with: a user's, in the tokenizer's chat format where it has one."""

from dataclasses import dataclass
from functools import cached_property

from hindsearch.errors import UserError
from hindsearch.interfaces import Placement
from hindsearch.prompts import Template
from hindsearch.tokens import Tokens
from hindsearch.types import Question

_USER, _SYSTEM = "TEXT-OF-THE-USER", "TEXT-OF-THE-SYSTEM"


@dataclass(frozen=True)
class UserPrompt:
    """Ids of the prompt of a question, with a hint where ``placement`` wants it.

    What stands between messages is the chat format's own; what stands in them is encoded apart, so that no text of a
    question or a hint is ever read as a marker.
    """

    tokens: Tokens
    template: Template
    placement: Placement

    def __call__(self, question: Question, hint: str) -> tuple[int, ...]:
        placed, encode = self.placement(hint), self.tokens.encode
        text = self.template.render(question=question.text, hint=placed.head, hint_after=placed.tail)
        raw = encode(f"{placed.raw}\n") if placed.raw else ()
        if not placed.system:
            before, after = self._alone
            return (*raw, *before, *encode(text), *after)
        first, between, after = self._after_system
        return (*raw, *first, *encode(placed.system), *between, *encode(text), *after)

    @cached_property
    def _alone(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if not self.tokens.has_chat_template:
            return (), ()
        text = self.tokens.render_chat([{"role": "user", "content": _USER}], add_generation_prompt=True)
        before, after = text.split(_USER)
        return self.tokens.encode_template(before), self.tokens.encode_template(after)

    @cached_property
    def _after_system(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        if not self.tokens.has_chat_template:
            raise UserError(
                "this tokenizer has no chat format, and so no system message for the hint; "
                "use renderer.placement._target_=hindsearch.placements.UserHead"
            )
        messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": _USER}]
        try:
            text = self.tokens.render_chat(messages, add_generation_prompt=True)
            first, rest = text.split(_SYSTEM)
            between, after = rest.split(_USER)
        except Exception as error:  # a template refuses in its own words
            raise UserError(
                f"this tokenizer's chat format takes no system message ({str(error).splitlines()[0]}); "
                "use renderer.placement._target_=hindsearch.placements.UserHead"
            ) from error
        encode = self.tokens.encode_template
        return encode(first), encode(between), encode(after)
