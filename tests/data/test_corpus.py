"""Passages in both shapes of the field."""

import json

import pytest

from hindsearch.data.corpus import load_passages
from hindsearch.errors import UserError
from hindsearch.types import Passage


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "contents, title, text",
    [
        ('"Paris"\nA city.\nIn France.', "Paris", "A city.\nIn France."),
        ("Paris\nA city.", "Paris", "A city."),
        ('""\nA city.', "", "A city."),
        ('""Weird Al" Yankovic"\nA singer.', '"Weird Al" Yankovic', "A singer."),
        ("Royce da 5'9\"\nA rapper.", "Royce da 5'9\"", "A rapper."),
        ("Only words.", "", "Only words."),
        ('"Only a title"', "Only a title", ""),
    ],
)
def test_contents_part_at_the_first_line(tmp_path, contents, title, text):
    assert load_passages(write(tmp_path / "c.jsonl", {"id": "1", "contents": contents})) == [Passage("1", title, text)]


def test_rows_without_an_id_are_numbered(tmp_path):
    path = write(tmp_path / "c.jsonl", {"text": "a"}, {"id": None, "text": "b"}, {"_id": "x", "text": "c"})
    assert [passage.id for passage in load_passages(path)] == ["0", "1", "x"]


@pytest.mark.parametrize(
    "row, said",
    [
        ({"id": "1", "title": "T"}, "line 1 has neither contents nor title and text; it has id, title"),
        ({"id": "1", "title": "T", "text": None}, "line 1 has neither contents nor title and text"),
        ({"id": "1", "contents": ["a"]}, "line 1: contents is list, not text"),
        ({"id": "1", "title": 4, "text": "x"}, "line 1: title is int, not text"),
    ],
)
def test_a_missing_field_is_named_with_its_line(tmp_path, row, said):
    with pytest.raises(UserError) as error:
        load_passages(write(tmp_path / "c.jsonl", row))
    assert said in str(error.value)


@pytest.mark.parametrize(
    "name, count, empty_titles",
    [
        ("hipporag_2wiki", 6119, 0),
        ("hipporag_hotpot", 994, 0),
        ("hipporag_musique", 1890, 0),
        ("ketrag_musique", 6760, 6760),
        ("lostmiddle_nq", 1480, 0),
        ("r1searcher_bamboogle", 1793, 0),
        ("r1searcher_hotpot", 4438, 0),
    ],
)
def test_real_corpora_load_whole_and_alike_in_both_shapes(realdata, tmp_path, name, count, empty_titles):
    passages = load_passages(realdata / name / "passages.jsonl")
    assert len(passages) == count
    assert sum(not passage.title for passage in passages) == empty_titles
    assert all(passage.text for passage in passages)
    rows = [{"id": p.id, "title": p.title, "text": p.text} for p in passages]
    assert load_passages(write(tmp_path / "c.jsonl", *rows)) == passages
