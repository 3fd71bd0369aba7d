"""How a step's per-token losses become one number: each token's weight, decided once from counts over all ranks."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TokenMean:
    """Every token weighs ``1 / tokens of the step``: long rollouts count for more (DAPO, arXiv 2503.14476)."""

    def __call__(self, tokens_B: Tensor, total_tokens: float, total_rollouts: float) -> Tensor:
        return torch.full(tokens_B.shape, 1.0 / max(total_tokens, 1.0), dtype=torch.float64)


@dataclass(frozen=True)
class SequenceMean:
    """Every rollout weighs the same: ``1 / (rollouts · tokens of the rollout)`` (GRPO, arXiv 2402.03300)."""

    def __call__(self, tokens_B: Tensor, total_tokens: float, total_rollouts: float) -> Tensor:
        return 1.0 / (tokens_B.clamp(min=1).double() * max(total_rollouts, 1.0))
