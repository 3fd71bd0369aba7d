"""The composition root: from a config to a run. Models are built once here and handed to whoever needs them."""

import inspect
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from hydra.utils import get_object
from lightning.pytorch import Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from hindsearch.agent import SearchAgent
from hindsearch.budget import Budget
from hindsearch.callbacks.checkpoints import Checkpoints
from hindsearch.callbacks.progress import Progress
from hindsearch.callbacks.run_log import RunLog
from hindsearch.collector import Attempts, Collector
from hindsearch.critiques.none import NoCritiques
from hindsearch.datamodule import RolloutDataModule
from hindsearch.errors import UserError
from hindsearch.fingerprint import run_fingerprint
from hindsearch.interfaces import CritiqueGenerator, DataSource, HindsightLoss, LanguageModel, Policy, Reward
from hindsearch.judge_backends.recording import Recorded
from hindsearch.judges.none import NoJudge
from hindsearch.losses.none import NoLoss
from hindsearch.making import make
from hindsearch.maths.reductions import TokenMean
from hindsearch.models.causal_lm import CausalLM
from hindsearch.models.frozen import adapter_off, frozen_copy
from hindsearch.module import AdamW, HindSearchModule, Models
from hindsearch.objective import Objective
from hindsearch.settings import check_settings
from hindsearch.tokens import Tokens

RATIO_ERROR = {"64-true": 1e-5, "32-true": 1e-3, "bf16-mixed": 0.2}
"""Largest |ratio - 1| on a token that sampler and trainer may differ by: rounding, and nothing else."""


