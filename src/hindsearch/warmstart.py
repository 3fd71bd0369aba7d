"""`hindsearch warmstart`: teach a base model the format from demonstrations; once per recipe, then from the cache."""

import hashlib
import json
import logging
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import hydra
import lightning
import torch
from lightning.pytorch import Trainer
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from transformers.utils.logging import disable_progress_bar

from hindsearch import jsonl
from hindsearch.cli import run_hydra_verb
from hindsearch.errors import UserError
from hindsearch.grammar import WORDS
from hindsearch.making import conf_dir, make
from hindsearch.models.causal_lm import CausalLM
from hindsearch.models.pretrained import Pretrained
from hindsearch.speaking import run_job
from hindsearch.tokens import Tokens
from hindsearch.warmstart_module import DemonstrationSet, WarmStartModule, WarmStartProgress

REVISION = 1
"""Raised when the code makes something else of the same recipe: older products are then not taken for it."""

SHIPPED = Path(__file__).resolve().parent / "warmstarts"
RECORD = "recipe.json"


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="warmstart")
def main(cfg: DictConfig) -> float:
    return run_job("warmstart", make_warm_start, cfg)


def make_warm_start(cfg: DictConfig, _: Path) -> float:
    """Make the recipe's product, or find it, and copy it to ``output`` if that is given."""
    console = Console()
    cache = Path(cfg.paths.cache).expanduser()
    folder = resolve_warm_start(cfg.recipe, cache, console)
    if cfg.output is not None:
        output = Path(cfg.output).expanduser()
        if output.exists():
            raise UserError(f"output={cfg.output} exists already; give a folder that does not")
        publish(folder, output)
        folder = output
    console.print(f"warm start {folder} (a Hugging Face folder)", markup=False, highlight=False, soft_wrap=True)
    return 0.0


@dataclass(frozen=True)
class WarmStarted:
    """The student of a recipe: ``conf/recipe/<recipe>.yaml`` with its ``seed``, made on first use and kept."""

    recipe: str
    seed: int
    cache: Path

    def __post_init__(self) -> None:
        if not (file := conf_dir() / "recipe" / f"{self.recipe}.yaml").is_file():
            known = ", ".join(sorted(path.stem for path in file.parent.glob("*.yaml")))
            raise ValueError(f"there is no recipe {self.recipe!r}; choose one of {known}")

    @cached_property
    def folder(self) -> Path:
        recipe = OmegaConf.load(conf_dir() / "recipe" / f"{self.recipe}.yaml")
        recipe.seed = self.seed
        assert isinstance(recipe, DictConfig)
        return resolve_warm_start(recipe, self.cache, Console())

    @property
    def _found(self) -> Pretrained:
        return Pretrained(str(self.folder))

    def tokenizer(self) -> Any:
        return self._found.tokenizer()

    def load(self, precision: str) -> CausalLM:
        return self._found.load(precision)


def resolve_warm_start(recipe: DictConfig, cache: Path, console: Console | None = None) -> Path:
    """Return the folder that a recipe makes: the one shipped, else the one in the cache, else trained now.

    Raises:
        UserError: if the recipe names something that cannot be had.
    """
    console = console or Console()
    ingredients = Ingredients(recipe)
    digest = ingredients.digest
    shipped = SHIPPED / f"{recipe.name}-s{recipe.seed}"
    if _made_by(shipped, digest):
        return shipped
    cached = cache / "warmstarts" / digest
    if not _made_by(cached, digest):
        console.print(f"warm start {recipe.name} (seed {recipe.seed}) is made once: {recipe.steps} steps")
        warm_start(ingredients, cached, console)
    return cached


