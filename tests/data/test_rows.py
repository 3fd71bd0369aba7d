"""Every kind of file gives the same rows, and what cannot be read is named by file and line."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from hindsearch.data.rows import fields_of, golds_of, read_rows
from hindsearch.errors import UserError

ROWS = [{"id": "1", "text": "köln"}, {"id": "2", "text": "北京"}]
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()


def places_and_rows(path):
    placed = list(read_rows(path, "questions"))
    return [place.removeprefix(f"{path} ") for place, _ in placed], [row for _, row in placed]


@pytest.mark.parametrize(
    "name, content, places",
    [
        ("a.jsonl", LINES, ["line 1", "line 2"]),
        ("a.jsonl", LINES.replace(b"\n", b"\r\n"), ["line 1", "line 2"]),
        ("a.jsonl", b"\xef\xbb\xbf" + LINES, ["line 1", "line 2"]),
        ("a.jsonl", b"\n" + LINES.replace(b"\n", b"\n\n"), ["line 2", "line 4"]),
        ("a.jsonl", LINES.rstrip(b"\n"), ["line 1", "line 2"]),
        ("a.jsonl.gz", gzip.compress(LINES), ["line 1", "line 2"]),
        ("a.jsonl", gzip.compress(LINES), ["line 1", "line 2"]),
        ("a.gz", LINES, ["line 1", "line 2"]),
        ("a.json", json.dumps(ROWS, indent=1).encode(), ["item 1", "item 2"]),
        ("a.json", b"\xef\xbb\xbf\n [\n" + b",".join(LINES.splitlines()) + b"]", ["item 1", "item 2"]),
        ("a.tsv", "id\ttext\n1\tköln\n2\t北京\n".encode(), ["line 2", "line 3"]),
        ("a.tsv.gz", gzip.compress("\ufeffid\ttext\n1\tköln\n2\t北京\n".encode()), ["line 2", "line 3"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_kind_of_file_gives_the_same_rows(tmp_path, name, content, places):
    path = tmp_path / name
    path.write_bytes(content)
    assert places_and_rows(path) == (places, ROWS)


def test_parquet_rows_are_counted_over_batches_and_hold_lists(tmp_path):
    number = 1500
    table = pa.table({"id": list(range(number)), "golden_answers": [["a", "b"]] * number})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=700)
    places, rows = places_and_rows(tmp_path / "a.parquet")
    assert places == [f"row {i}" for i in range(1, number + 1)]
    assert [row["id"] for row in rows] == list(range(number))
    assert rows[0]["golden_answers"] == ["a", "b"]


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one\u2028two\x85three"}\n', encoding="utf-8")
    assert places_and_rows(tmp_path / "a.jsonl") == (["line 1"], [{"text": "one\u2028two\x85three"}])


def test_a_tsv_field_may_be_a_whole_page(tmp_path):
    (tmp_path / "a.tsv").write_text("text\n" + "x" * 200_000 + "\n", encoding="utf-8")
    assert len(places_and_rows(tmp_path / "a.tsv")[1][0]["text"]) == 200_000


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "is empty"),
        (b" \n\n", "has no rows"),
        (b"[]", "has no rows"),
        (gzip.compress(b""), "has no rows"),
        (LINES + b"{oops}\n", "line 3 is not JSON"),
        (b"plain words\n", "line 1 is not JSON"),
        (LINES + b"[1]\n", "line 3 is a JSON list, not an object"),
        (b'[{"id": 1}, 5]', "item 2 is a JSON int, not an object"),
        (b'[{"id": 1},\n', "is not a JSON list"),
        (LINES + '{"text": "köln"}\n'.encode("latin-1"), "line 3 is not UTF-8 (byte 0xf6 at column 12)"),
        (LINES.decode().encode("utf-16"), "line 1 is not UTF-8 (byte 0xff at column 1)"),
        (b'["\xff"]', "is not UTF-8"),
        (gzip.compress(LINES * 50)[:40], "gzip file that is cut or damaged"),
        (gzip.compress(LINES)[:10] + b"\xff" * 20, "gzip file that is cut or damaged"),
        (b"PAR1" + b"x" * 50, "parquet file that is cut or damaged"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_read_is_named(tmp_path, content, said):
    path = tmp_path / "q.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        list(read_rows(path, "questions"))
    assert str(error.value).startswith(f"questions: {path}")
    assert said in str(error.value)


@pytest.mark.parametrize("line", ["2\tb\tc", "2"])
def test_a_tsv_line_with_other_fields_than_the_header_is_named(tmp_path, line):
    (tmp_path / "a.tsv").write_text(f"id\ttext\n1\ta\n{line}\n")
    with pytest.raises(UserError, match=r"a\.tsv line 3 has not the 2 fields of the first line"):
        list(read_rows(tmp_path / "a.tsv", "questions"))


def test_a_tsv_field_may_be_empty(tmp_path):
    (tmp_path / "a.tsv").write_text("id\ttext\n1\t\n")
    assert places_and_rows(tmp_path / "a.tsv")[1] == [{"id": "1", "text": ""}]


def test_parquet_holds_no_rows(tmp_path):
    parquet.write_table(pa.table({"id": pa.array([], pa.string())}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match="has no rows"):
        list(read_rows(tmp_path / "a.parquet", "questions"))


def test_a_missing_file_names_the_nearest_one(tmp_path):
    for name in ("dev.jsonl", "train.jsonl", "passages.jsonl"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match=r"there is no file .*trian\.jsonl; .* holds train\.jsonl$"):
        list(read_rows(tmp_path / "trian.jsonl", "questions"))
    with pytest.raises(UserError, match=r"holds dev\.jsonl, passages\.jsonl, train\.jsonl$"):
        list(read_rows(tmp_path / "zzz", "questions"))
    with pytest.raises(UserError, match=r"there is no folder .*nowhere either$"):
        list(read_rows(tmp_path / "nowhere" / "a.jsonl", "questions"))
    with pytest.raises(UserError, match=r"it is a folder; name a file in it$"):
        list(read_rows(tmp_path, "questions"))


@pytest.mark.parametrize(
    "row",
    [
        {"golden_answers": "a b"},
        {"golden_answers": ["a b"]},
        {"golden_answers": np.array(["a b"])},
        {"golden_answers": np.array("a b")},
        {"golds": ("a b",)},
        {"answers": ["a b"]},
        {"answer": "a b"},
        {"golden_answers": None, "answer": "a b"},
        {"reward_model": {"style": "rule", "ground_truth": {"target": np.array(["a b"], dtype=object)}}},
        {"reward_model": {"ground_truth": "a b"}},
    ],
)
def test_golds_have_many_names_and_containers(row):
    assert golds_of(row, "f line 1", "questions") == ("a b",)


def test_the_aliases_of_musique_are_golds_too():
    assert golds_of({"answer": "a b", "answer_aliases": ["c", "d"]}, "f line 1", "q") == ("a b", "c", "d")
    assert golds_of({"answer": "a b", "answer_aliases": []}, "f line 1", "q") == ("a b",)
    assert golds_of({"golden_answers": "a b", "answer": "x", "answer_aliases": ["c"]}, "f line 1", "q") == ("a b",)


def test_golds_that_deepresearcher_joined_are_parted():
    row = {"reward_model": {"ground_truth": "US<|answer_split|>U. S. <|answer_split|>USA"}}
    assert golds_of(row, "f line 1", "q") == ("US", "U. S. ", "USA")


def test_fields_are_named_in_short():
    assert fields_of({"id": 1, "text": 2}) == "id, text"
    assert fields_of({}) == "no fields"
    assert fields_of({"x" * 1000: 1}) == "x" * 37 + "..."
    assert fields_of({str(i): i for i in range(1000)}).endswith("18, 19, ...")


def test_what_a_model_answered_is_not_taken_for_the_gold():
    said = {"answer": "wrong"}
    assert golds_of(said | {"golden_answers": ["right"]}, "f line 1", "q") == ("right",)
    assert golds_of(said | {"reward_model": {"ground_truth": {"target": ["right"]}}}, "f line 1", "q") == ("right",)


@pytest.mark.parametrize(
    "row, said",
    [
        ({"question": "q"}, "f line 7 has no golden_answers; it has question"),
        ({"golds": []}, "f line 7: golds is []"),
        ({"golden_answers": {"a": 1}}, "f line 7: golden_answers is {'a': 1}"),
        ({"golden_answers": 2017}, "f line 7: golden_answers is 2017"),
        ({"answer": ["x", None]}, "f line 7: answer holds None (NoneType), not text"),
        ({"reward_model": {"ground_truth": {"target": [3]}}}, "reward_model.ground_truth.target holds 3 (int)"),
        ({"golden_answers": "['Paris', 'paris']"}, "golden_answers is a list written as text"),
        ({"golden_answers": ['["Paris"]']}, "golden_answers is a list written as text"),
    ],
)
def test_golds_that_are_none_are_refused(row, said):
    with pytest.raises(UserError) as error:
        golds_of(row, "f line 7", "questions")
    assert said in str(error.value)


@pytest.mark.parametrize("gold", ["[1]", "[sic]", "'Paris'", "[", ""])
def test_a_gold_with_brackets_is_a_gold(gold):
    assert golds_of({"golden_answers": gold}, "f line 1", "questions") == (gold,)
