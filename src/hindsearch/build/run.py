"""The composition root: from a config to a run. Models are built once and handed to whoever needs them."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch import Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from hindsearch.agent import SearchAgent
from hindsearch.budget import Budget
from hindsearch.build.method import Method
from hindsearch.build.world import World
from hindsearch.callbacks.checkpoints import Checkpoints
from hindsearch.callbacks.progress import Progress
from hindsearch.callbacks.run_log import RunLog
from hindsearch.collector import Attempts, Collector
from hindsearch.datamodule import RolloutDataModule
from hindsearch.errors import UserError
from hindsearch.fingerprint import run_fingerprint
from hindsearch.interfaces import Reward
from hindsearch.making import make
from hindsearch.module import AdamW, HindSearchModule, Models
from hindsearch.settings import check_settings

RATIO_ERROR = {"64-true": 1e-5, "32-true": 1e-3, "bf16-mixed": 0.2}
"""Largest |ratio - 1| on a token that sampler and trainer may differ by: rounding, and nothing else."""


class Builder:
    """Joins ``world`` and ``method`` to the two sides of a run and the trainer that drives them."""

    def __init__(self, cfg: DictConfig, output_dir: Path, console: Console | None = None) -> None:
        check_settings(cfg)
        self.cfg, self.output_dir, self.console = cfg, output_dir, console or Console()
        self.world = World(cfg, self.console)
        self.method = Method(cfg, self.world, output_dir)

    @cached_property
    def reward(self) -> Reward:
        return make("reward", self.cfg.reward)

    @cached_property
    def agent(self) -> SearchAgent:
        """The student as an agent, once its budgets are known to fit."""
        world = self.world
        budget: Budget = make("agent", self.cfg.agent)
        questions = [*world.data.train(), *world.data.validation()]
        longest = max((len(world.renderer.prompt(question, "")) for question in questions), default=0)
        if warning := budget.check(longest, world.student.max_positions):
            world.note(warning)
        return SearchAgent(
            engine=world.engine(world.student),
            renderer=world.renderer,
            tokens=world.tokens,
            retriever=world.retriever,
            budget=budget,
            run_seed=self.cfg.seed,
        )

    def validators(self) -> dict[str, Attempts]:
        """By metric suffix: greedy first; sampled with the same draws at each validation, beside it."""
        greedy = {"": Attempts(self.agent, self.reward, group_size=1, temperature=0.0, stage="validation")}
        sampled = {"_sampled": Attempts(self.agent, self.reward, group_size=1, temperature=1.0, stage="validation")}
        return greedy | (sampled if self.cfg.validation.sampled == "one" else {})

    def collector(self) -> Collector:
        rollout, method = self.cfg.rollout, self.method
        return Collector(
            attempts=Attempts(self.agent, self.reward, rollout.group_size, 1.0, "train"),
            select=method.select,
            span=method.span,
            critique=method.critique,
            policy=method.policy,
            renderer=self.world.renderer,
            max_failed=rollout.max_failed,
            uses_critiques=method.objective.uses_critiques,
        )

    def datamodule(self) -> RolloutDataModule:
        return RolloutDataModule(
            self.world.data.train(),
            self.world.data.validation(),
            self.collector(),
            self.validators(),
            questions_per_step=self.cfg.rollout.questions,
            validation_batch=self.cfg.validation.batch,
            seed=self.cfg.seed,
        )

    def module(self) -> HindSearchModule:
        world, method = self.world, self.method
        teacher = method.teacher
        # what a judge reads with is registered too, so that it is moved to the student's device
        has_reference = method.policy.kl.active or world.has_reference
        return HindSearchModule(
            models=Models(
                student=world.student,
                reference=world.reference if has_reference else world.student,
                teacher=teacher,
                judge=method.judge_model,
            ),
            objective=method.objective,
            optimizer=AdamW(**{**self.cfg.optim, "betas": tuple(self.cfg.optim.betas)}),
            micro_batch_tokens=self.cfg.learning.micro_batch_tokens,
            max_ratio_error=self._max_ratio_error(),
            updates_per_rollout=self.cfg.learning.updates_per_rollout,
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
        return run_fingerprint(config, self.world.data.fingerprint(), self._templates(), self.world.student)

    def _templates(self) -> Mapping[str, str]:
        """Digests of the tokenizer and of every prompt template in use."""
        method = self.method
        parts = [self.world.renderer, *([method.judge, method.judge_backend] if method.asks_judge else [])]
        prompts = {"tokenizer": self.world.tokens.fingerprint()}
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