class Base(Protocol):
    """A model to start from. It is loaded only if there is something to train."""

    def tokenizer(self) -> Any: ...

    def model(self, seed: int) -> Any: ...

    def fingerprint(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class FoundBase:
    """A real base model to start from, named as a student is: see ``Pretrained``."""

    path: str
    gguf_file: str = ""
    revision: str = "main"

    @property
    def _found(self) -> Pretrained:
        return Pretrained(self.path, self.gguf_file, self.revision)

    def tokenizer(self) -> Any:
        return self._found.tokenizer()

    def model(self, seed: int) -> Any:
        """Return the model in float32; ``seed`` changes nothing here."""
        return self._found.load("32-true").lm

    def fingerprint(self) -> Mapping[str, str]:
        """Digest over the files of a folder; what is not a folder is known by the recipe's path and revision."""
        digest = hashlib.sha256()
        for file in sorted(Path(self.path).expanduser().glob("[!.]*")):
            if file.is_file():
                with file.open("rb") as content:
                    digest.update(file.name.encode() + hashlib.file_digest(content, "sha256").digest())
        return {"base": digest.hexdigest()}


class Ingredients:
    """What a recipe names: base model and tokenizer, demonstrations, and the digest of all of it."""

    def __init__(self, recipe: DictConfig) -> None:
        self.recipe = recipe
        self.base: Base = make("recipe.base", recipe.base, words=WORDS)
        self.tokenizer = self.base.tokenizer()
        tokens = Tokens(self.tokenizer)
        # special tokens in a demonstration are meant: it was written to be imitated
        offers: dict[str, Any] = {"encode": tokens.encode_template}
        if "renderer" in recipe:
            offers["renderer"] = make("recipe.renderer", recipe.renderer, tokens=tokens)
        self.demonstrations = make("recipe.demonstrations", recipe.demonstrations, **offers)

    @cached_property
    def record(self) -> dict[str, Any]:
        """Everything that the product depends on, but for the versions of packages."""
        recipe: Any = OmegaConf.to_container(self.recipe, resolve=True)
        inputs = {**self.base.fingerprint(), **self.demonstrations.fingerprint()}
        return {"recipe": recipe, "inputs": inputs, "revision": REVISION}

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.record, sort_keys=True).encode()).hexdigest()[:32]


def warm_start(ingredients: Ingredients, folder: Path, console: Console) -> None:
    """Train as the recipe says and publish model, tokenizer and record in ``folder``, in one move.

    A run that is killed leaves no folder, and one that finishes second leaves the first one's.
    """
    recipe = ingredients.recipe
    _quieten()
    threads = torch.get_num_threads()
    if recipe.threads is not None:
        torch.set_num_threads(recipe.threads)
    base = ingredients.base.model(recipe.seed)
    module = WarmStartModule(
        CausalLM(base, recipe.precision),
        optimizers=make("recipe.optimizer", recipe.optimizer),
        schedule=make("recipe.schedule", recipe.schedule),
        steps=recipe.steps,
        micro_batch_tokens=recipe.micro_batch_tokens,
        max_grad_norm=recipe.max_grad_norm,
    )
    trainer = Trainer(
        max_epochs=1,
        accelerator=recipe.accelerator,
        devices=1,
        precision=recipe.precision,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[WarmStartProgress(console, recipe.steps)],
    )
    module.train()
    trainer.fit(module, DemonstrationSet(ingredients.demonstrations, recipe.steps, recipe.batch, recipe.seed).loader())
    torch.set_num_threads(threads)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as made:
        base.eval().to("cpu").save_pretrained(made)
        ingredients.tokenizer.save_pretrained(made)
        packages = {"torch": torch.__version__, "lightning": lightning.__version__}
        digest = {"hash": ingredients.digest, "packages": packages}
        jsonl.write_json(Path(made) / RECORD, ingredients.record | digest)
        publish(Path(made), folder)


def publish(made: Path, folder: Path) -> None:
    """Copy a finished folder to where it will be looked for; it appears there whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".publishing-"))
    try:
        whole = shutil.copytree(made, beside / folder.name)
        whole.chmod(0o755)
        for file in whole.iterdir():
            file.chmod(0o644)
        os.rename(whole, folder)
    except OSError:
        if not (folder / RECORD).is_file():
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _made_by(folder: Path, digest: str) -> bool:
    try:
        return json.loads((folder / RECORD).read_text(encoding="utf-8"))["hash"] == digest
    except (OSError, ValueError, KeyError):
        return False


def _quieten() -> None:
    disable_progress_bar()
    warnings.filterwarnings("ignore", message=".*does not have many workers.*|.*LeafSpec.*")
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)


if __name__ == "__main__":
    sys.exit(run_hydra_verb("warmstart", sys.argv[1:]))
