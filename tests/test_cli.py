"""What a user mistypes gets one sentence with exit code 2, and leaves nothing behind."""

import pytest
from hydra import compose, initialize_config_dir

from hindsearch.cli import main
from hindsearch.errors import UserError
from hindsearch.making import conf_dir
from hindsearch.overrides import arguments_for, known_keys, refuse_unknown

SPOKEN = {
    "los=openclaw": "there is no option los; did you mean loss?",
    "loss=plane_clamp": "sdar, self_nll, topk_tail; did you mean plain_clamp?",
    "loss.clipp=3": "there is no option loss.clipp",
    "optim.lrr=1": "did you mean optim.lr?",
    "+nonsense=1": "there is no option nonsense",
    "+experiment=quickstart": "experiment is there already; write it without the +",
    "rollout.group_size=1": "at least 2: one rollout alone has nothing to be compared with",
    "coefficient.weight=-1": "use 0 or more",
    "agent.context_tokens=30": "cannot hold the longest prompt",
    "student=folder": "student.path=",
    "ckpt_path=nowhere.ckpt": "ckpt_path=nowhere.ckpt is not a file",
}
SPOKEN_TOO = {
    # further ways into the sentences above
    "lr=1": "did you mean optim.lr?",
    "+los=openclaw": "did you mean loss?",
    "+optim.lrate=1": "did you mean optim.lr?",
    "++optim.lrate=1": "did you mean optim.lr?",
    "recipe=micro_h": "there is no option recipe",
    "~optim.lrr": "there is no option optim.lrr; did you mean optim.lr?",
    "experiment=quick": "did you mean quickstart?",
    "hydra/sweeper=optuna": "hydra/sweeper=optuna is not one of basic",
    "optim.lr": "optim.lr is not of the form key=value",
    "=3": "=3 is not of the form key=value",
    "ckpt_path=step=9.ckpt": "as in 'ckpt_path=\"step=9.ckpt\"'",
    "optim=adamw,sgd": "optim=adamw,sgd names several values; add -m",
    "loss=null": "loss=null names no option; there are forward_kl, jsd, none, openclaw,",
    "rollout.questions=many": "rollout.questions=many must be a whole number",
    "optim.betas=3": "optim.betas=3 must be two numbers",
    "trainer.devices=0": "trainer.devices=0 must be a number of devices",
    "optim.lr=fast": "optim.lr=fast must be a number",
    "loss.low=3": "low=3 is not below high=1.0",
    "loss.high=big": "loss.high=big is str, where float is wanted",
    "loss._target_=hindsearch.losses.plain_clamp.Plane": "has no attribute 'Plane'",
    "agent.context_tokens=100000": "positions the student reads",
    "judge=none": "choose judge=gold, or critique=none",
    "critique=none": "choose critique=trajectory",
    "trainer.precision=8-true": "trainer.precision=8-true",
}
MISTAKES = SPOKEN | SPOKEN_TOO


@pytest.mark.parametrize("mistake", [*SPOKEN, *(pytest.param(m, marks=pytest.mark.slow) for m in SPOKEN_TOO)])
def test_a_mistake_gets_one_sentence(mistake, tmp_path, capfd):
    folder = tmp_path / "run"
    arguments = [] if "experiment" in mistake else ["experiment=quickstart"]
    assert main(["train", *arguments, mistake, f"paths.output_dir={folder}"]) == 2
    error = capfd.readouterr().err
    assert MISTAKES[mistake] in error
    assert len(error.strip().splitlines()) == 1
    assert not folder.exists()


@pytest.mark.parametrize("verb", ["evaluate", pytest.param("warmstart", marks=pytest.mark.slow)])
def test_the_other_verbs_speak_alike(verb, tmp_path, capfd):
    assert main([verb, "+nonsense=1", f"paths.output_dir={tmp_path / 'run'}"]) == 2
    error = capfd.readouterr().err
    assert error == f"hindsearch {verb}: +nonsense=1: there is no option nonsense\n"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path, capfd):
    (tmp_path / "file").write_text("")
    assert main(["train", "experiment=quickstart", f"paths.output_dir={tmp_path / 'file' / 'run'}"]) == 2
    error = capfd.readouterr().err
    assert error == f"hindsearch train: {tmp_path / 'file' / 'run'}: Not a directory\n"


def test_a_mistake_in_a_sweep_is_named_too(tmp_path, capfd):
    arguments = ["experiment=quickstart", "loss=plain_clamp,plane_clamp", f"paths.output_dir={tmp_path / 'runs'}"]
    assert main(["train", "-m", *arguments]) == 2
    assert "did you mean plain_clamp?" in capfd.readouterr().err


@pytest.mark.parametrize("value", ["'<|im_end|>'", "'a#b'", "'epoch=3-step=9'", '"a, b"'])
def test_a_value_in_quotes_may_hold_anything(value):
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        assert compose("warmstart", [f"output={value}"]).output == value[1:-1]


@pytest.mark.slow
def test_a_reference_to_nothing_is_named(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "experiment=quickstart", "run_name=${nope}"]) == 2
    assert capfd.readouterr().err.startswith("hindsearch train: Interpolation key 'nope' not found")
    assert list(tmp_path.iterdir()) == []


def test_two_plus_signs_may_stand_before_a_key_that_is_there():
    refuse_unknown("train", ["++optim.lr=1e-3"])
    with pytest.raises(UserError, match="write it without the"):
        refuse_unknown("train", ["+optim.lr=1e-3"])


@pytest.mark.slow
@pytest.mark.parametrize("script", ["train", "evaluate", "warmstart"])
def test_the_known_keys_of_a_verb_are_its_own(script):
    keys = known_keys(script)
    assert ("recipe.steps" in keys, "optim.lr" in keys) == ((True, False) if script == "warmstart" else (False, True))
    assert not any(key.startswith("hydra") for key in keys)


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
