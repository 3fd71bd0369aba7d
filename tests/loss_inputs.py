"""Inputs of hindsight losses, from the numbers that a test wants to see."""

import torch
from torch import Tensor

from hindsearch.tensors import HindsightInputs


def sampled(student: list[float], teacher: list[float]) -> HindsightInputs:
    """Log-probabilities of sampled tokens alone; ``logprobs_N`` carries gradient."""
    count = len(student)
    empty_NK = torch.zeros((count, 0), dtype=torch.float64)
    logprobs_N = torch.tensor(student, dtype=torch.float64, requires_grad=True)
    return HindsightInputs(
        logprobs_N=logprobs_N,
        old_logprobs_N=logprobs_N.detach(),
        teacher_logprobs_N=torch.tensor(teacher, dtype=torch.float64),
        student_NK=empty_NK,
        old_NK=empty_NK,
        teacher_NK=empty_NK,
        valid_NK=empty_NK.bool(),
        step_gaps_A=torch.tensor(teacher, dtype=torch.float64) - logprobs_N.detach(),
        rollout_N=torch.zeros(count, dtype=torch.long),
        turn_N=torch.zeros(count, dtype=torch.long),
    )


def on_support(
    student_NK: Tensor, old_NK: Tensor, teacher_NK: Tensor, valid_NK: Tensor | None = None
) -> HindsightInputs:
    """Log-probabilities over a support; the first entry is the sampled token."""
    count = student_NK.shape[0]
    return HindsightInputs(
        logprobs_N=student_NK[:, 0],
        old_logprobs_N=old_NK[:, 0],
        teacher_logprobs_N=teacher_NK[:, 0],
        student_NK=student_NK,
        old_NK=old_NK.detach(),
        teacher_NK=teacher_NK,
        valid_NK=torch.ones_like(student_NK, dtype=torch.bool) if valid_NK is None else valid_NK,
        step_gaps_A=(teacher_NK - old_NK)[:, 0].detach(),
        rollout_N=torch.zeros(count, dtype=torch.long),
        turn_N=torch.zeros(count, dtype=torch.long),
    )
