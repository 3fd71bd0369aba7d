"""What one command leaves behind."""

import json

import pytest
import torch

from harness import TINY, rows, run
from hindsearch.cli import main


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    choices = ["loss=plain_clamp,openclaw", "judge=gold,no_answer"]
    run("train", "-m", *TINY, *choices, "trainer.max_steps=2", f"paths.output_dir={folder / 'runs'}", cwd=folder)
    return folder / "runs"


def test_a_sweep_leaves_one_folder_per_choice_named_after_it(sweep):
    assert sorted(p.name for p in sweep.iterdir() if p.is_dir()) == [
        "0-hindsearch-plain_clamp-trajectory-gold-s0",
        "1-hindsearch-plain_clamp-trajectory-no_answer-s0",
        "2-hindsearch-openclaw-trajectory-gold-s0",
        "3-hindsearch-openclaw-trajectory-no_answer-s0",
    ]


def test_the_curve_starts_at_step_0_and_ends_at_the_last(sweep):
    for folder in sweep.glob("*-s0"):
        steps = [row["step"] for row in rows(folder) if row["stage"] == "validation" and "val/em" in row]
        assert steps == [0, 2]


def test_two_jobs_in_one_process_give_what_two_processes_give(sweep, tmp_path):
    run("train", *TINY, "loss=openclaw", "trainer.max_steps=2", f"paths.output_dir={tmp_path / 'run'}", cwd=tmp_path)
    alone = torch.load(tmp_path / "run" / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    swept = sweep / "2-hindsearch-openclaw-trajectory-gold-s0" / "checkpoints" / "last.ckpt"
    for name, value in torch.load(swept, weights_only=True)["state_dict"].items():
        assert torch.equal(alone[name], value), name


def test_a_checkpoint_holds_the_student_alone_and_loads_weights_only(sweep):
    folder = next(sweep.glob("0-*"))
    checkpoint = torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)
    assert all(name.startswith("student.") for name in checkpoint["state_dict"])
    assert checkpoint["completed_steps"] == 2


def test_the_student_is_a_folder_that_transformers_loads(sweep):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = next(sweep.glob("0-*"))
    model = AutoModelForCausalLM.from_pretrained(folder / "student")
    tokenizer = AutoTokenizer.from_pretrained(folder / "student")
    saved = torch.load(folder / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    name = next(key for key in saved if key.endswith("layers.0.mlp.up_proj.weight"))
    assert torch.equal(model.get_submodule("model.layers.0.mlp.up_proj").weight, saved[name])
    assert tokenizer.decode(tokenizer("what is", add_special_tokens=False)["input_ids"]) == "what is"


def test_rollouts_are_rows_with_critiques_and_ids_of_one_length(sweep):
    folder = next(sweep.glob("0-*"))
    written = rows(folder, "rollouts.jsonl")
    assert len(written) == 2 * 2 * 4
    for row in written:
        assert len(row["completion_ids"]) == len(row["loss_mask"]) == len(row["logprobs"])
    assert any(row["critique"]["hint"].startswith("<HINT>") for row in written)


def test_metrics_come_under_the_promised_names(sweep):
    row = next(row for row in rows(next(sweep.glob("0-*"))) if row["stage"] == "train")
    wanted = {"train/reward", "loss/policy", "loss/hindsight", "rollout/groups_all_fail", "hindsight/leak_rate"}
    wanted |= {
        "hindsight/yield",
        "hindsight/gap",
        "hindsight/right_share",
        "time/generate",
        "time/update",
        "time/judge",
    }
    assert wanted <= row.keys()


def test_the_fingerprint_names_config_data_prompts_weights_and_versions(sweep):
    fingerprint = json.loads((next(sweep.glob("0-*")) / "fingerprint.json").read_text())
    assert fingerprint["config"]["loss"]["_target_"].endswith("PlainClamp")
    assert set(fingerprint) >= {"config", "data", "templates", "student", "packages", "git_commit"}


def evaluated(folder, *arguments):
    """Answers and metrics of `hindsearch evaluate`, run in this process."""
    common = ["experiment=quickstart", "data.validation_questions=12", "validation.batch=5"]
    assert main(["evaluate", *common, *arguments, f"paths.output_dir={folder}"]) == 0
    answers = [(row["decoding"], row["question_id"], row["answer"]) for row in rows(folder, "predictions.jsonl")]
    return answers, json.loads((folder / "evaluation.json").read_text())["metrics"]


def test_a_checkpoint_and_its_exported_student_answer_alike_and_always(sweep, tmp_path):
    run_folder = next(sweep.glob("0-*"))
    checkpoint = f"ckpt_path={run_folder / 'checkpoints' / 'last.ckpt'}"
    first, metrics = evaluated(tmp_path / "first", checkpoint)
    assert evaluated(tmp_path / "second", checkpoint) == (first, metrics)
    exported = ["student=folder", f"student.path={run_folder / 'student'}"]
    assert evaluated(tmp_path / "exported", *exported) == (first, metrics)
    assert len(first) == 2 * 12
    last = [row for row in rows(run_folder) if row["stage"] == "validation"][-1]
    assert metrics["val/em"] == last["val/em"]
