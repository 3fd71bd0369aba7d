"""The seams. Each is one call, batched, with hyper-parameters at construction and data at call."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from hindsearch.tensors import CreditInputs, HindsightInputs, LossOutput, PolicyInputs
from hindsearch.types import Critique, Passage, Question, Rollout, Sampling, Score, Span, Turn

# --------------------------------------------------------------------------- experience side


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


@dataclass(frozen=True)
class JudgeRequest:
    """What a judge is asked about one rollout.

    ``prompt`` is the rendered request for a language model. ``golds`` is empty where the judge is not shown the
    answer; a backend that does not read text works from ``question``, ``turns`` and ``golds`` and from nothing else.
    """

    prompt: str
    question: str
    turns: tuple[Turn, ...]
    answer: str | None
    golds: tuple[str, ...]


class JudgeBackend(Protocol):
    """Who writes: one reply per request, or a ``JudgeError`` in its place."""

    def __call__(self, requests: Sequence[JudgeRequest]) -> "list[str | Exception]": ...


class Judge(Protocol):
    """What the judge sees and is asked, and how its reply is read."""

    def requests(self, rollouts: Sequence[Rollout]) -> list[JudgeRequest]: ...

    def parse(self, reply: str) -> str:
        """The critique in a reply; raise ``JudgeError`` if there is none to be found."""
        ...


class CritiqueGenerator(Protocol):
    """Writes what the teacher will see, one critique per rollout, in the order given.

    ``wanted`` is true for the rollouts that the hindsight loss selects; the others are there as context.
    """

    def __call__(
        self, rollouts: Sequence[Rollout], scores: Sequence[Score], wanted: Sequence[bool], step: int
    ) -> list[Critique]: ...


class Select(Protocol):
    """Which rollouts the hindsight loss acts on. ``scores_PG`` holds one list per group."""

    def __call__(self, scores_PG: Sequence[Sequence[Score]]) -> list[list[bool]]: ...


class SpanChoice(Protocol):
    """Which tokens of a rollout the hindsight loss acts on, as ranges of its completion."""

    def __call__(self, spans: Sequence[Span]) -> list[tuple[int, int]]: ...


class Coefficient(Protocol):
    """The weight of the hindsight loss beside the policy loss, by step (0 is the first)."""

    def __call__(self, step: int) -> float: ...


# --------------------------------------------------------------------------- learning side


class Support(Protocol):
    """The vocabulary entries that a divergence is summed over.

    From full log-probabilities of the student (detached) and the teacher to ``(ids_NK, valid_NK)``.
    """

    @property
    def size(self) -> int:
        """``K``; 0 for a loss on the sampled token alone, which then is never called."""
        ...

    def __call__(self, student_NV: Tensor, teacher_NV: Tensor) -> tuple[Tensor, Tensor]: ...


class HindsightLoss(Protocol):
    """Pulls the student toward the teacher on the selected tokens; per-token values, unreduced."""

    @property
    def support(self) -> Support: ...

    @property
    def needs_teacher(self) -> bool: ...

    def __call__(self, inputs: HindsightInputs) -> LossOutput: ...


class Credit(Protocol):
    """What the gap does to the advantages of the selected tokens. The sign of an advantage never flips."""

    @property
    def needs_teacher(self) -> bool: ...

    def __call__(self, inputs: CreditInputs) -> Tensor: ...


class Reduction(Protocol):
    """Each token's weight in a step's sum, decided once from the counts of the whole step over all ranks."""

    def __call__(self, tokens_B: Tensor, total_tokens: float, total_rollouts: float) -> Tensor:
        """Weight ``_B`` of every token of each rollout; ``total_*`` count rollouts that have any token."""
        ...


class KlTerm(Protocol):
    """The pull toward the reference, its weight included."""

    @property
    def active(self) -> bool:
        """Whether it does anything: if not, the reference is never asked."""
        ...

    def __call__(self, logprobs_N: Tensor, old_logprobs_N: Tensor, reference_logprobs_N: Tensor) -> LossOutput: ...


class Policy(Protocol):
    """The reinforcement-learning term."""

    @property
    def reduction(self) -> Reduction: ...

    @property
    def kl(self) -> KlTerm: ...

    def advantages(self, rewards_G: Sequence[float]) -> list[float]:
        """Advantages of one group; exactly 0 for all where the rewards are equal."""
        ...

    def __call__(self, inputs: PolicyInputs) -> LossOutput: ...


class LanguageModel(Protocol):
    """A causal LM split into body and head, so that the head is paid for on loss tokens only."""

    def hidden(self, sequences: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
        """Hidden states ``_ND`` that predict the tokens at ``targets[b]`` (indices into ``sequences[b]``, >= 1).

        Rows are laid end to end in the order given. This function owns the shift by one: nobody else writes it.
        """
        ...

    def logprobs(self, hidden_ND: Tensor) -> Tensor:
        """Log-probabilities over the whole vocabulary, ``_NV``, at temperature 1, in float32 or wider."""
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


class DataSource(Protocol):
    """Where questions and passages come from. Order is the file's own."""

    def train(self) -> Sequence[Question]: ...

    def validation(self) -> Sequence[Question]: ...

    def passages(self) -> Sequence[Passage]: ...

    def fingerprint(self) -> Mapping[str, str]:
        """What identifies the data: name to digest."""
        ...
