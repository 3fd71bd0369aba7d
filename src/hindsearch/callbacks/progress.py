"""A live line while a run goes on: step, phases, time left, the last EM."""

import time
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console
from rich.live import Live
from rich.text import Text

PHASES = ("generate", "retrieve", "judge", "update")


class Progress(Callback):
    """On a terminal one line that is redrawn; elsewhere a line at every ``every`` steps."""

    def __init__(self, console: Console, every: int) -> None:
        self.console, self.every = console, every
        self._live: Live | None = None
        self._began = time.perf_counter()
        self._first_step = 0
        self._em = ""

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._began = time.perf_counter()
        self._first_step = int(pl_module.completed_steps)  # type: ignore[arg-type]
        if trainer.is_global_zero and self.console.is_terminal:
            self._live = Live(console=self.console, refresh_per_second=4, transient=True)
            self._live.start()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if not trainer.is_global_zero:
            return
        done: int = pl_module.completed_steps  # type: ignore[assignment]
        line = self._line(done, trainer.max_steps, outputs["metrics"])
        if self._live:
            self._live.update(Text(line))
        elif done % self.every == 0 or done == trainer.max_steps:
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def on_validation_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        metrics: dict[str, float] = pl_module.validation_metrics  # type: ignore[assignment]
        if trainer.is_global_zero and "val/em" in metrics:
            self._em = f"val EM {metrics['val/em']:.3f}"
            if "val/em_sampled" in metrics:
                self._em += f" (sampled {metrics['val/em_sampled']:.3f})"

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._stop()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._stop()

    def _line(self, done: int, last: int, metrics: dict[str, float]) -> str:
        per_step = (time.perf_counter() - self._began) / max(1, done - self._first_step)
        left = int(per_step * (last - done))
        phases = " ".join(f"{name} {metrics.get(f'time/{name}', 0.0):.2f}" for name in PHASES)
        parts = [f"step {done}/{last}", f"reward {metrics['train/reward']:.3f}", self._em, f"seconds: {phases}"]
        return " · ".join(part for part in [*parts, f"left {left // 60}:{left % 60:02d}"] if part)

    def _stop(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None
