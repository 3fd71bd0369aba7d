"""A judge without a language model: finds in the passages which searches lead to the answer, and names them.

It works from question, turns, golds and retriever alone. It never reads the words of the question beyond the titles in
it, so its chain need not be the one the question means: where several are shortest, one is drawn per question.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from hindsearch.errors import JudgeError, RetrievalError
from hindsearch.interfaces import Asked, JudgeRequest, Retriever
from hindsearch.leaks import Haystack, is_common
from hindsearch.passage_graph import Chain, PassageGraph, Step
from hindsearch.prompts import Template
from hindsearch.seeding import seed_of
from hindsearch.types import Passage, Turn, TurnKind

Phrase = Callable[[Chain, str], str]
"""A chain of searches, and a query to avoid or '', in words."""


class Unknowing(Protocol):
    """What the judge advises when it is not shown the answer: a modelling choice, not a consequence of anything."""

    def __call__(self, request: JudgeRequest, graph: PassageGraph, phrase: Phrase) -> str:
        """The reply; '' where there is nothing to say."""
        ...


@dataclass(frozen=True)
class Generic:
    """Says something that is true of every question; one of ``texts`` per question."""

    texts: Sequence[str] = (
        "read the question again , search step by step , then answer",
        "search with care , then answer",
    )

    def __post_init__(self) -> None:
        if not self.texts:
            raise ValueError("texts is empty, so there is nothing to say; give at least one text")

    def __call__(self, request: JudgeRequest, graph: PassageGraph, phrase: Phrase) -> str:
        return self.texts[seed_of("generic", request.question) % len(self.texts)]


@dataclass(frozen=True)
class Habit:
    """Advises what the policy does anyway: from each passage the link whose cue its own queries held most often.

    A passage without such a link gives one drawn by question. At most ``hops`` searches.
    """

    hops: int = 3

    def __post_init__(self) -> None:
        _refuse_no_hops(self.hops)

    def __call__(self, request: JudgeRequest, graph: PassageGraph, phrase: Phrase) -> str:
        uses = Counter(word for turn in _searches(request.turns) for word in turn.content.casefold().split())
        rng = random.Random(seed_of("habit", request.question))

        def choose(steps: Sequence[Step]) -> Step:
            most = max(uses[step.cue.casefold()] for step in steps)
            return next(s for s in steps if uses[s.cue.casefold()] == most) if most else rng.choice(steps)

        chain = _walk(graph, request.question, self.hops, choose)
        return phrase(chain, "") if chain else ""


@dataclass(frozen=True)
class Explore:
    """Advises what the policy has not tried: from each passage a link drawn among those it did not follow.

    The draw is decided by the question and the rollout's queries. At most ``hops`` searches.
    """

    hops: int = 3

    def __post_init__(self) -> None:
        _refuse_no_hops(self.hops)

    def __call__(self, request: JudgeRequest, graph: PassageGraph, phrase: Phrase) -> str:
        searches = _searches(request.turns)
        tried = {passage.title for turn in searches for passage in turn.passages}
        rng = random.Random(seed_of("explore", request.question, *(turn.content for turn in searches)))

        def choose(steps: Sequence[Step]) -> Step:
            return rng.choice([step for step in steps if step.title not in tried] or list(steps))

        chain = _walk(graph, request.question, self.hops, choose)
        return phrase(chain, _first_astray(request.turns, chain, ())) if chain else ""


@dataclass(frozen=True)
class RulesBackend:
    """Names the searches of a shortest chain of passages from a title in the question to a passage with a gold.

    The chain follows title mentions, at most ``max_hops`` passages long; at most ``max_pages`` are looked at for a
    question. The first query of the rollout that found nothing of the chain is named as one to avoid. A gold is never
    named. Where the golds are yes or no, which any passage holds, it names every title in the question. No chain: an
    empty reply, which is counted. A lost retriever: a ``JudgeError``. Asked for the earliest wrong turn or for labels,
    it calls a turn good that finds the chain's next passage, or that answers with a gold.

    ``phrasing`` is the template that puts it in words: ``rules_micro`` in the micro-world's, with the cue in front of
    the title, or ``rules_english`` with titles alone. ``unknowing`` answers for a judge that is not shown the golds.
    ``passages`` are read once for their titles, which stay in memory.
    """

    retriever: Retriever = field(repr=False)
    passages: Sequence[Passage] = field(repr=False)
    phrasing: str = "judge/rules_micro.jinja"
    unknowing: Unknowing = field(default_factory=Habit)
    max_hops: int = 4
    max_pages: int = 200

    def __post_init__(self) -> None:
        for name, value in (("max_hops", self.max_hops), ("max_pages", self.max_pages)):
            if value < 1:
                raise ValueError(f"{name}={value} finds no chain; use 1 or more")

    @cached_property
    def _graph(self) -> PassageGraph:
        return PassageGraph(self.retriever, self.passages)

    @cached_property
    def _template(self) -> Template:
        return Template.load(self.phrasing)

    @cached_property
    def _known(self) -> dict[tuple[str, tuple[str, ...]], Chain]:
        return {}

    @property
    def digests(self) -> dict[str, str]:
        """What identifies the wording."""
        return {self.phrasing: self._template.digest}

    def __call__(self, requests: Sequence[JudgeRequest]) -> list[str | Exception]:
        return [self._reply(request) for request in requests]

    def _reply(self, request: JudgeRequest) -> str | Exception:
        try:
            if not request.golds:
                return _FORMS[request.asked](self.unknowing(request, self._graph, self._phrase), request, ())
            chain = self._chain(request.question, request.golds)
        except RetrievalError as error:
            return JudgeError(f"the judge could not search for a chain: {error}")
        text = self._phrase(chain, _first_astray(request.turns, chain, request.golds)) if chain else ""
        return _FORMS[request.asked](text, request, chain)

    def _phrase(self, chain: Chain, avoid: str) -> str:
        queries = [step.query for step in chain]
        return self._template.render(queries=queries, titles=[step.title for step in chain], avoid=avoid).strip()

    def _chain(self, question: str, golds: tuple[str, ...]) -> Chain:
        if (question, golds) not in self._known:
            if all(is_common(gold) for gold in golds):
                chain = self._graph.starts(question)[: self.max_hops]
            else:
                chains = self._graph.shortest_chains(question, golds, self.max_hops, self.max_pages)
                chain = chains[seed_of("rules", question) % len(chains)] if chains else ()
            self._known[question, golds] = chain
        return self._known[question, golds]


def _as_critique(text: str, request: JudgeRequest, chain: Chain) -> str:
    return text


def _as_vote(text: str, request: JudgeRequest, chain: Chain) -> str:
    return json.dumps({"vote": 1, "hint": text} if text else {"vote": -1})


def _as_earliest_step(text: str, request: JudgeRequest, chain: Chain) -> str:
    """With the first turn that brought nothing of the chain; where each brought something, the last is to blame."""
    if not text or not request.turns:
        return ""
    bad = [number for number, good in enumerate(_labels(request, chain), 1) if not good]
    return json.dumps({"turn": bad[0] if bad else len(request.turns), "critique": text})


def _as_labels(text: str, request: JudgeRequest, chain: Chain) -> str:
    labels = ["good" if good else "bad" for good in _labels(request, chain)]
    return json.dumps({"labels": labels}) if chain else ""


_FORMS: Mapping[Asked, Callable[[str, JudgeRequest, Chain], str]] = {
    Asked.CRITIQUE: _as_critique,
    Asked.NEXT_STATE: _as_vote,
    Asked.EARLIEST_STEP: _as_earliest_step,
    Asked.TURN_LABELS: _as_labels,
}
"""How the reply to each request is put."""


def _labels(request: JudgeRequest, chain: Chain) -> list[bool]:
    """Good are a search that finds the chain's next passage, and an answer that holds a gold."""
    labels, reached = list[bool](), 0
    for turn in request.turns:
        if turn.kind is TurnKind.ANSWER:
            labels.append(Haystack(turn.content).holds(request.golds))
            continue
        found = {passage.title for passage in turn.passages} if turn.kind is TurnKind.SEARCH else set[str]()
        places = [place for place, step in enumerate(chain) if place >= reached and step.title in found]
        labels.append(bool(places))
        reached = max(places) + 1 if places else reached
    return labels