class Builder:
    """Builds each shared object on first use and once, so that what a method does not need is never loaded."""

    def __init__(self, cfg: DictConfig, output_dir: Path, console: Console | None = None) -> None:
        check_settings(cfg)
        self.cfg, self.output_dir, self.console = cfg, output_dir, console or Console()

    # ------------------------------------------------------------------ world and models

    @cached_property
    def data(self) -> DataSource:
        return make("data", self.cfg.data)

    @cached_property
    def retriever(self) -> Any:
        return make("retriever", self.cfg.retriever, passages=self.data.passages())

    @cached_property
    def pretrained(self) -> Any:
        return make("student", self.cfg.student, cache=Path(self.cfg.paths.cache).expanduser())

    @cached_property
    def tokens(self) -> Tokens:
        return Tokens(self.pretrained.tokenizer(), self.student.end_ids)

    @cached_property
    def student(self) -> CausalLM:
        return make("adapter", self.cfg.adapter)(self.pretrained.load(self.cfg.trainer.precision))

    @cached_property
    def reference(self) -> LanguageModel:
        """The initial weights: a view of a student with an adapter, else a frozen copy."""
        return adapter_off(self.student) if self.student.has_adapter else frozen_copy(self.student)

    @cached_property
    def teacher(self) -> LanguageModel:
        return make("teacher", self.cfg.teacher, reference=self.reference).model

    # ------------------------------------------------------------------ the method

    @cached_property
    def policy(self) -> Policy:
        return make("policy", self.cfg.policy)

    @cached_property
    def loss(self) -> HindsightLoss:
        return make("loss", self.cfg.loss)

    @cached_property
    def credit(self) -> Any:
        return make("credit", self.cfg.credit)

    @cached_property
    def reward(self) -> Reward:
        return make("reward", self.cfg.reward)

    @cached_property
    def judge_pretrained(self) -> Any:
        """The model of a judge that is another model than the student."""
        return make("judge_backend.model", self.cfg.judge_backend.model)

    @cached_property
    def judge_model(self) -> CausalLM:
        return frozen_copy(self.judge_pretrained.load(self.cfg.trainer.precision))

    @cached_property
    def judge_backend(self) -> Recorded:
        """Whoever writes the critiques; every reply is kept in critiques.jsonl, to be replayed."""
        node, offers = self.cfg.judge_backend, {"retriever": self.retriever, "tokens": self.tokens}
        if OmegaConf.is_dict(OmegaConf.select(node, "model")):  # a model to load, where an endpoint only names one
            engine = make("engine", self.cfg.engine, model=self.judge_model)
            offers |= {
                "judge_engine": engine,
                "judge_tokens": Tokens(self.judge_pretrained.tokenizer(), self.judge_model.end_ids),
            }
            node = OmegaConf.masked_copy(node, [key for key in node if key != "model"])
        elif "reference_engine" in _parameters(node):
            offers["reference_engine"] = make("engine", self.cfg.engine, model=self.reference)
        backend = make("judge_backend", node, passages=self.data.passages(), **offers)
        return Recorded(backend, self.output_dir / "critiques.jsonl")

    @cached_property
    def critique(self) -> CritiqueGenerator:
        if isinstance(self.loss, NoLoss) and not self.credit.needs_teacher:
            return NoCritiques()
        offers: dict[str, Any] = {"tokens": self.tokens, "run_seed": self.cfg.seed}
        if "judge_backend" in _parameters(self.cfg.critique):
            judge = make("judge", self.cfg.judge)
            if isinstance(judge, NoJudge):
                raise UserError("this critique asks a judge and judge=none; choose judge=gold, or critique=none")
            offers |= {"judge": judge, "judge_backend": self.judge_backend}
        critique = make("critique", self.cfg.critique, **offers)
        if isinstance(critique, NoCritiques):
            raise UserError(
                "critique=none leaves the hindsight loss no token to act on; choose critique=trajectory "
                "(or constant, for loss=self_nll), or loss=none"
            )
        return critique

    @cached_property
    def objective(self) -> Objective:
        return Objective(
            policy=self.policy,
            loss=self.loss,
            credit=self.credit,
            coefficient=make("coefficient", self.cfg.coefficient),
            hindsight_reduction=TokenMean(),
            head_rows=self.cfg.learning.head_rows,
        )

    # ------------------------------------------------------------------ the two sides and the trainer

    @cached_property
    def renderer(self) -> Any:
        return make("renderer", self.cfg.renderer, tokens=self.tokens)

    @cached_property
    def agent(self) -> SearchAgent:
        """The student as an agent, once its budgets are known to fit."""
        budget: Budget = make("agent", self.cfg.agent)
        questions = [*self.data.train(), *self.data.validation()]
        longest = max((len(self.renderer.prompt(question, "")) for question in questions), default=0)
        if warning := budget.check(longest, self.student.max_positions):
            self.console.print(f"note: {warning}", markup=False, highlight=False, soft_wrap=True)
        return SearchAgent(
            engine=make("engine", self.cfg.engine, model=self.student),
            renderer=self.renderer,
            tokens=self.tokens,
            retriever=self.retriever,
            budget=budget,
            run_seed=self.cfg.seed,
        )

    def validators(self) -> dict[str, Attempts]:
        """By metric suffix: greedy first; sampled with the same draws at each validation, beside it."""
        greedy = {"": Attempts(self.agent, self.reward, group_size=1, temperature=0.0, stage="validation")}
        sampled = {"_sampled": Attempts(self.agent, self.reward, group_size=1, temperature=1.0, stage="validation")}
        return greedy | (sampled if self.cfg.validation.sampled == "one" else {})

    def collector(self) -> Collector:
        rollout = self.cfg.rollout
        return Collector(
            attempts=Attempts(self.agent, self.reward, rollout.group_size, 1.0, "train"),
            select=make("select", self.cfg.select),
            span=make("span", self.cfg.span),
            critique=self.critique,
            policy=self.policy,
            renderer=self.renderer,
            max_failed=rollout.max_failed,
        )

    def datamodule(self) -> RolloutDataModule:
        return RolloutDataModule(
            self.data.train(),
            self.data.validation(),
            self.collector(),
            self.validators(),
            questions_per_step=self.cfg.rollout.questions,
            validation_batch=self.cfg.validation.batch,
            seed=self.cfg.seed,
        )

    def module(self) -> HindSearchModule:
        needs_teacher = self.loss.needs_teacher or self.credit.needs_teacher
        student: LanguageModel = self.student
        return HindSearchModule(
            models=Models(
                student=self.student,
                # what a judge reads with is registered too, so that it is moved to the student's device
                reference=self.reference if self.policy.kl.active or "reference" in self.__dict__ else student,
                teacher=self.teacher if needs_teacher else student,
                judge=self.__dict__.get("judge_model"),
            ),
            objective=self.objective,
            optimizer=AdamW(**{**self.cfg.optim, "betas": tuple(self.cfg.optim.betas)}),
            micro_batch_tokens=self.cfg.learning.micro_batch_tokens,
            max_ratio_error=self._max_ratio_error(),
        )

    def _max_ratio_error(self) -> float:
        chosen = self.cfg.learning.max_ratio_error
        return RATIO_ERROR[self.cfg.trainer.precision] if chosen is None else chosen

    def trainer(self, first_step: int) -> Trainer:
        """``first_step`` is where a resumed run goes on: later points of its old curves are dropped."""
        cfg = self.cfg
        checkpoints = self.output_dir / "checkpoints"
        checkpoints.mkdir(parents=True, exist_ok=True)
        # CausalLM owns the precision: it covers sampling too, where the trainer's autocast does not reach
        settings = {key: value for key, value in cfg.trainer.items() if key not in ("threads", "precision")}
        arguments: dict[str, Any] = dict(
            logger=TensorBoardLogger(
                self.output_dir, name="", version="", default_hp_metric=False, purge_step=first_step or None
            ),
            callbacks=[
                Checkpoints(checkpoints, cfg.checkpoint.every),
                RunLog(self.output_dir, cfg.log.rollouts_every, cfg.log.samples),
                Progress(self.console, every=max(1, cfg.trainer.max_steps // 20)),
            ],
            max_epochs=-1,
            val_check_interval=cfg.validation.every,
            check_val_every_n_epoch=None,
            num_sanity_val_steps=0,
            inference_mode=False,  # tensors made in validation may be read in a backward pass later
            use_distributed_sampler=False,  # the samplers shard by rank, exactly
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,  # Checkpoints writes them, in one move each
            log_every_n_steps=1,
        )
        try:
            return Trainer(**settings, **arguments)
        except (MisconfigurationException, TypeError, ValueError) as error:
            raise UserError(f"trainer: {str(error).splitlines()[0]}; trainer=cpu runs anywhere") from error

    def fingerprint(self) -> dict[str, Any]:
        """Before training: the student's weights are the initial ones."""
        config: Any = OmegaConf.to_container(self.cfg, resolve=True)
        return run_fingerprint(config, self.data.fingerprint(), self._templates(), self.student)

    def _templates(self) -> Mapping[str, str]:
        """Digests of the tokenizer and of every prompt template in use."""
        parts = [self.renderer, getattr(self.critique, "judge", None), getattr(self.critique, "judge_backend", None)]
        prompts = {"tokenizer": self.tokens.fingerprint()}
        for part in parts:
            prompts |= dict(getattr(part, "digests", {}))
        return prompts


def is_first_rank() -> bool:
    """Whether this process is the one that writes."""
    return not rank_zero_only.rank


def use_threads(threads: int | None) -> None:
    """Set torch's threads for this process; ``None`` leaves torch's own choice."""
    if threads is not None:
        torch.set_num_threads(threads)


def _parameters(node: DictConfig) -> set[str]:
    """The names of the constructor's arguments that a node's component may ask for."""
    return set(inspect.signature(get_object(node._target_)).parameters)
