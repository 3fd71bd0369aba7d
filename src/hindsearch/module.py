"""The LightningModule: wraps student, teacher and judge, scores and updates. It does not sample."""

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from lightning.pytorch import LightningModule
from torch import Tensor, nn

from hindsearch.errors import TrainingError, UserError
from hindsearch.interfaces import LanguageModel, Teacher
from hindsearch.metrics import validation_metrics
from hindsearch.micro_batch import Share, micro_batches
from hindsearch.models.snapshot import Snapshot
from hindsearch.objective import Objective, OldPolicy, Part, Reading
from hindsearch.tensors import RolloutBatch
from hindsearch.types import NO_CRITIQUE, AttemptBatch, Record


@dataclass(frozen=True)
class AdamW:
    """The optimiser: AdamW with a linear warm-up to a constant rate, gradients clipped by their global norm."""

    lr: float
    betas: tuple[float, float]
    weight_decay: float
    max_grad_norm: float
    warmup_steps: int

    def rate(self, step: int) -> float:
        """Factor of ``lr`` at a step."""
        return min(1.0, (step + 1) / self.warmup_steps) if self.warmup_steps else 1.0


@dataclass(frozen=True)
class Models:
    """The weights of a run. ``reference``, ``teacher`` and the judge may be one object, or views of the student."""

    student: nn.Module
    reference: LanguageModel
    teacher: Teacher
    judge: nn.Module | None


