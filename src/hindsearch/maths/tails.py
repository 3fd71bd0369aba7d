"""What becomes of the probability that lies outside a support.

A divergence over K entries needs a decision about the rest of the vocabulary. Each of these takes full-vocabulary
log-probabilities at K entries, and which of them are real, to the columns that the divergence is summed over.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

SMALLEST = 1e-7
"""A tail's probability is at least this: where the support holds everything, both sides get this same constant."""


@dataclass(frozen=True)
class Dropped:
    """Left out: the columns no longer sum to 1, and the gradient inflates what is on the support."""

    def __call__(self, logprobs_NK: Tensor, valid_NK: Tensor) -> tuple[Tensor, Tensor]:
        return logprobs_NK, valid_NK


@dataclass(frozen=True)
class Renormalised:
    """Spread over the entries of the support. Mass that a student drains out of the support is not seen."""

    def __call__(self, logprobs_NK: Tensor, valid_NK: Tensor) -> tuple[Tensor, Tensor]:
        masked_NK = logprobs_NK.masked_fill(~valid_NK, -torch.inf)
        total_N1 = masked_NK.logsumexp(-1, keepdim=True)
        return torch.where(valid_NK, logprobs_NK - total_N1, 0.0), valid_NK


@dataclass(frozen=True)
class Bucket:
    """One more entry that holds all of it (SDPO, arXiv 2601.20802; OpenClaw-RL v1, arXiv 2603.10165).

    ``log(1 − Σ_K p)``. With K = V the divergence is the full one.
    """

    def __call__(self, logprobs_NK: Tensor, valid_NK: Tensor) -> tuple[Tensor, Tensor]:
        mass_N1 = torch.where(valid_NK, logprobs_NK.exp(), 0.0).sum(-1, keepdim=True)
        tail_N1 = (1.0 - mass_N1).clamp(min=SMALLEST).log()
        return torch.cat([logprobs_NK, tail_N1], -1), torch.cat([valid_NK, torch.ones_like(valid_NK[:, :1])], -1)
