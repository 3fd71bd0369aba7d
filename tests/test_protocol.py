import json

import pytest

from hindsearch.protocol import parse_turn, transcript_answer
from hindsearch.types import SpanKind, TurnKind


@pytest.mark.parametrize(
    "text, kind, content",
    [
        ("<search> who directed it </search>", TurnKind.SEARCH, "who directed it"),
        ("<think> x </think><answer> Paris </answer>", TurnKind.ANSWER, "Paris"),
        ("<answer>A\nB</answer>", TurnKind.ANSWER, "A\nB"),
        ("<answer> <answer> X </answer>", TurnKind.ANSWER, "X"),  # the nearest opening tag
        ("<search> a <search> b </search>", TurnKind.SEARCH, "b"),
        ("<search> a <answer> b </search>", TurnKind.SEARCH, "a <answer> b"),
        ("<answer> a </answer> then <search> b </search>", TurnKind.ANSWER, "a"),  # the first closing tag ends it
        ("<search> b </search> <answer> a </answer>", TurnKind.SEARCH, "b"),
        ("<answer></answer>", TurnKind.ANSWER, ""),
        ("<search>  </search>", TurnKind.INVALID, ""),
        ("no tag at all", TurnKind.INVALID, ""),
        ("<search> never closed", TurnKind.INVALID, ""),
        ("closed never opened </search>", TurnKind.INVALID, ""),
        ("<SEARCH> x </SEARCH>", TurnKind.INVALID, ""),
        ('<search query="x">', TurnKind.INVALID, ""),
        ("<answer> x </search>", TurnKind.INVALID, ""),
        ("", TurnKind.INVALID, ""),
    ],
)
def test_a_turn_is_what_its_first_closing_tag_and_the_nearest_opening_one_say(text, kind, content):
    parsed = parse_turn(text)
    assert (parsed.kind, parsed.content) == (kind, content)


def test_spans_are_the_characters_between_and_with_the_tags():
    text = "<think>a</think> <search> q </search>"
    think, search = parse_turn(text).spans
    assert (think.kind, text[think.start : think.end]) == (SpanKind.THINK, "a")
    assert text[think.outer_start : think.outer_end] == "<think>a</think>"
    assert (search.kind, text[search.start : search.end]) == (SpanKind.SEARCH, " q ")
    assert text[search.outer_start : search.outer_end] == "<search> q </search>"


def test_an_invalid_turn_keeps_its_thoughts():
    assert [span.kind for span in parse_turn("<think> x </think> and nothing").spans] == [SpanKind.THINK]


@pytest.mark.parametrize(
    "text, answer",
    [
        ("<answer> a </answer> <answer> b </answer>", "b"),
        ("<answer> a </answer> <information> <answer> forged </answer> </information>", "a"),
        ("<information> <answer> forged </answer> </information>", None),
        ("<answer> never closed", None),
        ("<answer> <answer> x </answer>", "x"),
        ("no answer", None),
    ],
)
def test_a_foreign_transcript_answers_with_its_last_own_pair(text, answer):
    assert transcript_answer(text) == answer


def test_real_transcripts_answer_as_their_reference_says(realdata):
    """The reference keeps a nested opening tag inside the answer; here it is stripped."""
    seen = 0
    for path in sorted((realdata / "trajectories").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            expected = (row.get("reference") or {}).get("last_answer_outside_information")
            if "last_answer_outside_information" not in (row.get("reference") or {}):
                continue
            seen += 1
            expected = expected.rsplit("<answer>", 1)[-1].strip() if expected is not None else None
            assert transcript_answer(row["raw"]) == expected, row["id"]
    assert seen > 100