class HindSearchModule(LightningModule):
    """One batch is one step of ``updates_per_rollout`` updates: manual optimisation, micro-batches inside.

    ``student`` alone is trained, and alone in a checkpoint but for a teacher that follows it; it loads weights-only.
    ``max_ratio_error`` bounds |ratio − 1| between the sampler's and the trainer's probabilities at the first update of
    every run. ``fingerprint`` is kept in checkpoints, so that a run is continued only as what it is.
    """

    strict_loading = False  # type: ignore[assignment]  # frozen weights are not in the checkpoint; on_load_checkpoint checks the student's own

    def __init__(
        self,
        models: Models,
        objective: Objective,
        optimizer: AdamW,
        micro_batch_tokens: int,
        max_ratio_error: float,
        updates_per_rollout: int = 1,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.student = models.student
        self.reference, self.teacher, self.judge = models.reference, models.teacher.model, models.judge
        self.teacher_rule = models.teacher
        self.objective, self.optimizer_settings = objective, optimizer
        self.micro_batch_tokens, self.max_ratio_error = micro_batch_tokens, max_ratio_error
        self.updates_per_rollout = updates_per_rollout
        self.completed_steps = 0
        self.validated_step = -1
        self.fingerprint: dict[str, Any] = {}
        self.validation_metrics: dict[str, float] = {}
        self.validation_records: list[Record] = []
        self._ratio_checked = False
        self._attempts: dict[int, list[AttemptBatch]] = defaultdict(list)

    # ------------------------------------------------------------------ training

    def train(self, mode: bool = True) -> "HindSearchModule":
        """Only the student ever trains; frozen models keep eval mode."""
        super().train(mode)
        for model in (self.reference, self.teacher, self.judge):
            if isinstance(model, nn.Module) and model is not self.student:
                model.eval()
        return self

    def configure_optimizers(self) -> Any:
        settings = self.optimizer_settings
        trainable = [p for p in self.student.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(
            trainable, lr=settings.lr, betas=settings.betas, weight_decay=settings.weight_decay
        )
        return [optimizer], [torch.optim.lr_scheduler.LambdaLR(optimizer, settings.rate)]

    def on_train_start(self) -> None:
        self.student.train()

    def training_step(self, batch: RolloutBatch, _: int) -> dict[str, Any]:
        """Read, then update. Returns ``metrics`` for the callbacks, means over the whole step and all ranks."""
        began = time.perf_counter()
        totals = _sum_over_ranks(self.objective.divisors(batch.examples))
        micros = micro_batches(self.objective.plan(batch.examples, totals, batch.step), self.micro_batch_tokens)
        readings = [self.objective.read(self.teacher, self.reference, micro) for micro in micros]  # type: ignore[arg-type]
        gaps_A = torch.cat(
            [gap.to(self.device) for gap in _gather([r.gap_M.cpu() for r in readings])] or [torch.zeros(0)]
        )
        read_seconds, began = time.perf_counter() - began, time.perf_counter()
        olds: Sequence[OldPolicy | None] = [None] * len(micros)
        metrics: dict[str, float] = {}
        parts: list[Part] = []
        norms: list[float] = []
        for update in range(self.updates_per_rollout):
            parts = self._backward(micros, readings, gaps_A, batch.step, olds)
            if update == 0:
                metrics, olds = _step_metrics(parts, dict(batch.metrics)), [part.old for part in parts]
                self._check_ratio(metrics)
            norms.append(self._update(batch.step, is_last=update == self.updates_per_rollout - 1))
        if self.updates_per_rollout > 1:
            last = _step_metrics(parts, {})
            metrics |= {f"{name}_last": value for name, value in last.items() if name.startswith("policy/")}
        self.lr_schedulers().step()  # type: ignore[union-attr]
        self.completed_steps = batch.step + 1
        self.teacher_rule.follow(self.completed_steps)
        rate = self.optimizers().param_groups[0]["lr"]  # type: ignore[union-attr]
        metrics |= {"train/grad_norm": max(norms), "train/lr": rate, "train/tokens": float(totals[2])}
        metrics |= {"time/teacher": read_seconds, "time/update": time.perf_counter() - began}
        return {"metrics": metrics}

    def _backward(
        self,
        micros: Sequence[Sequence[Share]],
        readings: Sequence[Reading],
        gaps_A: Tensor,
        step: int,
        olds: Sequence[OldPolicy | None],
    ) -> list[Part]:
        """The step's gradient, micro-batch by micro-batch."""
        self.optimizers().zero_grad()  # type: ignore[union-attr]
        parts: list[Part] = []
        for i in range(_max_over_ranks(max(1, len(micros)))):
            if i < len(micros):
                parts.append(
                    self.objective(self.student, self.teacher, micros[i], readings[i], gaps_A, step, olds[i])  # type: ignore[arg-type]
                )
                loss = parts[-1].loss
            else:
                loss = self._no_loss()
            # DDP averages gradients over ranks, while the shares of all ranks add up to the step's loss
            self.manual_backward(loss * self.trainer.world_size)
        return [replace(part, loss=part.loss.detach()) for part in parts]

    def _update(self, step: int, is_last: bool) -> float:
        """One optimiser step; returns the gradient's norm before clipping."""
        optimizer = self.optimizers()
        trained = [p for group in optimizer.param_groups for p in group["params"]]  # type: ignore[union-attr]
        norm = float(torch.nn.utils.clip_grad_norm_(trained, self.optimizer_settings.max_grad_norm))
        if not math.isfinite(norm):
            raise TrainingError(
                f"the gradient of step {step} is not finite (norm {norm}) and was not applied: "
                "lower optim.lr, or look at loss/ and policy/ in metrics.jsonl, and resume with ckpt_path=last"
            )
        # Lightning counts the steps of its wrapper, and trainer.max_steps counts rollout batches
        (optimizer if is_last else optimizer.optimizer).step()  # type: ignore[union-attr]
        return norm

    def _no_loss(self) -> Tensor:
        """Zero, reaching every trained weight: gradients then exist, and all ranks go backward equally often."""
        return torch.stack([p.sum() * 0.0 for p in self.student.parameters() if p.requires_grad]).sum()

    def _check_ratio(self, metrics: Mapping[str, float]) -> None:
        """On the first update the student is the policy that sampled, so every ratio must be 1 (design rule 3)."""
        if self._ratio_checked or "rollout/logprob_error_max" not in metrics:
            return
        self._ratio_checked = True
        error = math.expm1(metrics["rollout/logprob_error_max"])
        if not error <= self.max_ratio_error:
            raise TrainingError(
                f"the first update's ratio is off by {error:.2g} between sampler and trainer, more than "
                f"learning.max_ratio_error={self.max_ratio_error}: they run in another precision or on other weights; "
                "use one trainer.precision for both, or raise the limit for a low precision"
            )

    # ------------------------------------------------------------------ validation

    def on_validation_epoch_start(self) -> None:
        self._attempts.clear()

    def validation_step(self, batch: AttemptBatch, _: int, dataloader_idx: int = 0) -> None:
        self._attempts[dataloader_idx].append(batch)

    def on_validation_epoch_end(self) -> None:
        """Means over all questions of each set and their macro mean, exact over ranks."""
        metrics: dict[str, float] = {}
        names = list(self.trainer.datamodule.validators)  # type: ignore[attr-defined]
        for index, suffix in enumerate(names):
            rows = [
                (rollout.question.source, score)
                for batch in self._attempts[index]
                for rollout, score in zip(batch.rollouts, batch.scores, strict=True)
            ]
            lost = sum(batch.num_failed for batch in self._attempts[index])
            metrics |= validation_metrics(_gather([*rows]), suffix, sum(_gather([lost])))
        self.validation_metrics, self.validated_step = metrics, self.completed_steps
        self.validation_records = [
            Record(rollout, score, NO_CRITIQUE)
            for batch in self._attempts[0]
            for rollout, score in zip(batch.rollouts, batch.scores, strict=True)
        ]
        self.log_dict(metrics, logger=False, batch_size=1)

    # ------------------------------------------------------------------ checkpoints

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        kept = self._checkpoint_keys()
        checkpoint["state_dict"] = {k: v for k, v in checkpoint["state_dict"].items() if k in kept}
        checkpoint["completed_steps"] = self.completed_steps
        checkpoint["fingerprint"] = self.fingerprint
        if isinstance(self.teacher, Snapshot):
            checkpoint["teacher"] = self.teacher.weights()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        saved = checkpoint["state_dict"]
        own = self.state_dict()
        missing = [key for key in self._checkpoint_keys() if key not in saved]
        if missing:
            raise UserError(f"the checkpoint lacks {len(missing)} weights of this student, the first is {missing[0]}")
        for key, value in saved.items():
            if key not in own or own[key].shape != value.shape:
                here = tuple(own[key].shape) if key in own else "absent"
                raise UserError(
                    f"the checkpoint is of another model: {key} has shape {tuple(value.shape)} there, {here} here; "
                    "use the same student and adapter options as the run that wrote it"
                )
        self.completed_steps = int(checkpoint["completed_steps"])
        if isinstance(self.teacher, Snapshot):
            self.teacher.load(checkpoint["teacher"])

    def _checkpoint_keys(self) -> list[str]:
        """What training changes: the trained weights and the student's buffers."""
        trained = {name for name, p in self.student.named_parameters(remove_duplicate=False) if p.requires_grad}
        frozen = {name for name, p in self.student.named_parameters(remove_duplicate=False) if not p.requires_grad}
        names = (name for name in self.student.state_dict() if name in trained or name not in frozen)
        return [f"student.{name}" for name in names]


# ---------------------------------------------------------------------- sums over micro-batches and ranks


def _step_metrics(parts: Sequence[Part], metrics: dict[str, float]) -> dict[str, float]:
    """The step's figures: sums of sums, means over tokens, largest of maxima, means over ranks of ``metrics``."""
    sums: dict[str, float] = defaultdict(float)
    totals: dict[str, float] = defaultdict(float)
    counts: dict[str, float] = defaultdict(float)
    maxima: dict[str, float] = defaultdict(float)
    values: dict[str, list[float]] = defaultdict(list)
    for part_sums, part_means, part_maxima, part_metrics in _gather(
        [
            *(
                (
                    {name: float(v) for name, v in part.sums.items()},
                    {name: (float(v), float(n)) for name, (v, n) in part.means.items()},
                    {name: float(v) for name, v in part.maxima.items()},
                    {},
                )
                for part in parts
            ),
            ({}, {}, {}, metrics),
        ]
    ):
        for name, value in part_sums.items():
            sums[name] += value
        for name, (total, count) in part_means.items():
            totals[name] += total
            counts[name] += count
        for name, value in part_maxima.items():
            maxima[name] = max(maxima[name], value)
        for name, value in part_metrics.items():
            values[name].append(value)
    return {
        **{name: sum(column) / len(column) for name, column in values.items()},
        **sums,
        **{name: totals[name] / counts[name] for name in totals if counts[name]},
        **maxima,
    }


def _gather(rows: list[Any]) -> list[Any]:
    """The rows of all ranks, in rank order."""
    if not dist.is_initialized():
        return rows
    gathered: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, rows)
    return [row for rank_rows in gathered for row in rank_rows]


def _sum_over_ranks(counts: Tensor) -> Tensor:
    return torch.stack(_gather([counts])).sum(0)


def _max_over_ranks(count: int) -> int:
    return max(_gather([count]))
