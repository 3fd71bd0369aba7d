"""Every option of every group composes and builds; every preset composes."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from composing import composed
from hindsearch.build.run import Builder
from hindsearch.making import conf_dir, make
from hindsearch.types import Draw
from hindsearch.warmstart import SHIPPED

GROUPS = (
    *("loss", "select", "span", "coefficient", "reduction", "credit", "policy", "anchor", "loop", "reward"),
    *("critique", "judge", "teacher"),
)
"""Groups whose options build on the micro-world without anything else."""

LABELS = ["critique=turn_labels", "judge=turn_labels", "credit=turn_labels", "loss=none"]
PARTNERS = {
    # without a judge or a critique there is nothing for a hindsight loss to act on
    ("judge", "none"): ["loss=none"],
    ("critique", "none"): ["loss=none"],
    ("critique", "turn_labels"): LABELS,
    ("judge", "turn_labels"): LABELS,
    ("anchor", "llds"): ["updates=several"],
    ("teacher", "larger"): [f"teacher.model.path={SHIPPED / 'micro_h-s1'}"],
}
"""What an option must be chosen with."""

SETTINGS = ("trainer", "optim", "paths", "hydra", "debug", "experiment", "method", "recipe")


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


@pytest.mark.parametrize("group, option", [(g, o) for g in GROUPS for o in options(g)])
def test_every_option_composes_and_builds(group, option, tmp_path):
    builder = Builder(
        composed("experiment=quickstart", f"{group}={option}", *PARTNERS.get((group, option), [])), tmp_path
    )
    made = {
        "judge": lambda: builder.method.critique,
        "coefficient": lambda: builder.method.objective.coefficient,
        "reduction": lambda: builder.method.objective.hindsight_reduction,
        "reward": lambda: builder.reward,
    }.get(group, lambda: getattr(builder.method, group))
    assert made() is not None


@pytest.mark.parametrize("backend", ["self", "hf"])
def test_a_language_model_judges_in_place_of_the_rules(backend, tmp_path):
    """With the micro-world's student as judge: what it says is no critique, and is counted as what it is."""
    judge = [f"judge_backend={backend}"]
    judge += [f"judge_backend.model.path={SHIPPED / 'micro_h-s1'}"] if backend == "hf" else []
    builder = Builder(composed("experiment=quickstart", *judge, "judge_backend.max_new_tokens=4"), tmp_path)
    rollouts, scores = _failed(builder)
    critiques = builder.method.critique(rollouts, scores, [True] * len(rollouts), step=0)
    assert len(critiques) == len(rollouts)
    assert (tmp_path / "critiques.jsonl").exists()


def _failed(builder):
    draws = [Draw(question, 0, i) for i, question in enumerate(builder.world.data.train()[:4])]
    batch = builder.collector().attempts(draws)
    kept = [(r, s) for r, s in zip(batch.rollouts, batch.scores, strict=True) if s.em == 0.0][:3]
    return [r for r, _ in kept], [s for _, s in kept]


@pytest.mark.parametrize("option", options("agent"))
def test_every_budget_builds(option):
    assert make("agent", composed(f"agent={option}").agent).top_k >= 1


@pytest.mark.parametrize("method", options("method"))
@pytest.mark.parametrize("experiment", options("experiment"))
def test_every_preset_composes_with_every_method(method, experiment):
    cfg = composed(f"experiment={experiment}", f"method={method}")
    assert cfg.run_name.startswith(f"{method}-")


def test_a_method_preset_holds_choices_and_no_number():
    for path in (conf_dir() / "method").glob("*.yaml"):
        assert set(OmegaConf.load(path)) == {"defaults"}, path.name


def test_every_option_file_says_in_a_comment_what_it_is():
    for path in conf_dir().rglob("*.yaml"):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "@package" not in line]
        assert lines[0].startswith("# "), path.relative_to(conf_dir())


def test_learning_rates_are_numbers_however_they_are_written():
    assert composed("optim.lr=1e-6").optim.lr == 1e-6
    assert composed("optim.lr=2E-5").optim.lr == 2e-5


def test_swapping_the_loss_leaves_everything_else_of_the_method():
    before, after = composed(), composed("loss=openclaw")
    for key in ("select", "span", "coefficient", "judge", "critique", "policy"):
        assert before[key] == after[key]
    assert "high" not in after.loss


def test_the_wheel_ships_the_groups():
    import tomllib

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"] == {"conf": "hindsearch/conf"}
