"""What a user mistypes gets one sentence with exit code 2, and leaves nothing behind."""

import pytest

from hindsearch.cli import main
from hindsearch.overrides import arguments_for

MISTAKES = {
    "los=openclaw": "did you mean loss?",
    "loss=plane_clamp": "did you mean plain_clamp?",
    "loss.clipp=3": "there is no option loss.clipp",
    "optim.lrr=1": "did you mean optim.lr?",
    "lr=1": "did you mean optim.lr?",
    "+nonsense=1": "there is no option nonsense",
    "+optim.lrate=1": "did you mean optim.lr?",
    "+experiment=quickstart": "write it without the +",
    "experiment=quick": "did you mean quickstart?",
    "rollout.group_size=1": "at least 2: one rollout alone has nothing to be compared with",
    "rollout.questions=many": "rollout.questions=many must be a whole number",
    "optim.lr=fast": "optim.lr=fast must be a number",
    "coefficient.weight=-1": "use 0 or more",
    "loss.low=3": "low=3 is not below high=1.0",
    "loss.high=big": "loss.high=big is str, where float is wanted",
    "agent.context_tokens=30": "cannot hold the longest prompt",
    "agent.context_tokens=100000": "positions the student reads",
    "judge=none": "choose judge=gold, or critique=none",
    "critique=none": "choose critique=trajectory",
    "student=folder": "student.path=",
    "ckpt_path=nowhere.ckpt": "ckpt_path=nowhere.ckpt is not a file",
    "trainer.precision=8-true": "trainer.precision=8-true",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_sentence(mistake, tmp_path, capfd):
    folder = tmp_path / "run"
    arguments = [] if "experiment" in mistake else ["experiment=quickstart"]
    assert main(["train", *arguments, mistake, f"paths.output_dir={folder}"]) == 2
    error = capfd.readouterr().err
    assert MISTAKES[mistake] in error
    assert len(error.strip().splitlines()) == 1
    assert not folder.exists()


def test_a_judge_that_does_not_answer_is_named_before_the_run(tmp_path, capfd):
    folder = tmp_path / "run"
    judge = ["judge_backend=api", "judge_backend.model=any", "judge_backend.url=http://127.0.0.1:9/v1"]
    quick = ["judge_backend.retries=0", "judge_backend.timeout=2"]
    assert main(["train", "experiment=quickstart", *judge, *quick, f"paths.output_dir={folder}"]) == 2
    error = capfd.readouterr().err
    assert "http://127.0.0.1:9" in error
    assert len(error.strip().splitlines()) == 1
    assert not folder.exists()


def test_an_unknown_verb_names_the_nearest(capsys):
    assert main(["trian"]) == 2
    assert "did you mean train?" in capsys.readouterr().err


def test_the_flag_of_a_sweep_may_stand_anywhere_and_its_folder_holds_the_runs():
    given = ["seed=0,1", "-m", "paths.output_dir=runs"]
    assert arguments_for(given) == ["-m", "seed=0,1", "paths.sweep_dir=runs"]
    assert arguments_for(["paths.output_dir=run"]) == ["paths.output_dir=run"]


def test_no_verb_shows_the_verbs(capsys):
    assert main([]) == 0
    assert "train" in capsys.readouterr().out


def test_a_folder_that_holds_a_run_is_not_written_over(tmp_path, capfd):
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    assert main(["train", "experiment=quickstart", f"paths.output_dir={tmp_path}"]) == 2
    assert "holds a run already; continue it with ckpt_path=last" in capfd.readouterr().err
    assert (tmp_path / "metrics.jsonl").read_text() == "{}\n"
