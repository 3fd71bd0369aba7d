"""An adapter: it starts as nothing, comes off for the teacher, shares the weights, and merges for export."""

import copy
import importlib.util

import pytest
import torch
from torch.testing import assert_close
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from hindsearch.engines.in_process import InProcess
from hindsearch.errors import UserError
from hindsearch.models.adapters import Lora, NoAdapter
from hindsearch.models.causal_lm import CausalLM
from hindsearch.models.export import export_folder
from hindsearch.models.frozen import adapter_off
from hindsearch.models.micro import word_tokenizer
from hindsearch.types import Sampling

needs_peft = pytest.mark.skipif(importlib.util.find_spec("peft") is None, reason="the extra lora is not installed")
SEQUENCES = [torch.tensor([3, 1, 4, 1, 5]), torch.tensor([9, 2])]
TARGETS = [torch.tensor([1, 2, 4]), torch.tensor([1])]


def base(precision="32-true", tied=False):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=20,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        initializer_range=0.2,
        bos_token_id=None,
        eos_token_id=1,
        tie_word_embeddings=tied,
    )
    return CausalLM(LlamaForCausalLM(config), precision)


def logprobs(model):
    return model.logprobs(model.hidden(SEQUENCES, TARGETS))


def trained(student):
    """The student after an update that changes all it can."""
    for weight in student.parameters():
        if weight.requires_grad:
            torch.nn.init.normal_(weight, std=0.1, generator=torch.Generator().manual_seed(1))
    return student


class Never:
    candidates = frozenset()

    def __call__(self, ids):
        return False


def greedy(model):
    return InProcess(model).start([[3, 4]], 1, [Sampling(0.0, 0)], Never()).extend([0], [()], [12])[0]


def test_no_adapter_is_the_student_itself():
    student = base()
    assert NoAdapter()(student) is student
    assert not student.has_adapter


def test_a_rank_of_zero_is_refused():
    with pytest.raises(ValueError, match=r"adapter\.rank=0"):
        Lora(rank=0, alpha=1)


def test_without_peft_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"hindsearch\[lora\]"):
        Lora(rank=2, alpha=4)(base())


@needs_peft
class TestLora:
    def test_it_starts_as_the_student_it_was_given(self):
        assert_close(logprobs(Lora(rank=2, alpha=4)(base())), logprobs(base()), atol=1e-6, rtol=0)

    def test_only_the_adapter_is_trained(self):
        student = Lora(rank=2, alpha=4)(base())
        logprobs(student).sum().backward()
        names = {name for name, weight in student.named_parameters() if weight.requires_grad}
        assert names
        assert all("lora_" in name for name in names)
        assert all((weight.grad is not None) == weight.requires_grad for weight in student.parameters())

    def test_its_seed_alone_decides_its_first_weights(self):
        def first(seed, noise):
            torch.manual_seed(noise)
            student = Lora(rank=2, alpha=4, seed=seed)(base())
            return torch.cat([w.flatten() for n, w in student.named_parameters() if "lora_A" in n])

        assert torch.equal(first(0, noise=1), first(0, noise=2))
        assert not torch.equal(first(0, noise=1), first(1, noise=1))

    def test_an_unknown_module_is_refused_by_its_name(self):
        with pytest.raises(UserError, match="target_modules=nonesuch"):
            Lora(rank=2, alpha=4, target_modules="nonesuch")(base())

    def test_switched_off_the_trained_student_is_the_initial_one(self):
        before = logprobs(base()).detach()
        student = trained(Lora(rank=2, alpha=4)(base()))
        teacher = adapter_off(student)
        assert float((logprobs(student).detach() - before).abs().max()) > 0.1
        assert_close(logprobs(teacher), before, atol=1e-6, rtol=0)
        assert not logprobs(teacher).requires_grad

    def test_an_engine_over_the_view_samples_from_the_initial_weights(self):
        student = trained(Lora(rank=2, alpha=4)(base()))
        adapted = greedy(student)
        assert greedy(adapter_off(student)).ids == greedy(base()).ids != adapted.ids
        assert greedy(adapter_off(student)).logprobs == pytest.approx(greedy(base()).logprobs, abs=1e-5)
        assert greedy(student) == adapted  # it is on again

    def test_the_view_owns_nothing(self):
        student = Lora(rank=2, alpha=4)(base())
        names = set(student.state_dict())
        holder = torch.nn.Module()
        holder.student, holder.teacher = student, adapter_off(student)
        assert {name.removeprefix("student.") for name in holder.state_dict()} == names

    def test_a_teacher_pass_between_forward_and_backward_costs_the_student_no_gradient(self):
        def gradients(look):
            student = trained(Lora(rank=2, alpha=4)(base())).train()
            loss = logprobs(student).square().sum()
            if look:
                logprobs(adapter_off(student))
            loss.backward()
            assert student.training
            return [weight.grad for weight in student.parameters() if weight.requires_grad]

        for with_look, without in zip(gradients(True), gradients(False), strict=True):
            assert torch.equal(with_look, without)

    def test_an_error_while_it_is_off_leaves_it_on(self):
        student = trained(Lora(rank=2, alpha=4)(base()))
        before = logprobs(student).detach()
        with pytest.raises(RuntimeError, match="down"), adapter_off(student).sampling():
            raise RuntimeError("down")
        assert torch.equal(logprobs(student), before)
        assert any(weight.requires_grad for weight in student.parameters())

    def test_the_checkpoint_of_an_adapter_is_enough_to_go_on(self):
        student = trained(Lora(rank=2, alpha=4)(base()))
        adapter = {f"student.{n}": w.detach().clone() for n, w in student.named_parameters() if w.requires_grad}
        again = Lora(rank=2, alpha=4)(base())
        again.load_trained(adapter)
        assert torch.equal(logprobs(again), logprobs(student))

    @pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
    def test_the_export_is_a_plain_model_that_computes_the_same(self, tmp_path, precision):
        student = trained(Lora(rank=2, alpha=4)(base(precision)))
        before = logprobs(student).detach()
        export_folder(student, word_tokenizer(["a"]), tmp_path / "student")
        lm = AutoModelForCausalLM.from_pretrained(tmp_path / "student")
        assert type(lm) is LlamaForCausalLM
        assert lm.dtype is torch.float32
        difference = (logprobs(CausalLM(lm, precision)).detach() - before).abs()
        assert float(difference.max()) < (1e-5 if precision == "32-true" else 0.2)
        assert torch.equal(logprobs(student), before)  # exporting changes nothing here
        assert any("lora_" in name for name in student.state_dict())


@pytest.mark.parametrize("tied", [True, False])
def test_narrow_frozen_weights_compute_the_same_numbers(tied):
    model = base("bf16-mixed", tied=tied).requires_grad_(False)
    narrow = copy.deepcopy(model)
    narrow.narrow_frozen()
    assert narrow.lm.model.layers[0].mlp.up_proj.weight.dtype is torch.bfloat16
    assert narrow.lm.model.embed_tokens.weight.dtype is torch.float32
    assert narrow.lm.lm_head.weight.dtype is (torch.float32 if tied else torch.bfloat16)
    assert torch.equal(logprobs(narrow), logprobs(model))
    assert greedy(narrow) == greedy(model)


def test_trained_weights_are_never_narrowed():
    student = base("bf16-mixed")
    student.narrow_frozen()
    assert {weight.dtype for weight in student.parameters()} == {torch.float32}
