"""Checkpoints that a kill cannot cut, and the best by validation EM."""

import os
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer


class Checkpoints(Callback):
    """Writes ``last.ckpt`` every ``every`` steps and at the end; ``best.ckpt`` at each new high of ``val/em``."""

    def __init__(self, folder: Path, every: int) -> None:
        self.folder, self.every = folder, every
        self.best_em = -1.0

    def state_dict(self) -> dict[str, Any]:
        return {"best_em": self.best_em}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best_em = float(state_dict["best_em"])

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, *_: Any) -> None:
        done: int = pl_module.completed_steps  # type: ignore[assignment]
        if done % self.every == 0 or done == trainer.max_steps:
            self._save(trainer, "last.ckpt")

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        em: float = pl_module.validation_metrics.get("val/em", -1.0)  # type: ignore[union-attr]
        if not trainer.sanity_checking and trainer.state.fn == "fit" and em > self.best_em:
            self.best_em = em
            self._save(trainer, "best.ckpt")

    def _save(self, trainer: Trainer, name: str) -> None:
        temporary = self.folder / f"{name}.tmp"
        trainer.save_checkpoint(temporary)
        if trainer.is_global_zero:
            os.replace(temporary, self.folder / name)
        trainer.strategy.barrier()
