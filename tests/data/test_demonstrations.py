import json
from collections import Counter

import pytest

from hindsearch.data.demonstrations import DemonstrationFile
from hindsearch.demonstration import encode_pieces
from hindsearch.errors import UserError


class Letters:
    """A renderer whose ids are the letters' code points."""

    def prompt(self, question, hint):
        return tuple(map(ord, f"[{question.text}]"))


def letters(text):
    return list(map(ord, text))


def write(tmp_path, *rows):
    path = tmp_path / "demonstrations.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return str(path)


def turn(text, observation=""):
    return {"text": text, "observation": observation}


def test_pieces_keep_their_weights():
    demonstration = encode_pieces([("ab", 0.0), ("", 1.0), ("cde", 0.3)], letters)
    assert demonstration.ids == tuple(map(ord, "abcde"))
    assert demonstration.weights == (0.0, 0.0, 0.3, 0.3, 0.3)


def test_prompt_counts_nothing_turns_one_and_observations_their_weight(tmp_path):
    path = write(tmp_path, {"question": "q", "turns": [turn("see", "ok"), turn("a")]})
    demonstration = DemonstrationFile(path, Letters(), letters, retrieved_weight=0.3)(0, 0, seed=0)
    assert "".join(map(chr, demonstration.ids)) == "[q]seeoka"
    assert demonstration.weights == (0, 0, 0, 1, 1, 1, 0.3, 0.3, 1)


def test_each_epoch_shows_every_line_once_in_an_order_of_its_own(tmp_path):
    rows = [{"question": chr(97 + i), "turns": [turn("x")]} for i in range(12)]
    source = DemonstrationFile(write(tmp_path, *rows), Letters(), letters)
    epochs = [[chr(source(e * 12 + i, 0, seed=0).ids[1]) for i in range(12)] for e in range(2)]
    assert [sorted(epoch) for epoch in epochs] == [[chr(97 + i) for i in range(12)]] * 2
    assert epochs[0] != epochs[1]
    assert Counter(source(3, 0, seed=0) == source(3, 0, seed=s) for s in range(1, 9))[True] < 8


def test_the_file_is_fingerprinted(tmp_path):
    path = write(tmp_path, {"question": "q", "turns": [turn("x")]})
    before = DemonstrationFile(path, Letters(), letters).fingerprint()
    assert DemonstrationFile(path, Letters(), letters).fingerprint() == before
    write(tmp_path, {"question": "q", "turns": [turn("y")]})
    assert DemonstrationFile(path, Letters(), letters).fingerprint() != before


GOOD = {"question": "q", "turns": [turn("x")]}


@pytest.mark.parametrize(
    "row, said",
    [
        ("{not json", "line 3: not JSON"),
        ("[1]", "line 3: a JSON object is needed, not list"),
        ({"turns": [turn("x")]}, "line 3: question must be a non-empty string; it is missing"),
        ({"question": 7, "turns": [turn("x")]}, "line 3: question must be a non-empty string; it is 7"),
        ({"question": "q"}, "line 3: turns must be a list of at least one turn, not None"),
        ({"question": "q", "turns": []}, "line 3: turns must be a list of at least one turn"),
        ({"question": "q", "turns": ["x"]}, r"line 3: turns\[0\] must be an object"),
        (
            {"question": "q", "turns": [turn("x"), {"text": "y"}]},
            r"line 3: turns\[1\]: observation must be a string; it is missing",
        ),
        ({"question": "q", "turns": [turn("")]}, r"line 3: turns\[0\]: text must be a non-empty string; it is ''"),
    ],
)
def test_a_bad_line_is_named(tmp_path, row, said):
    path = write(tmp_path, GOOD, "", row)
    with pytest.raises(UserError, match=said) as raised:
        DemonstrationFile(path, Letters(), letters)
    assert str(raised.value).startswith(path)
    assert "\n" not in str(raised.value)


def test_no_file_and_no_lines_are_refused(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        DemonstrationFile(str(tmp_path / "none.jsonl"), Letters(), letters)
    with pytest.raises(UserError, match="holds no demonstrations"):
        DemonstrationFile(write(tmp_path, "", ""), Letters(), letters)
    with pytest.raises(ValueError, match="outside"):
        DemonstrationFile(write(tmp_path, GOOD), Letters(), letters, retrieved_weight=2.0)
