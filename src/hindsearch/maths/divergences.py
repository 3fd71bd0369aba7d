"""Ratios, estimators of KL(π ‖ reference), and divergences between two distributions, per token."""

import math

import torch
from torch import Tensor

MAX_LOG_RATIO = 20.0
"""Log-ratios are clamped here before ``exp``: e^20 is far beyond every clip, and finite."""


def ratio(logprobs_N: Tensor, old_logprobs_N: Tensor) -> Tensor:
    """π / π_old on the sampled token."""
    return (logprobs_N - old_logprobs_N).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def clipped_surrogate(ratio_N: Tensor, advantages_N: Tensor, low: float, high: float) -> tuple[Tensor, Tensor]:
    """PPO's pessimistic surrogate as a loss, ``max(−A·r, −A·clip(r, 1−low, 1+high))`` (arXiv 1707.06347, eq. 7).

    Returns the loss and where the clip stops the gradient; any shape.
    """
    free = -advantages_N * ratio_N
    bounded = -advantages_N * ratio_N.clamp(1 - low, 1 + high)
    return torch.maximum(free, bounded), bounded.detach() > free.detach()


def refuse_no_room(clip_low: float, clip_high: float) -> None:
    """Raise ``ValueError`` where a clip leaves no room around ratio 1."""
    if not 0 < clip_low < 1 or not clip_high > 0:
        raise ValueError(
            f"clip_low={clip_low}, clip_high={clip_high} leave no room around ratio 1; "
            "use 0 < clip_low < 1 and clip_high > 0, for example 0.2"
        )


def k1(logprobs_N: Tensor, reference_logprobs_N: Tensor) -> Tensor:
    """``log π − log ref``: unbiased for KL(π ‖ ref), high variance, can be negative."""
    return logprobs_N - reference_logprobs_N


def k2(logprobs_N: Tensor, reference_logprobs_N: Tensor) -> Tensor:
    """``½ (log π − log ref)²``: biased, low variance; its gradient is an unbiased one of KL(π ‖ ref) on policy."""
    return 0.5 * (logprobs_N - reference_logprobs_N).square()


def k3(logprobs_N: Tensor, reference_logprobs_N: Tensor) -> Tensor:
    """``ref/π − 1 − log(ref/π)``: unbiased for KL(π ‖ ref), never negative, low variance."""
    difference_N = (reference_logprobs_N - logprobs_N).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    return difference_N.exp() - 1 - difference_N


def forward_kl_terms(student_NK: Tensor, teacher_NK: Tensor, valid_NK: Tensor) -> Tensor:
    """``p_T (log p_T − log p_S)`` of each entry: the terms of KL(teacher ‖ student), 0 where not valid."""
    return torch.where(valid_NK, teacher_NK.exp() * (teacher_NK - student_NK), 0.0)


def reverse_kl_terms(student_NK: Tensor, teacher_NK: Tensor, valid_NK: Tensor) -> Tensor:
    """``p_S (log p_S − log p_T)`` of each entry: the terms of KL(student ‖ teacher), 0 where not valid.

    Differentiated through both factors. Were the log-ratio summed to one detached number and used as an advantage of
    the sampled token, its expected gradient would be 0.
    """
    return torch.where(valid_NK, student_NK.exp() * (student_NK - teacher_NK), 0.0)


def jsd_terms(student_NK: Tensor, teacher_NK: Tensor, valid_NK: Tensor, beta: float) -> Tensor:
    """Terms of the generalised Jensen-Shannon divergence, 0 where not valid (GKD, arXiv 2306.13649, eq. 1).

    ``β KL(teacher ‖ M) + (1 − β) KL(student ‖ M)`` with ``M = β teacher + (1 − β) student``. With β = ½ it is
    symmetric and at most ln 2.
    """
    log_beta, log_rest = math.log(beta), math.log1p(-beta)
    mixture_NK = torch.logaddexp(teacher_NK + log_beta, student_NK + log_rest)
    terms_NK = beta * teacher_NK.exp() * (teacher_NK - mixture_NK) + (1 - beta) * student_NK.exp() * (
        student_NK - mixture_NK
    )
    return torch.where(valid_NK, terms_NK, 0.0)
