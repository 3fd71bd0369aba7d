"""Hidden states through the output head: log-probabilities of sampled tokens and at a loss's support.

The head costs width times vocabulary per token, so it is paid for on loss tokens only, and at most ``rows`` at a time:
beyond that, logits are dropped and made again in the backward pass.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from hindsearch.interfaces import LanguageModel, Support


@dataclass(frozen=True)
class OnSupport:
    """Both models' log-probabilities at ``ids_MK``; ``valid_MK`` is false on padding. The teacher is constant."""

    student_MK: Tensor
    teacher_MK: Tensor
    ids_MK: Tensor
    valid_MK: Tensor


@dataclass(frozen=True)
class Heads:
    """Runs heads over at most ``rows`` tokens at once."""

    rows: int

    def sampled(self, model: LanguageModel, hidden_ND: Tensor, ids_N: Tensor) -> Tensor:
        """Log-probabilities of the sampled tokens."""

        def head(hidden_nD: Tensor, ids_n: Tensor) -> Tensor:
            return model.logprobs(hidden_nD).gather(-1, ids_n.unsqueeze(-1)).squeeze(-1)

        return torch.cat(self._in_chunks(head, hidden_ND, ids_N))

    def on_support(
        self,
        support: Support,
        student: LanguageModel,
        teacher: LanguageModel,
        hidden_MD: Tensor,
        teacher_hidden_MD: Tensor,
        before: OnSupport | None,
    ) -> OnSupport:
        """Both models' log-probabilities at a support; with ``before``, at the entries that the first update found."""

        def first(hidden_mD: Tensor, teacher_hidden_mD: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
            student_mV = student.logprobs(hidden_mD)
            with torch.no_grad():
                teacher_mV = teacher.logprobs(teacher_hidden_mD)
                # models padded to different sizes are compared on the entries that both have
                shared = min(student_mV.shape[-1], teacher_mV.shape[-1])
                ids_mK, valid_mK = support(student_mV.detach()[:, :shared], teacher_mV[:, :shared])
            return student_mV.gather(-1, ids_mK), teacher_mV.gather(-1, ids_mK), ids_mK, valid_mK

        def again(hidden_mD: Tensor, ids_mK: Tensor) -> Tensor:
            return student.logprobs(hidden_mD).gather(-1, ids_mK)

        if support.size == 0 or not hidden_MD.shape[0]:
            empty_MK = hidden_MD.new_zeros((hidden_MD.shape[0], 0), dtype=torch.float32)
            return OnSupport(empty_MK, empty_MK, empty_MK.long(), empty_MK.bool())
        if before is None:
            columns = self._in_chunks(first, hidden_MD, teacher_hidden_MD)
            student_MK, teacher_MK, ids_MK, valid_MK = (torch.cat(column) for column in zip(*columns, strict=True))
            return OnSupport(student_MK, teacher_MK.to(student_MK.dtype), ids_MK, valid_MK)
        student_MK = torch.cat(self._in_chunks(again, hidden_MD, before.ids_MK))
        return OnSupport(student_MK, before.teacher_MK, before.ids_MK, before.valid_MK)

    def _in_chunks(self, head: Callable[..., Any], *tensors: Tensor) -> list[Any]:
        """``head`` over ``rows`` rows at a time; logits of more than one chunk are made again when needed."""
        chunks = list(zip(*(tensor.split(self.rows) for tensor in tensors), strict=True))
        if len(chunks) <= 1 or not torch.is_grad_enabled():
            return [head(*chunk) for chunk in chunks]
        return [checkpoint(head, *chunk, use_reentrant=False) for chunk in chunks]
