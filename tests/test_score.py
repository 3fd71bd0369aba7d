"""`hindsearch score`: predictions and transcripts, and one sentence for everything that cannot be scored."""

import gzip
import json
from datetime import date

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from hindsearch.cli import main
from hindsearch.data.rows import read_rows


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def score(*arguments, capsys, code=0):
    assert main(["score", *arguments]) == code
    return capsys.readouterr()


def test_predictions_and_the_rows_written(tmp_path, capsys):
    rows = [
        {"id": 1, "prediction": "The Paris", "golden_answers": "Paris", "extra": [1]},
        {"id": 2, "prediction": "x", "golden_answers": ["y", "z"]},
        {"id": 3, "prediction": "b", "reward_model": {"ground_truth": {"target": ["b"]}}},
    ]
    out = tmp_path / "out.jsonl"
    printed = score(write(tmp_path / "in.jsonl", rows), "--out", str(out), capsys=capsys).out
    assert "n 3" in printed
    assert "EM 0.6667" in printed
    scored = [json.loads(line) for line in out.read_text().splitlines()]
    assert [{k: v for k, v in row.items() if k not in ("em", "f1")} for row in scored] == rows
    assert [row["em"] for row in scored] == [1.0, 0.0, 1.0]


def test_transcripts_are_scored_by_the_last_own_answer(tmp_path, capsys):
    rows = [
        {"response": "<answer> Rome </answer> <answer> Paris </answer>", "golden_answers": ["Paris"]},
        {"response": "<information> <answer> Paris </answer> </information>", "golden_answers": ["Paris"]},
    ]
    out = tmp_path / "out.jsonl"
    printed = score(write(tmp_path / "in.jsonl", rows), "--out", str(out), capsys=capsys).out
    assert "answered 0.5000" in printed
    scored = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["answer"], row["em"]) for row in scored] == [("Paris", 1.0), (None, 0.0)]


def test_columns_keep_their_order_and_new_ones_come_last(tmp_path, capsys):
    rows = [
        {"z": 1, "prediction": "p", "m": None, "golds": ["p"], "b": {"x": [1]}},
        {"golden_answers": "p", "raw": "<answer> p </answer>", "a": 0},
        {"reward_model": {"ground_truth": {"target": "p"}}, "completion": "nothing", "question": "q"},
    ]
    _, scored = scored_rows(tmp_path, capsys, *rows)
    assert [list(row) for row in scored] == [
        [*rows[0], "em", "f1"],
        [*rows[1], "answer", "em", "f1"],
        [*rows[2], "answer", "em", "f1"],
    ]
    assert [(row["em"], row["f1"]) for row in scored] == [(1.0, 1.0), (1.0, 1.0), (0.0, 0.0)]
    assert [{k: row[k] for k in old} for row, old in zip(scored, rows, strict=True)] == rows


def test_dates_bytes_and_empty_lists_of_parquet_are_written(tmp_path, capsys):
    columns = {"prediction": ["x"], "golden_answers": [["x"]], "day": [date(2020, 1, 2)], "none": [[]], "raw": [b"q"]}
    parquet.write_table(pa.table(columns), tmp_path / "in.parquet")
    out = tmp_path / "out.jsonl"
    score(str(tmp_path / "in.parquet"), "--out", str(out), capsys=capsys)
    row = json.loads(out.read_text())
    assert (row["day"], row["none"], row["em"]) == ("2020-01-02", [], 1.0)


def test_transcripts_without_any_answer_and_predictions_are_told_apart_in_print(tmp_path, capsys):
    assert "answered" not in scored_rows(tmp_path, capsys, {"prediction": "x", "golds": ["y"]})[0]
    assert "answered 0.0000" in scored_rows(tmp_path, capsys, {"response": "no tag", "golds": ["y"]})[0]


