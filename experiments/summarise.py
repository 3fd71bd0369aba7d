"""From the runs of a sweep to results.csv and a table: final EM, area under the curve, steps to a threshold.

python experiments/summarise.py RUNS [--out results.csv] [--metric val/em_sampled] [--threshold 0.8]
"""

import argparse
import csv
import statistics
from collections import defaultdict
from pathlib import Path

from curves import Curve, area, curve_of, first_at, read_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--metric", default="val/em_sampled")
    parser.add_argument("--threshold", type=float, default=0.8)
    options = parser.parse_args()
    arms: dict[str, list[Curve]] = defaultdict(list)
    rows: list[list[object]] = []
    for run in sorted(path.parent for path in options.runs.rglob("metrics.jsonl")):
        curve = curve_of(read_rows(run), options.metric)
        if not curve:
            continue
        choices, _, seed = run.name.partition("-")[2].rpartition("-s")
        arm = f"{run.parent.name}/{choices}"
        arms[arm].append(curve)
        rows += [[arm, seed, step, value] for step, value in curve]
    if options.out:
        with options.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["arm", "seed", "step", options.metric])
            writer.writerows(rows)
    print(f"| arm | runs | final {options.metric} | area under curve | first at {options.threshold} |")
    print("|---|---|---|---|---|")
    for arm, curves in sorted(arms.items()):
        figures = [[curve[-1][1] for curve in curves], [area(curve) for curve in curves]]
        spread = [f"{statistics.mean(f):.3f} ({min(f):.3f} to {max(f):.3f})" for f in figures]
        steps = ", ".join("never" if s is None else str(s) for s in (first_at(c, options.threshold) for c in curves))
        print(f"| {arm} | {len(curves)} | {spread[0]} | {spread[1]} | {steps} |")


if __name__ == "__main__":
    main()
