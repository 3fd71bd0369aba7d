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
        self.narrow_frozen()
        self.eval()

    def train(self, mode: bool = True) -> "FrozenLM":
        """Eval mode, whatever is asked."""
        return super().train(False)  # type: ignore[return-value]


def frozen_copy(model: CausalLM) -> FrozenLM:
    """The model's weights as they are now, in storage of their own."""
    return FrozenLM(copy.deepcopy(model.lm), model.precision)


class AdapterOff:
    """The student under an adapter as it was before training: the same weights, the adapter switched off.

    It owns nothing, so it stands in no ``state_dict`` and costs no memory. It never makes a gradient.
    """

    def __init__(self, student: CausalLM) -> None:
        self._student = student
        self._depth = 0

    @property
    def device(self) -> torch.device:
        return self._student.device

    @property
    def vocab_size(self) -> int:
        return self._student.vocab_size

    @property
    def max_positions(self) -> int:
        return self._student.max_positions

    def hidden(self, sequences: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
        with self._off():
            return self._student.hidden(sequences, targets)

    def logprobs(self, hidden_ND: Tensor) -> Tensor:
        with self._off():
            return self._student.logprobs(hidden_ND)

    def read(self, ids_NQ: Tensor, positions_NQ: Tensor, mask_N1QS: Tensor, cache: Any) -> Tensor:
        with self._off():
            return self._student.read(ids_NQ, positions_NQ, mask_N1QS, cache)

    @contextmanager
    def sampling(self) -> Iterator[None]:
        with self._student.sampling(), self._off():
            yield

    @contextmanager
    def _off(self) -> Iterator[None]:
        """Only the outermost use switches: an inner one that ends must not switch the adapter on again."""
        self._depth += 1
        try:
            with torch.no_grad():
                if self._depth > 1:
                    yield
                else:
                    with self._student.lm.disable_adapter():
                        yield
        finally:
            self._depth -= 1


def adapter_off(student: CausalLM) -> AdapterOff:
    """A view of an adapted student as it was before training."""
    return AdapterOff(student)
