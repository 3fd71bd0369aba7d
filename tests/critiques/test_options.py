"""Every option of the groups judge, judge_backend and critique composes and builds from its file."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from hindsearch.critiques.trajectory import TrajectoryCritiques
from hindsearch.errors import UserError
from hindsearch.judge_backends.rules import Explore, Generic, Habit
from hindsearch.leaks import Redact, Reject
from hindsearch.making import conf_dir, make

GROUPS = ("judge", "judge_backend", "critique")
OPTIONS = [(group, path.stem) for group in GROUPS for path in sorted((conf_dir() / group).glob("*.yaml"))]
NEEDS_MORE = {"hf", "api", "replay"}  # a model, an endpoint, a file


def node(group, option, *overrides):
    with initialize_config_dir(str(Path(conf_dir()).absolute()), version_base="1.3"):
        return compose(overrides=[f"+{group}={option}", *overrides])[group]


def build(group, option, *overrides):
    names = ("retriever", "judge", "judge_backend", "tokens", "student", "teacher", "renderer", "span")
    offers = {**dict.fromkeys(names), "passages": (), "questions": ()}
    return make(group, node(group, option, *overrides), run_seed=0, engine=None, **offers)


@pytest.mark.parametrize("group, option", [o for o in OPTIONS if o[1] not in NEEDS_MORE])
def test_an_option_builds(group, option):
    assert build(group, option) is not None


@pytest.mark.parametrize("option, key", [("hf", "judge_backend.model.path"), ("api", "judge_backend.model")])
def test_an_option_that_needs_more_names_it(option, key):
    with pytest.raises(UserError, match=key):
        build("judge_backend", option)


def test_a_replay_without_a_file_says_so():
    with pytest.raises(UserError, match="path"):
        build("judge_backend", "replay")


def test_the_variants_of_rules_differ_in_what_they_say_unknowing():
    kinds = [type(build("judge_backend", f"rules_{name}").unknowing) for name in ("habit", "explore", "generic")]
    assert kinds == [Habit, Explore, Generic]
    assert build("judge_backend", "rules_english").phrasing.endswith("rules_english.jinja")


def test_the_leak_filter_is_an_object_of_the_option():
    assert build("critique", "trajectory").leak == Reject()
    redacting = build("critique", "trajectory_redact", "critique.max_tokens=32")
    assert isinstance(redacting, TrajectoryCritiques)
    assert redacting.leak == Redact("[hidden]", 3)
    assert redacting.max_tokens == 32
