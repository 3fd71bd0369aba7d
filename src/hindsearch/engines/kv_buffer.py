"""Keys and values of growing rows: one buffer per layer, every row contiguous, at a length of its own."""

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache

_LEAST = 64


class KvBuffer(Cache):
    """A transformers cache over buffers ``[slots, capacity, heads, dim]``, whose rows stand in slots.

    Before a forward pass ``place`` says where its tokens go: token ``j`` of the pass's row ``i`` is written at
    ``positions_NQ[i, j]`` of slot ``first + i``. A row's own length is nobody's business but the caller's, whose mask
    ends at the position of each query; so rows of unequal length share a batch without holes, and a pass over the first
    slots is a pass over a view: nothing is copied to decode.

    Capacity doubles as needed, up to ``max_length`` positions.
    """

    def __init__(self, slots: int, max_length: int) -> None:
        super().__init__(layers=[])
        self.slots, self.max_length = slots, max_length
        self._buffers: dict[tuple[int, str], Tensor] = {}
        self._capacity = min(_LEAST, max_length)
        self._used = 0
        self._window = (0, 0, 0)
        self._index = torch.zeros(0, dtype=torch.long)
        self._slot_of = list(range(slots))
        self._row_in = list(range(slots))

    # ------------------------------------------------------------------ a pass

    def place(self, positions_NQ: Tensor, width: int, first: int) -> None:
        """Where the tokens of the next pass go; its queries see at most the first ``width`` positions."""
        rows = positions_NQ.shape[0]
        self._grow(width)
        self._used = max(self._used, width)
        self._window = (first, first + rows, width)
        starts_N1 = torch.arange(first, first + rows, device=positions_NQ.device)[:, None] * self._capacity
        self._index = (starts_N1 + positions_NQ).flatten()

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the states ``[N, heads, Q, dim]`` of a layer and return all that its queries see."""
        # under autocast keys leave their rotation in float32; attention would round them as the values are
        keys = key_states.to(value_states.dtype)
        return self._write((layer_idx, "key"), keys), self._write((layer_idx, "value"), value_states)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """0: positions and masks are always given, and nothing is derived from a length."""
        return 0

    def _write(self, name: tuple[int, str], states_NHQD: Tensor) -> Tensor:
        _, heads, _, dim = states_NHQD.shape
        if name not in self._buffers:
            self._buffers[name] = states_NHQD.new_zeros((self.slots, self._capacity, heads, dim))
        buffer = self._buffers[name]
        buffer.view(-1, heads, dim).index_copy_(0, self._index, states_NHQD.transpose(1, 2).flatten(0, 1))
        start, stop, width = self._window
        return buffer[start:stop, :width].transpose(1, 2)

    def _grow(self, width: int) -> None:
        if width <= self._capacity:
            return
        assert width <= self.max_length, f"{width} positions are more than the model's {self.max_length}"
        self._capacity = min(max(width, 2 * self._capacity), self.max_length)
        for name, buffer in self._buffers.items():
            grown = buffer.new_zeros((self.slots, self._capacity, *buffer.shape[2:]))
            grown[:, : self._used] = buffer[:, : self._used]
            self._buffers[name] = grown

    # ------------------------------------------------------------------ rows and slots

    def arrange(self, rows: Collection[int]) -> list[int]:
        """Bring ``rows`` into the first slots, with as few moves as there are; return them in the order of slots."""
        count, wanted = len(rows), set(rows)
        holes = [slot for slot in range(count) if self._row_in[slot] not in wanted]
        movers = [self._slot_of[row] for row in rows if self._slot_of[row] >= count]
        self._copy([*movers, *holes], [*holes, *movers])
        for hole, mover in zip(holes, movers, strict=True):
            left, right = self._row_in[hole], self._row_in[mover]
            self._row_in[hole], self._row_in[mover] = right, left
            self._slot_of[left], self._slot_of[right] = mover, hole
        return self._row_in[:count]

    def spread(self, sources: Sequence[int]) -> None:
        """Fill slot ``i`` with what stands in slot ``sources[i]``, for all slots."""
        self._copy(sources, range(self.slots))

    def _copy(self, sources: Sequence[int], targets: Sequence[int]) -> None:
        """Copy slot to slot, pair by pair; every source is read before any target is written."""
        if not sources:
            return
        for buffer in self._buffers.values():
            source, target = (torch.tensor(list(slots), device=buffer.device) for slots in (sources, targets))
            used = buffer[:, : self._used]
            used.index_copy_(0, target, used.index_select(0, source))
