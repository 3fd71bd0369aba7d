"""Which choices go together: what does not is refused in one sentence, what would change nothing is named."""

import io

import pytest
from rich.console import Console

from composing import composed
from hindsearch.build.run import Builder
from hindsearch.cli import main
from hindsearch.errors import UserError
from hindsearch.warmstart import SHIPPED

MICRO = "experiment=quickstart"


def built(tmp_path, *overrides):
    console = Console(file=io.StringIO(), width=1000)
    return Builder(composed(MICRO, *overrides), tmp_path, console)


def both_sides(builder):
    return builder.datamodule(), builder.module()


@pytest.mark.parametrize(
    "overrides, sentence",
    [
        (["judge=none"], "asks a judge and judge=none; choose judge=gold, or critique=none"),
        (["critique=none"], "leaves the hindsight loss no token to act on; choose critique=trajectory"),
        (["anchor=llds"], "use updates=several with it, or anchor=none"),
        (["method=grpo", "loop=rounds"], "loss=none leaves them empty; use loop=joint"),
        (["critique=turn_labels"], "only credit=turn_labels reads it"),
        (["judge=turn_labels"], "labels turns and writes no hint; use critique=turn_labels"),
        (["credit=turn_labels"], "use critique=turn_labels and judge=turn_labels with it"),
        (["method=critic_search", "judge=gold"], "use critique=turn_labels and judge=turn_labels with it"),
        (["method=critic_search", "loss=plain_clamp"], "no token to act on; use loss=none"),
        (["teacher=larger"], "teacher.model.path=…"),
    ],
)
def test_choices_that_do_not_fit_are_refused_in_one_sentence(overrides, sentence, tmp_path):
    builder = built(tmp_path, *overrides)
    with pytest.raises(UserError) as refused:
        both_sides(builder)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "overrides, idle",
    [
        (["method=hindsearch"], {"rounds"}),
        (["method=search_e1"], {"judge", "judge_backend"}),
        (["method=sd_search"], {"judge", "judge_backend", "rounds"}),
        (["method=sspo"], {"judge", "judge_backend", "coefficient", "reduction", "rounds"}),
        (["method=critic_search"], {"teacher", "span", "coefficient", "reduction", "rounds"}),
        (["method=hindsearch", "loss=self_nll"], {"teacher", "rounds"}),
        (
            ["method=grpo"],
            {
                *("judge", "judge_backend", "critique", "teacher", "select", "span", "coefficient", "reduction"),
                "rounds",
            },
        ),
    ],
)
def test_what_a_method_does_not_use_is_known(overrides, idle, tmp_path):
    assert set(built(tmp_path, *overrides).method.idle()) == idle


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["method=grpo", "judge=gold"], "judge=gold would change nothing"),
        (["method=grpo", "coefficient.weight=0.3"], "coefficient.weight=0.3 would change nothing"),
        (["critique=constant", "judge=no_answer"], "judge=no_answer would change nothing: this critique asks no judge"),
        (["rounds.distil_steps=3"], "rounds.distil_steps=3 would change nothing: rounds are those of loop=rounds"),
    ],
)
def test_a_choice_in_vain_is_refused(arguments, sentence, tmp_path, capfd):
    assert main(["train", MICRO, *arguments, f"paths.output_dir={tmp_path / 'run'}"]) == 2
    error = capfd.readouterr().err
    assert sentence in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_preset_may_choose_in_vain_and_none_is_no_wish(tmp_path):
    assert built(tmp_path, "method=grpo", "judge=none").method.critique is not None


@pytest.mark.slow
def test_in_a_sweep_a_choice_in_vain_is_a_note(tmp_path, capfd):
    arguments = ["method=grpo,hindsearch", "judge=no_answer", "trainer.max_steps=1", "validation.batch=10"]
    assert main(["train", "-m", MICRO, *arguments, f"paths.sweep_dir={tmp_path}", "data.validation_questions=4"]) == 0
    said = capfd.readouterr().out
    assert said.count("judge=no_answer would change nothing") == 1


# ---------------------------------------------------------------------- teachers


def test_a_larger_teacher_comes_with_the_papers_warning(tmp_path):
    builder = built(tmp_path, "teacher=larger", f"teacher.model.path={SHIPPED / 'micro_h-s1'}")
    assert builder.method.teacher.model is not builder.world.student
    assert "collapsed (arXiv 2608.01597)" in builder.console.file.getvalue()


def test_a_teacher_of_another_tokenizer_is_refused(tmp_path):
    from transformers import LlamaConfig, LlamaForCausalLM

    from hindsearch.models.micro import word_tokenizer

    tokenizer = word_tokenizer(["other", "words"])
    tokenizer.save_pretrained(tmp_path / "other")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes)).save_pretrained(tmp_path / "other")
    builder = built(tmp_path, "teacher=larger", f"teacher.model.path={tmp_path / 'other'}")
    with pytest.raises(UserError, match=r"the teacher's tokenizer is another than the student's \(\d+ entries differ"):
        builder.method.teacher  # noqa: B018


def test_equal_candidates_are_noted(tmp_path):
    choices = ["critique=trajectory_longest", "judge_backend=self"]
    builder = built(tmp_path, *choices)
    builder.method.critique  # noqa: B018
    assert "the 3 candidates of a critique are equal at judge_backend.temperature=0" in builder.console.file.getvalue()
    warm = built(tmp_path, *choices, "judge_backend.temperature=1.0")
    warm.method.critique  # noqa: B018
    assert warm.console.file.getvalue() == ""


@pytest.mark.parametrize("method", ["grpo", "sd_search", "critic_search"])
def test_what_a_method_does_not_need_is_not_loaded(method, tmp_path):
    builder = built(tmp_path, f"method={method}")
    module = builder.module()
    assert not builder.world.has_reference
    assert module.teacher is module.student
