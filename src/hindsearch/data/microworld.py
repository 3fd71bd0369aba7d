"""The embedded default: a small closed world of films, people and cities, with questions over it."""

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from hindsearch.grammar import NAMES, Entity, Facts, Path, draw_facts, relation_paths
from hindsearch.seeding import seed_of
from hindsearch.types import Passage, Question

SPLITS = ("train", "validation")


@dataclass(frozen=True)
class Sizes:
    """Entities of one split."""

    film: int
    person: int
    city: int


@dataclass(frozen=True)
class MicroWorld:
    """Questions of one to three hops and one passage per entity, drawn from ``seed``.

    Entities of the two splits are disjoint and link only among themselves; countries and rivers are shared. So
    validation asks for the skill and never for a fact that training has seen.

    ``hops`` says how many hops the questions take. Training holds every such question once, in an order of the
    seed's; validation the first ``validation_questions`` of its own.
    """

    seed: int = 0
    hops: Sequence[int] = (3,)
    train_sizes: Sizes = Sizes(film=54, person=74, city=40)
    validation_sizes: Sizes = Sizes(film=30, person=42, city=24)
    validation_questions: int = 100

    def __post_init__(self) -> None:
        if not self.hops or not set(self.hops) <= {1, 2, 3}:
            raise ValueError(f"hops must be drawn from 1, 2 and 3; {list(self.hops)} is not, [3] or [2,3] would be")
        if self.validation_questions < 1:
            raise ValueError(f"validation_questions must be at least 1, not {self.validation_questions}")
        for kind, least in (("film", 1), ("person", 4), ("city", 3)):
            train, validation = getattr(self.train_sizes, kind), getattr(self.validation_sizes, kind)
            if train + validation > len(NAMES[kind]) or min(train, validation) < least:
                raise ValueError(
                    f"there are {len(NAMES[kind])} names of a {kind} and each split needs {least}; "
                    f"{train} for training and {validation} for validation do not fit"
                )

    @cached_property
    def _facts(self) -> dict[str, Facts]:
        """The entities of each split."""
        rng = random.Random(seed_of(self.seed, "micro", "names"))
        names = {kind: rng.sample(pool, len(pool)) for kind, pool in NAMES.items()}
        facts: dict[str, Facts] = {}
        taken = dict.fromkeys(names, 0)
        for split, sizes in zip(SPLITS, (self.train_sizes, self.validation_sizes), strict=True):
            own = dict(names)
            for kind, size in asdict(sizes).items():
                own[kind] = names[kind][taken[kind] : taken[kind] + size]
                taken[kind] += size
            facts[split] = draw_facts(own, random.Random(seed_of(self.seed, "micro", "links", split)))
        return facts

    def _questions(self, split: str) -> list[Question]:
        facts = self._facts[split]
        questions = [
            _question(split, Path(entity.name, relations), facts)
            for hops in sorted(set(self.hops))
            for entity in facts.values()
            for relations in relation_paths(entity.kind, hops)
        ]
        random.Random(seed_of(self.seed, "micro", "order", split)).shuffle(questions)
        return questions

    @cached_property
    def _splits(self) -> dict[str, tuple[Question, ...]]:
        train, validation = (self._questions(split) for split in SPLITS)
        return {"train": tuple(train), "validation": tuple(validation[: self.validation_questions])}

    @cached_property
    def _passages(self) -> tuple[Passage, ...]:
        return tuple(_passage(entity) for split in SPLITS for entity in self._facts[split].values())

    def train(self) -> Sequence[Question]:
        return self._splits["train"]

    def validation(self) -> Sequence[Question]:
        return self._splits["validation"]

    def passages(self) -> Sequence[Passage]:
        return self._passages

    def fingerprint(self) -> dict[str, str]:
        """Digests of questions and passages, by name."""
        parts = {**self._splits, "passages": self._passages}
        return {
            name: hashlib.sha256(json.dumps([asdict(item) for item in items]).encode()).hexdigest()
            for name, items in parts.items()
        }


def _passage_id(title: str) -> str:
    return f"micro-{title}"


def _passage(entity: Entity) -> Passage:
    return Passage(_passage_id(entity.name), entity.name, entity.text)


def _question(split: str, path: Path, facts: Facts) -> Question:
    return Question(
        id=f"micro-{split}-{'-'.join((path.start, *path.relations))}",
        text=path.text,
        golds=(path.answer(facts),),
        source=f"micro-{len(path.relations)}hop",
        evidence=tuple(_passage_id(title) for title in path.titles(facts)),
        chain=tuple(path.queries(facts)),
    )
