"""What is minimised: policy loss + λ · hindsight loss, over the loss tokens of a micro-batch laid end to end.

Losses return per-token values. Every token's weight is decided once per step, in ``Objective.plan``, from the counts of
the whole step on all ranks; here values are multiplied by their weight and summed. So micro-batches, ranks and padding
change nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hindsearch.heads import Heads, OnSupport
from hindsearch.interfaces import (
    Anchor,
    Coefficient,
    Credit,
    HindsightLoss,
    LanguageModel,
    Loop,
    Policy,
    Reduction,
)
from hindsearch.losses.none import NoLoss
from hindsearch.micro_batch import Rows, Share, completions, where
from hindsearch.tensors import CreditInputs, Example, HindsightInputs, LossOutput, PolicyInputs


@dataclass(frozen=True)
class Reading:
    """What other models say of a micro-batch, read once per rollout batch and without gradient.

    ``teacher_hidden_MD`` and the teacher's log-probabilities of the sampled tokens are over the hindsight tokens (empty
    where no teacher is needed); ``reference_logprobs_N`` over all loss tokens (empty without a KL term). ``gap_M`` is
    the teacher's log-probability minus the sampler's.
    """

    teacher_hidden_MD: Tensor
    teacher_logprobs_M: Tensor
    reference_logprobs_N: Tensor
    gap_M: Tensor


@dataclass(frozen=True)
class OldPolicy:
    """The policy that sampled, as the first update of a rollout batch found it; later updates compare with it."""

    logprobs_N: Tensor
    support: OnSupport


@dataclass(frozen=True)
class Part:
    """A micro-batch's part of the step's loss, and its sums for the log.

    ``means`` maps a name to (sum over tokens, number of tokens); ``maxima`` to a largest value. ``old`` is what a
    further update of the same rollouts needs.
    """

    loss: Tensor
    sums: Mapping[str, Tensor]
    means: Mapping[str, tuple[Tensor, Tensor]]
    maxima: Mapping[str, Tensor]
    old: OldPolicy


@dataclass(frozen=True)
class Objective:
    """Holds the choices of a method; sees tensors only.

    ``head_rows`` bounds how many tokens go through the output head at once: logits are dropped and recomputed in the
    backward pass beyond that, so that memory does not grow with the vocabulary times the tokens.
    """

    policy: Policy
    anchor: Anchor
    loss: HindsightLoss
    credit: Credit
    coefficient: Coefficient
    loop: Loop
    hindsight_reduction: Reduction
    head_rows: int = 2048

    @property
    def _heads(self) -> Heads:
        return Heads(self.head_rows)

    # ------------------------------------------------------------------ what acts

    def hindsight_weight(self, step: int) -> float:
        """λ at this step; 0 where the hindsight loss does not act."""
        return 0.0 if isinstance(self.loss, NoLoss) else self.coefficient(step) * self.loop.hindsight(step)

    def uses_critiques(self, step: int) -> bool:
        """Whether anything at this step is learned from critiques: if not, nobody is asked for them."""
        by_credit = (self.credit.needs_teacher or self.credit.needs_labels) and self.loop.policy(step) > 0
        return by_credit or self.hindsight_weight(step) > 0

    @property
    def needs_teacher(self) -> bool:
        return self.loss.needs_teacher or self.credit.needs_teacher

    # ------------------------------------------------------------------ before the first update

    def divisors(self, examples: Sequence[Example]) -> Tensor:
        """What this rank's rollouts add to the divisors of the policy and the hindsight sum, to be summed over ranks.

        Two more entries count policy tokens and rollouts, for the log.
        """
        totals = torch.zeros(4, dtype=torch.float64)
        for example in examples:
            turn_N = example.turn_T[example.loss_mask_T]
            counted = self.policy.reduction.divisor(turn_N) if example.in_policy else 0.0
            hindsight = self.hindsight_reduction.divisor(example.turn_T[example.hindsight_mask_T])
            totals += torch.tensor([counted, hindsight, turn_N.numel(), 1.0], dtype=torch.float64)
        return totals

    def plan(self, examples: Sequence[Example], totals: Tensor, step: int) -> list[Share]:
        """Weigh every token of the step and leave out the rollouts that cannot move the student.

        ``totals`` are the ``divisors`` summed over ranks.
        """
        shares = (self._share(example, totals, step) for example in examples)
        return [share for share in shares if share is not None]

    def _share(self, example: Example, totals: Tensor, step: int) -> Share | None:
        policy, moves = self.loop.policy(step), bool(example.hindsight_mask_T.any()) and self.hindsight_weight(step) > 0
        is_moved = example.advantage != 0 or self.policy.kl.active or self.anchor.active
        is_moved = is_moved or (self.credit.needs_labels and bool(example.good_T.any()))
        if not (policy and is_moved and example.in_policy and bool(example.loss_mask_T.any())):
            if not moves:
                return None
            example, policy = example.hindsight_only(), 0.0
        policy_N = self.policy.reduction.parts(example.turn_T[example.loss_mask_T])
        hindsight_M = self.hindsight_reduction.parts(example.turn_T[example.hindsight_mask_T])
        return Share(
            example,
            policy_weights_N=policy * policy_N / totals[0].clamp(min=1e-9),
            hindsight_weights_M=hindsight_M / totals[1].clamp(min=1e-9),
        )

    def read(self, teacher: LanguageModel, reference: LanguageModel, shares: Sequence[Share]) -> Reading:
        """What the teacher says of the hindsight tokens, and the reference of all loss tokens."""
        rows = Rows.of(shares)
        ids_M = rows.ids_N[rows.hindsight_M]
        behaviour_M = rows.behaviour_logprobs_N[rows.hindsight_M]
        hidden_MD, logprobs_M = behaviour_M.new_zeros((0, 0)), behaviour_M
        reference_N = behaviour_M.new_zeros(0)
        with torch.no_grad():
            if self.needs_teacher and ids_M.numel():
                hinted = [s.example for s in shares if bool(s.example.hindsight_mask_T.any())]
                # nothing after the last of its tokens is read
                targets = [e.hint_prompt_H.numel() + where(e.hindsight_mask_T) for e in hinted]
                sequences = [torch.cat([e.hint_prompt_H, e.completion_T]) for e in hinted]
                cut = [s[: int(t[-1]) + 1] for s, t in zip(sequences, targets, strict=True)]
                hidden_MD = teacher.hidden(cut, targets)
                logprobs_M = self._heads.sampled(teacher, hidden_MD, ids_M)
            if self.policy.kl.active:
                hidden_ND = reference.hidden(*completions(shares))
                reference_N = self._heads.sampled(reference, hidden_ND, rows.ids_N)
        return Reading(hidden_MD, logprobs_M, reference_N, logprobs_M - behaviour_M.to(logprobs_M.dtype))

    # ------------------------------------------------------------------ an update

    def __call__(
        self,
        student: LanguageModel,
        teacher: LanguageModel,
        shares: Sequence[Share],
        reading: Reading,
        step_gaps_A: Tensor,
        step: int,
        old: OldPolicy | None = None,
    ) -> Part:
        """This micro-batch's part of the step's loss; the parts of all micro-batches and ranks add up to it.

        ``step_gaps_A`` are the gaps of all readings of the step, on all ranks. ``old`` is the first update's, in a
        further update of the same rollouts; without it the student is the policy that sampled.
        """
        rows = Rows.of(shares)
        hidden_ND = student.hidden(*completions(shares))
        logprobs_N = self._heads.sampled(student, hidden_ND, rows.ids_N)
        support = self._heads.on_support(
            self.loss.support,
            student,
            teacher,
            hidden_ND[rows.hindsight_M],
            reading.teacher_hidden_MD,
            old.support if old else None,
        )
        if old is None:
            frozen = replace(support, student_MK=support.student_MK.detach())
            old = OldPolicy(logprobs_N.detach(), frozen)
        error_N = (logprobs_N.detach() - rows.behaviour_logprobs_N.to(logprobs_N.dtype)).abs()
        sums: dict[str, Tensor] = {}
        means: dict[str, tuple[Tensor, Tensor]] = {"rollout/logprob_error": _mean(error_N)}
        maxima = {"rollout/logprob_error_max": error_N.max()}

        hindsight_N = torch.zeros_like(rows.turn_N, dtype=torch.bool)
        gap_N = torch.zeros_like(old.logprobs_N)
        loss = logprobs_N.new_zeros(())
        if rows.hindsight_M.numel():
            inputs = self._hindsight_inputs(rows, reading, step_gaps_A, support, old, logprobs_N)
            hindsight_N[rows.hindsight_M] = True
            gap_N[rows.hindsight_M] = inputs.teacher_logprobs_N - inputs.old_logprobs_N
            gap_M = inputs.teacher_logprobs_N - inputs.logprobs_N.detach()
            means["hindsight/gap"] = _mean(gap_M)
            means["hindsight/gap_positive"] = _mean((gap_M > 0).to(gap_M.dtype))
            if self.hindsight_weight(step) > 0:
                output = self.loss(inputs)
                sums["loss/hindsight"] = (output.loss_N * rows.hindsight_weights_M.to(logprobs_N.dtype)).sum()
                loss = loss + self.hindsight_weight(step) * sums["loss/hindsight"]
                means |= {f"hindsight/{name}": _mean(value_M) for name, value_M in output.metrics.items()}
                if rows.chain_known:
                    # how hard a token is pulled: a coefficient, or a divergence
                    weight_M = output.metrics.get("weight", output.loss_N.detach()).abs()
                    means["hindsight/right_share"] = ((weight_M * rows.right_M).sum(), weight_M.sum())

        if self.loop.policy(step) > 0:
            base_N = rows.advantages_N.to(logprobs_N.dtype)
            advantages_N = self.credit(
                CreditInputs(gap_N, hindsight_N, rows.good_N, base_N, step, rows.rollout_N, rows.turn_N)
            )
            if self.credit.needs_teacher or self.credit.needs_labels:
                means["credit/shift"] = _mean((advantages_N - base_N).abs())
            terms = self._policy_terms(
                PolicyInputs(logprobs_N, old.logprobs_N, advantages_N, rows.rollout_N, rows.turn_N), reading
            )
            for name, output in terms.items():
                sums[f"loss/{name}"] = (output.loss_N * rows.policy_weights_N.to(logprobs_N.dtype)).sum()
                loss = loss + sums[f"loss/{name}"]
                means |= {f"policy/{key}": _mean(value_N) for key, value_N in output.metrics.items()}
        return Part(loss, {name: value.detach() for name, value in sums.items()}, means, maxima, old)

    def _policy_terms(self, inputs: PolicyInputs, reading: Reading) -> dict[str, LossOutput]:
        terms = {"policy": self.policy(inputs)}
        if self.policy.kl.active:
            terms["kl"] = self.policy.kl(inputs.logprobs_N, inputs.old_logprobs_N, reading.reference_logprobs_N)
        if self.anchor.active:
            terms["anchor"] = self.anchor(inputs)
        return terms

    def _hindsight_inputs(
        self,
        rows: Rows,
        reading: Reading,
        step_gaps_A: Tensor,
        support: OnSupport,
        old: OldPolicy,
        logprobs_N: Tensor,
    ) -> HindsightInputs:
        old_M = old.logprobs_N[rows.hindsight_M]
        return HindsightInputs(
            logprobs_N=logprobs_N[rows.hindsight_M],
            old_logprobs_N=old_M,
            # without a teacher there is no gap
            teacher_logprobs_N=reading.teacher_logprobs_M.to(old_M.dtype) if self.needs_teacher else old_M,
            student_NK=support.student_MK,
            old_NK=old.support.student_MK,
            teacher_NK=support.teacher_MK,
            valid_NK=support.valid_MK,
            step_gaps_A=step_gaps_A.to(old_M.dtype),
            rollout_N=rows.rollout_N[rows.hindsight_M],
            turn_N=rows.turn_N[rows.hindsight_M],
        )


def _mean(value_N: Tensor) -> tuple[Tensor, Tensor]:
    value_N = value_N.detach()
    return value_N.sum(), value_N.new_tensor(float(value_N.numel()))
