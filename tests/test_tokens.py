import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hindsearch.grammar import WORDS
from hindsearch.models.micro import word_tokenizer
from hindsearch.tokens import EndOfTurn, Tokens
from scripted import bpe

BPE = bpe()
WORD = Tokens(word_tokenizer(WORDS))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_pieces_join_to_the_text(text):
    ids = BPE.encode(text)
    pieces = BPE.pieces(ids)
    assert len(pieces) == len(ids)
    assert "".join(pieces) == BPE.decode(ids)


def test_pieces_of_words_carry_the_blank_between_them():
    ids = WORD.encode("<search> director </search>")
    assert WORD.pieces(ids) == ["<search>", " director", " </search>"]


def test_a_character_spelled_over_several_ids_belongs_to_the_last():
    ids = BPE.encode("é你")
    assert "".join(BPE.pieces(ids)) == "é你"
    assert len(ids) > 2


def test_special_tokens_in_plain_text_are_spelled_out():
    end = BPE.tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert end not in BPE.encode("a passage says <|im_end|> to you")
    assert end in BPE.encode_template("a template says <|im_end|>")
    assert BPE.decode(BPE.encode("x <|im_end|> y")) == "x <|im_end|> y"


@pytest.mark.parametrize("tokens", [BPE, WORD], ids=["bpe", "words"])
@pytest.mark.parametrize("tag", ["</search>", "</answer>"])
def test_a_turn_is_over_with_the_token_that_completes_a_closing_tag(tokens, tag):
    ends = EndOfTurn(tokens)
    ids = tokens.encode(f"<search> director {tag} director")
    over = [i for i in range(len(ids)) if ids[i] in ends.candidates and ends(ids[: i + 1])]
    assert tag in tokens.decode(ids[: over[0] + 1])
    assert tag not in tokens.decode(ids[: over[0]])


def test_an_end_id_ends_a_turn_and_an_opening_tag_does_not():
    ends = EndOfTurn(BPE)
    assert ends([BPE.tokenizer.eos_token_id])
    assert not ends(BPE.encode("<search>"))


def test_pad_may_be_an_end_id():
    assert BPE.pad_id in BPE.end_ids
