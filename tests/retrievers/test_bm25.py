import pytest

from hindsearch.data.corpus import load_passages
from hindsearch.data.questions import load_questions
from hindsearch.errors import UserError
from hindsearch.retrievers.bm25 import BM25
from hindsearch.retrievers.fixed import Fixed
from hindsearch.types import Passage

ANIMALS = [
    Passage("0", "Cat", "a cat purrs and sleeps"),
    Passage("1", "Dog", "a dog barks at the cat"),
    Passage("2", "Owl", "the owl hunts by night"),
    Passage("3", "Night", "night is dark"),
]


def ids(passages):
    return [passage.id for passage in passages]


def test_row_i_answers_query_i_also_for_repeats():
    found = BM25(ANIMALS)(["owl", "cat", "owl"], 1)
    assert [ids(row) for row in found] == [["2"], ["0"], ["2"]]


def test_a_title_indexed_twice_weighs_more():
    assert ids(BM25(ANIMALS, title_weight=5)(["night"], 1)[0]) == ["3"]


def test_fewer_passages_than_k_and_none_asked_for():
    retriever = BM25(ANIMALS)
    assert sorted(ids(retriever(["cat"], 9)[0])) == ["0", "1", "2", "3"]
    assert retriever(["cat"], 0) == [()]
    assert retriever(["cat"], 1) != retriever(["cat"], 2)


def test_a_word_of_every_passage_still_finds_k():
    everywhere = [Passage(str(i), f"t{i}", "New York " + "x " * i) for i in range(20)]
    assert len(BM25(everywhere)(["New York"], 3)[0]) == 3


@pytest.mark.parametrize("query", ["", "zzz unknown", "?!"])
def test_a_query_of_no_known_word_finds_the_first_passages(query):
    assert ids(BM25(ANIMALS)([query], 2)[0]) == ["0", "1"]


def test_ties_go_to_the_earlier_passage():
    same = [Passage(str(i), "", "one and the same") for i in range(6)]
    assert ids(BM25(same)(["same"], 4)[0]) == ["0", "1", "2", "3"]


def test_a_query_of_ten_thousand_words_and_another_script():
    passages = [*ANIMALS, Passage("4", "東京", "東京 は 日本 の 首都"), Passage("5", "Москва", "столица России")]
    retriever = BM25(passages)
    assert ids(retriever(["owl " * 10_000], 1)[0]) == ["2"]
    assert ids(retriever(["首都 東京"], 1)[0]) == ["4"]
    assert ids(retriever(["столица"], 1)[0]) == ["5"]


def test_a_stemmer_joins_forms():
    assert ids(BM25(ANIMALS, stemmer="english")(["hunting"], 1)[0]) == ["2"]


def test_an_empty_corpus_and_a_negative_k_are_refused():
    with pytest.raises(UserError, match="the corpus has no passages"):
        BM25([])
    with pytest.raises(UserError, match="no passage of the corpus holds a word"):
        BM25([Passage("0", "", "?!")])
    with pytest.raises(UserError, match="top_k=-1"):
        BM25(ANIMALS)(["x"], -1)


@pytest.mark.parametrize("name, recall", [("hipporag_hotpot", 0.67), ("lostmiddle_nq", 0.91)])
def test_recall_on_real_sets_is_that_of_bm25s(realdata, name, recall):
    questions = [q for q in load_questions(realdata / name / "questions.jsonl") if q.evidence]
    found = BM25(load_passages(realdata / name / "passages.jsonl"))([q.text for q in questions], 3)
    shares = [len(set(ids(f)) & set(q.evidence)) / len(q.evidence) for q, f in zip(questions, found, strict=True)]
    assert sum(shares) / len(shares) == pytest.approx(recall, abs=0.005)


def test_canned_passages():
    fixed = Fixed({"q": ANIMALS[:2]}, otherwise=ANIMALS[3:])
    assert [ids(row) for row in fixed(["q", "else"], 1)] == [["0"], ["3"]]
