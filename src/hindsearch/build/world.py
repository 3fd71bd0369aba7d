"""What a run is about and works with: data, retriever, models, prompts. Each is built on first use, and once."""

from functools import cached_property
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from hindsearch.interfaces import DataSource, Engine, Renderer, Retriever
from hindsearch.making import make
from hindsearch.models.causal_lm import CausalLM
from hindsearch.models.frozen import AdapterOff, FrozenLM, adapter_off, frozen_copy
from hindsearch.tokens import Tokens


class World:
    """Shared by the experience and the learning side. What a method does not need is never loaded."""

    def __init__(self, cfg: DictConfig, console: Console) -> None:
        self._cfg, self._console = cfg, console

    def note(self, text: str) -> None:
        """Tell the user something that is no error."""
        self._console.print(f"note: {text}", markup=False, highlight=False, soft_wrap=True)

    @cached_property
    def data(self) -> DataSource:
        return make("data", self._cfg.data)

    @cached_property
    def retriever(self) -> Retriever:
        return make("retriever", self._cfg.retriever, passages=self.data.passages())

    @cached_property
    def pretrained(self) -> Any:
        return make("student", self._cfg.student, cache=Path(self._cfg.paths.cache).expanduser())

    @cached_property
    def student(self) -> CausalLM:
        return make("adapter", self._cfg.adapter)(self.pretrained.load(self._cfg.trainer.precision))

    @cached_property
    def tokens(self) -> Tokens:
        return Tokens(self.pretrained.tokenizer(), self.student.end_ids)

    @cached_property
    def reference(self) -> FrozenLM | AdapterOff:
        """The initial weights: a view of a student with an adapter, else a frozen copy."""
        return adapter_off(self.student) if self.student.has_adapter else frozen_copy(self.student)

    @property
    def has_reference(self) -> bool:
        """Whether somebody asked for the initial weights."""
        return "reference" in self.__dict__

    @cached_property
    def renderer(self) -> Renderer:
        return make("renderer", self._cfg.renderer, tokens=self.tokens)

    def engine(self, model: Any) -> Engine:
        """The chosen engine over a model."""
        return make("engine", self._cfg.engine, model=model)

    def another_model(self, group: str, node: DictConfig) -> tuple[FrozenLM, Tokens, DictConfig]:
        """The frozen model and tokens that a component names under ``model``, and the node without it."""
        pretrained = make(f"{group}.model", node.model)
        loaded = pretrained.load(self._cfg.trainer.precision)
        frozen = FrozenLM(loaded.lm, loaded.precision)
        tokens = Tokens(pretrained.tokenizer(), frozen.end_ids)
        return frozen, tokens, OmegaConf.masked_copy(node, [str(key) for key in node if key != "model"])
