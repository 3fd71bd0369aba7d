"""A language model of this process writes the critiques: the frozen initial weights, or another model."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from hindsearch.errors import JudgeError
from hindsearch.interfaces import Engine, JudgeRequest
from hindsearch.seeding import seed_of
from hindsearch.tokens import EndOfReply, Tokens
from hindsearch.transcripts import request_hash
from hindsearch.types import Sampling

_SLOT = "THEREQUESTGOESHERE"


@dataclass(frozen=True)
class LanguageModelBackend:
    """``engine`` writes: over the reference weights (``judge_backend=self``), or over the model that the option names.

    The paper (arXiv 2608.01597) leaves the judge open; the reference weights cost no memory. ``batch`` requests at a
    time, at most ``max_new_tokens`` per reply. A request of more than ``max_prompt_tokens`` gets a ``JudgeError``. At
    ``temperature`` 0 it is greedy; above, a request's draws depend on the request alone.
    """

    engine: Engine = field(repr=False)
    tokens: Tokens = field(repr=False)
    max_new_tokens: int = 128
    batch: int = 16
    max_prompt_tokens: int = 8192
    temperature: float = 0.0

    def __post_init__(self) -> None:
        for name in ("max_new_tokens", "batch", "max_prompt_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} lets the judge write nothing; use 1 or more")
        if not self.temperature >= 0:
            raise ValueError(f"temperature={self.temperature} cannot be sampled at; use 0 (greedy) or more")

    def __call__(self, requests: Sequence[JudgeRequest]) -> list[str | Exception]:
        before, after = _frame(self.tokens)
        # what stands in a request was written by others: none of it may be read as a special token
        prompts = [(*before, *self.tokens.encode(request.prompt), *after) for request in requests]
        replies: list[str | Exception] = [self._too_long(len(prompt)) for prompt in prompts]
        fitting = [i for i, prompt in enumerate(prompts) if len(prompt) <= self.max_prompt_tokens]
        fitting.sort(key=lambda i: (len(prompts[i]), i))  # less padding
        for start in range(0, len(fitting), self.batch):
            rows = fitting[start : start + self.batch]
            sampling = [Sampling(self.temperature, seed_of("judge", request_hash(requests[row]))) for row in rows]
            for row, reply in zip(rows, self._write([prompts[row] for row in rows], sampling), strict=True):
                replies[row] = reply
        return replies

    def _write(self, prompts: Sequence[tuple[int, ...]], sampling: Sequence[Sampling]) -> list[str]:
        count = len(prompts)
        session = self.engine.start(prompts, 1, sampling, EndOfReply(self.tokens))
        generations = session.extend(range(count), [()] * count, [self.max_new_tokens] * count)
        return [self._text(generation.ids) for generation in generations]

    def _text(self, ids: Sequence[int]) -> str:
        ended = bool(ids) and ids[-1] in self.tokens.end_ids
        return self.tokens.decode(ids[:-1] if ended else ids).strip()

    def _too_long(self, length: int) -> JudgeError:
        return JudgeError(
            f"the request has {length} tokens and the judge reads {self.max_prompt_tokens}; "
            "lower judge.max_characters, or raise judge_backend.max_prompt_tokens if its context allows"
        )


def _frame(tokens: Tokens) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Ids before and after a user's message in the tokenizer's chat format; without one, a line break after it."""
    if not tokens.has_chat_template:
        return (), tokens.encode("\n")
    chat = tokens.render_chat([{"role": "user", "content": _SLOT}], add_generation_prompt=True)
    before, slot, after = chat.partition(_SLOT)
    if not slot or _SLOT in after:
        raise JudgeError("the judge's chat template does not show a user's message exactly once; choose another model")
    return tokens.encode_template(before), tokens.encode_template(after)
