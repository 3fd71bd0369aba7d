"""Seams of the learning side: what turns tensors into a loss."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from torch import Tensor

from hindsearch.tensors import CreditInputs, HindsightInputs, LossOutput, PolicyInputs


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


class MovingModel(LanguageModel, Protocol):
    """A language model with a copy of the student's trained weights, which can be moved toward them.

    ``weights`` is what a checkpoint must hold for a run to go on, and ``load`` takes it over.
    """

    def blend(self, rate: float) -> None: ...

    def weights(self) -> Mapping[str, Tensor]: ...

    def load(self, weights: Mapping[str, Tensor]) -> None: ...


class Teacher(Protocol):
    """Who reads the privileged prompt, and how it follows the student."""

    @property
    def model(self) -> LanguageModel: ...

    def follow(self, completed_steps: int) -> None:
        """Called once after each step's last update."""
        ...


class Support(Protocol):
    """The vocabulary entries that a divergence is summed over.

    From full log-probabilities of the student (detached) and the teacher to ``(ids_NK, valid_NK)``.
    """

    @property
    def size(self) -> int:
        """``K``; 0 for a loss on the sampled token alone, which then is never called."""
        ...

    def __call__(self, student_NV: Tensor, teacher_NV: Tensor) -> tuple[Tensor, Tensor]: ...


class Tail(Protocol):
    """What becomes of the probability outside a support: the columns that a divergence is summed over."""

    def __call__(self, logprobs_NK: Tensor, valid_NK: Tensor) -> tuple[Tensor, Tensor]: ...


class Cap(Protocol):
    """From the terms of a divergence to its value per token."""

    def __call__(self, terms_NK: Tensor) -> Tensor: ...


class HindsightLoss(Protocol):
    """Pulls the student toward the teacher on the selected tokens; per-token values, unreduced."""

    @property
    def support(self) -> Support: ...

    @property
    def needs_teacher(self) -> bool: ...

    def __call__(self, inputs: HindsightInputs) -> LossOutput: ...


class Credit(Protocol):
    """What hindsight does to the advantages, token by token."""

    @property
    def needs_teacher(self) -> bool: ...

    @property
    def needs_labels(self) -> bool:
        """Whether it reads a judge's labels: a rollout without advantage can then get one."""
        ...

    def __call__(self, inputs: CreditInputs) -> Tensor:
        """The advantages ``_N`` to train on."""
        ...


class Reduction(Protocol):
    """How per-token values become one number: ``Σ part · value / Σ divisor``, over all rollouts of a step."""

    def parts(self, turn_N: Tensor) -> Tensor:
        """The part ``_N`` of each token of one rollout in its sum; ``turn_N`` numbers its turns."""
        ...

    def divisor(self, turn_N: Tensor) -> float:
        """What one rollout adds to the divisor; 0 where it has no token."""
        ...


class Anchor(Protocol):
    """What holds the student to the policy that sampled, its weight included."""

    @property
    def active(self) -> bool:
        """Whether it does anything: if not, rollouts without advantage are not read."""
        ...

    def __call__(self, inputs: PolicyInputs) -> LossOutput: ...


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

    def counts(self, rewards_G: Sequence[float]) -> bool:
        """Whether the tokens of a group count in the divisor of the policy term."""
        ...

    def __call__(self, inputs: PolicyInputs) -> LossOutput: ...


class Coefficient(Protocol):
    """The weight of the hindsight loss beside the policy loss, by step (0 is the first)."""

    def __call__(self, step: int) -> float: ...


class Loop(Protocol):
    """Which terms act at a step (0 is the first): factors of the policy term and of the hindsight loss."""

    def policy(self, step: int) -> float: ...

    def hindsight(self, step: int) -> float: ...

    def starts_round(self, step: int) -> bool:
        """Whether a round of distillation begins with this step."""
        ...
