"""What is minimised: policy loss + λ · hindsight loss, over the loss tokens of a micro-batch laid end to end.

Losses return per-token values. Every token's weight is decided once per step, in ``Objective.plan``, from the counts of
the whole step on all ranks; here values are multiplied by their weight and summed. So micro-batches, ranks and padding
change nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hindsearch.interfaces import (
    Coefficient,
    Credit,
    HindsightLoss,
    LanguageModel,
    Policy,
    Reduction,
    Support,
)
from hindsearch.tensors import CreditInputs, Example, HindsightInputs, PolicyInputs


@dataclass(frozen=True)
class Share:
    """An example with the weight of each of its tokens in the step's policy and hindsight sums."""

    example: Example
    policy_weight: float
    hindsight_weight: float

    @property
    def num_positions(self) -> int:
        return self.example.prompt_L.numel() + self.example.completion_T.numel()


@dataclass(frozen=True)
class Part:
    """A micro-batch's part of the step's loss, and its sums for the log.

    ``means`` maps a name to (sum over tokens, number of tokens); ``maxima`` to a largest value.
    """

    loss: Tensor
    sums: Mapping[str, Tensor]
    means: Mapping[str, tuple[Tensor, Tensor]]
    maxima: Mapping[str, Tensor]


def token_counts(examples: Sequence[Example]) -> Tensor:
    """Counts of this rank, to be summed over ranks: policy tokens, rollouts, hindsight tokens, rollouts with any."""
    policy_B = torch.tensor([float(e.loss_mask_T.sum()) for e in examples], dtype=torch.float64)
    hindsight_B = torch.tensor([float(e.hindsight_mask_T.sum()) for e in examples], dtype=torch.float64)
    return torch.stack([policy_B.sum(), (policy_B > 0).sum(), hindsight_B.sum(), (hindsight_B > 0).sum()]).double()


def micro_batches(shares: Sequence[Share], max_tokens: int) -> list[list[Share]]:
    """Longest first, as many to a micro-batch as fit ``max_tokens`` padded positions; one at least."""
    batches: list[list[Share]] = []
    for share in sorted(shares, key=lambda s: s.num_positions, reverse=True):
        if batches and (len(batches[-1]) + 1) * batches[-1][0].num_positions <= max_tokens:
            batches[-1].append(share)
        else:
            batches.append([share])
    return batches


