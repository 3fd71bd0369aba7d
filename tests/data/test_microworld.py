import random
import subprocess
import sys

import bm25s
import pytest

from hindsearch.data.microworld import MicroWorld, Sizes
from hindsearch.grammar import NAMES, RELATIONS, WORDS, Entity, Path, draw_facts, relation_paths

WORLD = MicroWorld(seed=3, hops=(1, 2, 3), validation_questions=300)
BY_ID = {passage.id: passage for passage in WORLD.passages()}
QUESTIONS = [*WORLD.train(), *WORLD.validation()]


def names_in(text: str) -> set[str]:
    entities = {name for kind in ("film", "person", "city") for name in NAMES[kind]}
    return entities & set(text.split())


def test_wording():
    links = {"director": "Anna", "writer": "Ben", "star": "Cleo", "composer": "Dora"}
    assert Entity("Brilaim", "film", links).text == (
        "Brilaim is a film by director Anna , writer Ben , star Cleo and composer Dora ."
    )
    person = Entity("Tid", "person", {"birthplace": "Vip", "school": "Bre", "home": "Sur"})
    assert person.text == "Tid has birthplace Vip , school Bre and home Sur ."
    assert (
        Entity("Bre", "city", {"country": "Fea", "river": "Mas"}).text == "Bre is a city in country Fea on river Mas ."
    )


def test_a_three_hop_question_by_hand():
    links = {"director": "Anna", "writer": "Ben", "star": "Cleo", "composer": "Dora"}
    facts = {
        "Brilaim": Entity("Brilaim", "film", links),
        "Ben": Entity("Ben", "person", {"birthplace": "Vip", "school": "Bre", "home": "Sur"}),
        "Sur": Entity("Sur", "city", {"country": "Fea", "river": "Mas"}),
    }
    path = Path("Brilaim", ("writer", "home", "river"))
    assert path.text == "what is Brilaim 's writer 's home 's river ?"
    assert path.queries(facts) == ["Brilaim", "writer Ben", "home Sur"]
    assert path.answer(facts) == "Mas"


def test_paths_are_as_deep_as_the_world():
    assert len(relation_paths("film", 3)) == 4 * 3 * 2
    assert relation_paths("person", 3) == []
    assert relation_paths("city", 1) == [("country",), ("river",)]


def test_splits_share_no_entity_and_link_among_themselves():
    train = {name for q in WORLD.train() for id in q.evidence for name in names_in(BY_ID[id].text)}
    validation = {name for q in WORLD.validation() for id in q.evidence for name in names_in(BY_ID[id].text)}
    assert len(train) > 150
    assert len(validation) > 80
    assert not train & validation


def test_words_and_names_are_distinct_even_in_lower_case():
    assert len(set(WORDS)) == len(WORDS)
    names = [name.lower() for pool in NAMES.values() for name in pool]
    assert len(set(names)) == len(names) == 312


def test_the_chain_leads_to_the_answer_through_passages_alone():
    for question in QUESTIONS:
        relations = [word for word in question.text.split() if word in {r for rs in RELATIONS.values() for r in rs}]
        name = question.chain[0]
        for query, passage_id, relation in zip(question.chain, question.evidence, relations, strict=True):
            assert query.split()[-1] == name == BY_ID[passage_id].title
            words = BY_ID[passage_id].text.split()
            name = words[words.index(relation) + 1]
        assert (name,) == question.golds


def test_right_queries_find_their_passage_first():
    passages = WORLD.passages()
    index = bm25s.BM25()
    texts = [f"{p.title} {p.title} {p.text}" for p in passages]
    index.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    asked = list(dict.fromkeys((query, id) for q in QUESTIONS for query, id in zip(q.chain, q.evidence, strict=True)))
    found, _ = index.retrieve(
        bm25s.tokenize([query for query, _ in asked], show_progress=False), k=1, show_progress=False
    )
    assert [passages[row[0]].id for row in found] == [id for _, id in asked]


def test_questions_are_asked_once_and_have_one_answer():
    assert len({q.id for q in QUESTIONS}) == len({q.text for q in QUESTIONS}) == len(QUESTIONS)
    assert all(len(q.golds) == 1 for q in QUESTIONS)


def test_hops_choose_the_questions():
    world = MicroWorld(hops=[3])
    assert {q.source for q in world.train()} == {q.source for q in world.validation()} == {"micro-3hop"}
    assert len(world.train()) == 54 * 24
    assert len(world.validation()) == 100
    assert {q.source for q in WORLD.validation()} == {"micro-1hop", "micro-2hop", "micro-3hop"}


def test_a_seed_is_a_world():
    assert MicroWorld(seed=3).fingerprint() == MicroWorld(seed=3).fingerprint()
    assert MicroWorld(seed=3).fingerprint() != MicroWorld(seed=4).fingerprint()
    assert MicroWorld(seed=3).validation() == MicroWorld(seed=3).validation()


def test_another_process_draws_the_same_world():
    code = "from hindsearch.data.microworld import MicroWorld; print(MicroWorld(seed=3).fingerprint())"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == str(MicroWorld(seed=3).fingerprint())


def test_links_of_one_entity_differ():
    facts = draw_facts(NAMES, random.Random(0))
    for entity in facts.values():
        if entity.kind != "city":
            assert len(set(entity.links.values())) == len(entity.links)


def test_every_word_is_in_the_language():
    texts = [q.text for q in QUESTIONS] + [p.text for p in WORLD.passages()] + [c for q in QUESTIONS for c in q.chain]
    assert {word for text in texts for word in text.split()} <= set(WORDS)


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"hops": (4,)}, "drawn from 1, 2 and 3"),
        ({"hops": ()}, "drawn from 1, 2 and 3"),
        ({"validation_questions": 0}, "at least 1"),
        ({"train_sizes": Sizes(film=84, person=74, city=40)}, "84 names of a film"),
        ({"train_sizes": Sizes(film=5, person=3, city=40)}, "each split needs 4"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        MicroWorld(**arguments)


def test_sizes_are_counted():
    world = MicroWorld(train_sizes=Sizes(3, 5, 4), validation_sizes=Sizes(2, 4, 3))
    assert len(world.passages()) == 12 + 9
