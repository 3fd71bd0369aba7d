"""Keys and values of growing rows in one buffer per layer, every row contiguous at a length of its own."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

_LEAST = 64


class KvBuffer(Cache):
    """A transformers cache over the first rows of preallocated buffers ``[slots, heads, capacity, dim]``.

    Before a forward pass ``place`` says where its tokens go: token ``j`` of row ``i`` is written at
    ``positions_nq[i, j]``. What lies beyond a row's own length is garbage, is never attended to (the caller's mask ends
    at the position of the query), and is overwritten later. So rows of unequal length share a batch without holes, and
    a batch is a view of the buffer: nothing is copied to decode.
    """

    def __init__(self, slots: int) -> None:
        super().__init__(layers=[])
        self.slots = slots
        self._keys: dict[int, Tensor] = {}
        self._values: dict[int, Tensor] = {}
        self._positions_nq = torch.zeros((0, 0), dtype=torch.long)
        self._width = 0
        self._first = 0
        self._used = 0

    def place(self, positions_nq: Tensor, width: int, first: int) -> None:
        """Where the tokens of the next pass go, how many positions their queries may see, and the first row's slot."""
        self._positions_nq, self._width, self._first = positions_nq, width, first
        self._used = max(self._used, width)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        return (
            self._write(self._keys, key_states, layer_idx),
            self._write(self._values, value_states, layer_idx),
        )

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return 0  # positions and masks are always given; nothing is derived from a length

    def _write(self, buffers: dict[int, Tensor], states_nHqD: Tensor, layer: int) -> Tensor:
        n, heads, _, dim = states_nHqD.shape
        buffer = buffers.get(layer)
        if buffer is None or buffer.shape[2] < self._width:
            capacity = max(_LEAST, self._width if buffer is None else max(self._width, 2 * buffer.shape[2]))
            grown = states_nHqD.new_zeros((self.slots, heads, capacity, dim))
            if buffer is not None:
                grown[:, :, : buffer.shape[2]] = buffer
            buffer = buffers[layer] = grown
        view = buffer[self._first : self._first + n]
        view[torch.arange(n, device=buffer.device)[:, None], :, self._positions_nq] = states_nHqD.transpose(1, 2)
        return view[:, :, : self._width]

    def copy(self, source: Sequence[int], target: Sequence[int]) -> None:
        """Copy slots ``source`` to slots ``target``, pair by pair; every source is read before any is written."""
        for buffers in (self._keys, self._values):
            for buffer in buffers.values():
                buffer[list(target), :, : self._used] = buffer[list(source), :, : self._used]

    def swap(self, left: Sequence[int], right: Sequence[int]) -> None:
        """Exchange slots, pair by pair."""
        if left:
            self.copy([*left, *right], [*right, *left])
