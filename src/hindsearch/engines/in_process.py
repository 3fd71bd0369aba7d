"""Samples with the student itself, in this process: what was read stays read across turns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hindsearch.engines.kv_buffer import KvBuffer
from hindsearch.errors import TrainingError, UserError
from hindsearch.interfaces import Generation, SampledFrom, TurnEnd
from hindsearch.seeding import seed_of
from hindsearch.types import Sampling


@dataclass(frozen=True)
class InProcess:
    """An engine over a ``CausalLM``.

    ``prefill_tokens`` bounds the padded tokens read in one pass, ``head_rows`` the rows that go through the output head
    at once. Log-probabilities are those of the full softmax at temperature 1, whatever the sampling temperature.
    """

    model: SampledFrom = field(repr=False)
    prefill_tokens: int = 16384
    head_rows: int = 256

    def __post_init__(self) -> None:
        for name in ("prefill_tokens", "head_rows"):
            if getattr(self, name) < 1:
                raise ValueError(f"engine.{name}={getattr(self, name)} reads nothing; use 1 or more")

    def start(
        self, prompts: Sequence[Sequence[int]], copies: int, sampling: Sequence[Sampling], ends_turn: TurnEnd
    ) -> "InProcessSession":
        """See ``interfaces.Engine``. A prompt that occurs twice is read once."""
        return InProcessSession(self, prompts, copies, sampling, ends_turn)


@dataclass
class _Row:
    """A sequence: ``length`` tokens are in the buffer, ``unread`` are not yet, ``drawn`` were sampled.

    ``hidden_D`` predicts the next token; it is known only while nothing is unread.
    """

    sampling: Sampling
    length: int
    hidden_D: Tensor
    unread: list[int] = field(default_factory=list)
    drawn: int = 0


class InProcessSession:
    """Rows of one call of ``start``; see ``interfaces.Session``.

    The rows at work stand in the first slots of the buffer, so that a pass over them is a pass over a view; a row that
    ends its turn makes room at once. ``prefilled_tokens`` counts the given tokens that were read (a prompt once for all
    its copies), ``generated_tokens`` the sampled ones.

    Raises:
        UserError: from ``extend``, if ids are appended beyond the model's context.
        TrainingError: from ``extend``, if the model's probabilities are not numbers.
    """

    def __init__(
        self,
        engine: InProcess,
        prompts: Sequence[Sequence[int]],
        copies: int,
        sampling: Sequence[Sampling],
        ends_turn: TurnEnd,
    ) -> None:
        assert len(sampling) == len(prompts) * copies, "one sampling per row"
        assert all(prompts), "a prompt holds at least one token"
        self._engine, self._model, self._ends_turn = engine, engine.model, ends_turn
        self._cache = KvBuffer(slots=len(sampling), max_length=engine.model.max_positions)
        self.prefilled_tokens = 0
        self.generated_tokens = 0
        distinct = sorted(set(map(tuple, prompts)), key=lambda prompt: (len(prompt), prompt))
        place = {prompt: i for i, prompt in enumerate(distinct)}
        sources = [place[tuple(prompts[i // copies])] for i in range(len(sampling))]
        with self._model.sampling():
            hidden_PD = self._read(distinct, [0] * len(distinct))
            self._cache.spread(sources)
        self._rows = [
            _Row(draws, len(distinct[source]), hidden_PD[source])
            for draws, source in zip(sampling, sources, strict=True)
        ]
        self.prefilled_tokens += sum(map(len, distinct))

    def extend(
        self, rows: Sequence[int], new_ids: Sequence[Sequence[int]], max_new_tokens: Sequence[int]
    ) -> list[Generation]:
        """See ``interfaces.Session``. A row also stops where the model's context ends."""
        assert len(set(rows)) == len(rows), "a row is extended once per call"
        limits: dict[int, int] = {}
        for row, ids, limit in zip(rows, new_ids, max_new_tokens, strict=True):
            state = self._rows[row]
            state.unread += ids
            self.prefilled_tokens += len(ids)
            room = self._model.max_positions - state.length - len(state.unread)
            if room < 0:
                raise UserError(
                    f"a rollout of {self._model.max_positions - room} tokens does not fit into the model's "
                    f"{self._model.max_positions} positions; lower agent.context_tokens"
                )
            limits[row] = min(limit, room)
        at_work = [row for row in rows if limits[row] > 0]
        if not at_work:
            return [Generation((), ()) for _ in rows]
        with self._model.sampling():
            self._prefill([row for row in at_work if self._rows[row].unread])
            written = self._decode(self._cache.arrange(at_work), limits)
        return [written.get(row, Generation((), ())) for row in rows]

    # ------------------------------------------------------------------ reading

    def _prefill(self, rows: Sequence[int]) -> None:
        """Read what is unread in ``rows``."""
        states = [self._rows[row] for row in self._cache.arrange(rows)]
        if not states:
            return
        hidden_ND = self._read([state.unread for state in states], [state.length for state in states])
        for state, hidden_D in zip(states, hidden_ND, strict=True):
            state.length += len(state.unread)
            state.unread, state.hidden_D = [], hidden_D

    def _read(self, ids: Sequence[Sequence[int]], starts: Sequence[int]) -> Tensor:
        """Read new ids of the rows in the first slots, some rows at a time; hidden states ``_ND`` of their last tokens.

        A shorter row is padded by its own last token in its own place, which changes nothing there: no position
        beyond a row's length is ever written.
        """
        device = self._model.device
        hidden_ND: list[Tensor] = []
        first = 0
        while first < len(ids):
            stop, longest = first + 1, len(ids[first])
            while stop < len(ids) and max(longest, len(ids[stop])) * (stop + 1 - first) <= self._engine.prefill_tokens:
                longest = max(longest, len(ids[stop]))
                stop += 1
            some = range(first, stop)
            ids_NQ = torch.tensor([[*ids[i], *[ids[i][-1]] * (longest - len(ids[i]))] for i in some])
            lengths_N1 = torch.tensor([[len(ids[i])] for i in some])
            positions_NQ = torch.tensor([[starts[i]] for i in some]) + torch.arange(longest).minimum(lengths_N1 - 1)
            width = max(starts[i] + len(ids[i]) for i in some)
            hidden_ND.append(self._pass(ids_NQ.to(device), positions_NQ.to(device), width, first)[:, -1])
            first = stop
        return torch.cat(hidden_ND)

    def _pass(self, ids_NQ: Tensor, positions_NQ: Tensor, width: int, first: int = 0) -> Tensor:
        """One pass over the rows from slot ``first`` on; the last of their positions is ``width - 1``."""
        self._cache.place(positions_NQ, width, first)
        mask_N1QS = torch.arange(width, device=ids_NQ.device) <= positions_NQ[:, None, :, None]
        return self._model.read(ids_NQ, positions_NQ, mask_N1QS, self._cache)

    # ------------------------------------------------------------------ sampling

    def _decode(self, at_work: list[int], limits: dict[int, int]) -> dict[int, Generation]:
        """Sample token by token in rows that stand in the first slots; a row leaves as soon as its turn ends."""
        states = {row: self._rows[row] for row in at_work}
        device = self._model.device
        uniforms_TN = self._uniforms(at_work, limits).to(device)
        temperature_N = torch.tensor([state.sampling.temperature for state in states.values()]).to(device)
        positions_N = torch.tensor([state.length for state in states.values()]).to(device)
        hidden_ND = torch.stack([state.hidden_D for state in states.values()])
        ids: dict[int, list[int]] = {row: [] for row in at_work}
        logprobs: dict[int, list[float]] = {row: [] for row in at_work}
        candidates = self._ends_turn.candidates
        while at_work:
            step = len(ids[at_work[0]])
            ids_N, logprobs_N = self._draw(hidden_ND, uniforms_TN[step], temperature_N)
            going: list[int] = []
            for row, token, logprob in zip(at_work, ids_N.tolist(), logprobs_N.tolist(), strict=True):
                if logprob != logprob:
                    raise TrainingError("the model's probabilities are not numbers: its weights have diverged")
                ids[row].append(token)
                logprobs[row].append(logprob)
                if step + 1 < limits[row] and not (token in candidates and self._ends_turn(ids[row])):
                    going.append(row)
            if not going:
                break
            if len(going) < len(at_work):
                place = {row: i for i, row in enumerate(at_work)}
                at_work = self._cache.arrange(going)
                kept = torch.tensor([place[row] for row in at_work]).to(device)
                ids_N, positions_N, temperature_N = ids_N[kept], positions_N[kept], temperature_N[kept]
                uniforms_TN = uniforms_TN.index_select(1, kept)
            width = 1 + step + max(states[row].length for row in at_work)
            hidden_ND = self._pass(ids_N[:, None], positions_N[:, None], width)[:, 0]
            positions_N = positions_N + 1
        for row, state in states.items():
            state.length += len(ids[row]) - 1
            state.unread = [ids[row][-1]]  # sampled last, so not in the buffer yet
            state.drawn += len(ids[row])
            self.generated_tokens += len(ids[row])
        return {row: Generation(tuple(ids[row]), tuple(logprobs[row])) for row in states}

    def _draw(self, hidden_ND: Tensor, uniforms_N: Tensor, temperature_N: Tensor) -> tuple[Tensor, Tensor]:
        """Ids and their log-probabilities; the head is paid for some rows at a time."""
        ids: list[Tensor] = []
        logprobs: list[Tensor] = []
        for some in torch.arange(hidden_ND.shape[0]).split(self._engine.head_rows):
            part = slice(int(some[0]), int(some[-1]) + 1)
            logprobs_NV = self._model.logprobs(hidden_ND[part])
            ids.append(draw(logprobs_NV, uniforms_N[part], temperature_N[part]))
            logprobs.append(logprobs_NV.gather(-1, ids[-1][:, None]).squeeze(-1))
        return torch.cat(ids), torch.cat(logprobs)

    def _uniforms(self, rows: Sequence[int], limits: dict[int, int]) -> Tensor:
        """The rows' next draws ``_TN``.

        They depend on a row's seed and on how many it has made, not on the batch it stands in.
        """
        uniforms_TN = torch.zeros((max(limits[row] for row in rows), len(rows)), dtype=torch.float64)
        generator = torch.Generator()
        for i, row in enumerate(rows):
            state = self._rows[row]
            generator.manual_seed(seed_of(state.sampling.seed, state.drawn))
            uniforms_TN[: limits[row], i] = torch.rand(limits[row], generator=generator, dtype=torch.float64)
        return uniforms_TN


def draw(logprobs_NV: Tensor, uniforms_N: Tensor, temperature_N: Tensor) -> Tensor:
    """Sample by inverse CDF in float64, one uniform in [0, 1) per row; temperature 0 takes the likeliest.

    An entry of probability 0 is never drawn.
    """
    greedy_N = temperature_N == 0
    if bool(greedy_N.all()):
        return logprobs_NV.argmax(dim=-1)
    scale_N1 = temperature_N.masked_fill(greedy_N, 1.0).double()[:, None]
    cdf_NV = (logprobs_NV.double() / scale_N1).softmax(dim=-1).cumsum(dim=-1)
    # the last entry divides to 1 exactly, so that some entry lies above every uniform
    ids_N = torch.searchsorted(cdf_NV / cdf_NV[:, -1:], uniforms_N[:, None].contiguous(), right=True).squeeze(-1)
    # (past the end only where the probabilities are not numbers, which the caller refuses)
    ids_N = ids_N.clamp(max=logprobs_NV.shape[-1] - 1)
    return torch.where(greedy_N, logprobs_NV.argmax(dim=-1), ids_N) if bool(greedy_N.any()) else ids_N
