"""Everything a run leaves to read: metrics.jsonl, rollouts.jsonl, critiques and curves in TensorBoard."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger

from hindsearch import jsonl
from hindsearch.types import Record, RolloutBatch


class RunLog(Callback):
    """Logs a step's metrics under the number of steps completed (0 is before training), on the first rank.

    ``rollouts_every`` is in steps; ``samples`` rollouts are shown as text in TensorBoard at each validation.
    """

    def __init__(self, folder: Path, rollouts_every: int, samples: int) -> None:
        self.folder, self.rollouts_every, self.samples = folder, rollouts_every, samples

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """A resumed run drops what was logged after its checkpoint: those steps are made again, equal to the bit."""
        if trainer.is_global_zero and trainer.ckpt_path:
            done: int = pl_module.completed_steps  # type: ignore[assignment]
            jsonl.keep(self.folder / "metrics.jsonl", lambda row: row["step"] <= done)
            jsonl.keep(self.folder / "rollouts.jsonl", lambda row: row["step"] <= done)

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


def record_row(step: int, record: Record) -> dict[str, Any]:
    """A rollout as one JSON object; ids, masks and log-probabilities included."""
    rollout, score, critique = record.rollout, record.score, record.critique
    return {
        "step": step,
        "group": rollout.group,
        "index": rollout.index,
        "question_id": rollout.question.id,
        "source": rollout.question.source,
        "question": rollout.question.text,
        "golden_answers": list(rollout.question.golds),
        "response": rollout.text,
        "answer": rollout.answer,
        "stop": rollout.stop.value,
        "reward": score.reward,
        "em": score.em,
        "f1": score.f1,
        "searches": [
            {"query": turn.content, "passages": [{"id": p.id, "title": p.title} for p in turn.passages]}
            for turn in rollout.searches
        ],
        "critique": {"text": critique.text, "hint": critique.hint, "outcome": critique.outcome.value},
        "prompt_ids": list(rollout.prompt_ids),
        "completion_ids": list(rollout.completion_ids),
        "loss_mask": [int(m) for m in rollout.loss_mask],
        "logprobs": list(rollout.logprobs),
    }


def as_markdown(record: Record) -> str:
    """A rollout for people. Retrieved text is indented as code, so that no markup in it is rendered."""
    rollout, score = record.rollout, record.score
    lines = [
        f"**{_inline(rollout.question.text)}**",
        f"gold: {_inline(' | '.join(rollout.question.golds))} · answer: {_inline(str(rollout.answer))} · "
        f"EM {score.em:g} · {rollout.stop.value}",
    ]
    for turn in rollout.turns:
        lines.append(_code(turn.text))
        if turn.observation:
            lines.append(_code(turn.observation))
    if record.critique.text:
        lines.append(f"critique ({record.critique.outcome.value}): {_inline(record.critique.text)}")
    return "\n\n".join(lines)


def _code(text: str) -> str:
    return "\n".join("    " + line for line in text.strip("\n").splitlines())


def _inline(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _failed_first(records: Sequence[Record]) -> list[Record]:
    """Hinted rollouts first: they are what one wants to read."""
    return sorted(records, key=lambda record: not record.critique.hint)
