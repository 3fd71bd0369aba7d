"""The LightningModule of a warm start: supervised training of any causal LM on demonstrations."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, Dataset

from hindsearch.demonstration import Demonstration, DemonstrationBatch, collate
from hindsearch.errors import TrainingError
from hindsearch.interfaces import LanguageModel
from hindsearch.optim import set_rates


class DemonstrationSource(Protocol):
    """Demonstration number ``place`` of a run, shown at ``step``: a function of its arguments alone."""

    def __call__(self, place: int, step: int, seed: int) -> Demonstration: ...


class DemonstrationSet(Dataset[Demonstration]):
    """``steps`` batches of ``batch`` demonstrations, in order.

    It has a length, so Lightning fetches nothing ahead and one epoch is the whole run: ``max_steps`` would count the
    steps of every optimiser.
    """

    def __init__(self, source: DemonstrationSource, steps: int, batch: int, seed: int) -> None:
        self.source, self.steps, self.batch, self.seed = source, steps, batch, seed

    def __len__(self) -> int:
        return self.steps * self.batch

    def __getitem__(self, place: int) -> Demonstration:
        return self.source(place, place // self.batch, self.seed)

    def loader(self) -> DataLoader[Demonstration]:
        """One batch per step. The generator keeps the loader from drawing on the global random state."""
        return DataLoader(self, batch_size=self.batch, collate_fn=collate, generator=torch.Generator().manual_seed(0))


class WarmStartModule(LightningModule):
    """One batch is one step: the mean loss per unit of weight, over micro-batches of about equal length.

    Args:
        model: a ``LanguageModel`` that is a module; its weights are trained in place.
        optimizers: from the model to its optimisers.
        schedule: factor of the rate, from step and steps.
        steps: length of the run.
        micro_batch_tokens: padded tokens that go through the model at once.
        max_grad_norm: bound on the global norm of the gradient.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizers: Callable[[nn.Module], list[Optimizer]],
        schedule: Callable[[int, int], float],
        steps: int,
        micro_batch_tokens: int,
        max_grad_norm: float,
    ) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.model = model
        self.make_optimizers, self.schedule, self.steps = optimizers, schedule, steps
        self.micro_batch_tokens, self.max_grad_norm = micro_batch_tokens, max_grad_norm

    def configure_optimizers(self) -> list[Optimizer]:
        return self.make_optimizers(self.model)

    def training_step(self, batch: DemonstrationBatch, batch_idx: int) -> dict[str, float]:
        optimizers: list[Any] = self.optimizers()  # type: ignore[assignment]
        optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
        total = sum(weight for demonstration in batch.demonstrations for weight in demonstration.weights[1:])
        loss = 0.0
        for micro in micro_batches(batch.demonstrations, self.micro_batch_tokens):
            part = self.weighted_sum(micro) / total
            self.manual_backward(part)
            loss += part.item()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm).item()
        if not torch.isfinite(torch.tensor([loss, norm])).all():
            raise TrainingError(
                f"step {batch_idx} of the warm start: loss {loss}, gradient norm {norm}; lower the rate"
            )
        set_rates(optimizers, self.schedule(batch_idx, self.steps))
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        return {"warm_start/loss": loss, "warm_start/grad_norm": norm}

    def weighted_sum(self, demonstrations: Sequence[Demonstration]) -> Tensor:
        """Minus the log-probability of each token times its weight, summed. The head sees weighted tokens only."""
        language_model: LanguageModel = self.model  # type: ignore[assignment]
        sequences = [torch.tensor(d.ids, device=self.device) for d in demonstrations]
        weights = [torch.tensor(d.weights, device=self.device) for d in demonstrations]
        # the first token has nothing before it to be predicted from
        targets = [weights_S[1:].nonzero().squeeze(1) + 1 for weights_S in weights]
        hidden_ND = language_model.hidden(sequences, targets)
        ids_N = torch.cat([ids[t] for ids, t in zip(sequences, targets, strict=True)])
        weights_N = torch.cat([w[t] for w, t in zip(weights, targets, strict=True)])
        logprobs_NV = language_model.logprobs(hidden_ND)
        return -(weights_N * logprobs_NV.gather(1, ids_N.unsqueeze(1)).squeeze(1)).sum()


def micro_batches(batch: Sequence[Demonstration], max_tokens: int) -> list[list[Demonstration]]:
    """Sort by length and cut where the padded size would pass ``max_tokens``; no demonstration is left out."""
    micros: list[list[Demonstration]] = []
    for demonstration in sorted(batch, key=lambda d: len(d.ids)):
        if micros and len(demonstration.ids) * (len(micros[-1]) + 1) <= max_tokens:
            micros[-1].append(demonstration)
        else:
            micros.append([demonstration])
    return micros


class WarmStartProgress(Callback):
    """A bar with step, loss and time left on a terminal; elsewhere a line at every ``every`` steps."""

    def __init__(self, console: Console, steps: int, every: int = 50) -> None:
        self.console, self.steps, self.every = console, steps, every
        columns = (TextColumn("warm start"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[loss]}"))
        self._bar = Progress(
            *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
        )
        self._task = self._bar.add_task("warm start", total=steps, loss="")

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._bar.start()

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        loss = f"loss {outputs['warm_start/loss']:.3f}"
        self._bar.update(self._task, completed=batch_idx + 1, loss=loss)
        if not self.console.is_terminal and ((batch_idx + 1) % self.every == 0 or batch_idx + 1 == self.steps):
            seconds = int(self._bar.tasks[0].time_remaining or 0)
            left = f"left {seconds // 60}:{seconds % 60:02d}"
            self.console.print(f"warm start · step {batch_idx + 1}/{self.steps} · {loss} · {left}", highlight=False)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._bar.stop()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._bar.stop()
