"""Our side: the objective as a training step drives it, over the same attempts."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hindsearch.anchors.none import NoAnchor
from hindsearch.coefficients import Constant
from hindsearch.credits.none import NoCredit
from hindsearch.interfaces import HindsightLoss, Policy
from hindsearch.loops import Joint
from hindsearch.losses.none import NoLoss
from hindsearch.maths.reductions import SequenceMean
from hindsearch.micro_batch import micro_batches
from hindsearch.models.causal_lm import CausalLM
from hindsearch.objective import Objective
from hindsearch.policies.grpo import Grpo
from hindsearch.policies.kl import Kl
from hindsearch.tensors import Example
from parity.tiny_step import GROUP_SIZE, Attempt, gradient


@dataclass(frozen=True)
class Taken:
    """The loss of an update and its gradient."""

    loss: Tensor
    gradient: Tensor


def policy_update(
    policy: Policy,
    sampler: nn.Module,
    now: nn.Module,
    reference: nn.Module,
    attempts: Sequence[Attempt],
    advantages: Sequence[float],
    max_tokens: int = 10_000,
) -> Taken:
    """The policy term under the weights of ``now``, of rollouts that ``sampler`` made."""
    groups = [attempts[first : first + GROUP_SIZE] for first in range(0, len(attempts), GROUP_SIZE)]
    counts = [policy.counts([a.reward for a in group]) for group in groups for _ in group]
    examples = [
        attempt.example(advantage, in_policy)
        for attempt, advantage, in_policy in zip(attempts, advantages, counts, strict=True)
    ]
    objective = Objective(policy, NoAnchor(), NoLoss(), NoCredit(), Constant(0.0), Joint(), SequenceMean())
    return _update(objective, sampler, now, reference, examples, max_tokens)


def distillation_update(
    loss: HindsightLoss, student: nn.Module, teacher: nn.Module, attempts: Sequence[Attempt]
) -> Taken:
    """The hindsight loss alone with weight 1, a mean over rollouts of means over their hindsight tokens."""
    policy = Grpo(Kl(0.0), SequenceMean())
    objective = Objective(policy, NoAnchor(), loss, NoCredit(), Constant(1.0), Joint(), SequenceMean())
    examples = [attempt.example(advantage=0.0) for attempt in attempts]
    return _update(objective, student, student, teacher, examples, max_tokens=10_000)


def _update(
    objective: Objective,
    sampler: nn.Module,
    now: nn.Module,
    frozen: nn.Module,
    examples: Sequence[Example],
    max_tokens: int,
) -> Taken:
    """An update under ``now``; where that is not ``sampler`` it is a later one, after a first under ``sampler``."""
    student, other = _wrapped(sampler), _wrapped(frozen)
    micros = micro_batches(objective.plan(examples, objective.divisors(examples), step=0), max_tokens)
    readings = [objective.read(other, other, micro) for micro in micros]
    gaps_A = torch.cat([reading.gap_M for reading in readings])
    calls = [(student, other, micro, reading, gaps_A, 0) for micro, reading in zip(micros, readings, strict=True)]
    olds = [None] * len(micros) if now is sampler else [objective(*call).old for call in calls]
    student.lm.load_state_dict(now.state_dict())
    student.zero_grad()
    total = torch.zeros((), dtype=torch.float64)
    for call, old in zip(calls, olds, strict=True):
        part = objective(*call, old)
        part.loss.backward()
        total = total + part.loss.detach()
    return Taken(total, gradient(student.lm))


def _wrapped(lm: nn.Module) -> CausalLM:
    wide = next(lm.parameters()).dtype == torch.float64
    return CausalLM(deepcopy(lm), "64-true" if wide else "32-true")
