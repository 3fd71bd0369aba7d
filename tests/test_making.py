"""From a config node to an object, and what is said of a node that makes none."""

from dataclasses import dataclass, field

import pytest
from omegaconf import OmegaConf

from hindsearch.errors import UserError
from hindsearch.making import conf_dir, make


@dataclass(frozen=True)
class Part:
    size: int = 1

    def __post_init__(self):
        if self.size < 0:
            raise ValueError(f"part.size={self.size} cannot be; use 0 or more")


@dataclass(frozen=True)
class Whole:
    weight: float
    name: str = "plain"
    passages: tuple = ()
    parts: list = field(default_factory=list)


@dataclass(frozen=True)
class Alone:
    name: str


def node(target, **values):
    return OmegaConf.create({"_target_": f"{target.__module__}.{target.__qualname__}", **values})


def refused(group, config, **offers):
    with pytest.raises(UserError) as error:
        make(group, config, **offers)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_keys_are_arguments():
    assert make("whole", node(Whole, weight=2, name="x")) == Whole(2, "x")


def test_offers_go_only_where_they_are_named():
    assert make("whole", node(Whole, weight=1.0), passages=(1, 2), tokens=object()).passages == (1, 2)
    assert make("alone", node(Alone, name="a"), passages=(1, 2)) == Alone("a")


def test_an_offer_is_the_object_itself():
    shared = (object(),)
    assert make("whole", node(Whole, weight=1.0), passages=shared).passages is shared


def test_what_the_node_says_comes_before_an_offer():
    assert make("alone", node(Alone, name="said"), name="offered") == Alone("said")


def test_a_recipe_made_twice_gives_two_objects():
    config = node(Whole, weight=1.0)
    assert make("whole", config) is not make("whole", config)


def test_targets_inside_are_made_too_also_in_lists_and_maps():
    part = dict(node(Part, size=3))
    assert make("whole", node(Whole, weight=1.0, parts=[part, part])).parts == [Part(3), Part(3)]
    assert make("whole", node(Whole, weight=1.0, parts={"first": part, "n": 4})).parts == {"first": Part(3), "n": 4}


def test_an_unknown_key_names_the_nearest():
    said = refused("whole", node(Whole, weight=1.0, wieght=2.0))
    assert said == "whole.wieght is not an option of Whole; did you mean whole.weight?"


def test_an_unknown_key_inside_is_named_by_its_place():
    said = refused("whole", node(Whole, weight=1.0, parts=dict(node(Part, sise=2))))
    assert said == "whole.parts.sise is not an option of Part; did you mean whole.parts.size?"


def test_a_missing_argument_is_named():
    assert "whole (Whole) needs weight" in refused("whole", node(Whole))


def test_a_value_that_must_be_given_is_named_with_its_key():
    said = refused("whole", OmegaConf.create({"whole": node(Whole, weight="???")}).whole)
    assert said.startswith("whole: ")
    assert said.endswith("give it on the command line as whole.weight=…")


def test_a_refusal_of_the_constructor_names_the_group():
    assert refused("part", node(Part, size=-1)) == "part: part.size=-1 cannot be; use 0 or more"
    assert refused("whole", node(Whole, weight=1.0, parts=dict(node(Part, size=-1)))).startswith("whole.parts: ")


@pytest.mark.parametrize(
    "config, said",
    [
        ({"weight": "big"}, "whole.weight=big is str, where float is wanted"),
        ({"weight": True}, "whole.weight=True is bool, where float is wanted"),
        ({"weight": 1.0, "name": 7}, "whole.name=7 is int, where str is wanted"),
    ],
)
def test_a_value_of_another_kind_is_refused(config, said):
    assert refused("whole", node(Whole, **config)) == said


def test_a_whole_number_does_for_a_float_and_not_the_other_way_round():
    assert make("whole", node(Whole, weight=1)).weight == 1
    assert refused("part", node(Part, size=1.5)) == "part.size=1.5 is float, where int is wanted"


@pytest.mark.parametrize(
    "target, said",
    [
        ("hindsearch.losses.plain_clamp.PlaneClamp", "has no attribute 'PlaneClamp'"),
        ("hindsearch.losses.plane_clamp.PlainClamp", "No module named 'hindsearch.losses.plane_clamp'"),
        ("PlainClamp", "Empty module name"),
    ],
)
def test_a_target_that_is_not_there_is_named(target, said):
    message = refused("loss", OmegaConf.create({"_target_": target}))
    assert message.startswith(f"loss._target_={target} cannot be imported")
    assert said in message


def test_the_folder_of_options_holds_the_primary_configs():
    assert {"train.yaml", "evaluate.yaml", "warmstart.yaml"} <= {path.name for path in conf_dir().iterdir()}
