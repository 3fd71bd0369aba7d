"""Optimisers and the schedule of a warm start."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import nn
from torch.optim import AdamW, Muon, Optimizer

BETAS = (0.9, 0.95)


@dataclass(frozen=True)
class MuonAdamW:
    """Muon (Jordan et al. 2024) for the matrices, AdamW for embeddings, head and norms.

    Muon's update is scaled to the size of AdamW's (arXiv 2502.16982), so the two rates are of one kind. Small models
    learn to copy in about half the steps that AdamW alone takes.
    """

    matrix_lr: float
    lr: float
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if not (self.matrix_lr > 0 and self.lr > 0):
            raise ValueError(f"rates must be positive; matrix_lr={self.matrix_lr} and lr={self.lr} are not both")

    def __call__(self, model: nn.Module) -> list[Optimizer]:
        """Return two optimisers that share out the trainable weights of ``model``."""
        outer = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        outer |= {id(p) for name, p in model.named_parameters() if "lm_head" in name}
        weights = [p for p in model.parameters() if p.requires_grad]
        matrices = [p for p in weights if p.ndim == 2 and id(p) not in outer]
        chosen = {id(p) for p in matrices}
        rest = [p for p in weights if id(p) not in chosen]
        return [
            Muon(matrices, lr=self.matrix_lr, weight_decay=self.weight_decay, adjust_lr_fn="match_rms_adamw"),
            AdamW(rest, lr=self.lr, betas=BETAS, weight_decay=self.weight_decay),
        ]


@dataclass(frozen=True)
class PlainAdamW:
    """AdamW for all weights: the usual choice for a pretrained base model."""

    lr: float
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if not self.lr > 0:
            raise ValueError(f"lr must be positive; {self.lr} is not, 1e-5 would be")

    def __call__(self, model: nn.Module) -> list[Optimizer]:
        """Return one optimiser over the trainable weights of ``model``."""
        weights = [p for p in model.parameters() if p.requires_grad]
        return [AdamW(weights, lr=self.lr, betas=BETAS, weight_decay=self.weight_decay)]


@dataclass(frozen=True)
class WarmupDecay:
    """A rate that rises linearly over ``warmup_steps``, holds, and falls linearly over the last share ``decay``."""

    warmup_steps: int
    decay: float

    def __post_init__(self) -> None:
        if self.warmup_steps < 0 or not 0 <= self.decay <= 1:
            raise ValueError(
                f"warmup_steps={self.warmup_steps}, decay={self.decay}: steps are 0 or more, a share is within [0, 1]"
            )

    def __call__(self, step: int, steps: int) -> float:
        """Return the factor of the rate at ``step`` (0 is the first) of ``steps``; never 0 within them."""
        rise = (step + 1) / self.warmup_steps if self.warmup_steps else 1.0
        fall = (steps - step) / (steps * self.decay) if self.decay else 1.0
        return min(1.0, rise, fall)


def set_rates(optimizers: Sequence[Optimizer], factor: float) -> None:
    """Set every group's rate to ``factor`` times the one it was built with."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = factor * group.setdefault("initial_lr", group["lr"])
