"""Ratios, gaps and estimators of KL(π ‖ reference), per token."""

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
