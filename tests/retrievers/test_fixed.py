import pytest
from omegaconf import OmegaConf

from hindsearch.errors import UserError
from hindsearch.making import conf_dir, make
from hindsearch.retrievers.fixed import Fixed
from hindsearch.types import Passage

A, B = Passage("a", "A", "first"), Passage("b", "B", "second")


def test_row_i_answers_query_i_with_at_most_k():
    fixed = Fixed({"q": [A, B]}, otherwise=[B])
    assert fixed(["q", "else", "q"], 5) == [(A, B), (B,), (A, B)]
    assert fixed(["q"], 1) == [(A,)]
    assert fixed(["q"], 0) == [()]
    assert fixed([], 3) == []


def test_the_option_finds_nothing_until_it_is_given_passages():
    option = OmegaConf.load(conf_dir() / "retriever" / "fixed.yaml")
    assert make("retriever", option)(["who?"], 3) == [()]
    passage = {"_target_": "hindsearch.types.Passage", "id": "a", "title": "A", "text": "first"}
    given = OmegaConf.merge(option, {"results": {"who?": [passage]}, "otherwise": []})
    assert make("retriever", given)(["who?", "else"], 3) == [(A,), ()]


def test_a_negative_k_is_refused():
    with pytest.raises(UserError, match="top_k=-1"):
        Fixed({})(["q"], -1)
