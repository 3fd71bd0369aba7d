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
        ids_NK = _top(student_NV, self.k)
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
        ids_NK = _top(teacher_NV, self.k)
        return ids_NK, torch.ones_like(ids_NK, dtype=torch.bool)


@dataclass(frozen=True)
class UnionTopK:
    """The ``k`` likeliest entries of the student and those of the teacher, each once: ``K`` is ``2k``, padded."""

    k: int

    def __post_init__(self) -> None:
        _refuse_no_entries(self.k)

    @property
    def size(self) -> int:
        return 2 * self.k

    def __call__(self, student_NV: Tensor, teacher_NV: Tensor) -> tuple[Tensor, Tensor]:
        ids_NK = torch.cat([_top(student_NV, self.k), _top(teacher_NV, self.k)], -1).sort(-1).values
        valid_NK = torch.ones_like(ids_NK, dtype=torch.bool)
        valid_NK[:, 1:] = ids_NK[:, 1:] != ids_NK[:, :-1]
        return ids_NK, valid_NK


@dataclass(frozen=True)
class FullVocabulary:
    """Every entry that both models have: exact, and ``V`` numbers a token to keep."""

    @property
    def size(self) -> int:
        return 2**31 - 1

    def __call__(self, student_NV: Tensor, teacher_NV: Tensor) -> tuple[Tensor, Tensor]:
        ids_NV = torch.arange(student_NV.shape[-1], device=student_NV.device).expand_as(student_NV)
        return ids_NV, torch.ones_like(ids_NV, dtype=torch.bool)


def _top(logprobs_NV: Tensor, k: int) -> Tensor:
    return logprobs_NV.topk(min(k, logprobs_NV.shape[-1]), dim=-1).indices


def _refuse_no_entries(k: int) -> None:
    if k < 1:
        raise ValueError(f"a support of k={k} entries holds nothing; use 1 or more, for example 4")
