"""Ids and text of one tokenizer. Masks never come from ids, and ids never come back from text."""

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from hindsearch.protocol import CLOSING

Message = Mapping[str, str]

_KEPT = 1 << 20
"""Pairs of ids whose text is remembered: a few hundred MB at most, however long a run is."""

_TAIL = 24
"""Ids looked back over for a closing tag: no tokenizer spells one in more."""


class Tokens:
    """A Hugging Face tokenizer, with what a rollout needs of it.

    ``end_ids`` end a turn wherever they are sampled: the tokenizer's end-of-text and its chat format's end-of-turn.
    ``pad_id`` fills tensors and means nothing.
    """

    def __init__(self, tokenizer: Any, end_ids: Iterable[int] = ()) -> None:
        self.tokenizer = tokenizer
        named = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<|im_end|>")]
        self.end_ids = frozenset(
            i for i in (*end_ids, *named) if i is not None and i != getattr(tokenizer, "unk_token_id", None)
        )
        self.pad_id: int = next(i for i in (tokenizer.pad_token_id, tokenizer.eos_token_id, 0) if i is not None)
        self._pieces: dict[tuple[int, int], str] = {}

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of plain text: nothing is added, and what looks like a special token is spelled out as text."""
        return tuple(self.tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))

    def encode_template(self, text: str) -> tuple[int, ...]:
        """Ids of text from a chat template, whose special tokens are meant."""
        return tuple(self.tokenizer.encode(text, add_special_tokens=False))

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The text that each id adds; joined they are ``decode(ids)``.

        Where a character is spelled over several ids, it belongs to the last of them.
        """
        text = self.decode(ids)
        pieces = [self._piece(previous, now) for previous, now in zip([-1, *ids], ids, strict=False)]
        if "".join(pieces) == text:
            return pieces
        starts = [0]
        for end in range(1, len(ids) + 1):
            part = self.decode(ids[:end])
            # an unfinished character decodes to a replacement mark, which the whole text does not have there
            agreed = next((i for i, (a, b) in enumerate(zip(part, text, strict=False)) if a != b), len(part))
            starts.append(max(starts[-1], min(agreed, len(text))))
        starts[-1] = len(text)
        return [text[start:end] for start, end in itertools.pairwise(starts)]

    def _piece(self, previous: int, now: int) -> str:
        """What an id adds after another one: some tokenizers put a blank between."""
        key = (previous, now)
        if key not in self._pieces:
            if len(self._pieces) >= _KEPT:
                self._pieces.clear()
            before = self.decode([previous]) if previous >= 0 else ""
            both = self.decode([previous, now] if previous >= 0 else [now])
            self._pieces[key] = both[len(before) :] if both.startswith(before) else "\ufffd\ufffd"
        return self._pieces[key]

    @property
    def has_chat_template(self) -> bool:
        return bool(getattr(self.tokenizer, "chat_template", None))

    def render_chat(self, messages: Sequence[Message], add_generation_prompt: bool) -> str:
        """The messages in the tokenizer's own chat format, as text."""
        return self.tokenizer.apply_chat_template(
            [dict(message) for message in messages], tokenize=False, add_generation_prompt=add_generation_prompt
        )

    @cached_property
    def texts(self) -> list[str]:
        """The text of every id of the vocabulary, alone."""
        size = len(self.tokenizer)
        return self.tokenizer.batch_decode([[i] for i in range(size)], clean_up_tokenization_spaces=False)

    def fingerprint(self) -> str:
        """Digest of vocabulary and chat template."""
        vocabulary = sorted(self.tokenizer.get_vocab().items())
        template = str(getattr(self.tokenizer, "chat_template", ""))
        return hashlib.sha256(repr((vocabulary, template)).encode()).hexdigest()


class EndOfTurn:
    """An ``interfaces.TurnEnd``: a turn is over at its first closing tag, found in text, or at an end id."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        last = {tag[-1] for tag in CLOSING}
        self.candidates = tokens.end_ids | {
            i for i, text in enumerate(tokens.texts) if any(character in text for character in last)
        }

    def __call__(self, ids: Sequence[int]) -> bool:
        if ids[-1] in self._tokens.end_ids:
            return True
        tail = self._tokens.decode(ids[-_TAIL:])
        return any(tag in tail for tag in CLOSING)


class EndOfReply:
    """An ``interfaces.TurnEnd`` for free text: only an end id ends it."""

    def __init__(self, tokens: Tokens) -> None:
        self.candidates = tokens.end_ids

    def __call__(self, ids: Sequence[int]) -> bool:
        return True
