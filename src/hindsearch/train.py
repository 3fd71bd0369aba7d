"""`hindsearch train`: validate, fit, validate, export, and say where things are."""

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import hydra
import torch
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from hindsearch import jsonl
from hindsearch.build import Builder, use_threads
from hindsearch.cli import run_hydra_verb
from hindsearch.errors import UserError
from hindsearch.fingerprint import differences
from hindsearch.making import conf_dir
from hindsearch.models.export import export_folder
from hindsearch.speaking import run_job

LAST = "last"


@hydra.main(version_base="1.3", config_path=str(conf_dir()), config_name="train")
def main(cfg: DictConfig) -> float:
    """Return the final ``val/em``, for sweepers."""
    return run_job("train", train, cfg)


def train(cfg: DictConfig, output_dir: Path, console: Console | None = None) -> float:
    """Train to ``trainer.max_steps`` and return the last greedy ``val/em``."""
    console = console or Console()
    _quieten()
    use_threads(cfg.trainer.threads)
    checkpoint = find_checkpoint(cfg.ckpt_path, output_dir, cfg.run_name)
    if checkpoint and cfg.ckpt_path == LAST:
        output_dir = checkpoint.parent.parent
    goes_on = checkpoint is not None and checkpoint.is_relative_to(output_dir.resolve())
    if cfg.ckpt_path == LAST and not checkpoint:
        console.print(f"no checkpoint of this run yet in {output_dir}: starting at step 0", markup=False)
    elif not goes_on and (output_dir / "metrics.jsonl").exists():
        raise UserError(
            f"{output_dir} holds a run already; continue it with ckpt_path=last, or give another paths.output_dir"
        )
    builder = Builder(cfg, output_dir, console)
    datamodule, module = builder.datamodule(), builder.module()
    fingerprint = builder.fingerprint()
    saved: dict[str, Any] = read_checkpoint(checkpoint) if checkpoint else {}
    if checkpoint:
        check_same_run(saved, fingerprint, checkpoint)
    output_dir.mkdir(parents=True, exist_ok=True)
    module.fingerprint = fingerprint
    trainer = builder.trainer(first_step=int(saved.get("completed_steps", 0)))
    if trainer.is_global_zero and not goes_on:
        _start_afresh(output_dir)
        OmegaConf.save(cfg, output_dir / "config.yaml", resolve=True)
        jsonl.write_json(output_dir / "fingerprint.json", fingerprint)

    if checkpoint is None or _lacks_point(output_dir, int(saved["completed_steps"]), cfg.validation.every):
        # the point at step 0 that every curve needs, or one that a kill came before
        trainer.validate(module, datamodule, ckpt_path=checkpoint, verbose=False)
    trainer.fit(module, datamodule, ckpt_path=checkpoint)
    if module.validated_step != module.completed_steps:
        trainer.validate(module, datamodule, verbose=False)
    if trainer.is_global_zero:
        export_folder(builder.student, builder.pretrained.tokenizer(), output_dir / "student")
        for line in closing_summary(output_dir, module.validation_metrics):
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    return float(module.validation_metrics.get("val/em", float("nan")))


def find_checkpoint(ckpt_path: str | None, output_dir: Path, run_name: str) -> Path | None:
    """The file to resume from. ``last`` is this folder's, else that of the newest run of the same name beside it.

    A run goes on in its own folder under ``last``; a checkpoint given by path starts in the folder that is asked for.
    """
    if ckpt_path is None:
        return None
    if ckpt_path != LAST:
        path = Path(ckpt_path).expanduser()
        if not path.is_file():
            raise UserError(f"ckpt_path={ckpt_path} is not a file; give a .ckpt file, or ckpt_path=last")
        return path.resolve()
    folders = [output_dir, *sorted(output_dir.parent.glob(f"*-{run_name}"), reverse=True)]
    candidates = [folder / "checkpoints" / "last.ckpt" for folder in folders]
    return next((path.resolve() for path in candidates if path.is_file()), None)


def check_same_run(saved: dict[str, Any], fingerprint: dict[str, Any], path: Path) -> None:
    """Refuse to go on with other settings than the checkpoint's: the result would be of neither."""
    before = saved.get("fingerprint", {})
    changed = differences(before.get("config", {}), fingerprint["config"])
    for part in ("data", "templates"):
        changed += differences(before.get(part, {}), fingerprint[part])
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise UserError(
            f"{path} is a checkpoint of other settings ({changed[0]}{more}); use the same ones, or start a new run"
        )


def closing_summary(output_dir: Path, metrics: dict[str, float]) -> list[str]:
    """EM before and after, the folder, and how to see the curves."""
    first = next(iter(jsonl.read(output_dir / "metrics.jsonl")), {})
    lines = ["", f"run        {output_dir}"]
    for key, label in (("val/em", "EM greedy"), ("val/em_sampled", "EM sampled")):
        if key in metrics:
            n = int(metrics[key.replace("/em", "/questions")])
            lines.append(f"{label:<11}{first.get(key, float('nan')):.3f} before, {metrics[key]:.3f} after (n={n})")
    return [
        *lines,
        f"student    {output_dir / 'student'} (a Hugging Face folder)",
        f"curves     tensorboard --logdir {output_dir.parent}",
    ]


def read_checkpoint(checkpoint: Path) -> dict[str, Any]:
    """The contents of a checkpoint, weights-only; ``UserError`` where it is none."""
    try:
        return torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # whatever a file that is no checkpoint makes torch say
        raise UserError(f"{checkpoint} cannot be read as a checkpoint ({type(error).__name__})") from error


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
    for name in ("lightning.pytorch", "lightning.fabric", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.ERROR)


if __name__ == "__main__":
    sys.exit(run_hydra_verb("train", sys.argv[1:]))
