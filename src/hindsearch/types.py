"""The experience side: one frozen type per stage. No field is ``None`` because it has not happened yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Passage:
    """A retrieved text."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Question:
    """A task. ``golds`` are the accepted answers; ``source`` names the question set it comes from.

    ``evidence`` holds ids of supporting passages and ``chain`` the right queries in order; both are empty
    where the data does not know them.
    """

    id: str
    text: str
    golds: tuple[str, ...]
    source: str
    evidence: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()


@dataclass(frozen=True)
class Draw:
    """A question drawn for a step. ``slot`` is its place in the step over all ranks: it names the group."""

    question: Question
    step: int
    slot: int


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn. ``temperature`` 0 is greedy; training uses 1 (design rule 3)."""

    temperature: float
    seed: int


class TurnKind(Enum):
    """What a student's turn turned out to be."""

    SEARCH = "search"
    ANSWER = "answer"
    INVALID = "invalid"


class StopReason(Enum):
    """Why a rollout ended."""

    ANSWERED = "answered"
    TURN_LIMIT = "turn_limit"
    CONTEXT_LIMIT = "context_limit"
    FAILED = "failed"
    """Infrastructure failed; the rollout leaves its group and is never scored."""


class SpanKind(Enum):
    """Named token ranges of a completion."""

    THINK = "think"
    SEARCH = "search"
    ANSWER = "answer"
    TURN = "turn"
    """Everything the student sampled in one turn, tags and end token included."""
    OBSERVATION = "observation"


@dataclass(frozen=True)
class Span:
    """A token range of a completion, by provenance.

    ``start:end`` holds the tokens wholly inside the tags; ``outer_start:outer_end`` includes the tags. For
    ``TURN`` and ``OBSERVATION`` the two are equal. ``turn`` counts the student's turns from 0.
    """

    kind: SpanKind
    start: int
    end: int
    outer_start: int
    outer_end: int
    turn: int


@dataclass(frozen=True)
class Turn:
    """One turn as text, for judges and for people.

    ``text`` is what the student wrote; ``content`` the query or the answer, stripped ('' when invalid);
    ``observation`` the text appended after it ('' after an answer or at the end); ``passages`` what was found.
    """

    kind: TurnKind
    text: str
    content: str
    observation: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class Rollout:
    """One attempt at a question.

    ``completion_ids``, ``logprobs`` and ``loss_mask`` have one length. ``loss_mask`` is true where the student
    sampled; ``logprobs`` are the behaviour log-probabilities there and NaN elsewhere. ``answer`` is the content
    of the student's own answer, or ``None`` if it gave none. ``group`` names the group, created at sampling.
    """

    question: Question
    group: str
    index: int
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    loss_mask: tuple[bool, ...]
    spans: tuple[Span, ...]
    turns: tuple[Turn, ...]
    answer: str | None
    stop: StopReason

    def __post_init__(self) -> None:
        lengths = {len(self.completion_ids), len(self.logprobs), len(self.loss_mask)}
        assert len(lengths) == 1, f"ids, logprobs and mask differ in length: {lengths}"
        for span in self.spans:
            inside = 0 <= span.outer_start <= span.start <= span.end <= span.outer_end <= len(self.completion_ids)
            assert inside, f"{span} lies outside the completion"
        for mask, logprob in zip(self.loss_mask, self.logprobs, strict=True):
            assert mask == (logprob == logprob), "a log-probability exists exactly where the student sampled"

    @property
    def searches(self) -> tuple[Turn, ...]:
        """The turns that searched, in order."""
        return tuple(turn for turn in self.turns if turn.kind is TurnKind.SEARCH)

    @property
    def text(self) -> str:
        """The completion as text, observations included."""
        return "".join(turn.text + turn.observation for turn in self.turns)


@dataclass(frozen=True)
class Score:
    """What a rollout earned. ``reward`` is what the policy is trained on; ``em`` and ``f1`` are in [0, 1]."""

    reward: float
    em: float
    f1: float


class CritiqueOutcome(Enum):
    """What became of a critique."""

    KEPT = "kept"
    NOT_ASKED = "not_asked"
    """The rollout is not one that the hindsight loss acts on, or the generator writes none."""
    LEAKED = "leaked"
    """It held a gold alias and was rejected (design rule 7)."""
    UNPARSED = "unparsed"
    EMPTY = "empty"
    FAILED = "failed"
    """The judge was down."""
    UNMATCHED = "unmatched"
    """There was nothing to show: no hint of another question for a placebo, no sibling, no evidence."""


@dataclass(frozen=True)
class Critique:
    """Hindsight about one rollout.

    ``text`` is what was written; ``hint`` is the block that the teacher's prompt shows, '' if it shows none
    (always so unless ``outcome`` is ``KEPT``). ``turn`` is the turn it speaks of, or ``EVERY_TURN``. ``labels`` say of
    each turn whether the judge called it good; empty where it was not asked to.
    """

    text: str
    hint: str
    outcome: CritiqueOutcome
    redacted: bool = False
    turn: int = -1
    labels: tuple[bool, ...] = ()


EVERY_TURN = -1
NO_CRITIQUE = Critique(text="", hint="", outcome=CritiqueOutcome.NOT_ASKED)


@dataclass(frozen=True)
class Record:
    """A finished attempt, for logs, pages and metrics."""

    rollout: Rollout
    score: Score
    critique: Critique


@dataclass(frozen=True)
class AttemptBatch:
    """Rollouts and their scores, group by group, without anything to learn from: what validation needs.

    ``metrics`` holds time per phase and counts; ``num_failed`` rollouts were lost to infrastructure and are not here.
    """

    step: int
    rollouts: tuple[Rollout, ...]
    scores: tuple[Score, ...]
    num_failed: int
    metrics: Mapping[str, float]

    def to(self, device: object) -> "AttemptBatch":
        """Itself: there is nothing to move."""
        return self
