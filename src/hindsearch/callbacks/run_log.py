"""Everything a run leaves to read: metrics.jsonl, rollouts.jsonl, critiques and curves in TensorBoard."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger

from hindsearch import jsonl
from hindsearch.records import as_markdown, record_row
from hindsearch.tensors import RolloutBatch
from hindsearch.types import Record


class RunLog(Callback):
    """Logs a step's metrics under the number of steps completed (0 is before training), on the first rank.

    ``rollouts_every`` is in steps; ``samples`` rollouts are shown as text in TensorBoard at each validation.
    """

    def __init__(self, folder: Path, rollouts_every: int, samples: int) -> None:
        self.folder, self.rollouts_every, self.samples = folder, rollouts_every, samples
        self._validated: set[int] = set()

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """What an earlier process logged is not logged twice."""
        rows = jsonl.read(self.folder / "metrics.jsonl")
        self._validated = {row["step"] for row in rows if row["stage"] == "validation"}

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """A resumed run drops what was logged after its checkpoint: those steps are made again, equal to the bit."""
        if trainer.is_global_zero and trainer.ckpt_path:
            done: int = pl_module.completed_steps  # type: ignore[assignment]
            jsonl.keep(self.folder / "metrics.jsonl", lambda row: row["step"] <= done)
            jsonl.keep(self.folder / "rollouts.jsonl", lambda row: row["step"] <= done)
            self._validated = {step for step in self._validated if step <= done}

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: RolloutBatch, batch_idx: int
    ) -> None:
        step = batch.step + 1
        self._log(trainer, "train", step, outputs["metrics"])
        if trainer.is_global_zero and step % self.rollouts_every == 0:
            jsonl.append(self.folder / "rollouts.jsonl", [record_row(step, record) for record in batch.records])
            self._show(trainer, "train", step, _failed_first(batch.records))

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        step: int = pl_module.completed_steps  # type: ignore[assignment]
        if step in self._validated:
            return
        self._validated.add(step)
        self._log(trainer, "validation", step, pl_module.validation_metrics)  # type: ignore[arg-type]
        self._show(trainer, "validation", step, pl_module.validation_records)  # type: ignore[arg-type]

    def _log(self, trainer: Trainer, stage: str, step: int, metrics: Mapping[str, float]) -> None:
        if trainer.is_global_zero:
            jsonl.append(self.folder / "metrics.jsonl", [{"step": step, "stage": stage, **metrics}])
            for logger in trainer.loggers:
                logger.log_metrics(dict(metrics), step=step)

    def _show(self, trainer: Trainer, stage: str, step: int, records: Sequence[Record]) -> None:
        for logger in trainer.loggers:
            if trainer.is_global_zero and isinstance(logger, TensorBoardLogger):
                for i, record in enumerate(records[: self.samples]):
                    logger.experiment.add_text(f"{stage}/sample_{i}", as_markdown(record), step)


def _failed_first(records: Sequence[Record]) -> list[Record]:
    """Hinted rollouts first: they are what one wants to read."""
    return sorted(records, key=lambda record: not record.critique.hint)
