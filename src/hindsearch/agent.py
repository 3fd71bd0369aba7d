"""The search agent: turns of sampling and searching, in lock-step over all rollouts of a step."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from hindsearch.budget import Budget
from hindsearch.errors import RetrievalError
from hindsearch.interfaces import Engine, Generation, Renderer, Retriever, Session, TurnTokens
from hindsearch.protocol import ParsedTurn, parse_turn
from hindsearch.seeding import seed_of
from hindsearch.tokens import EndOfTurn, Tokens
from hindsearch.types import (
    Draw,
    Passage,
    Rollout,
    Sampling,
    Span,
    SpanKind,
    StopReason,
    Turn,
    TurnKind,
)

MAX_QUERY_CHARACTERS = 1000
"""What a retriever is asked at most; the ids that the student sampled stay as they are."""

COUNTED = (
    "time/generate",
    "time/retrieve",
    "rollout/queries",
    "rollout/queries_asked",
    "rollout/cut_passages",
    "rollout/cut_queries",
)
"""Seconds and counts of a call, summed over its turns."""

_NO_LOGPROB = float("nan")


@dataclass(frozen=True)
class AgentResult:
    """Rollouts group by group, and what they cost."""

    rollouts: tuple[Rollout, ...]
    metrics: Mapping[str, float]


@dataclass
class _Growing:
    """A rollout in the making. ``pending`` holds appended ids that the engine has not read yet."""

    draw: Draw
    index: int
    prompt_ids: tuple[int, ...]
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    pending: tuple[int, ...] = ()
    answer: str | None = None
    stop: StopReason | None = None

    @property
    def length(self) -> int:
        return len(self.prompt_ids) + len(self.ids)


@dataclass(frozen=True)
class SearchAgent:
    """Answers questions with a student, a retriever and the tag grammar.

    Ids are appended, never made again from text: what the engine sampled is what is trained on. Masks and spans come
    from who wrote what. All queries of a turn go to the retriever in one call, each distinct one once.
    """

    engine: Engine
    renderer: Renderer
    tokens: Tokens
    retriever: Retriever
    budget: Budget
    run_seed: int

    @cached_property
    def _end_of_turn(self) -> EndOfTurn:
        return EndOfTurn(self.tokens)

    def __call__(self, draws: Sequence[Draw], group_size: int, temperature: float, stage: str) -> AgentResult:
        """``group_size`` rollouts per draw, side by side; seeds depend on stage, step, slot and index alone."""
        prompts = [self.renderer.prompt(draw.question, hint="") for draw in draws]
        rows = [
            _Growing(draw, index, prompt)
            for draw, prompt in zip(draws, prompts, strict=True)
            for index in range(group_size)
        ]
        sampling = [
            Sampling(temperature, seed_of(self.run_seed, stage, row.draw.step, row.draw.slot, row.index))
            for row in rows
        ]
        session = self.engine.start(prompts, group_size, sampling, self._end_of_turn)
        metrics: dict[str, float] = dict.fromkeys(COUNTED, 0.0)
        for turn in range(self.budget.max_turns + 1):
            live = [i for i, row in enumerate(rows) if row.stop is None]
            if not live:
                break
            parsed = self._sample(session, rows, live, metrics)
            self._observe(rows, parsed, turn == self.budget.max_turns, metrics)
        for row in rows:
            row.stop = row.stop or StopReason.TURN_LIMIT
        metrics["rollout/sampled_tokens"] = float(sum(p == p for row in rows for p in row.logprobs))
        return AgentResult(tuple(self._finish(row, stage) for row in rows), metrics)

    # ------------------------------------------------------------------ one turn

    def _sample(
        self, session: Session, rows: Sequence[_Growing], live: Sequence[int], metrics: dict[str, float]
    ) -> dict[int, tuple[ParsedTurn, Generation]]:
        """Let the student write a turn in every live row; rows without room for one end."""
        asked: list[int] = []
        for i in live:
            if rows[i].length >= self.budget.context_tokens:
                rows[i].stop = StopReason.CONTEXT_LIMIT
            else:
                asked.append(i)
        if not asked:
            return {}
        limits = [min(self.budget.turn_tokens, self.budget.context_tokens - rows[i].length) for i in asked]
        began = time.perf_counter()
        generations = session.extend(asked, [rows[i].pending for i in asked], limits)
        metrics["time/generate"] += time.perf_counter() - began
        return {
            i: (self._take(rows[i], generation), generation) for i, generation in zip(asked, generations, strict=True)
        }

    def _take(self, row: _Growing, generation: Generation) -> ParsedTurn:
        """Keep what was sampled, with the spans of its parts."""
        ids, start, number = generation.ids, len(row.ids), len(row.turns)
        written = ids[:-1] if ids and ids[-1] in self.tokens.end_ids else ids
        pieces = self.tokens.pieces(written)
        text = "".join(pieces)
        parsed = parse_turn(text)
        ends = list(accumulate(map(len, pieces)))
        row.spans.append(Span(SpanKind.TURN, start, start + len(ids), start, start + len(ids), number))
        for span in parsed.spans:
            inner = _tokens_inside(ends, span.start, span.end)
            outer = _tokens_touching(ends, span.outer_start, span.outer_end)
            row.spans.append(
                Span(span.kind, start + inner[0], start + inner[1], start + outer[0], start + outer[1], number)
            )
        row.ids += ids
        row.logprobs += generation.logprobs
        row.turns.append(Turn(parsed.kind, text, parsed.content, "", ()))
        row.pending = ()
        return parsed

    def _observe(
        self,
        rows: Sequence[_Growing],
        parsed: Mapping[int, tuple[ParsedTurn, Generation]],
        is_last: bool,
        metrics: dict[str, float],
    ) -> None:
        """Answer every turn: passages for a search, a correction for an invalid turn, an end for an answer."""
        queries = {
            i: turn.content[:MAX_QUERY_CHARACTERS]
            for i, (turn, _) in parsed.items()
            if turn.kind is TurnKind.SEARCH and not is_last
        }
        metrics["rollout/cut_queries"] += sum(len(parsed[i][0].content) > MAX_QUERY_CHARACTERS for i in queries)
        found = self._retrieve(queries, metrics)
        for i, (turn, generation) in parsed.items():
            row = rows[i]
            if turn.kind is TurnKind.ANSWER:
                row.answer, row.stop = turn.content, StopReason.ANSWERED
            elif is_last:
                row.stop = StopReason.TURN_LIMIT
            elif turn.kind is TurnKind.SEARCH and found is None:
                row.stop = StopReason.FAILED
            elif turn.kind is TurnKind.SEARCH:
                passages = (found or {})[queries[i]]
                observed = self.renderer.observation(passages, generation.ids, self.budget.observation_tokens)
                metrics["rollout/cut_passages"] += observed.cut
                self._append(row, observed, passages)
            else:
                self._append(row, self.renderer.correction(generation.ids), ())

    def _retrieve(self, queries: Mapping[int, str], metrics: dict[str, float]) -> dict[str, tuple[Passage, ...]] | None:
        """Passages by query, in one call over the distinct queries; ``None`` if they cannot be had."""
        distinct = list(dict.fromkeys(queries.values()))
        metrics["rollout/queries"] += len(queries)
        metrics["rollout/queries_asked"] += len(distinct)
        if not distinct:
            return {}
        began = time.perf_counter()
        try:
            results = self.retriever(distinct, self.budget.top_k)
        except RetrievalError:
            return None
        finally:
            metrics["time/retrieve"] += time.perf_counter() - began
        return dict(zip(distinct, results, strict=True))

    def _append(self, row: _Growing, observed: TurnTokens, passages: tuple[Passage, ...]) -> None:
        """Append ids that nobody sampled; a row without room for them and a next turn ends before them."""
        if row.length + len(observed.ids) >= self.budget.context_tokens:
            row.stop = StopReason.CONTEXT_LIMIT
            return
        start, end = len(row.ids), len(row.ids) + len(observed.ids)
        turn = row.turns[-1]
        row.turns[-1] = Turn(turn.kind, turn.text, turn.content, observed.text, passages)
        row.spans.append(Span(SpanKind.OBSERVATION, start, end, start, end, len(row.turns) - 1))
        row.ids += observed.ids
        row.logprobs += [_NO_LOGPROB] * len(observed.ids)
        row.pending = observed.ids

    def _finish(self, row: _Growing, stage: str) -> Rollout:
        assert row.stop is not None
        return Rollout(
            question=row.draw.question,
            group=f"{stage}-{row.draw.step}-{row.draw.slot}",
            index=row.index,
            prompt_ids=row.prompt_ids,
            completion_ids=tuple(row.ids),
            logprobs=tuple(row.logprobs),
            loss_mask=tuple(p == p for p in row.logprobs),
            spans=tuple(row.spans),
            turns=tuple(row.turns),
            answer=row.answer,
            stop=row.stop,
        )


def _tokens_inside(ends: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Tokens that lie wholly within ``start:end``, from the character at which each token ends.

    A token that also holds a character of a tag is the tag's. Tokens of no text begin a character that the next token
    of text completes, and lie with that token.
    """
    starts = [0, *ends[:-1]]
    inside = [i for i, (a, b) in enumerate(zip(starts, ends, strict=True)) if a >= start and b <= end and a < b]
    if not inside:
        return _first_from(ends, start), _first_from(ends, start)
    first = inside[0]
    while first > 0 and starts[first - 1] == starts[first]:
        first -= 1
    return first, inside[-1] + 1


def _tokens_touching(ends: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Tokens that hold any character of ``start:end``."""
    starts = [0, *ends[:-1]]
    touching = [i for i, (a, b) in enumerate(zip(starts, ends, strict=True)) if a < end and b > start and a < b]
    return (touching[0], touching[-1] + 1) if touching else (0, 0)


def _first_from(ends: Sequence[int], start: int) -> int:
    """The token that holds the character at ``start``, or the number of tokens."""
    return next((i for i, end in enumerate(ends) if end > start), len(ends))
