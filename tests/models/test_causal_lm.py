"""The language model: the shift by one, padding, precision, modes, dropout and what cannot be split."""

import copy

import pytest
import torch
from torch.testing import assert_close
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from hindsearch.errors import UserError
from hindsearch.models.causal_lm import CausalLM
from hindsearch.models.frozen import FrozenLM, frozen_copy

VOCAB = 40
SHAPE = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "bos_token_id": None,
    "eos_token_id": 1,
}


def llama(**changes):
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SHAPE, pad_token_id=1, attention_dropout=0.1, **changes))


def qwen2():
    torch.manual_seed(0)
    return Qwen2ForCausalLM(Qwen2Config(**SHAPE, tie_word_embeddings=True))


def gpt2():
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=VOCAB, n_positions=64, n_embd=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=1
    )
    config.initializer_range = 0.2
    return GPT2LMHeadModel(config)


MODELS = [llama, qwen2, gpt2]
SEQUENCES = [torch.tensor([3, 1, 4, 1, 5, 9, 2, 6]), torch.tensor([7, 7]), torch.tensor([2, 3, 5, 7, 11])]
TARGETS = [torch.tensor([1, 5, 7]), torch.tensor([1]), torch.tensor([], dtype=torch.long)]


@pytest.mark.parametrize("make", MODELS)
def test_logprobs_are_the_models_own_shifted_by_one(make):
    lm = make().eval()
    with torch.no_grad():
        logits_SV = lm(input_ids=SEQUENCES[0][None]).logits[0]
    expected = torch.stack([logits_SV[target - 1].log_softmax(-1) for target in (1, 5, 7)])
    model = CausalLM(lm)
    assert_close(model.logprobs(model.hidden(SEQUENCES[:1], TARGETS[:1])), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("make", MODELS)
def test_a_row_does_not_depend_on_the_rows_beside_it(make):
    model = CausalLM(make())
    together = model.logprobs(model.hidden(SEQUENCES, TARGETS))
    alone = [model.logprobs(model.hidden([s], [t])) for s, t in zip(SEQUENCES, TARGETS, strict=True)]
    assert together.shape == (4, VOCAB)
    assert_close(together, torch.cat(alone), atol=1e-5, rtol=0)


def test_the_first_token_has_no_prediction():
    model = CausalLM(llama())
    with pytest.raises(AssertionError, match="nothing predicts"):
        model.hidden(SEQUENCES[:1], [torch.tensor([0])])


def test_a_sequence_beyond_the_context_is_refused_in_a_sentence():
    model = CausalLM(gpt2())
    with pytest.raises(UserError, match=r"65 tokens .* 64 positions"):
        model.hidden([torch.ones(65, dtype=torch.long)], [torch.tensor([1])])


@pytest.mark.parametrize("make", MODELS)
def test_training_mode_changes_nothing_as_dropout_is_off(make):
    model = CausalLM(make())
    assert model.train().training
    trained = model.hidden(SEQUENCES, TARGETS)
    assert torch.equal(trained, model.eval().hidden(SEQUENCES, TARGETS))
    assert getattr(model.lm.config, "attention_dropout", 0.0) == 0.0


class Noisy(LlamaForCausalLM):
    """Draws in training mode, by no dropout that anyone could find."""

    def __init__(self, config):
        super().__init__(config)
        self.model.norm.register_forward_hook(lambda module, _, out: out + torch.randn_like(out) * module.training)


def test_a_model_that_a_mode_changes_is_refused():
    with pytest.raises(UserError, match="training mode"):
        CausalLM(Noisy(LlamaConfig(**SHAPE)))


def test_soft_capped_logits_are_refused_by_the_name_of_the_class():
    shape = {**SHAPE, "head_dim": 8, "initializer_range": 2.0}
    with pytest.raises(UserError, match="Gemma2ForCausalLM does more to its logits"):
        CausalLM(Gemma2ForCausalLM(Gemma2Config(**shape, final_logit_softcapping=1.0)))


def test_an_unknown_precision_is_refused():
    with pytest.raises(UserError, match="precision=bf16-true"):
        CausalLM(llama(), "bf16-true")


def test_bfloat16_is_arithmetic_only_and_logprobs_stay_wide():
    model = CausalLM(llama(), "bf16-mixed")
    plain = CausalLM(llama())
    mixed = model.logprobs(model.hidden(SEQUENCES, TARGETS))
    assert mixed.dtype is torch.float32
    assert model.lm.dtype is torch.float32
    assert_close(mixed.exp().sum(-1), torch.ones(4), atol=1e-6, rtol=0)  # bfloat16 sums are off by 1e-3
    difference = (mixed - plain.logprobs(plain.hidden(SEQUENCES, TARGETS))).abs().max()
    assert 1e-4 < difference < 0.3


def test_an_outer_autocast_changes_nothing():
    model = CausalLM(llama(), "bf16-mixed")
    inside = model.logprobs(model.hidden(SEQUENCES, TARGETS))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(model.logprobs(model.hidden(SEQUENCES, TARGETS)), inside)


def test_float64_stays_float64():
    model = CausalLM(llama().double(), "64-true")
    assert model.hidden(SEQUENCES, TARGETS).dtype is torch.float64
    assert model.logprobs(model.hidden(SEQUENCES, TARGETS)).dtype is torch.float64


def test_sampling_restores_each_modules_mode_also_after_an_error():
    model = CausalLM(llama()).train()
    model.lm.model.norm.eval()
    modes = {name: module.training for name, module in model.named_modules()}

    def fail():
        with model.sampling():
            assert not any(module.training for module in model.modules())
            assert not torch.is_grad_enabled()
            assert not torch.is_inference_mode_enabled()
            raise RuntimeError("the retriever is down")

    with pytest.raises(RuntimeError, match="retriever"):
        fail()
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert torch.is_grad_enabled()


def test_what_sampling_made_can_be_read_in_a_backward_pass():
    model = CausalLM(llama()).train()
    with model.sampling():
        kept = model.hidden(SEQUENCES, TARGETS)
    model.logprobs(kept).sum().backward()
    assert model.lm.lm_head.weight.grad is not None


def test_a_window_of_attention_bounds_the_positions():
    shape = {**SHAPE, "max_position_embeddings": 64}
    assert CausalLM(MistralForCausalLM(MistralConfig(**shape, sliding_window=16))).max_positions == 16
    assert CausalLM(MistralForCausalLM(MistralConfig(**shape, sliding_window=None))).max_positions == 64
    assert CausalLM(qwen2()).max_positions == 64


def test_a_frozen_copy_has_weights_of_its_own_and_never_trains():
    student = CausalLM(llama()).train()
    teacher = frozen_copy(student)
    before = teacher.logprobs(teacher.hidden(SEQUENCES, TARGETS))
    assert not before.requires_grad
    with torch.no_grad():
        for weight in student.parameters():
            weight.add_(1.0)
    assert torch.equal(teacher.logprobs(teacher.hidden(SEQUENCES, TARGETS)), before)
    assert isinstance(teacher, FrozenLM)
    assert not teacher.train().training
    assert not any(module.training for module in teacher.modules())
    assert student.training


def test_trained_weights_come_back_and_others_are_refused():
    source, target = CausalLM(llama()), CausalLM(llama())
    with torch.no_grad():
        for weight in source.parameters():
            weight.add_(0.5)
    state = {f"student.{name}": value for name, value in copy.deepcopy(source.state_dict()).items()}
    target.load_trained(state)
    assert all(torch.equal(a, b) for a, b in zip(source.parameters(), target.parameters(), strict=True))
    with pytest.raises(UserError, match="another model"):
        CausalLM(qwen2()).load_trained(state)
    state.popitem()
    with pytest.raises(UserError, match="another model"):
        target.load_trained(state)
    with pytest.raises(UserError, match="another model"):
        target.load_trained({})


@pytest.mark.parametrize("ends, expected", [(None, ()), (3, (3,)), ([3, 5], (3, 5))])
def test_end_ids_are_those_of_the_generation_config(ends, expected):
    lm = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=9,
            hidden_size=8,
            intermediate_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            num_key_value_heads=1,
        )
    )
    lm.generation_config.eos_token_id = ends
    assert CausalLM(lm).end_ids == expected
