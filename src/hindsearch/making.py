"""From a config node to an object: the one place that instantiates components."""

import difflib
import importlib
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

import hindsearch
from hindsearch.errors import UserError


def conf_dir() -> Path:
    """The folder of config groups: inside an installed package, or at the top of a checkout."""
    package = Path(hindsearch.__file__).resolve().parent
    return next(folder for folder in (package / "conf", package.parents[1] / "conf") if folder.is_dir())


def make(group: str, node: DictConfig, **offers: Any) -> Any:
    """Build the component that a node describes.

    ``_target_`` names its class, the other keys are its arguments; ``offers`` are shared objects, of which it gets
    those that its constructor names. ``group`` is what an error calls the node. Shared objects are passed by keyword
    and never interpolated: a config holds recipes, and a recipe cooked twice gives two objects.

    Raises:
        UserError: an unknown, missing or unfit argument, in one sentence.
    """
    try:
        values = OmegaConf.to_container(node, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise UserError(f"{group}: {_first_line(error)}; give it on the command line as {error.full_key}=…") from error
    return _make(group, values, offers)


def parameters(node: DictConfig) -> set[str]:
    """The names of the constructors' arguments that a node's component, and those inside it, may ask for."""
    return _parameters(OmegaConf.to_container(node))


def _parameters(values: Any) -> set[str]:
    if not isinstance(values, dict):
        return set()
    names: set[str] = set()
    if "_target_" in values:
        names |= set(inspect.signature(_located("_target_", str(values["_target_"]))).parameters)
    return names.union(*(_parameters(value) for value in values.values()))


def _make(group: str, values: Any, offers: Mapping[str, Any]) -> Any:
    if isinstance(values, list):
        return [_make(group, item, offers) for item in values]
    if not isinstance(values, dict):
        return values
    if "_target_" not in values:
        return {key: _make(f"{group}.{key}", item, offers) for key, item in values.items()}
    target = _located(f"{group}._target_", str(values["_target_"]))
    parameters = inspect.signature(target).parameters
    given = {key: _make(f"{group}.{key}", item, offers) for key, item in values.items() if key != "_target_"}
    for key in given:
        if key not in parameters:
            near = difflib.get_close_matches(key, parameters, n=1) or sorted(parameters)
            raise UserError(f"{group}.{key} is not an option of {target.__name__}; did you mean {group}.{near[0]}?")
        _refuse_other_kinds(f"{group}.{key}", given[key], parameters[key].annotation)
    given |= {name: value for name, value in offers.items() if name in parameters and name not in given}
    for name, parameter in parameters.items():
        if name not in given and parameter.default is inspect.Parameter.empty:
            raise UserError(f"{group} ({target.__name__}) needs {name}, which its option file does not give")
    try:
        return target(**given)
    except (ValueError, TypeError) as error:
        raise UserError(f"{group}: {_first_line(error)}") from error


def _located(key: str, path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"{key}={path} cannot be imported: {_first_line(error)}") from error


def _refuse_other_kinds(key: str, value: Any, annotation: Any) -> None:
    """Hydra takes any value for any key: numbers and texts are told apart here, by the constructor's annotation."""
    kinds = {int: (int,), float: (int, float), str: (str,)}.get(annotation)
    if kinds and (not isinstance(value, kinds) or isinstance(value, bool)):
        raise UserError(f"{key}={value} is {type(value).__name__}, where {annotation.__name__} is wanted")


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
