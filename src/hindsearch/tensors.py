"""The learning side: what became of rollouts as tensors, and what losses see.

Shape letters (suffixes of tensor names): ``P`` questions, ``G`` rollouts per question, ``B = P * G``, ``L`` prompt,
``T`` completion, ``S`` prompt and completion, ``N`` loss tokens of a micro-batch laid end to end (no padding), ``D``
hidden width, ``V`` vocabulary, ``K`` entries of a support, ``A`` all hindsight tokens of the step over all ranks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from hindsearch.types import Record


@dataclass(frozen=True)
class Example:
    """One rollout as tensors, unpadded.

    ``hint_prompt_H`` is the privileged prompt that the teacher reads in place of ``prompt_L`` (length 0 where
    there is none: then ``hindsight_mask_T`` is all false). ``turn_T`` numbers the turns, -1 off the student's
    tokens. ``right_T`` is true on the tokens of right queries; it means something only where ``chain_known``.
    ``good_T`` is true on the turns that a judge called good. ``in_policy`` is false for a rollout that the policy left
    out of its term and of its divisor.
    """

    prompt_L: Tensor
    completion_T: Tensor
    loss_mask_T: Tensor
    behaviour_logprobs_T: Tensor
    advantage: float
    hint_prompt_H: Tensor
    hindsight_mask_T: Tensor
    turn_T: Tensor
    right_T: Tensor
    good_T: Tensor
    chain_known: bool
    in_policy: bool = True

    def hindsight_only(self) -> "Example":
        """What a rollout without advantage is learned from: it up to its last hindsight token, and those alone."""
        end = int(self.hindsight_mask_T.nonzero().max()) + 1
        cut = {f.name: getattr(self, f.name)[:end] for f in fields(self) if f.name.endswith("_T")}
        return replace(self, **{**cut, "loss_mask_T": self.hindsight_mask_T[:end]})

    def to(self, device: torch.device | str) -> "Example":
        """The same example with its tensors on ``device``."""
        tensors = {f.name: v.to(device) for f in fields(self) if isinstance(v := getattr(self, f.name), Tensor)}
        return replace(self, **tensors)


@dataclass(frozen=True)
class RolloutBatch:
    """All rollouts of one step on this rank: one batch is one optimiser step."""

    step: int
    examples: tuple[Example, ...]
    records: tuple[Record, ...]
    metrics: Mapping[str, float]
    """What the experience side measured: scalars by name, time per phase included."""

    def to(self, device: torch.device | str) -> "RolloutBatch":
        """The same batch with its tensors on ``device``; Lightning calls this."""
        return replace(self, examples=tuple(example.to(device) for example in self.examples))


@dataclass(frozen=True)
class PolicyInputs:
    """What a policy loss sees, over the student's own tokens.

    ``rollout_N`` numbers the rollout within the micro-batch; ``advantages_N`` is after credit.
    """

    logprobs_N: Tensor
    old_logprobs_N: Tensor
    advantages_N: Tensor
    rollout_N: Tensor
    turn_N: Tensor


@dataclass(frozen=True)
class CreditInputs:
    """What a credit sees, over all of the student's tokens; nothing of it carries gradient.

    ``gap_N`` is the teacher's log-probability minus that of the policy that sampled, where ``hindsight_N`` is true,
    and 0 elsewhere. ``good_N`` is true on the turns that a judge called good. ``step`` counts from 0.
    """

    gap_N: Tensor
    hindsight_N: Tensor
    good_N: Tensor
    advantages_N: Tensor
    step: int
    rollout_N: Tensor
    turn_N: Tensor


@dataclass(frozen=True)
class HindsightInputs:
    """What a hindsight loss sees, over the selected tokens of the selected rollouts.

    Only ``logprobs_N`` and ``student_NK`` carry gradient. The ``_NK`` tensors are full-vocabulary
    log-probabilities gathered at the loss's support; ``K`` is 0 for a loss on the sampled token alone.
    ``old_*`` are the policy that sampled. ``valid_NK`` is false on padding of a support of uneven size.
    ``step_gaps_A`` holds the gap of every selected token of the whole step, on all ranks, under the policy that
    sampled: what a baseline is computed from, and the same in every micro-batch.
    """

    logprobs_N: Tensor
    old_logprobs_N: Tensor
    teacher_logprobs_N: Tensor
    student_NK: Tensor
    old_NK: Tensor
    teacher_NK: Tensor
    valid_NK: Tensor
    step_gaps_A: Tensor
    rollout_N: Tensor
    turn_N: Tensor


@dataclass(frozen=True)
class LossOutput:
    """Per-token values, unreduced: one place divides. ``metrics`` are per-token values as well, detached."""

    loss_N: Tensor
    metrics: Mapping[str, Tensor]
