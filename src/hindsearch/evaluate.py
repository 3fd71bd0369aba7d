"""`hindsearch evaluate`: answer every validation question greedily, in file order, and report EM and F1 per set."""

import sys
from pathlib import Path

import hydra
from omegaconf import DictConfig
from rich.console import Console
from rich.table import Table

from hindsearch import jsonl
from hindsearch.build.run import Builder, use_threads
from hindsearch.cli import run_hydra_verb
from hindsearch.errors import UserError
from hindsearch.making import conf_dir
from hindsearch.metrics import validation_metrics
from hindsearch.records import record_row
from hindsearch.resuming import find_checkpoint, read_checkpoint
from hindsearch.speaking import run_job
from hindsearch.types import NO_CRITIQUE, Draw, Record


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="evaluate")
def main(cfg: DictConfig) -> float:
    """Return the greedy macro EM."""
    return run_job("evaluate", evaluate, cfg)


def evaluate(cfg: DictConfig, output_dir: Path, console: Console | None = None) -> float:
    """Write ``predictions.jsonl`` and ``evaluation.json`` to ``output_dir`` and return the greedy macro EM."""
    console = console or Console()
    checkpoint = find_checkpoint(cfg.ckpt_path, output_dir, "", {})
    if cfg.ckpt_path and not checkpoint:
        raise UserError(
            f"ckpt_path=last: there is no checkpoints/last.ckpt in {output_dir}; give the run's folder as "
            "paths.output_dir, or a .ckpt file as ckpt_path"
        )
    builder = Builder(cfg, output_dir, console)
    use_threads(cfg.trainer.threads)
    fingerprint = builder.fingerprint()
    if checkpoint:
        builder.world.student.load_trained(read_checkpoint(checkpoint)["state_dict"])
    console.print(f"student: {checkpoint or 'as it is loaded, no checkpoint'}", markup=False, soft_wrap=True)
    questions = builder.world.data.validation()
    draws = [Draw(question, step=0, slot=i) for i, question in enumerate(questions)]
    output_dir.mkdir(parents=True, exist_ok=True)
    predictions = output_dir / "predictions.jsonl"
    predictions.unlink(missing_ok=True)
    metrics: dict[str, float] = {}
    for suffix, attempts in builder.validators().items():
        rows, lost = [], 0
        for start in range(0, len(draws), cfg.validation.batch):
            batch = attempts(draws[start : start + cfg.validation.batch])
            lost += batch.num_failed
            rows += [(r.question.source, score) for r, score in zip(batch.rollouts, batch.scores, strict=True)]
            records = [Record(*row, NO_CRITIQUE) for row in zip(batch.rollouts, batch.scores, strict=True)]
            decoding = "sampled" if suffix else "greedy"
            jsonl.append(predictions, [{"decoding": decoding, **record_row(0, record)} for record in records])
            console.print(f"{decoding}: {start + len(batch.rollouts)}/{len(draws)} questions", highlight=False)
        metrics |= validation_metrics(rows, suffix, lost)
    jsonl.write_json(output_dir / "evaluation.json", {"metrics": metrics, "fingerprint": fingerprint})
    console.print(_table(metrics))
    console.print(f"written to {output_dir}", markup=False, highlight=False, soft_wrap=True)
    return metrics["val/em"]


def _table(metrics: dict[str, float]) -> Table:
    table = Table("metric", "value")
    for name, value in metrics.items():
        table.add_row(name, f"{value:.3f}" if "questions" not in name else f"{value:.0f}")
    return table


if __name__ == "__main__":
    sys.exit(run_hydra_verb("evaluate", sys.argv[1:]))
