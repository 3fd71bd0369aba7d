"""The student as it was at an earlier step: a view of it under other trained weights."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from hindsearch.models.causal_lm import CausalLM


class Snapshot:
    """Reads with trained weights of its own and shares everything else with the student.

    Costs one copy of what is trained: of all weights, or of an adapter alone. While it reads, its weights stand in the
    student's place; gradients are never made.
    """

    def __init__(self, student: CausalLM) -> None:
        self._student = student
        self._weights = {name: weight.detach().clone() for name, weight in self._trained()}

    def _trained(self) -> list[tuple[str, torch.nn.Parameter]]:
        return [(name, weight) for name, weight in self._student.named_parameters() if weight.requires_grad]

    def blend(self, rate: float) -> None:
        """Move by ``rate`` toward the student; 1 takes the student's weights as they are."""
        with torch.no_grad():
            for name, weight in self._trained():
                own = self._on(name, weight)
                if rate == 1.0:
                    own.copy_(weight)
                else:
                    own.lerp_(weight, rate)

    def weights(self) -> dict[str, Tensor]:
        return dict(self._weights)

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Raise ``KeyError`` where a trained weight is missing."""
        self._weights = {name: weights[name].clone() for name, _ in self._trained()}

    def hidden(self, sequences: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
        with self._in_place():
            return self._student.hidden(sequences, targets)

    def logprobs(self, hidden_ND: Tensor) -> Tensor:
        with self._in_place():
            return self._student.logprobs(hidden_ND)

    @contextmanager
    def _in_place(self) -> Iterator[None]:
        trained = self._trained()
        kept = [weight.data for _, weight in trained]
        try:
            for name, weight in trained:
                weight.data = self._on(name, weight)
            with torch.no_grad():
                yield
        finally:
            for (_, weight), data in zip(trained, kept, strict=True):
                weight.data = data

    def _on(self, name: str, weight: Tensor) -> Tensor:
        """The own weight, moved once to where the student's is."""
        if self._weights[name].device != weight.device:
            self._weights[name] = self._weights[name].to(weight.device)
        return self._weights[name]
