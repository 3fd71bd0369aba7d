from hindsearch import jsonl


def test_a_line_cut_by_a_kill_is_dropped_and_the_rest_kept(tmp_path):
    path = tmp_path / "rows.jsonl"
    jsonl.append(path, [{"step": 1, "x": "é"}, {"step": 2, "x": float("nan")}])
    with path.open("a") as file:
        file.write('{"step": 3, "x"')
    assert list(jsonl.read(path)) == [{"step": 1, "x": "é"}, {"step": 2, "x": None}]
    jsonl.keep(path, lambda row: row["step"] <= 1)
    assert path.read_text(encoding="utf-8") == '{"step": 1, "x": "é"}\n'


def test_reading_what_is_not_there_gives_no_rows(tmp_path):
    assert list(jsonl.read(tmp_path / "none.jsonl")) == []
    jsonl.keep(tmp_path / "none.jsonl", lambda row: True)
    assert not (tmp_path / "none.jsonl").exists()
