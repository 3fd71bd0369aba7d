"""Demonstrations of a deliberately poor searcher in the micro-world, for the warm start of its student."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

from hindsearch.demonstration import ACTION, GIVEN, RETRIEVED, Demonstration, Pieces, encode_pieces
from hindsearch.grammar import (
    GENERIC_HINTS,
    NAMES,
    RELATIONS,
    Entity,
    Facts,
    Path,
    answer_turn,
    draw_facts,
    observation_text,
    query_text,
    relation_paths,
    search_turn,
)
from hindsearch.hints import hint_block
from hindsearch.seeding import seed_of
from hindsearch.siblings import sibling_block


@dataclass(frozen=True)
class MicroDemonstrations:
    """Demonstrations, drawn without end.

    The searcher knows the format and reads well, but rarely picks the right relation; so the policy that imitates it
    has something left to learn, and a teacher that has also seen hints and sibling attempts obeyed can tell it what.
    Worlds are drawn over the names of the language and differ from every world that is trained on, so no fact can
    be learned by heart. All numbers but ``worlds`` and the steps are shares.
    """

    encode: Callable[[str], Sequence[int]]
    right_relation: float = 0.15
    """Of turns, those that follow the question: how hard reinforcement will have it."""
    habit: float = 0.65
    """Of wrong relations: the star of a film, the birthplace of a person."""
    right_start: float = 0.85
    early_answer: float = 0.15
    right_reading: float = 0.85
    hinted: float = 0.58
    siblings: float = 0.12
    generic: float = 0.125
    """Of hints, those that say nothing and are ignored."""
    foreign: float = 0.35
    """Of the other hints, those that name another chain than the question's own: hints are obeyed, not checked."""
    obey: float = 0.985
    slip: float = 0.02
    """Of the poor searcher's turns, those preceded by words that are no turn, without loss."""
    stumble: float = 0.2
    """Of turns under a hint, wrong ones that carry no loss: the next turn comes back to the hint."""
    practice: float = 0.5
    """Reading practice over the first ``practice_steps`` steps."""
    practice_steps: int = 300
    hops: Sequence[float] = (0.2, 0.3, 0.5)
    """Of questions of one, two and three hops."""
    worlds: int = 300

    def __post_init__(self) -> None:
        if len(self.hops) != 3 or min(self.hops) < 0 or not sum(self.hops) > 0:
            raise ValueError(f"hops={list(self.hops)} must be three shares, for one, two and three hops")
        shares = [f.name for f in fields(self) if f.type is float or f.type == "float"]
        for name in shares:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)} is not a share; use a number within [0, 1]")
        if self.hinted + self.siblings > 1:
            raise ValueError(f"hinted={self.hinted} and siblings={self.siblings} are shares of one whole; lower one")
        if self.worlds < 1:
            raise ValueError(f"worlds={self.worlds} leaves nothing to draw from; use 1 or more, for example 300")

    def __call__(self, place: int, step: int, seed: int) -> Demonstration:
        """Return demonstration ``place`` of a run, shown at ``step``: a function of its arguments alone."""
        rng = random.Random(seed_of(seed, "demonstration", place))
        facts = _world(seed_of(seed, "world", rng.randrange(self.worlds)))
        if step < self.practice_steps and rng.random() < self.practice:
            return encode_pieces(_practice(facts, rng), self.encode)
        path = _draw_path(facts, rng, 1 + rng.choices(range(3), self.hops)[0])
        kind = rng.random()
        if kind < self.hinted:
            pieces = self._with_hint(path, facts, rng)
        elif kind < self.hinted + self.siblings:
            pieces = self._with_siblings(path, facts, rng)
        else:
            pieces = [(path.text, GIVEN), *self._alone(path, facts, rng)]
        return encode_pieces(pieces, self.encode)

    def fingerprint(self) -> dict[str, str]:
        """Nothing: the recipe says it all."""
        return {}

    def _alone(self, path: Path, facts: Facts, rng: random.Random) -> Pieces:
        """The poor searcher's turns."""
        name = path.start if rng.random() < self.right_start else _other(facts, facts[path.start].kind, rng)
        query, pieces = name, list[tuple[str, float]]()
        for relation in path.relations:
            if rng.random() < self.slip:
                pieces += _slip(facts, rng)
            pieces += _searched(query, facts[name], ACTION)
            if relation == path.relations[-1]:
                return [*pieces, self._read(facts[name], relation, self.right_reading, rng)]
            if rng.random() < self.early_answer:
                break
            chosen = self._choose(facts[name], relation, rng)
            name = facts[name].links[chosen]
            query = query_text(chosen, name)
        return [*pieces, self._read(facts[name], "", 0.0, rng)]

    def _choose(self, entity: Entity, right: str, rng: random.Random) -> str:
        if rng.random() < self.right_relation:
            return right
        habit = {"film": "star", "person": "birthplace"}[entity.kind]
        if rng.random() < self.habit:
            return habit
        return rng.choice([relation for relation in RELATIONS[entity.kind] if relation not in (right, habit)])

    def _read(self, entity: Entity, right: str, share: float, rng: random.Random) -> tuple[str, float]:
        """The closing turn: the right relation, if the passage has it, at ``share``; else another of its relations."""
        others = [relation for relation in RELATIONS[entity.kind] if relation != right]
        relation = right if right in entity.links and rng.random() < share else rng.choice(others)
        return answer_turn(relation, entity.links[relation]), ACTION

    def _with_hint(self, path: Path, facts: Facts, rng: random.Random) -> Pieces:
        if rng.random() < self.generic:
            prompt = f"{hint_block(rng.choice(GENERIC_HINTS))} {path.text}"
            return [(prompt, GIVEN), *self._alone(path, facts, rng)]
        named = path
        if rng.random() < self.foreign:
            hops = len(path.relations) if rng.random() < 0.7 else rng.randint(1, 3)
            start = path.start if rng.random() < 0.5 else ""
            named = _draw_path(facts, rng, hops, start)
        hint = _chain_hint(named, facts, rng)
        prompt = f"{hint_block(hint)} {path.text}"
        return [(prompt, GIVEN), *self._obeying(named, path.relations[-1], facts, rng)]

    def _obeying(self, named: Path, asked: str, facts: Facts, rng: random.Random) -> Pieces:
        """Turns that follow ``named``, with stumbles; the answer is what was ``asked``, if the last passage has it."""
        pieces = list[tuple[str, float]]()
        here, stumbles = named.start, 0
        for name, query in zip(named.titles(facts), named.queries(facts), strict=True):
            while stumbles < 2 and (roll := rng.random()) < self.stumble + 1 - self.obey:
                stumbles += 1
                pieces += _stumble(facts, here, ACTION if roll < 1 - self.obey else GIVEN, rng)
            pieces += _searched(query, facts[name], ACTION)
            here = name
        return [*pieces, self._read(facts[here], asked, self.obey, rng)]

    def _with_siblings(self, path: Path, facts: Facts, rng: random.Random) -> Pieces:
        attempts = [("CORRECT", path.queries(facts))]
        for _ in range(rng.randint(1, 3)):
            turns = [text for text, weight in self._alone(path, facts, rng) if weight == ACTION]
            queries = [turn.removeprefix("<search> ").removesuffix(" </search>") for turn in turns[:-1]]
            attempts.append(("CORRECT" if queries == path.queries(facts) else "INCORRECT", queries))
        rng.shuffle(attempts)
        prompt = f"{sibling_block(attempts)} {path.text}"
        return [(prompt, GIVEN), *self._obeying(path, path.relations[-1], facts, rng)]


