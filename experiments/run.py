"""Run a study's cells, a few at a time; run it again to go on where it stopped.

python experiments/run.py experiments/01_ablation --stage main [--arms grpo,hindsearch] [--dry-run]
"""

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from grid import Cell, Grid, GridError, read_grid, read_weights

DONE = "cell.json"
QUIET = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
}

# A process per run, forked from one that has the imports behind it: a run that dies takes none with it.
context = multiprocessing.get_context("forkserver")


def work(arguments: Sequence[str], log: Path) -> None:
    """Be ``hindsearch ARGUMENTS``, with its output in a file, for no longer than the runner lives."""
    log.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    threading.Thread(target=_die_with_runner, daemon=True).start()
    from hindsearch.cli import main

    sys.exit(main(list(arguments)))


def _die_with_runner() -> None:
    runner = multiprocessing.parent_process()
    assert runner is not None
    runner.join()
    os._exit(1)


def finished(folder: Path, cell: Cell) -> bool:
    """Whether a cell was run to its end, as it is now.

    Raises:
        GridError: it was run, with other overrides.
    """
    try:
        before = json.loads((folder / DONE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    if before["overrides"] != list(cell.overrides):
        changed = sorted(set(before["overrides"]) ^ set(cell.overrides))
        raise GridError(f"{folder} was run with other overrides ({', '.join(changed)}); move it away to run it anew")
    return True


def estimate(pending: Sequence[Cell], runs: Path, guess: float) -> float:
    """Seconds of all pending cells, one after the other: as their arm took per step, else as any did, else a guess."""
    taken: dict[str, list[float]] = {}
    for file in runs.rglob(DONE):
        row = json.loads(file.read_text(encoding="utf-8"))
        taken.setdefault(row["arm"], []).append(row["seconds"] / row["steps"])
    means = {arm: sum(values) / len(values) for arm, values in taken.items()}
    usual = sum(means.values()) / len(means) if means else guess
    return sum(means.get(cell.arm, usual) * cell.steps for cell in pending)


def run_cells(
    cells: Sequence[Cell],
    grid: Grid,
    jobs: int,
    start: Callable[[Sequence[str], Path], BaseProcess],
    say: Callable[[str], None] = print,
) -> list[str]:
    """Run cells in their order, ``jobs`` at a time, and return what went wrong, one sentence a cell."""
    missing = _prepare(cells, grid, start, say)
    failures = [f"{cell.place}: no {name}" for cell in cells for name in cell.needs if name in missing]
    queue = [cell for cell in cells if not missing.intersection(cell.needs)]
    running: dict[int, tuple[Cell, BaseProcess, float]] = {}
    total, done = len(queue), 0
    try:
        while queue or running:
            while queue and len(running) < jobs:
                cell = queue.pop(0)
                folder = grid.runs / cell.place
                arguments = ["train", *cell.overrides, f"paths.output_dir={folder}", "ckpt_path=last"]
                process = start(arguments, folder / "log.txt")
                running[process.sentinel] = (cell, process, time.monotonic())
            for sentinel in wait(list(running)):
                cell, process, began = running.pop(sentinel)  # type: ignore[arg-type]
                process.join()
                folder, seconds = grid.runs / cell.place, time.monotonic() - began
                done += 1
                if process.exitcode == 0:
                    _seal(folder, cell, seconds)
                    say(f"{done}/{total} {cell.place} in {seconds:.0f} s")
                else:
                    failures.append(f"{cell.place}: {_last_words(folder / 'log.txt')}")
                    say(f"{done}/{total} {cell.place} FAILED: {_last_words(folder / 'log.txt')}")
    finally:
        for _, process, _ in running.values():
            process.terminate()
        for _, process, _ in running.values():
            process.join()
    return failures


def _prepare(cells: Sequence[Cell], grid: Grid, start: Callable, say: Callable[[str], None]) -> set[str]:
    """Make the products that cells need and that are not there; return those that failed."""
    missing: set[str] = set()
    for name in dict.fromkeys(name for cell in cells for name in cell.needs):
        product = grid.product(name)
        if product["folder"].exists():
            continue
        say(f"{name}: made once, {product['folder']}")
        log = product["folder"].with_name(f"{name}.log")
        process = start(["warmstart", *product["overrides"], f"output={product['folder']}"], log)
        process.join()
        if process.exitcode != 0:
            missing.add(name)
            say(f"{name} FAILED: {_last_words(log)}")
    return missing


def _seal(folder: Path, cell: Cell, seconds: float) -> None:
    """Mark a run as finished, in one move, and drop what only a run that goes on would want."""
    temporary = folder / f"{DONE}.tmp"
    temporary.write_text(json.dumps(cell.record() | {"seconds": seconds}, indent=1) + "\n", encoding="utf-8")
    os.replace(temporary, folder / DONE)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)


def _last_words(log: Path) -> str:
    lines = log.read_text(encoding="utf-8").split("\n") if log.is_file() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no word") + f" ({log})"


def _start(arguments: Sequence[str], log: Path) -> BaseProcess:
    process = context.Process(target=work, args=(list(arguments), log))
    process.start()
    return process


def _stop(signum: int, _: object) -> None:
    sys.exit(128 + signum)


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, help="a folder with a grid.yaml")
    parser.add_argument("--stage", required=True)
    parser.add_argument("--arms", type=_names, default=[], help="a,b: only these")
    parser.add_argument("--warm-starts", type=_names, default=[], help="a,b: only these")
    parser.add_argument("--seeds", type=lambda text: [int(s) for s in _names(text)], default=[], help="0,1: only these")
    parser.add_argument("--runs", type=Path, help="where runs are written; outputs/<study> if not given")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--dry-run", action="store_true", help="list what is left to run, and how long it may take")
    options = parser.parse_args()
    runs = options.runs or Path("outputs") / options.study.resolve().name
    try:
        grid = read_grid(options.study, runs)
        plan = grid.cells(options.stage, read_weights(options.study), options.arms, options.warm_starts, options.seeds)
    except GridError as error:
        print(f"run: {error}", file=sys.stderr)
        return 2
    pending, failures = [], []
    for cell in plan:
        try:
            if not finished(runs / cell.place, cell):
                pending.append(cell)
        except GridError as error:
            failures.append(str(error))
    minutes = estimate(pending, runs, grid.content["seconds_per_step"]) / options.jobs / 60
    print(f"{len(plan)} cells, {len(pending)} to run, about {minutes:.0f} minutes with {options.jobs} at a time")
    if options.dry_run:
        for cell in pending:
            print(f"  {cell.place}: {' '.join(cell.overrides)}")
    elif pending:
        os.environ.update({name: os.environ.get(name, value) for name, value in QUIET.items()})
        context.set_forkserver_preload(["hindsearch.train"])
        signal.signal(signal.SIGTERM, _stop)
        failures += run_cells(pending, grid, options.jobs, _start)
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
