import pytest
import torch

from hindsearch.grammar import WORDS
from hindsearch.models.micro import MicroBase, word_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return word_tokenizer(WORDS)


def test_one_id_per_word_and_back(tokenizer):
    text = "<think> country </think> <answer> Vovib </answer> what is Vovib 's director ?"
    ids = tokenizer.encode(text)
    assert len(ids) == len(text.split())
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_white_space_is_all_the_same(tokenizer):
    assert tokenizer.encode(" <information> invalid </information> ") == tokenizer.encode(
        "<information>  invalid </information>"
    )


def test_tags_are_ordinary_words(tokenizer):
    assert set(tokenizer.all_special_tokens) == {"<pad>", "<eos>", "<unk>"}
    assert tokenizer.encode("<search>") == [tokenizer.convert_tokens_to_ids("<search>")]
    assert tokenizer.chat_template is None


def test_a_word_never_seen_is_unknown(tokenizer):
    assert tokenizer.encode("zebra Vovib")[0] == tokenizer.unk_token_id


def test_it_survives_a_folder(tokenizer, tmp_path):
    from transformers import AutoTokenizer

    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    text = "<HINT> first search Vovib , then answer </HINT> what is Vovib 's star ?"
    assert again.encode(text) == tokenizer.encode(text)
    assert again.decode(again.encode(text)) == text
    assert (again.pad_token_id, again.eos_token_id) == (tokenizer.pad_token_id, tokenizer.eos_token_id)


def test_the_student_is_small():
    model = MicroBase(WORDS).model(0)
    weights = sum(p.numel() for p in model.parameters())
    # embeddings, tied with the head; 3 layers of attention, MLP and two norms; a last norm
    assert weights == 96 * (len(WORDS) + 3) + 3 * (4 * 96**2 + 3 * 96 * 264 + 2 * 96) + 96
    assert weights < 400_000
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_the_seed_alone_decides_the_weights_and_nothing_else_is_touched():
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = MicroBase(WORDS).model(5)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(2)
    again, other = MicroBase(WORDS).model(5), MicroBase(WORDS).model(6)
    weight = "model.layers.0.mlp.up_proj.weight"
    assert torch.equal(first.get_parameter(weight), again.get_parameter(weight))
    assert not torch.equal(first.get_parameter(weight), other.get_parameter(weight))
    assert first.get_parameter(weight).std().item() == pytest.approx(0.06, rel=0.05)


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="hidden must be a multiple of heads, and 96 is not one of 5"):
        MicroBase(WORDS, heads=5)


@pytest.mark.parametrize("words", [["a", "a"], ["a b"], ["<pad>"]])
def test_bad_vocabularies_are_refused(words):
    with pytest.raises(ValueError, match="words must be distinct"):
        word_tokenizer(words)