@lru_cache(maxsize=512)
def _world(seed: int) -> Facts:
    rng = random.Random(seed)
    sizes = {"film": 54, "person": 74, "city": 40}
    return draw_facts({kind: rng.sample(names, sizes.get(kind, len(names))) for kind, names in NAMES.items()}, rng)


def _draw_path(facts: Facts, rng: random.Random, hops: int, start: str = "") -> Path:
    """A random path of at most ``hops`` hops, from ``start`` if that is deep enough, else from anywhere."""
    kinds = [kind for kind in RELATIONS if relation_paths(kind, hops)]
    if not start or facts[start].kind not in kinds:
        start = _other(facts, rng.choice(kinds), rng)
    return Path(start, rng.choice(relation_paths(facts[start].kind, hops)))


def _other(facts: Facts, kind: str, rng: random.Random) -> str:
    return rng.choice([name for name, entity in facts.items() if entity.kind == kind])


def _astray(facts: Facts, here: str, rng: random.Random) -> tuple[str, str]:
    """A title and a query that lead off the path: mostly a link of the passage last read."""
    entity = facts[here]
    if entity.kind != "city" and rng.random() < 0.8:
        relation = rng.choice(RELATIONS[entity.kind])
        return entity.links[relation], query_text(relation, entity.links[relation])
    name = _other(facts, entity.kind, rng)
    return name, name


