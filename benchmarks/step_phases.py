"""Seconds per phase of a training step, GRPO beside HindSearch, run alternately, each in a process of its own.

The hindsight share is what the judge, the teacher pass and the loss add to a step: the difference of the two medians.
Arguments are Hydra overrides for both arms; `--runs N` repeats each arm (default 3), `--steps N` sets its length.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PHASES = ("generate", "retrieve", "judge", "update")
ARMS = ("grpo", "hindsearch")


def run_arm(method: str, steps: int, overrides: list[str], folder: Path) -> tuple[list[dict[str, float]], float]:
    """Metrics of the steps after the first, and the peak memory of the process in MiB."""
    fixed = [f"method={method}", f"trainer.max_steps={steps}", f"paths.output_dir={folder}"]
    quiet = ["validation.every=1000000", "checkpoint.every=1000000"]
    if not any(override.startswith("experiment=") for override in overrides):
        fixed.append("experiment=quickstart")
    probe = "import resource, sys; from hindsearch.cli import main; code = main(sys.argv[1:]); "
    probe += "print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss); sys.exit(code)"
    command = [sys.executable, "-c", probe, "train", *fixed, *quiet, *overrides]
    environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{method} failed:\n{done.stderr[-2000:]}")
    peak = float(next(line for line in done.stdout.splitlines() if line.startswith("peak")).split()[1])
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    peak_mib = peak / (1024 if platform.system() == "Linux" else 1024**2)
    return [row for row in rows if row["stage"] == "train"][1:], peak_mib


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=11)
    options, overrides = parser.parse_known_args()
    steps: dict[str, list[dict[str, float]]] = {arm: [] for arm in ARMS}
    peaks: dict[str, list[float]] = {arm: [] for arm in ARMS}
    with tempfile.TemporaryDirectory() as root:
        for run in range(options.runs):
            for arm in ARMS:
                rows, peak = run_arm(arm, options.steps, [f"seed={run}", *overrides], Path(root) / f"{arm}-{run}")
                steps[arm] += rows
                peaks[arm].append(peak)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"{options.runs} runs of {options.steps - 1} steps per arm; medians per step\n")
    print(f"{'seconds':<24}" + "".join(f"{arm:>14}" for arm in ARMS))
    totals: dict[str, float] = {}
    for arm in ARMS:
        totals[arm] = statistics.median(sum(row.get(f"time/{p}", 0.0) for p in PHASES) for row in steps[arm])
    for phase in PHASES:
        medians = [statistics.median(row.get(f"time/{phase}", 0.0) for row in steps[arm]) for arm in ARMS]
        print(f"{phase:<24}" + "".join(f"{value:>14.4f}" for value in medians))
    print(f"{'step':<24}" + "".join(f"{totals[arm]:>14.4f}" for arm in ARMS))
    for name, key, phase in (
        ("generated tokens/s", "rollout/sampled_tokens", "generate"),
        ("trained tokens/s", "train/tokens", "update"),
    ):
        speeds = [
            statistics.median(row[key] / row[f"time/{phase}"] for row in steps[arm] if row.get(key)) for arm in ARMS
        ]
        print(f"{name:<24}" + "".join(f"{speed:>14.0f}" for speed in speeds))
    print(f"{'peak memory, MiB':<24}" + "".join(f"{max(peaks[arm]):>14.0f}" for arm in ARMS))
    print(f"\nhindsight adds {totals['hindsearch'] / totals['grpo'] - 1:.0%} to a GRPO step")


if __name__ == "__main__":
    main()
