"""Samples with the student itself, in this process: what was read stays read across turns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hindsearch.engines.kv_buffer import KvBuffer
from hindsearch.interfaces import Generation, SampledFrom, Session, TurnEnd
from hindsearch.seeding import seed_of
from hindsearch.types import Sampling


@dataclass(frozen=True)
class InProcess:
    """An engine over a ``CausalLM``. ``prefill_tokens`` bounds how many padded tokens are read in one pass.

    Log-probabilities are those of the full softmax at temperature 1, whatever the sampling temperature.
    """

    model: SampledFrom
    prefill_tokens: int = 16384

    def __post_init__(self) -> None:
        if self.prefill_tokens < 1:
            raise ValueError(f"engine.prefill_tokens={self.prefill_tokens} reads nothing; use 1 or more")

    def start(
        self, prompts: Sequence[Sequence[int]], copies: int, sampling: Sequence[Sampling], ends_turn: TurnEnd
    ) -> Session:
        return InProcessSession(self.model, self.prefill_tokens, prompts, copies, sampling, ends_turn)


@dataclass
class _Row:
    """A sequence: ``length`` tokens are in the buffer, ``unread`` are not yet; ``drawn`` counts its samples."""

    sampling: Sampling
    unread: list[int]
    length: int
    drawn: int = 0
    new: Generation = field(default_factory=lambda: Generation((), ()))


class InProcessSession:
    """Rows of one call of ``start``.

    The rows at work stand in the first slots of the buffer, so that a pass over them is a pass over a view; a row that
    ends its turn changes places with the last one at work.
    """

    def __init__(
        self,
        model: SampledFrom,
        prefill_tokens: int,
        prompts: Sequence[Sequence[int]],
        copies: int,
        sampling: Sequence[Sampling],
        ends_turn: TurnEnd,
    ) -> None:
        assert len(sampling) == len(prompts) * copies, "one sampling per row"
        self._model, self._prefill_tokens, self._ends_turn = model, prefill_tokens, ends_turn
        self._cache = KvBuffer(slots=len(sampling))
        self._slot_of = list(range(len(sampling)))
        self.prefilled_tokens = 0
        self.generated_tokens = 0
        distinct = list(dict.fromkeys(map(tuple, prompts)))
        first = {prompt: i for i, prompt in enumerate(distinct)}
        # the last token of a prompt is read by each of its rows: its logits are where they part
        self._rows = [
            _Row(s, [prompts[i // copies][-1]], len(prompts[i // copies]) - 1) for i, s in enumerate(sampling)
        ]
        with model.sampling():
            self._read_prompts(distinct)
            sources = [first[tuple(prompts[i // copies])] for i in range(len(sampling))]
            self._cache.copy(sources, self._slot_of)

    def extend(
        self, rows: Sequence[int], new_ids: Sequence[Sequence[int]], max_new_tokens: Sequence[int]
    ) -> list[Generation]:
        """See ``interfaces.Session``."""
        for row, ids in zip(rows, new_ids, strict=True):
            self._rows[row].unread += ids
            self._rows[row].new = Generation((), ())
        at_work = [row for row, limit in zip(rows, max_new_tokens, strict=True) if limit > 0]
        if at_work:
            limits = dict(zip(rows, max_new_tokens, strict=True))
            with self._model.sampling():
                self._to_front(at_work)
                at_work.sort(key=self._slot_of.__getitem__)
                logprobs_NV = self._prefill(at_work)
                self._decode(at_work, limits, logprobs_NV)
        return [self._rows[row].new for row in rows]

    # ------------------------------------------------------------------ reading

    def _read_prompts(self, prompts: Sequence[Sequence[int]]) -> None:
        """Put all but the last token of each distinct prompt into the first slots."""
        rest = [list(prompt[:-1]) for prompt in prompts]
        if max(map(len, rest)):
            self._forward(rest, [0] * len(rest))
            self.prefilled_tokens += sum(map(len, rest))

    def _prefill(self, at_work: Sequence[int]) -> Tensor:
        """Read what is unread, row by row, and return log-probabilities of the next token ``_NV``."""
        rows = [self._rows[row] for row in at_work]
        hidden_ND = self._forward([row.unread for row in rows], [row.length for row in rows])
        for row in rows:
            self.prefilled_tokens += len(row.unread)
            row.length += len(row.unread)
            row.unread = []
        return self._model.logprobs(hidden_ND)

    def _forward(self, ids: Sequence[Sequence[int]], starts: Sequence[int]) -> Tensor:
        """Run the body over the first rows of the buffer, some at a time; hidden states of each row's last token.

        Rows are padded on the right; what the padding writes lies beyond the row's length.
        """
        longest = max(map(len, ids))
        device = self._model.device
        ids_NQ = torch.zeros((len(ids), longest), dtype=torch.long)
        for i, row in enumerate(ids):
            ids_NQ[i, : len(row)] = torch.tensor(row, dtype=torch.long)
        positions_NQ = torch.tensor(starts)[:, None] + torch.arange(longest)
        last_N = torch.tensor([max(0, len(row) - 1) for row in ids])
        hidden: list[Tensor] = []
        at_once = max(1, self._prefill_tokens // longest)
        for first in range(0, len(ids), at_once):
            some = slice(first, first + at_once)
            hidden_nQD = self._pass(ids_NQ[some].to(device), positions_NQ[some].to(device), first)
            hidden.append(hidden_nQD[torch.arange(hidden_nQD.shape[0], device=device), last_N[some].to(device)])
        return torch.cat(hidden)

    def _pass(self, ids_NQ: Tensor, positions_NQ: Tensor, first: int = 0) -> Tensor:
        """One pass over the rows from slot ``first`` on."""
        width = int(positions_NQ.max()) + 1
        self._cache.place(positions_NQ, width, first)
        mask_N1QS = torch.arange(width, device=ids_NQ.device) <= positions_NQ[:, None, :, None]
        return self._model.read(ids_NQ, positions_NQ, mask_N1QS, self._cache)

    # ------------------------------------------------------------------ sampling

    def _decode(self, at_work: list[int], limits: dict[int, int], logprobs_NV: Tensor) -> None:
        """Sample token by token; a row leaves as soon as its turn ends."""
        device = logprobs_NV.device
        most = max(limits[row] for row in at_work)
        uniforms_TN = torch.zeros((most, len(at_work)), dtype=torch.float64)
        for i, row in enumerate(at_work):
            uniforms_TN[: limits[row], i] = self._uniforms(self._rows[row], limits[row])
        uniforms_TN = uniforms_TN.to(device)
        temperature_N = torch.tensor([self._rows[row].sampling.temperature for row in at_work], device=device)
        sampled: dict[int, tuple[list[int], list[float]]] = {row: ([], []) for row in at_work}
        candidates = self._ends_turn.candidates
        for step in range(most):
            ids_N = draw(logprobs_NV, uniforms_TN[step], temperature_N)
            chosen_N = logprobs_NV.gather(-1, ids_N[:, None]).squeeze(-1)
            goes_on: list[bool] = []
            for row, token, logprob in zip(at_work, ids_N.tolist(), chosen_N.tolist(), strict=True):
                ids, logprobs = sampled[row]
                ids.append(token)
                logprobs.append(logprob)
                ended = len(ids) >= limits[row] or (token in candidates and self._ends_turn(ids))
                goes_on.append(not ended)
            self.generated_tokens += len(at_work)
            if not all(goes_on):
                order = self._compact(at_work, goes_on)
                if not order:
                    break
                kept = torch.tensor(order, device=device)
                at_work = [at_work[i] for i in order]
                ids_N, uniforms_TN, temperature_N = ids_N[kept], uniforms_TN[:, kept], temperature_N[kept]
            positions_N1 = torch.tensor([[self._rows[row].length + len(sampled[row][0]) - 1] for row in at_work])
            hidden_N1D = self._pass(ids_N[:, None], positions_N1.to(device))
            logprobs_NV = self._model.logprobs(hidden_N1D[:, 0])
        for row, (ids, logprobs) in sampled.items():
            state = self._rows[row]
            state.length += len(ids) - 1
            state.unread = [ids[-1]]  # sampled last, so not in the buffer yet
            state.drawn += len(ids)
            state.new = Generation(tuple(ids), tuple(logprobs))

    def _uniforms(self, row: _Row, count: int) -> Tensor:
        """A row's next draws: they depend on its seed and on how many it has made, not on the batch it stands in."""
        generator = torch.Generator().manual_seed(seed_of(row.sampling.seed, row.drawn))
        return torch.rand(count, generator=generator, dtype=torch.float64)

    # ------------------------------------------------------------------ places

    def _to_front(self, rows: Sequence[int]) -> None:
        """Bring ``rows`` into the first slots."""
        wanted = set(range(len(rows)))
        movers = [row for row in rows if self._slot_of[row] not in wanted]
        free = sorted(wanted - {self._slot_of[row] for row in rows})
        self._swap(free, [self._slot_of[row] for row in movers])

    def _compact(self, at_work: Sequence[int], goes_on: Sequence[bool]) -> list[int]:
        """Close the gaps that ended rows leave; indices into ``at_work`` of the rest, in order of their slots.

        ``at_work[i]`` stands in slot ``i``.
        """
        count = sum(goes_on)
        holes = [i for i in range(count) if not goes_on[i]]
        movers = [i for i in range(count, len(at_work)) if goes_on[i]]
        self._swap(holes, movers)
        order = [i for i in range(count) if goes_on[i]]
        for hole, mover in zip(holes, movers, strict=True):
            order.insert(hole, mover)
        return order

    def _swap(self, left: Sequence[int], right: Sequence[int]) -> None:
        row_at = {slot: row for row, slot in enumerate(self._slot_of)}
        self._cache.swap(left, right)
        for a, b in zip(left, right, strict=True):
            self._slot_of[row_at[a]], self._slot_of[row_at[b]] = b, a


def draw(logprobs_NV: Tensor, uniforms_N: Tensor, temperature_N: Tensor) -> Tensor:
    """Sample by inverse CDF in float64, one uniform per row; temperature 0 takes the likeliest.

    An entry of probability 0 is never drawn.
    """
    greedy_N = logprobs_NV.argmax(dim=-1)
    if not bool((temperature_N > 0).any()):
        return greedy_N
    scale_N1 = temperature_N.clamp(min=1e-6).double()[:, None]
    cdf_NV = (logprobs_NV.double() / scale_N1).softmax(dim=-1).cumsum(dim=-1)
    ids_N = torch.searchsorted(cdf_NV / cdf_NV[:, -1:], uniforms_N[:, None], right=True).squeeze(-1)
    return torch.where(temperature_N > 0, ids_N.clamp(max=logprobs_NV.shape[-1] - 1), greedy_N)