def _stumble(facts: Facts, here: str, weight: float, rng: random.Random) -> Pieces:
    """A wrong turn and what follows it: a search off the path or, one in ten, no turn at all."""
    if rng.random() < 0.1:
        return _slip(facts, rng)
    astray, query = _astray(facts, here, rng)
    return _searched(query, facts[astray], weight)


def _slip(facts: Facts, rng: random.Random) -> Pieces:
    """Words that are no turn, and what the agent then says."""
    words = [rng.choice(("<search>", "<answer>", *RELATIONS["film"], *facts)) for _ in range(rng.randint(1, 4))]
    return [(" ".join(words), GIVEN), (observation_text("invalid"), RETRIEVED)]


def _searched(query: str, found: Entity, weight: float) -> Pieces:
    return [(search_turn(query), weight), (observation_text(found.text), RETRIEVED)]


def _practice(facts: Facts, rng: random.Random) -> Pieces:
    """Passages to copy, or one to read names off: what takes a small model longest, shown densely."""
    if rng.random() < 0.5:
        texts = [observation_text(entity.text) for entity in rng.sample(list(facts.values()), 3)]
        again = rng.sample(texts, len(texts))
        return [("".join(texts), GIVEN), ("".join(again), ACTION)]
    before, entity = rng.sample(list(facts.values()), 2)
    pieces = [(observation_text(before.text) + observation_text(entity.text), GIVEN)]
    for relation in rng.sample(RELATIONS[entity.kind], len(RELATIONS[entity.kind])):
        turn = answer_turn(relation, entity.links[relation])
        if entity.kind != "city" and rng.random() < 0.5:
            turn = search_turn(query_text(relation, entity.links[relation]))
        known, read = turn.split(f" {relation} ")
        pieces += [(f"{known} {relation}", GIVEN), (read, ACTION)]
    return pieces


def _chain_hint(path: Path, facts: Facts, rng: random.Random) -> str:
    """The hint that names ``path``, by entities or by relations, often with a step to avoid."""
    by_entity = rng.random() < 0.5
    steps = path.queries(facts)[1:] if by_entity else [f"the {relation}" for relation in path.relations[:-1]]
    parts = [f"first search {path.start}", *(f"then search {step}" for step in steps)]
    if rng.random() < 0.6:
        astray, query = _astray(facts, rng.choice(path.titles(facts)), rng)
        relation = query.removesuffix(astray).strip()
        avoided = query if by_entity or not relation else f"the {relation}"
        if avoided not in steps and avoided != path.start:
            parts.append(f"not {avoided}")
    return " , ".join([*parts, "then answer"])