def test_an_out_that_is_a_folder_leaves_nothing(tmp_path, capsys):
    path = write(tmp_path / "in.jsonl", [{"prediction": "p", "golden_answers": ["p"]}])
    (tmp_path / "out").mkdir()
    error = score(path, "--out", str(tmp_path / "out"), capsys=capsys, code=2).err
    assert "directory" in error.lower()
    assert len(error.strip().splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl", "out"]


def test_a_real_parquet_file_is_scored_as_it_is(realdata, tmp_path, capsys):
    path = realdata / "searchr1_nq_parquet" / "test_first500.parquet"
    rows = [dict(row) for _, row in read_rows(path, "q")]
    asked = [row | {"prediction": row["reward_model"]["ground_truth"]["target"][-1]} for row in rows]
    printed, scored = scored_rows(tmp_path, capsys, *asked)
    assert "n 500\nEM 1.0000\nF1 1.0000" in printed
    assert [row["id"] for row in scored] == [row["id"] for row in rows]


def test_parquet_arrays_and_gzip_under_another_name(tmp_path, capsys):
    table = pa.table({"prediction": ["a b"], "golden_answers": [["x", "a b"]]})
    parquet.write_table(table, tmp_path / "in.parquet")
    out = tmp_path / "out.jsonl"
    assert "EM 1.0000" in score(str(tmp_path / "in.parquet"), "--out", str(out), capsys=capsys).out
    assert json.loads(out.read_text())["golden_answers"] == ["x", "a b"]
    (tmp_path / "in.jsonl").write_bytes(gzip.compress(b'{"prediction": "p", "golden_answers": ["p"]}\n'))
    assert "EM 1.0000" in score(str(tmp_path / "in.jsonl"), capsys=capsys).out


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "is empty"),
        (b"\n\n", "has no rows"),
        (b'{"prediction": "p", "golden_answers": ["p"]}\n{oops}\n', "line 2 is not JSON"),
        (b"[1, 2]", "item 1 is a JSON int"),
        (b'"text"\n', "line 1 is a JSON str"),
        (b'{"prediction": "p"}\n', "line 1 has no golden_answers; it has prediction"),
        (b'{"prediction": "p", "golden_answers": []}\n', "golden_answers is []"),
        (b'{"prediction": "p", "golden_answers": [3]}\n', "golden_answers holds 3 (int)"),
        (b'{"golden_answers": ["p"], "text": "x"}\n', "neither prediction nor response; it has golden_answers, text"),
        (b'{"golden_answers": ["p"], "prediction": 4}\n', "prediction is int, not text"),
        (b'{"golden_answers": ["p"], "response": ["x"]}\n', "response is list, not text"),
        (b'{"prediction": "\xff\xfe", "golden_answers": ["p"]}\n', "is not UTF-8"),
        (gzip.compress(b'{"prediction": "p", "golden_answers": ["p"]}\n' * 99)[:40], "gzip file that is cut"),
    ],
)
def test_bad_input_gets_one_sentence_and_writes_nothing(tmp_path, capsys, content, said):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    path.write_bytes(content)
    error = score(str(path), "--out", str(out), capsys=capsys, code=2).err
    assert said in error
    assert "in.jsonl" in error
    assert len(error.strip().splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl"]


def test_a_missing_file_and_a_missing_folder(tmp_path, capsys):
    assert "there is no file" in score(str(tmp_path / "no.jsonl"), capsys=capsys, code=2).err
    path = write(tmp_path / "in.jsonl", [{"prediction": "p", "golden_answers": ["p"]}])
    error = score(path, "--out", str(tmp_path / "no" / "out.jsonl"), capsys=capsys, code=2).err
    assert "there is no folder" in error


def scored_rows(tmp_path, capsys, *rows):
    out = tmp_path / "out.jsonl"
    printed = score(write(tmp_path / "in.jsonl", rows), "--out", str(out), capsys=capsys).out
    return printed, [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_a_null_prediction_is_no_answer_and_is_counted(tmp_path, capsys):
    printed, _ = scored_rows(
        tmp_path, capsys, {"prediction": None, "golds": ["x"]}, {"prediction": "x", "golds": ["x"]}
    )
    assert printed.split("\n")[:4] == ["n 2", "EM 0.5000", "F1 0.5000", "answered 0.5000"]


def test_a_column_answer_stays_as_it_was(tmp_path, capsys):
    _, rows = scored_rows(tmp_path, capsys, {"answer": ["Paris"], "response": "<answer> Rome </answer>"})
    assert rows == [
        {"answer": ["Paris"], "response": "<answer> Rome </answer>", "student_answer": "Rome", "em": 0.0, "f1": 0.0}
    ]


def test_what_a_model_answered_is_never_its_own_gold(tmp_path, capsys):
    row = {"answer": "Rome", "prediction": "Rome", "reward_model": {"ground_truth": {"target": ["Paris"]}}}
    printed, _ = scored_rows(tmp_path, capsys, row)
    assert "EM 0.0000" in printed


def test_half_a_surrogate_pair_is_written_as_it_was(tmp_path, capsys):
    _, rows = scored_rows(tmp_path, capsys, {"prediction": "\ud83d", "golds": ["é"]}, {"prediction": "é", "golds": "é"})
    assert [row["prediction"] for row in rows] == ["\ud83d", "é"]
    assert "é" in (tmp_path / "out.jsonl").read_text(encoding="utf-8")


def test_a_scored_file_can_be_scored_again_in_place(tmp_path, capsys):
    path = write(tmp_path / "in.jsonl", [{"response": "<answer> a </answer>", "golden_answers": ["a"]}])
    first = score(path, "--out", path, capsys=capsys).out
    assert score(path, "--out", path, capsys=capsys).out == first


@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl.gz", "out.json"])
def test_a_name_that_promises_another_kind_of_file_is_refused(tmp_path, capsys, name):
    path = write(tmp_path / "in.jsonl", [{"prediction": "p", "golden_answers": ["p"]}])
    assert "name it out.jsonl" in score(path, "--out", str(tmp_path / name), capsys=capsys, code=2).err
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_row_that_cannot_be_written_leaves_the_old_file(tmp_path, capsys, monkeypatch):
    path = write(tmp_path / "in.jsonl", [{"prediction": "p", "golden_answers": ["p"]}])
    (tmp_path / "out.jsonl").write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hindsearch.score.os.replace", full)
    assert "No space left" in score(path, "--out", str(tmp_path / "out.jsonl"), capsys=capsys, code=2).err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]
    assert (tmp_path / "out.jsonl").read_text() == "old"


def test_all_public_cases_through_the_verb(realdata, tmp_path, capsys):
    wanted = [json.loads(line) for line in (realdata / "em_cases.jsonl").open(encoding="utf-8")]
    out = tmp_path / "out.jsonl"
    assert f"n {len(wanted)}" in score(str(realdata / "em_cases.jsonl"), "--out", str(out), capsys=capsys).out
    rows = [json.loads(line) for line in out.open(encoding="utf-8")]
    assert [row["id"] for row in rows] == [row["id"] for row in wanted]
    assert [row["em"] for row in rows] == [row["em"] for row in wanted]
    assert [row["f1"] for row in rows] == pytest.approx([row["f1"] for row in wanted], abs=1e-5)


@pytest.mark.parametrize("name, count", [("mutated", 41), ("r1searcher_strict", 30), ("r1searcher_converted", 74)])
def test_real_transcripts_are_scored_by_their_own_last_answer(realdata, tmp_path, capsys, name, count):
    out = tmp_path / "out.jsonl"
    path = realdata / "trajectories" / f"{name}.jsonl"
    assert f"n {count}" in score(str(path), "--out", str(out), capsys=capsys).out
    for row in map(json.loads, out.open(encoding="utf-8")):
        wanted = row["reference"]["last_answer_outside_information"]
        if wanted is None or "<answer>" not in wanted:  # a nested opening tag is no part of our answer
            assert row["answer"] == wanted, row["id"]
