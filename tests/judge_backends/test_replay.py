"""A recorded judge can be replayed; nothing is guessed for what was not recorded."""

import json

import pytest

from hindsearch.errors import JudgeError, UserError
from hindsearch.interfaces import JudgeRequest
from hindsearch.judge_backends.recording import Recorded
from hindsearch.judge_backends.replay import ReplayBackend
from hindsearch.transcripts import request_hash


def request(name):
    return JudgeRequest(name, name, (), None, ("gold",))


def scripted(**replies):
    return lambda requests: [replies[r.prompt] for r in requests]


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_what_was_recorded_is_replayed(tmp_path):
    path = tmp_path / "run" / "critiques.jsonl"
    replies = {"a": "réponse\nwith “marks”", "b": JudgeError("down"), "c": ""}
    recorded = Recorded(scripted(**replies), path)([request("a"), request("b"), request("c")])
    assert recorded == list(replies.values())
    replayed = ReplayBackend(path)([request("c"), request("a"), request("b")])
    assert replayed[:2] == ["", replies["a"]]
    assert isinstance(replayed[2], JudgeError)
    assert "down" in str(replayed[2])


def test_a_request_that_was_not_recorded_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "critiques.jsonl"
    Recorded(scripted(a="reply"), path)([request("a")])
    (reply,) = ReplayBackend(path)([request("other")])
    assert isinstance(reply, JudgeError)
    assert request_hash(request("other")) in str(reply)


def test_one_line_per_request_also_over_calls_and_runs(tmp_path):
    path = tmp_path / "critiques.jsonl"
    for _ in range(2):
        recorded = Recorded(scripted(a="1", b="2"), path)
        recorded([request("a"), request("a")])
        recorded([request("b"), request("a")])
    assert [row["reply"] for row in lines(path)] == ["1", "2"]


def test_a_reply_replaces_an_error_and_an_error_no_reply(tmp_path):
    path = tmp_path / "critiques.jsonl"
    for reply in (JudgeError("down"), "up", JudgeError("down again")):
        Recorded(scripted(a=reply), path)([request("a")])
    assert ReplayBackend(path)([request("a")]) == ["up"]
    assert [row.get("reply") for row in lines(path)] == ["up"]


def test_another_reply_counts_from_then_on(tmp_path):
    path = tmp_path / "critiques.jsonl"
    for reply in ("old", "new"):
        Recorded(scripted(a=reply), path)([request("a")])
    assert ReplayBackend(path)([request("a")]) == ["new"]


def test_a_line_cut_by_a_kill_spoils_nothing(tmp_path):
    path = tmp_path / "critiques.jsonl"
    Recorded(scripted(a="1", b="2"), path)([request("a"), request("b")])
    path.write_bytes(path.read_bytes()[:-9])
    Recorded(scripted(c="3"), path)([request("c")])
    replies = ReplayBackend(path)([request("a"), request("b"), request("c")])
    assert (replies[0], replies[2]) == ("1", "3")
    assert isinstance(replies[1], JudgeError)
    assert len(lines(path)) == 2


def test_a_missing_or_foreign_file_is_said_so(tmp_path):
    with pytest.raises(UserError, match="is not a file"):
        ReplayBackend(tmp_path / "nowhere.jsonl")
    other = tmp_path / "other.jsonl"
    other.write_text('{"hash": "x", "reply": "y"}\n{"step": 1}\n', encoding="utf-8")
    with pytest.raises(UserError, match="row 2"):
        ReplayBackend(other)([request("a")])
