"""Questions in the shapes that the field's files have."""

import json

import pytest

from hindsearch.data.questions import load_questions
from hindsearch.errors import UserError
from hindsearch.types import Question


def write(path, *rows):
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_flashrag_rows(tmp_path):
    row = {"id": "test_0", "question": " who? ", "golden_answers": ["A", "B"], "gold_ids": ["p1", 2], "metadata": {}}
    path = write(tmp_path / "nq.jsonl", row)
    assert load_questions(path) == [Question("test_0", "who?", ("A", "B"), "nq", ("p1", "2"))]


def test_verl_rows_take_the_question_from_the_prompt(tmp_path):
    row = {
        "data_source": "nq",
        "prompt": [{"role": "user", "content": "Answer the given question. … Question: who won?\n"}],
        "reward_model": {"style": "rule", "ground_truth": {"target": ["Ann"]}},
        "extra_info": {"split": "test", "index": 4},
    }
    with_question = row | {"question": "who won it?", "id": 9}
    first, second = load_questions(write(tmp_path / "test.jsonl", row, with_question))
    assert first == Question("nq-4", "who won?", ("Ann",), "nq")
    assert second == Question("9", "who won it?", ("Ann",), "nq")


def test_nq_open_rows_are_named_after_their_line(tmp_path):
    path = write(tmp_path / "NQ-open.jsonl", {"question": "a", "answer": ["x"]}, {"question": "b", "answer": ["y"]})
    assert [(q.id, q.golds, q.source) for q in load_questions(path)] == [
        ("1", ("x",), "NQ-open"),
        ("2", ("y",), "NQ-open"),
    ]


def test_a_file_named_after_its_split_takes_the_name_of_its_folder(tmp_path):
    path = write(tmp_path / "hotpot" / "dev.jsonl", {"question": "a", "golden_answers": "x"})
    assert load_questions(path)[0].source == "hotpot"


def test_a_null_id_is_no_id(tmp_path):
    rows = [{"id": None, "_id": "z", "question": "a", "golden_answers": "x"}] + [
        {"id": None, "question": "a", "golden_answers": "x"}
    ] * 2
    assert [q.id for q in load_questions(write(tmp_path / "q.jsonl", *rows))] == ["z", "2", "3"]


def test_blank_golds_are_left_out(tmp_path):
    """An empty answer would match them, and earn the reward."""
    path = write(tmp_path / "q.jsonl", {"question": "a", "golden_answers": ["", " ", "x"]})
    assert load_questions(path)[0].golds == ("x",)
    with pytest.raises(UserError, match="line 1: its golden answers are blank"):
        load_questions(write(tmp_path / "q.jsonl", {"question": "a", "golden_answers": [""]}))


def test_gold_ids_that_are_no_list_are_refused(tmp_path):
    path = write(tmp_path / "q.jsonl", {"question": "a", "golden_answers": "x", "gold_ids": "p12"})
    with pytest.raises(UserError, match="line 1: gold_ids is str, not a list of passage ids"):
        load_questions(path)


def test_a_limit_reads_no_further(tmp_path):
    path = write(tmp_path / "q.jsonl", *[{"question": str(i), "golden_answers": "x"} for i in range(3)], {"broken": 1})
    assert [q.text for q in load_questions(path, limit=3)] == ["0", "1", "2"]


def test_the_caller_names_the_file_in_errors(tmp_path):
    with pytest.raises(UserError, match=r"^data\.train_path: there is no file"):
        load_questions(tmp_path / "no.jsonl", what="data.train_path")


@pytest.mark.parametrize(
    "path, count, source",
    [
        ("deepresearcher_7sets/test.parquet", 3197, "2wiki"),
        ("deepresearcher_7sets/dev.parquet", 875, "tq"),
        ("searchr1_nq_parquet/test_first500.parquet", 500, "nq"),
        ("nq_open/NQ-open.dev.jsonl", 3610, "NQ-open"),
        ("react_hotpot_dev/hotpot_dev_v1_simplified.json", 7405, "hotpot_dev_v1_simplified"),
        ("flashrag_quickstart_nq/test.jsonl", 17, "flashrag_quickstart_nq"),
        ("r1searcher_musique/questions.jsonl", 500, "r1searcher_musique"),
        ("hipporag_hotpot/questions.jsonl", 100, "hipporag_hotpot"),
        ("hipporag_musique/questions.jsonl", 100, "hipporag_musique"),
        ("lostmiddle_nq/questions.jsonl", 1000, "lostmiddle_nq"),
        ("ketrag_musique/questions.jsonl", 500, "ketrag_musique"),
        ("r1searcher_hotpot/questions.jsonl", 300, "r1searcher_hotpot"),
        ("kilt_triviaqa/trivia-qa-test.first150.jsonl", 150, "trivia-qa-test"),
        ("hipporag_musique/raw_first5.json", 5, "raw_first5"),
        ("hipporag_hotpot/raw_first10.json", 10, "raw_first10"),
        ("r1searcher_bamboogle/questions.jsonl", 125, "r1searcher_bamboogle"),
        ("hipporag_2wiki/questions_derived.jsonl", 103, "questions_derived"),
    ],
)
def test_real_files_load_whole(realdata, path, count, source):
    questions = load_questions(realdata / path)
    assert len(questions) == count
    assert questions[0].source == source
    assert len({question.id for question in questions}) == count
    assert all(question.golds and question.text for question in questions)


def test_the_seven_sets_are_told_apart(realdata):
    sources = [question.source for question in load_questions(realdata / "deepresearcher_7sets" / "test.parquet")]
    assert len(set(sources)) == 7
    assert sources.count("Bamboogle") == 125


def test_a_real_question_without_golds_is_named(realdata):
    with pytest.raises(UserError, match=r"questions_gold_titles\.jsonl line 3: golden_answers is \[\]"):
        load_questions(realdata / "hipporag_2wiki" / "questions_gold_titles.jsonl")


@pytest.mark.parametrize("name", ["2wiki", "bamboogle", "hotpotqa", "musique", "nq", "popqa", "tq"])
def test_the_raw_parquet_and_the_common_shape_hold_the_same_questions(realdata, name):
    folder = realdata / "deepresearcher_7sets"
    raw = {(q.text, frozenset(q.golds)) for q in load_questions(folder / "test.parquet")}  # PopQA asks some texts twice
    questions = load_questions(folder / f"{name}.jsonl")
    assert len(questions) >= 125
    assert {(q.text, frozenset(q.golds)) for q in questions} <= raw


def test_the_prompt_of_search_r1_gives_its_question_column(realdata, tmp_path):
    from hindsearch.data.rows import read_rows

    rows = [dict(row) for _, row in read_rows(realdata / "searchr1_nq_parquet" / "test_first500.parquet", "q")][:50]
    asked = [row.pop("question") for row in rows]
    questions = load_questions(write(tmp_path / "q.jsonl", *rows))
    assert [q.text.rstrip("?") for q in questions] == [text.strip().rstrip("?") for text in asked]
