"""n steps equal k + resume + (n − k), bit for bit on the CPU, also after kill -9."""

import signal
import time

import pytest

from harness import TINY, rows, run, same_weights, start, without_time


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    run("train", *TINY, f"paths.output_dir={folder / 'run'}", cwd=folder)
    return folder / "run"


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_run_cut_at_any_step_and_resumed_ends_with_the_same_weights(unbroken, tmp_path, cut):
    out = f"paths.output_dir={tmp_path / 'run'}"
    run("train", *TINY, out, f"trainer.max_steps={cut}", cwd=tmp_path)
    run("train", *TINY, out, "ckpt_path=last", cwd=tmp_path)
    assert same_weights(unbroken, tmp_path / "run")
    resumed = [without_time(row) for row in rows(tmp_path / "run") if row["stage"] == "train"]
    assert resumed == [without_time(row) for row in rows(unbroken) if row["stage"] == "train"]
    assert [row["step"] for row in rows(tmp_path / "run", "rollouts.jsonl")] == [
        row["step"] for row in rows(unbroken, "rollouts.jsonl")
    ]


@pytest.mark.slow
@pytest.mark.parametrize("seen", ["fingerprint.json", "rollouts.jsonl", "checkpoints/last.ckpt"])
def test_a_run_killed_at_any_moment_and_repeated_ends_with_the_same_weights(unbroken, tmp_path, seen):
    out = f"paths.output_dir={tmp_path / 'run'}"
    process = start("train", *TINY, out, cwd=tmp_path)
    deadline = time.monotonic() + 300
    while not (tmp_path / "run" / seen).exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    run("train", *TINY, out, "ckpt_path=last", cwd=tmp_path)
    assert same_weights(unbroken, tmp_path / "run")
    assert [row["step"] for row in rows(tmp_path / "run") if row["stage"] == "train"] == [1, 2, 3, 4]
    assert [row["step"] for row in rows(tmp_path / "run") if row["stage"] == "validation"] == [0, 2, 4]


FOLLOWING = {
    "ema": ["teacher=ema"],
    "refresh": ["method=sspo", "teacher.every=2"],
    "rounds": ["method=search_e1", "rounds.policy_steps=2", "rounds.distil_steps=2", "coefficient.weight=0.3"],
    "several updates": ["method=llds"],
}
"""Methods whose state is more than the student's weights, or whose step is more than one update."""


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 2, 3])
@pytest.mark.parametrize("choices", FOLLOWING.values(), ids=FOLLOWING)
def test_teachers_and_rounds_go_on_where_they_were(choices, cut, tmp_path):
    """Under rounds, step 1 stands in a policy round, step 2 at its end, and step 3 within a round of distillation."""
    whole, parts = (f"paths.output_dir={tmp_path / name}" for name in ("whole", "parts"))
    run("train", *TINY, *choices, whole, cwd=tmp_path)
    run("train", *TINY, *choices, parts, f"trainer.max_steps={cut}", cwd=tmp_path)
    run("train", *TINY, *choices, parts, "ckpt_path=last", cwd=tmp_path)
    assert same_weights(tmp_path / "whole", tmp_path / "parts")
    resumed, unbroken = (
        [without_time(row) for row in rows(tmp_path / name) if row["stage"] == "train"] for name in ("parts", "whole")
    )
    assert resumed == unbroken


@pytest.mark.slow
def test_a_run_killed_in_a_round_of_distillation_ends_with_the_same_weights(tmp_path):
    choices = FOLLOWING["rounds"]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    run("train", *TINY, *choices, f"paths.output_dir={whole}", cwd=tmp_path)
    process = start("train", *TINY, *choices, f"paths.output_dir={killed}", cwd=tmp_path)
    deadline = time.monotonic() + 300

    def steps():
        found = rows(killed) if (killed / "metrics.jsonl").exists() else []
        return [row for row in found if row["stage"] == "train"]

    while len(steps()) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert "loss/hindsight" in steps()[2]
    assert "loss/policy" not in steps()[2]
    run("train", *TINY, *choices, f"paths.output_dir={killed}", "ckpt_path=last", cwd=tmp_path)
    assert same_weights(whole, killed)
    assert [row["step"] for row in steps()] == [1, 2, 3, 4]


@pytest.mark.slow
def test_another_setting_is_not_a_continuation(unbroken, tmp_path):
    last = unbroken / "checkpoints" / "last.ckpt"
    done = run("train", *TINY, f"ckpt_path={last}", "optim.lr=0.001", cwd=tmp_path, code=2)
    assert "optim.lr: 0.0005 -> 0.001" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_checkpoint_given_by_path_goes_on_in_the_folder_asked_for(unbroken, tmp_path):
    out = tmp_path / "run"
    last = unbroken / "checkpoints" / "last.ckpt"
    run("train", *TINY, f"ckpt_path={last}", "trainer.max_steps=5", f"paths.output_dir={out}", cwd=tmp_path)
    assert [row["step"] for row in rows(out) if row["stage"] == "train"] == [5]
    assert (out / "fingerprint.json").exists()
    assert [row["step"] for row in rows(unbroken) if row["stage"] == "train"] == [1, 2, 3, 4]
