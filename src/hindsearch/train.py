"""`hindsearch train`: validate, fit, validate, export, and say where things are."""

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from hindsearch import jsonl
from hindsearch.build.run import Builder, is_first_rank, use_threads
from hindsearch.cli import run_hydra_verb
from hindsearch.errors import UserError
from hindsearch.making import conf_dir
from hindsearch.models.export import export_folder
from hindsearch.overrides import refuse_idle
from hindsearch.resuming import LAST, alone_in, check_same_run, find_checkpoint, read_checkpoint
from hindsearch.speaking import run_job


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="train")
def main(cfg: DictConfig) -> float:
    """Return the final ``val/em``, for sweepers."""
    return run_job("train", train, cfg)


def train(cfg: DictConfig, output_dir: Path, console: Console | None = None) -> float:
    """Train to ``trainer.max_steps`` and return the last greedy ``val/em``."""
    console = console or Console()
    _quieten()
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    checkpoint = find_checkpoint(cfg.ckpt_path, output_dir, cfg.run_name, config)
    if checkpoint and cfg.ckpt_path == LAST:
        output_dir = checkpoint.parent.parent
    if not is_first_rank():
        return _train(cfg, output_dir, checkpoint, console)
    with alone_in(output_dir):
        return _train(cfg, output_dir, checkpoint, console)


def _train(cfg: DictConfig, output_dir: Path, checkpoint: Path | None, console: Console) -> float:
    goes_on = checkpoint is not None and checkpoint.is_relative_to(output_dir.resolve())
    if cfg.ckpt_path == LAST and not checkpoint:
        console.print(f"no checkpoint of this run yet in {output_dir}: starting at step 0", markup=False)
    elif not goes_on and (output_dir / "metrics.jsonl").exists():
        raise UserError(
            f"{output_dir} holds a run already; continue it with ckpt_path=last, or give another paths.output_dir"
        )
    builder = Builder(cfg, output_dir, console)
    refuse_idle(builder.method.idle(), builder.world.note)
    use_threads(cfg.trainer.threads)
    datamodule, module = builder.datamodule(), builder.module()
    fingerprint = builder.fingerprint()
    saved: dict[str, Any] = read_checkpoint(checkpoint) if checkpoint else {}
    done = int(saved.get("completed_steps", 0))
    if checkpoint:
        check_same_run(saved, fingerprint, checkpoint)
    if done >= cfg.trainer.max_steps:
        console.print(f"at step {done} of {cfg.trainer.max_steps} already: nothing to train", markup=False)
    module.fingerprint = fingerprint
    trainer = builder.trainer(first_step=done)
    if trainer.is_global_zero and not goes_on:
        _start_afresh(output_dir)
        OmegaConf.save(cfg, output_dir / "config.yaml", resolve=True)
        jsonl.write_json(output_dir / "fingerprint.json", fingerprint)

    if not goes_on or _lacks_point(output_dir, done, cfg.validation.every):
        # where this folder's curve begins, or a point that a kill came before
        trainer.validate(module, datamodule, ckpt_path=checkpoint, verbose=False)
    trainer.fit(module, datamodule, ckpt_path=checkpoint)
    if module.validated_step != module.completed_steps:
        trainer.validate(module, datamodule, verbose=False)
    if trainer.is_global_zero:
        export_folder(builder.world.student, builder.world.pretrained.tokenizer(), output_dir / "student")
        for line in closing_summary(output_dir, module.validation_metrics):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    return float(module.validation_metrics.get("val/em", float("nan")))


def closing_summary(output_dir: Path, metrics: dict[str, float]) -> list[str]:
    """EM before and after, the folder, and how to see the curves."""
    first = next((row for row in jsonl.read(output_dir / "metrics.jsonl") if row["stage"] == "validation"), {})
    began = "before" if first.get("step") == 0 else f"at step {first.get('step')}"
    lines = ["", f"run        {output_dir}"]
    for key, label in (("val/em", "EM greedy"), ("val/em_sampled", "EM sampled")):
        if key in metrics:
            n = int(metrics[key.replace("/em", "/questions")])
            lines.append(f"{label:<11}{first.get(key, float('nan')):.3f} {began}, {metrics[key]:.3f} after (n={n})")
    return [
        *lines,
        f"student    {output_dir / 'student'} (a Hugging Face folder)",
        f"curves     tensorboard --logdir {output_dir.parent}",
    ]


def _lacks_point(output_dir: Path, step: int, every: int) -> bool:
    """Whether a run that stands at ``step`` should have been validated there and was not."""
    rows = jsonl.read(output_dir / "metrics.jsonl")
    return step % every == 0 and not any(row["step"] == step and row["stage"] == "validation" for row in rows)


def _start_afresh(output_dir: Path) -> None:
    """Clear what a run left that was killed before its first checkpoint."""
    for path in [*output_dir.glob("*.jsonl"), *output_dir.glob("events.out.tfevents.*")]:
        path.unlink()


def _quieten() -> None:
    """One worker is a decision here, not an oversight; the rest of Lightning's notices are not this program's voice."""
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    warnings.filterwarnings("ignore", message=".*is not stateful.*|.*mid-epoch.*|.*in eval mode.*|.*LeafSpec.*")
    warnings.filterwarnings("ignore", message=".*not resumable.*|.*sync_dist=True.*")
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)


if __name__ == "__main__":
    sys.exit(run_hydra_verb("train", sys.argv[1:]))