@dataclass(frozen=True)
class Objective:
    """Holds the choices of a method; sees tensors only.

    ``head_rows`` bounds how many tokens go through the output head at once: logits are dropped and recomputed in the
    backward pass beyond that, so that memory does not grow with the vocabulary times the tokens.
    """

    policy: Policy
    loss: HindsightLoss
    credit: Credit
    coefficient: Coefficient
    hindsight_reduction: Reduction
    head_rows: int = 2048

    def plan(self, examples: Sequence[Example], totals: Tensor) -> list[Share]:
        """Weigh every token of the step and leave out the rollouts that cannot move the student.

        ``totals`` are the ``token_counts`` summed over ranks.
        """
        policy_tokens, policy_rollouts, hindsight_tokens, hindsight_rollouts = totals.tolist()
        counts_B = torch.tensor([int(e.loss_mask_T.sum()) for e in examples])
        hindsight_B = torch.tensor([int(e.hindsight_mask_T.sum()) for e in examples])
        policy_weights_B = self.policy.reduction(counts_B, policy_tokens, policy_rollouts)
        hindsight_weights_B = self.hindsight_reduction(hindsight_B, hindsight_tokens, hindsight_rollouts)
        shares: list[Share] = []
        weights = zip(policy_weights_B.tolist(), hindsight_weights_B.tolist(), strict=True)
        for example, count, hindsight, weight in zip(examples, counts_B, hindsight_B, weights, strict=True):
            if count and (example.advantage != 0 or self.policy.kl.active):
                shares.append(Share(example, *weight))
            elif hindsight:
                shares.append(Share(example.hindsight_only(), *weight))
        return shares

    def __call__(
        self,
        student: LanguageModel,
        teacher: LanguageModel,
        reference: LanguageModel,
        shares: Sequence[Share],
        step: int,
    ) -> Part:
        """This micro-batch's part of the step's loss; the parts of all micro-batches and ranks add up to it."""
        rows = _Rows.of(shares)
        hidden_ND = student.hidden(
            [torch.cat([s.example.prompt_L, s.example.completion_T]) for s in shares],
            [s.example.prompt_L.numel() + _where(s.example.loss_mask_T) for s in shares],
        )
        logprobs_N = self._sampled(student, hidden_ND, rows.ids_N)
        old_logprobs_N = logprobs_N.detach()  # one update per rollout batch: the sampling policy is this one
        behaviour_N = rows.behaviour_logprobs_N.to(logprobs_N.dtype)
        error_N = (old_logprobs_N - behaviour_N).abs()
        sums: dict[str, Tensor] = {}
        means: dict[str, tuple[Tensor, Tensor]] = {"rollout/logprob_error": _mean(error_N)}
        maxima = {"rollout/logprob_error_max": error_N.max()}

        advantages_N = rows.advantages_N.to(logprobs_N.dtype)
        loss = logprobs_N.new_zeros(())
        if rows.hindsight_M.numel():
            hindsight = self._hindsight_inputs(student, teacher, shares, rows, hidden_ND, logprobs_N)
            gap_M = hindsight.teacher_logprobs_N - hindsight.logprobs_N.detach()
            advantages_N = advantages_N.clone()
            advantages_N[rows.hindsight_M] = self.credit(
                CreditInputs(gap_M, advantages_N[rows.hindsight_M], hindsight.rollout_N, hindsight.turn_N)
            )
            output = self.loss(hindsight)
            sums["loss/hindsight"] = (output.loss_N * rows.hindsight_weights_M.to(logprobs_N.dtype)).sum()
            loss = loss + self.coefficient(step) * sums["loss/hindsight"]
            means |= {f"hindsight/{name}": _mean(value_M) for name, value_M in output.metrics.items()}
            means["hindsight/gap"] = _mean(gap_M)
            means["hindsight/gap_positive"] = _mean((gap_M > 0).to(gap_M.dtype))
            if rows.chain_known and "weight" in output.metrics:
                weight_M = output.metrics["weight"].abs()
                means["hindsight/right_share"] = ((weight_M * rows.right_M).sum(), weight_M.sum())

        output = self.policy(PolicyInputs(logprobs_N, old_logprobs_N, advantages_N, rows.rollout_N, rows.turn_N))
        weights_N = rows.policy_weights_N.to(logprobs_N.dtype)
        sums["loss/policy"] = (output.loss_N * weights_N).sum()
        loss = loss + sums["loss/policy"]
        means |= {f"policy/{name}": _mean(value_N) for name, value_N in output.metrics.items()}
        if self.policy.kl.active:
            output = self.policy.kl(logprobs_N, old_logprobs_N, self._reference(reference, shares, rows))
            sums["loss/kl"] = (output.loss_N * weights_N).sum()
            loss = loss + sums["loss/kl"]
            means |= {f"policy/{name}": _mean(value_N) for name, value_N in output.metrics.items()}
        return Part(loss, {name: value.detach() for name, value in sums.items()}, means, maxima)

    def _hindsight_inputs(
        self,
        student: LanguageModel,
        teacher: LanguageModel,
        shares: Sequence[Share],
        rows: "_Rows",
        hidden_ND: Tensor,
        logprobs_N: Tensor,
    ) -> HindsightInputs:
        ids_M = rows.ids_N[rows.hindsight_M]
        logprobs_M = logprobs_N[rows.hindsight_M]
        student_MK, teacher_MK = logprobs_M.new_zeros((ids_M.numel(), 0)), logprobs_M.new_zeros((ids_M.numel(), 0))
        valid_MK = torch.zeros_like(student_MK, dtype=torch.bool)
        teacher_logprobs_M = logprobs_M.detach()
        if self.loss.needs_teacher or self.credit.needs_teacher:
            hinted = [s.example for s in shares if bool(s.example.hindsight_mask_T.any())]
            with torch.no_grad():
                # nothing after the last of its tokens is read
                targets = [e.hint_prompt_H.numel() + _where(e.hindsight_mask_T) for e in hinted]
                sequences = [torch.cat([e.hint_prompt_H, e.completion_T]) for e in hinted]
                cut = [s[: int(t[-1]) + 1] for s, t in zip(sequences, targets, strict=True)]
                teacher_hidden_MD = teacher.hidden(cut, targets)
                teacher_logprobs_M = self._sampled(teacher, teacher_hidden_MD, ids_M)
            student_MK, teacher_MK, valid_MK = self._on_support(
                student, teacher, hidden_ND[rows.hindsight_M], teacher_hidden_MD
            )
        return HindsightInputs(
            logprobs_N=logprobs_M,
            old_logprobs_N=logprobs_M.detach(),
            teacher_logprobs_N=teacher_logprobs_M.to(logprobs_M.dtype),
            student_NK=student_MK,
            old_NK=student_MK.detach(),
            teacher_NK=teacher_MK.to(logprobs_M.dtype),
            valid_NK=valid_MK,
            rollout_N=rows.rollout_N[rows.hindsight_M],
            turn_N=rows.turn_N[rows.hindsight_M],
        )

    def _reference(self, reference: LanguageModel, shares: Sequence[Share], rows: "_Rows") -> Tensor:
        with torch.no_grad():
            hidden_ND = reference.hidden(
                [torch.cat([s.example.prompt_L, s.example.completion_T]) for s in shares],
                [s.example.prompt_L.numel() + _where(s.example.loss_mask_T) for s in shares],
            )
            return self._sampled(reference, hidden_ND, rows.ids_N)

    def _sampled(self, model: LanguageModel, hidden_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Log-probabilities of the sampled tokens."""

        def head(hidden_nD: Tensor, ids_n: Tensor) -> Tensor:
            return model.logprobs(hidden_nD).gather(-1, ids_n.unsqueeze(-1)).squeeze(-1)

        parts = zip(hidden_ND.split(self.head_rows), ids_N.split(self.head_rows), strict=True)
        if hidden_ND.shape[0] <= self.head_rows or not torch.is_grad_enabled():
            return torch.cat([head(*part) for part in parts])
        return torch.cat([checkpoint(head, *part, use_reentrant=False) for part in parts])  # type: ignore[misc]

    def _on_support(
        self, student: LanguageModel, teacher: LanguageModel, hidden_MD: Tensor, teacher_hidden_MD: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Both models' log-probabilities at the loss's support, and which entries are real."""
        support: Support = self.loss.support

        def head(hidden_mD: Tensor, teacher_hidden_mD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            student_mV = student.logprobs(hidden_mD)
            with torch.no_grad():
                teacher_mV = teacher.logprobs(teacher_hidden_mD)
                ids_mK, valid_mK = support(student_mV.detach(), teacher_mV)
            return student_mV.gather(-1, ids_mK), teacher_mV.gather(-1, ids_mK), valid_mK

        if support.size == 0:
            empty = hidden_MD.new_zeros((hidden_MD.shape[0], 0), dtype=torch.float32)
            return empty, empty, torch.zeros_like(empty, dtype=torch.bool)
        parts = zip(hidden_MD.split(self.head_rows), teacher_hidden_MD.split(self.head_rows), strict=True)
        if hidden_MD.shape[0] <= self.head_rows:
            columns = [head(*part) for part in parts]
        else:
            columns = [checkpoint(head, *part, use_reentrant=False) for part in parts]  # type: ignore[misc]
        student_MK, teacher_MK, valid_MK = (torch.cat(column) for column in zip(*columns, strict=True))
        return student_MK, teacher_MK, valid_MK


@dataclass(frozen=True)
class _Rows:
    """The loss tokens of a micro-batch laid end to end; ``M`` counts those with hindsight, as indices into ``N``."""

    ids_N: Tensor
    behaviour_logprobs_N: Tensor
    advantages_N: Tensor
    policy_weights_N: Tensor
    rollout_N: Tensor
    turn_N: Tensor
    hindsight_M: Tensor
    hindsight_weights_M: Tensor
    right_M: Tensor
    chain_known: bool

    @staticmethod
    def of(shares: Sequence[Share]) -> "_Rows":
        masks = [s.example.loss_mask_T for s in shares]
        counts_B = torch.tensor([int(mask.sum()) for mask in masks], device=masks[0].device)

        def gathered(name: str) -> Tensor:
            return torch.cat([getattr(s.example, name)[mask] for s, mask in zip(shares, masks, strict=True)])

        def spread(values: list[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float64, device=masks[0].device).repeat_interleave(counts_B)

        hindsight_M = _where(gathered("hindsight_mask_T"))
        return _Rows(
            ids_N=gathered("completion_T"),
            behaviour_logprobs_N=gathered("behaviour_logprobs_T"),
            advantages_N=spread([s.example.advantage for s in shares]),
            policy_weights_N=spread([s.policy_weight for s in shares]),
            rollout_N=torch.arange(len(shares), device=counts_B.device).repeat_interleave(counts_B),
            turn_N=gathered("turn_T"),
            hindsight_M=hindsight_M,
            hindsight_weights_M=spread([s.hindsight_weight for s in shares])[hindsight_M],
            right_M=gathered("right_T")[hindsight_M],
            chain_known=any(s.example.chain_known for s in shares),
        )


def _where(mask_T: Tensor) -> Tensor:
    return mask_T.nonzero().squeeze(-1)


def _mean(value_N: Tensor) -> tuple[Tensor, Tensor]:
    value_N = value_N.detach()
    return value_N.sum(), value_N.new_tensor(float(value_N.numel()))
