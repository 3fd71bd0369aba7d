"""The initial weights, for teacher, judge and KL reference: a copy, or a student with its adapter off."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from hindsearch.models.causal_lm import CausalLM


class FrozenLM(CausalLM):
    """A model that never trains: no gradient, always in eval mode."""

    def __init__(self, lm: Any, precision: str) -> None:
        super().__init__(lm, precision)
        self.requires_grad_(False)
        self.eval()

    def train(self, mode: bool = True) -> "FrozenLM":
        return super().train(False)  # type: ignore[return-value]


def frozen_copy(model: CausalLM) -> FrozenLM:
    """The model's weights as they are now, in storage of their own."""
    return FrozenLM(copy.deepcopy(model.lm), model.precision)


class AdapterOff:
    """The student under an adapter as it was before training: the same weights, the adapter switched off.

    It owns nothing, so it stands in no ``state_dict`` and costs no memory.
    """

    def __init__(self, student: CausalLM) -> None:
        self._student = student

    def __getattr__(self, name: str) -> Any:
        return getattr(self._student, name)

    def hidden(self, sequences: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
        with self._off():
            return self._student.hidden(sequences, targets)

    def logprobs(self, hidden_ND: Tensor) -> Tensor:
        with self._off():
            return self._student.logprobs(hidden_ND)

    @contextmanager
    def sampling(self) -> Iterator[None]:
        with self._student.sampling(), self._student.lm.disable_adapter():
            yield

    @contextmanager
    def _off(self) -> Iterator[None]:
        with torch.no_grad(), self._student.lm.disable_adapter():
            yield


def adapter_off(student: CausalLM) -> AdapterOff:
    """A view of an adapted student as it was before training."""
    return AdapterOff(student)
