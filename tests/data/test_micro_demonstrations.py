import subprocess
import sys
from functools import cache

import pytest

from hindsearch.data.micro_demonstrations import MicroDemonstrations
from hindsearch.grammar import GENERIC_HINTS, WORDS

IDS = {word: n for n, word in enumerate(WORDS)}


def encode(text):
    return [IDS[word] for word in text.split()]


@cache
def drawn(count=400, **options):
    source = MicroDemonstrations(encode, **dict({"practice_steps": 0}, **options))
    return [
        [(WORDS[i], w) for i, w in zip(d.ids, d.weights, strict=True)]
        for d in (source(n, 500, 7) for n in range(count))
    ]


def text(demonstration):
    return " ".join(word for word, _ in demonstration)


def weighted(demonstration, weight):
    return [word for word, w in demonstration if w == weight]


def prompt(demonstration):
    return text(demonstration).split(" ?")[0] + " ?"


def test_every_word_is_in_the_language_and_every_kind_occurs():
    texts = [text(d) for d in drawn()]  # a word outside would be a KeyError
    assert any("<HINT> first search" in t and "then search the" in t for t in texts)
    assert any("<HINT> first search" in t and "then search the" not in t and "then search" in t for t in texts)
    assert any(hint in t for t in texts for hint in GENERIC_HINTS)
    assert any("<hindsight> attempt 1" in t for t in texts)
    assert any("<information> invalid </information>" in t for t in texts)
    assert any(t.startswith("what is") for t in texts)


def test_prompts_carry_no_loss_and_end_in_the_question():
    for demonstration in drawn():
        place = [word for word, _ in demonstration].index("?")
        assert {weight for _, weight in demonstration[: place + 1]} == {0.0}


def test_retrieved_text_carries_three_tenths():
    for demonstration in drawn():
        inside = False
        for word, weight in demonstration:
            inside = inside or word == "<information>"
            assert (weight == 0.3) == inside
            inside = inside and word != "</information>"


def test_the_last_turn_is_an_answer_with_loss():
    for demonstration in drawn():
        words = [word for word, _ in demonstration]
        assert words[-1] == "</answer>"
        assert [words[-6], words[-4], words[-3]] == ["<think>", "</think>", "<answer>"]
        assert {weight for _, weight in demonstration[-6:]} == {1.0}


def test_hints_are_obeyed():
    obeyed = asked = 0
    for demonstration in drawn(obey=1.0, hinted=1.0, siblings=0.0, generic=0.0):
        hint = text(demonstration).split(" </HINT>")[0].removeprefix("<HINT> first search ").split(" , ")
        steps = [hint[0], *(part.removeprefix("then search ") for part in hint[1:] if part.startswith("then search"))]
        written = " ".join(weighted(demonstration, 1.0)).split(" </search> ")[:-1]
        queries = [turn.removeprefix("<search> ") for turn in written]
        asked += 1
        obeyed += len(steps) == len(queries) and all(
            step == query or step == f"the {query.split()[0]}" for step, query in zip(steps, queries, strict=True)
        )
    assert obeyed == asked == 400


def test_stumbles_under_a_hint_carry_no_loss():
    demonstrations = drawn(obey=1.0, hinted=1.0, siblings=0.0, generic=0.0, stumble=0.5)
    without_loss = [
        sum(word == "</search>" and weight == 0.0 for word, weight in demonstration) for demonstration in demonstrations
    ]
    assert max(without_loss) == 2
    assert sum(count > 0 for count in without_loss) > 200
    clean = drawn(obey=1.0, hinted=1.0, siblings=0.0, generic=0.0, stumble=0.0)
    assert not any(word == "</search>" and weight == 0.0 for d in clean for word, weight in d)


def test_about_a_third_of_the_hints_name_another_chain():
    own = 0
    for demonstration in drawn(hinted=1.0, siblings=0.0, generic=0.0):
        hint, question = text(demonstration).split(" </HINT> ")
        start = hint.split()[3]
        relations = question.split(" ?")[0].split(" 's ")[1:-1]
        hinted = [w for part in hint.split(" , ") if part.startswith("then search") for w in part.split()[2:]]
        own += f"what is {start} 's" in question and [w for w in hinted if w in relations] == relations
    assert 0.58 < own / 400 < 0.75


def test_sibling_blocks_show_a_correct_attempt_which_is_followed():
    for demonstration in drawn(obey=1.0, hinted=0.0, siblings=1.0, stumble=0.0):
        block = text(demonstration).split(" </hindsight>")[0].removeprefix("<hindsight> ")
        attempts = [attempt.split(" : ") for attempt in block.split(" ; ")]
        right = {queries for label, queries in attempts if label.endswith(" CORRECT")}
        assert len(right) == 1
        written = " ".join(weighted(demonstration, 1.0)).split(" </search> ")[:-1]
        assert " | ".join(turn.removeprefix("<search> ") for turn in written) == right.pop()


@pytest.mark.parametrize("right_relation, low, high", [(1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (0.5, 0.35, 0.65)])
def test_the_poor_searcher_is_as_poor_as_asked(right_relation, low, high):
    right = turns = 0
    options = {"hinted": 0.0, "siblings": 0.0, "slip": 0.0, "early_answer": 0.0, "right_start": 1.0, "habit": 0.0}
    for demonstration in drawn(right_relation=right_relation, **options):
        asked = prompt(demonstration)[:-2].split(" 's ")[1:]
        written = " ".join(weighted(demonstration, 1.0)).split(" </search> ")[1:-1]
        for relation, turn in zip(asked, written, strict=False):
            turns += 1
            right += turn.split()[1] == relation
    assert turns > 200
    assert low <= right / turns <= high


def test_reading_practice_copies_passages_or_reads_names_off_one():
    copied = read = 0
    for demonstration in drawn(practice=1.0, practice_steps=1000):
        words, half = [word for word, _ in demonstration], len(demonstration) // 2
        if words[half] == "<information>" and sorted(words[:half]) == sorted(words[half:]):
            assert [weight for _, weight in demonstration] == [0.0] * half + [1.0] * half
            copied += 1
            continue
        passage = text(demonstration).split("<information> ")[2].split()
        for place, (word, weight) in enumerate(demonstration):
            if weight == 1.0 and word[0].isupper():
                assert passage[passage.index(word) - 1] in words[place - 3 : place]
        assert {"</answer>", "</search>"} & set(weighted(demonstration, 1.0))
        read += 1
    assert copied > 150
    assert read > 150


def test_reading_practice_ends():
    source = MicroDemonstrations(encode, practice=1.0, practice_steps=10)
    assert WORDS[source(0, 9, 0).ids[0]] == "<information>"
    assert WORDS[source(0, 10, 0).ids[0]] != "<information>"


def test_a_place_and_a_seed_are_a_demonstration():
    source = MicroDemonstrations(encode)
    assert source(5, 400, 1) == source(5, 400, 1)
    assert source(5, 400, 1) != source(6, 400, 1)
    assert source(5, 400, 1) != source(5, 400, 2)


def test_another_process_draws_the_same():
    code = """
from hindsearch.data.micro_demonstrations import MicroDemonstrations
from hindsearch.grammar import WORDS
ids = {word: n for n, word in enumerate(WORDS)}
print([MicroDemonstrations(lambda t: [ids[w] for w in t.split()])(n, n, 1).ids for n in range(100, 140)])
"""
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert seen.strip() == str([MicroDemonstrations(encode)(n, n, 1).ids for n in range(100, 140)])
