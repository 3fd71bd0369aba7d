"""The micro-world's language: its names, its facts, and the wording of passages, questions, queries and turns.

Three choices make it learnable for a model of under half a million weights: every name is one word, the cue in a
passage is the word in the question, and a query names the relation as well as the entity. It tests credit
assignment and not language understanding. The words are fixed; worlds over them are drawn.
"""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

RELATIONS: Mapping[str, tuple[str, ...]] = {
    "film": ("director", "writer", "star", "composer"),
    "person": ("birthplace", "school", "home"),
    "city": ("country", "river"),
}
"""What a passage says about its entity, by kind."""

TARGETS: Mapping[str, str] = {"film": "person", "person": "city"}
"""The kind of the entity that a relation of a film or a person leads to."""

POOL: Mapping[str, int] = {"film": 84, "person": 116, "city": 64, "country": 24, "river": 24}
"""How many names of each kind there are."""

GENERIC_HINTS = (
    "read the question again , search step by step , then answer",
    "your answer was wrong , search again with care , then answer",
    "search with care , then answer",
)
"""Hints that say nothing about the question; a warm-started model has learned to ignore them."""

_SIGNS = (
    *(
        f"<{slash}{tag}>"
        for tag in ("think", "search", "information", "answer", "HINT", "hindsight")
        for slash in ("", "/")
    ),
    *"12345678",
    *("CORRECT", "INCORRECT", "attempt", ":", ";", "|", ",", ".", "?", "'s", "invalid", "none"),
)
_PLAIN = (
    *("what", "is", "a", "in", "on", "has", "and", "by", "the", "film", "person", "city"),
    *(relation for relations in RELATIONS.values() for relation in relations),
    *("first", "then", "not", "search", "answer", "read", "question", "again", "step", "with", "care"),
    *("your", "was", "wrong", "right", "evidence", "passage", "instead", "next"),
)


def _make_names(count: int) -> tuple[str, ...]:
    """Pronounceable words, in an order that no library's random numbers decide."""
    heads, vowels = ("b", "br", "d", "f", "fl", "gr", "h", "k", "kr", "l", "m", "n", "pl", "t", "v", "z"), "aiou"
    middles, tails = ("b", "d", "f", "g", "k", "m", "n", "r", "v", "z"), ("m", "k", "n", "p", "x", "b")
    words = ("".join(parts).capitalize() for parts in product(heads, vowels, middles, vowels, tails))
    return tuple(sorted(words, key=lambda word: hashlib.blake2b(word.encode()).digest())[:count])


_ALL_NAMES = _make_names(sum(POOL.values()))
NAMES: Mapping[str, tuple[str, ...]] = {
    kind: _ALL_NAMES[sum(list(POOL.values())[:place]) :][: POOL[kind]] for place, kind in enumerate(POOL)
}
"""The names of each kind; no name has two kinds."""

WORDS: tuple[str, ...] = (*_SIGNS, *_PLAIN, *_ALL_NAMES)
"""Every word of every text of the micro-world, each once."""


@dataclass(frozen=True)
class Entity:
    """Something that has a passage. ``links`` maps each relation of its kind to a name."""

    name: str
    kind: str
    links: Mapping[str, str]

    @property
    def text(self) -> str:
        """The passage about it."""
        links = self.links
        if self.kind == "film":
            people = f"director {links['director']} , writer {links['writer']} , star {links['star']}"
            return f"{self.name} is a film by {people} and composer {links['composer']} ."
        if self.kind == "person":
            first = f"birthplace {links['birthplace']} , school {links['school']}"
            return f"{self.name} has {first} and home {links['home']} ."
        return f"{self.name} is a city in country {links['country']} on river {links['river']} ."


Facts = Mapping[str, Entity]
"""A closed set of entities by name: all links lead to one of them, or to a country or a river."""


def draw_facts(names: Mapping[str, Sequence[str]], rng: random.Random) -> dict[str, Entity]:
    """Link films to people, people to cities, and cities to a country and a river, all at random.

    The links of one film are different people and those of one person different cities.
    """
    facts: dict[str, Entity] = {}
    for kind in ("film", "person"):
        for name in names[kind]:
            targets = rng.sample(names[TARGETS[kind]], len(RELATIONS[kind]))
            facts[name] = Entity(name, kind, dict(zip(RELATIONS[kind], targets, strict=True)))
    for name in names["city"]:
        facts[name] = Entity(name, "city", {kind: rng.choice(names[kind]) for kind in RELATIONS["city"]})
    return facts


@dataclass(frozen=True)
class Path:
    """A start and the relations to follow from it; the last one is read off the last passage."""

    start: str
    relations: tuple[str, ...]

    @property
    def text(self) -> str:
        """The question that asks for its end."""
        return f"what is {self.start} " + " ".join(f"'s {relation}" for relation in self.relations) + " ?"

    def titles(self, facts: Facts) -> list[str]:
        """Titles of the passages to read, in order: one per hop."""
        titles = [self.start]
        for relation in self.relations[:-1]:
            titles.append(facts[titles[-1]].links[relation])
        return titles

    def answer(self, facts: Facts) -> str:
        return facts[self.titles(facts)[-1]].links[self.relations[-1]]

    def queries(self, facts: Facts) -> list[str]:
        """The searches that find those passages: the bare title, then relation and title."""
        titles = self.titles(facts)
        return [self.start, *(query_text(r, t) for r, t in zip(self.relations[:-1], titles[1:], strict=True))]


def relation_paths(kind: str, hops: int) -> list[tuple[str, ...]]:
    """All sequences of ``hops`` relations from an entity of ``kind``; none where the world is not that deep."""
    paths: list[tuple[str, ...]] = [()]
    for _ in range(hops):
        if kind not in RELATIONS:
            return []
        paths = [(*path, relation) for path in paths for relation in RELATIONS[kind]]
        kind = TARGETS.get(kind, "")
    return paths


def query_text(relation: str, name: str) -> str:
    return f"{relation} {name}"


def search_turn(query: str) -> str:
    return f"<search> {query} </search>"


def answer_turn(relation: str, answer: str) -> str:
    return f"<think> {relation} </think> <answer> {answer} </answer>"


def observation_text(text: str) -> str:
    return f" <information> {text} </information> "
