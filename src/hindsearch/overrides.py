"""What was typed on the command line: checked before a run starts, and explained when Hydra cannot take it."""

import difflib
import re
from collections.abc import Sequence

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
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
    """Raise ``UserError`` for a key that nothing reads: Hydra itself lets any ``+key`` in."""
    for argument in overrides:
        key = argument.split("=", 1)[0]
        if not key.startswith("+"):
            continue
        name = key.lstrip("+")
        if name.startswith(HYDRAS_OWN):
            continue
        known = known_keys(verb, overrides)
        if name in known:
            raise UserError(f"{argument}: {name} is there already; write it without the +")
        raise UserError(f"{argument}: there is no option {name}{_nearest(name, known)}")


def known_keys(verb: str, overrides: Sequence[str] = ()) -> list[str]:
    """Every key and group of a verb's config, under the groups chosen among ``overrides`` as far as they compose."""
    groups = [path.relative_to(conf_dir()).as_posix() for path in conf_dir().rglob("*") if path.is_dir()]
    chosen = [a for a in overrides if a.split("=", 1)[0] in groups and "," not in a and "glob(" not in a]
    for attempt in (chosen, []):
        try:
            return sorted({*groups, *_keys(_compose(verb, attempt))})
        except Exception:
            # one of the choices does not compose: that is reported elsewhere, the keys of the defaults still help
            continue
    return groups


def explain(verb: str, error: Exception, overrides: Sequence[str]) -> str:
    """One sentence for an error of Hydra or OmegaConf: what was seen and what would work."""
    text = str(error)
    option = re.search(r"Could not find '([^']+)'", text)
    if option and "/" in option[1]:
        group, _, name = option[1].rpartition("/")
        options = sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))
        return f"{group}={name} is not an option{_nearest(name, options)}; there are {', '.join(options)}"
    key = re.search(r"Could not override '([^']+)'|full_key: (\S+)|Key '([^']+)' is not in struct", text)
    if key:
        name = next(part for part in key.groups() if part)
        if "missing" in text.lower():
            return f"{name} must be given: {name}=…"
        return f"there is no option {name}{_nearest(name, known_keys(verb, overrides))}"
    return " ".join(text.split())


def _nearest(name: str, known: Sequence[str]) -> str:
    # `lr` is meant as `optim.lr`: what ends alike comes before what looks alike
    same_end = [key for key in known if key.rsplit(".", 1)[-1] == name.rsplit(".", 1)[-1]]
    near = same_end or difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _compose(verb: str, overrides: Sequence[str]) -> DictConfig:
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        return compose(verb, list(overrides))


def _keys(cfg: DictConfig, prefix: str = "") -> list[str]:
    keys: list[str] = []
    for key in cfg:
        keys.append(f"{prefix}{key}")
        node = cfg._get_node(key)
        if isinstance(node, DictConfig) and not node._is_none():
            keys += _keys(node, f"{prefix}{key}.")
    return keys
