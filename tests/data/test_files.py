"""Question and passage files in the field's shapes, and what is wrong with them."""

import json

import pytest

from hindsearch.data.corpus import load_passages
from hindsearch.data.files import Files
from hindsearch.data.questions import load_questions
from hindsearch.errors import UserError
from hindsearch.types import Passage


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_both_corpus_shapes_are_one_passage(tmp_path):
    path = write(
        tmp_path / "c.jsonl",
        {"id": "1", "contents": '"A title"\nsome text\nmore'},
        {"id": 2, "title": "A title", "text": "some text\nmore"},
        {"id": "3", "title": None, "text": "bare"},
    )
    first, second, third = load_passages(path)
    assert (first.title, first.text) == (second.title, second.text) == ("A title", "some text\nmore")
    assert second.id == "2"
    assert third == Passage("3", "", "bare")


def test_tsv_a_byte_order_mark_and_a_json_list(tmp_path):
    (tmp_path / "c.tsv").write_text("id\ttitle\ttext\n7\tT\twords\n", encoding="utf-8")
    assert load_passages(tmp_path / "c.tsv") == [Passage("7", "T", "words")]
    (tmp_path / "c.json").write_bytes(b'\xef\xbb\xbf[{"id": "1", "title": "T", "text": "x"}]')
    assert load_passages(tmp_path / "c.json") == [Passage("1", "T", "x")]


@pytest.mark.parametrize(
    "rows, said",
    [
        ([{"id": "1", "body": "x"}], "line 1 has neither contents nor title and text; it has id, body"),
        ([{"id": "1", "text": 5}], "line 1: text is int, not text"),
        ([{"id": "1", "text": "a"}, {"id": "1", "text": "b"}], "line 2 has the id '1' of"),
    ],
)
def test_corpora_that_cannot_be_read_name_the_line(tmp_path, rows, said):
    with pytest.raises(UserError, match="corpus: ") as error:
        load_passages(write(tmp_path / "c.jsonl", *rows))
    assert said in str(error.value)


@pytest.mark.parametrize(
    "rows, said",
    [
        ([{"id": "1", "question": "q"}], "line 1 has no golden_answers"),
        ([{"id": "1", "question": "q", "golden_answers": []}], "golden_answers is []"),
        ([{"id": "1", "question": " ", "golden_answers": ["x"]}], "line 1: the question is empty"),
        ([{"id": "1", "golden_answers": ["x"]}], "line 1 has no question or query"),
        ([{"id": "1", "question": 3, "golden_answers": ["x"]}], "question is int, not text"),
        ([{"id": "1", "question": "q", "golden_answers": "x"}] * 2, "line 2 has the id '1' of"),
    ],
)
def test_questions_that_cannot_be_asked_name_the_line(tmp_path, rows, said):
    with pytest.raises(UserError, match="questions: ") as error:
        load_questions(write(tmp_path / "q.jsonl", *rows))
    assert said in str(error.value)


def test_a_missing_file_names_what_is_beside_it(tmp_path):
    write(tmp_path / "train.jsonl", {"x": 1})
    with pytest.raises(UserError, match=r"there is no file .*trian\.jsonl; .* holds train\.jsonl"):
        load_questions(tmp_path / "trian.jsonl")


def test_real_sets_load(realdata):
    for name in ("hipporag_hotpot", "hipporag_musique", "lostmiddle_nq", "ketrag_musique", "r1searcher_hotpot"):
        files = Files(*[str(realdata / name / f"{kind}.jsonl") for kind in ("questions", "questions", "passages")])
        assert len(files.train()) >= 100
        assert files.train()[0].source == name
        ids = {passage.id for passage in files.passages()}
        assert all(set(question.evidence) <= ids for question in files.train())
        assert set(files.fingerprint()) == {"train", "validation", "corpus"}


def test_search_r1_parquet_loads_as_it_is(realdata):
    path = next((realdata / "searchr1_nq_parquet").glob("*.parquet"))
    questions = load_questions(path)
    assert questions[0].text
    assert questions[0].golds
    assert len({question.id for question in questions}) == len(questions)


def test_files_name_their_key_and_refuse_an_empty_validation(tmp_path):
    path = write(tmp_path / "c.jsonl", {"id": "1", "text": "a"})
    files = Files(str(path), str(tmp_path / "no.jsonl"), str(path), limit_validation=1)
    with pytest.raises(UserError, match=r"^data\.train_path: .* line 1 has no golden_answers|no question"):
        files.train()
    with pytest.raises(UserError, match=r"^data\.validation_path: there is no file"):
        files.validation()
    with pytest.raises(UserError, match=r"^data\.validation_path: .*cannot be read \(No such file"):
        files.fingerprint()
    with pytest.raises(ValueError, match="limit_validation=0 leaves no question"):
        Files(str(path), str(path), str(path), limit_validation=0)


def test_the_fingerprint_follows_the_bytes(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"abc")
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # of FIPS 180-2, appendix B.1
    assert Files(str(path), str(path), str(path)).fingerprint() == dict.fromkeys(
        ("train", "validation", "corpus"), digest
    )
