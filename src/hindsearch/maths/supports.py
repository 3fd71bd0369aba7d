"""Over which vocabulary entries a divergence is summed."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class SampledToken:
    """No entry but the sampled token, whose log-probabilities are at hand anyway: ``K`` is 0."""

    @property
    def size(self) -> int:
        return 0

    def __call__(self, student_NV: Tensor, teacher_NV: Tensor) -> tuple[Tensor, Tensor]:
        ids_NK = torch.zeros((student_NV.shape[0], 0), dtype=torch.long, device=student_NV.device)
        return ids_NK, ids_NK.bool()


@dataclass(frozen=True)
class StudentTopK:
    """The student's ``k`` likeliest entries (OpenClaw-RL v2, arXiv 2603.10165)."""

    k: int

    def __post_init__(self) -> None:
        _refuse_no_entries(self.k)

    @property
    def size(self) -> int:
        return self.k

    def __call__(self, student_NV: Tensor, teacher_NV: Tensor) -> tuple[Tensor, Tensor]:
        ids_NK = student_NV.topk(min(self.k, student_NV.shape[-1]), dim=-1).indices
        return ids_NK, torch.ones_like(ids_NK, dtype=torch.bool)


@dataclass(frozen=True)
class TeacherTopK:
    """The teacher's ``k`` likeliest entries."""

    k: int

    def __post_init__(self) -> None:
        _refuse_no_entries(self.k)

    @property
    def size(self) -> int:
        return self.k

    def __call__(self, student_NV: Tensor, teacher_NV: Tensor) -> tuple[Tensor, Tensor]:
        ids_NK = teacher_NV.topk(min(self.k, teacher_NV.shape[-1]), dim=-1).indices
        return ids_NK, torch.ones_like(ids_NK, dtype=torch.bool)


def _refuse_no_entries(k: int) -> None:
    if k < 1:
        raise ValueError(f"a support of k={k} entries holds nothing; use 1 or more, for example 4")