def _searches(turns: Sequence[Turn]) -> list[Turn]:
    return [turn for turn in turns if turn.kind is TurnKind.SEARCH]


def _walk(graph: PassageGraph, question: str, hops: int, choose: Callable[[Sequence[Step]], Step]) -> Chain:
    """From the first title of the question, link by link; ends early where a passage leads nowhere new."""
    chain = graph.starts(question)[:1]
    while chain and len(chain) < hops:
        passed = {step.title for step in chain}
        steps = [step for step in graph.pages([chain[-1].title])[0].steps if step.title not in passed]
        if not steps:
            break
        chain = (*chain, choose(steps))
    return chain


def _first_astray(turns: Sequence[Turn], chain: Chain, golds: Sequence[str]) -> str:
    """The first query that neither names nor finds a title of the chain, unless it holds a gold; else ''."""
    titles = [step.title for step in chain]
    for turn in _searches(turns):
        words = turn.content.split()
        found = {passage.title for passage in turn.passages}
        query = Haystack(turn.content)
        if found.isdisjoint(titles) and not query.holds(titles) and 0 < len(words) <= 12:
            return "" if query.holds(golds) else " ".join(words)
    return ""


def _refuse_no_hops(hops: int) -> None:
    if hops < 1:
        raise ValueError(f"hops={hops} names no search; use 1 or more, for example 3")
