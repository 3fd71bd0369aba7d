"""What was typed on the command line: checked before a run starts, and explained when Hydra cannot take it."""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig

from hindsearch.errors import UserError
from hindsearch.making import conf_dir

HYDRAS_OWN = ("hydra", "-", "~")
"""Beginnings of arguments that are Hydra's to judge: its own settings, its flags, deletions."""


def arguments_for(overrides: Sequence[str]) -> list[str]:
    """In a sweep every run has a folder of its own below ``paths.output_dir``; its flag may stand anywhere."""
    flags = [argument for argument in overrides if argument in ("-m", "--multirun")]
    rest = [argument for argument in overrides if argument not in flags]
    key = re.compile(r"^paths\.output_dir=")
    return [*flags, *(key.sub("paths.sweep_dir=", argument) for argument in rest)] if flags else rest


def refuse_unknown(verb: str, overrides: Sequence[str]) -> None:
    """Raise ``UserError`` for what Hydra lets through, or cannot speak of: a new key, a group without an option."""
    for argument in overrides:
        key, _, value = argument.partition("=")
        if not key:
            raise UserError(_unreadable(argument))
        if (conf_dir() / key).is_dir() and _is_no_name(value):
            raise UserError(f"{argument} names no option{_among(key)}")
        if not key.startswith("+"):
            continue
        name = key.lstrip("+")
        if name.startswith(HYDRAS_OWN):
            continue
        known = known_keys(verb, overrides)
        if name not in known:
            raise UserError(f"{argument}: there is no option {name}{_nearest(name, known)}")
        if not key.startswith("++"):
            raise UserError(f"{argument}: {name} is there already; write it without the +")


def refuse_idle(idle: Mapping[str, str], note: Callable[[str], None]) -> None:
    """Refuse what was typed for a group whose choice changes nothing in this run; ``idle`` gives groups and reasons.

    In a sweep other runs may need it: then it is a note. Presets choose freely, and what they choose is no wish.
    """
    if not HydraConfig.initialized():
        return
    hydra = HydraConfig.get()
    for argument in hydra.overrides.task:
        key, _, value = argument.lstrip("+").partition("=")
        group = key.split(".", 1)[0]
        if group not in idle or value == "none":
            continue
        sentence = f"{argument} would change nothing: {idle[group]}"
        if hydra.mode is not RunMode.MULTIRUN:
            raise UserError(f"{sentence}; leave it out")
        note(sentence)


def known_keys(verb: str, overrides: Sequence[str] = ()) -> list[str]:
    """Every key and group of a verb's config, under the groups chosen among ``overrides`` as far as they compose."""
    chosen = [a for a in overrides if (conf_dir() / a.split("=", 1)[0]).is_dir() and "," not in a and "glob(" not in a]
    for attempt in (chosen, []):
        try:
            cfg = _compose(verb, attempt)
        except Exception:
            # one of the choices does not compose: that is reported elsewhere, the keys of the defaults still help
            continue
        groups = [group for group in cfg.hydra.runtime.choices if not group.startswith("hydra")]
        return sorted({*groups, *(key for key in _keys(cfg) if not key.startswith("hydra"))})
    return []


def explain(verb: str, error: Exception, overrides: Sequence[str]) -> str:
    """One sentence for an error of Hydra or OmegaConf: what was seen and what would work."""
    text = str(error)
    if isinstance(error, OverrideParseException):
        return _unreadable(error.override)
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, name = error.missing_cfg_file.rpartition("/")
        return f"{group}={name} is not one of {', '.join(error.options)}{_nearest(name, error.options)}"
    several = re.search(r"Ambiguous value for argument '(.+?)'\n", text)
    if several:
        return f"{several[1]} names several values; add -m to run them all, or put the value in quotes or brackets"
    if "nterpolation" in text:
        return f"{text.splitlines()[0]}; a $ that is meant as such is written \\$"
    key = re.search(
        r"Could not (?:override|delete from config\.) '([^']+)'|full_key: (\S+)|Key '([^']+)' is not in struct", text
    )
    if key:
        name = next(part for part in key.groups() if part)
        if "missing" in text.lower():
            return f"{name} must be given: {name}=…"
        return f"there is no option {name}{_nearest(name, known_keys(verb, overrides))}"
    return " ".join(text.split())


def _unreadable(argument: str) -> str:
    key, equals, value = argument.partition("=")
    if not key or not equals:
        return f"{argument} is not of the form key=value"
    return f"{argument} cannot be read as key=value; put quotes around the value, as in '{key}=\"{value}\"'"


def _is_no_name(value: str) -> bool:
    """Whether a group's option was left out, or is a number: Hydra takes only names."""
    return value.strip().lower() in ("", "null", "true", "false") or value.replace(".", "", 1).lstrip("+-").isdigit()


def _among(group: str) -> str:
    return f"; there are {', '.join(sorted(path.stem for path in (conf_dir() / group).glob('*.yaml')))}"


def _nearest(name: str, known: Sequence[str]) -> str:
    # `lr` is meant as `optim.lr`: what ends alike comes before what looks alike
    same_end = [key for key in known if key.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1]]
    others = [key for key in known if not name.startswith(f"{key}.")]  # the node around it is no answer
    near = same_end or difflib.get_close_matches(name, others, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _compose(verb: str, overrides: Sequence[str]) -> DictConfig:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return compose(verb, list(overrides), return_hydra_config=True)


def _keys(cfg: DictConfig, prefix: str = "") -> list[str]:
    keys: list[str] = []
    for key in cfg:
        keys.append(f"{prefix}{key}")
        node = cfg._get_node(key)
        if isinstance(node, DictConfig) and not node._is_none():
            keys += _keys(node, f"{prefix}{key}.")
    return keys
