"""Seams of the experience side: what makes rollouts, in text and ids, without gradients."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from hindsearch.interfaces.learning import LanguageModel
from hindsearch.types import Passage, Question, Rollout, Sampling, Score


class Retriever(Protocol):
    """Finds passages. Row ``i`` of the result answers query ``i``, best first, at most ``k`` of them."""

    def __call__(self, queries: Sequence[str], k: int) -> list[tuple[Passage, ...]]:
        """Raise ``RetrievalError`` if the passages cannot be had; never return a wrong or empty row for it."""
        ...


@dataclass(frozen=True)
class Generation:
    """What a model sampled in one go: ids and their log-probabilities under temperature 1, of one length."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


class Session(Protocol):
    """A set of growing sequences. ``extend`` is the only verb: append ids to some rows, then sample."""

    def extend(
        self, rows: Sequence[int], new_ids: Sequence[Sequence[int]], max_new_tokens: Sequence[int]
    ) -> list[Generation]:
        """Append ``new_ids[i]`` to row ``rows[i]``, then sample until its turn ends or its limit is reached.

        Rows not named are left as they are and may be named later. The token that completes the end of a turn
        is the last one returned; nothing after it is kept.
        """
        ...


class Engine(Protocol):
    """Samples from a language model, keeping what it has read."""

    def start(
        self,
        prompts: Sequence[Sequence[int]],
        copies: int,
        sampling: Sequence[Sampling],
        ends_turn: "TurnEnd",
    ) -> Session:
        """Open ``len(prompts) * copies`` rows, copies of one prompt side by side; each prompt is read once.

        ``sampling`` has one entry per row; its seed alone decides the row's draws.
        """
        ...


class TurnEnd(Protocol):
    """Says when a turn ends, in id space."""

    @property
    def candidates(self) -> frozenset[int]:
        """The ids that can possibly complete the end of a turn: only for these is ``__call__`` asked."""
        ...

    def __call__(self, ids: Sequence[int]) -> bool:
        """Whether the turn sampled so far, ending in a candidate, is over."""
        ...


@dataclass(frozen=True)
class TurnTokens:
    """What follows a student's turn in id space: appended, never sampled. ``cut`` passages had to be shortened."""

    ids: tuple[int, ...]
    text: str
    cut: int = 0


@dataclass(frozen=True)
class Placed:
    """A hint in its place: before the chat format, as a system message, or at either end of the user's message."""

    raw: str = ""
    system: str = ""
    head: str = ""
    tail: str = ""


class Placement(Protocol):
    """Where the hint stands in the teacher's prompt; the student's has '' for a hint, and is the same everywhere."""

    def __call__(self, hint: str) -> Placed: ...


class Renderer(Protocol):
    """Turns a question into a prompt and an observation into ids; append-only."""

    def prompt(self, question: Question, hint: str) -> tuple[int, ...]:
        """Ids of the prompt; ``hint`` is the privileged block, '' for the student."""
        ...

    def observation(self, passages: Sequence[Passage], turn_ids: Sequence[int], max_tokens: int) -> TurnTokens:
        """Ids to append after a searching turn that sampled ``turn_ids``: at most ``max_tokens``, tags whole."""
        ...

    def correction(self, turn_ids: Sequence[int]) -> TurnTokens:
        """Ids to append after an invalid turn."""
        ...


class Reward(Protocol):
    """Scores finished rollouts."""

    def __call__(self, rollouts: Sequence[Rollout]) -> list[Score]: ...


class DataSource(Protocol):
    """Where questions and passages come from. Order is the file's own."""

    def train(self) -> Sequence[Question]: ...

    def validation(self) -> Sequence[Question]: ...

    def passages(self) -> Sequence[Passage]: ...

    def fingerprint(self) -> Mapping[str, str]:
        """What identifies the data: name to digest."""
        ...


class SampledFrom(LanguageModel, Protocol):
    """A language model that an engine can read with piece by piece."""

    @property
    def device(self) -> torch.device: ...

    @property
    def max_positions(self) -> int:
        """The longest sequence it reads."""
        ...

    def sampling(self) -> AbstractContextManager[None]:
        """Eval mode without gradients; as it was before on leaving."""
        ...

    def read(self, ids_NQ: Tensor, positions_NQ: Tensor, mask_N1QS: Tensor, cache: Any) -> Tensor:
        """Hidden states ``_NQD`` of new tokens, with a cache of the tokens before them; the mask is true where seen."""
        ...
