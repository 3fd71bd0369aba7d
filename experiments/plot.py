"""Curves with bands: sampled EM above, the share of hindsight weight on right queries below, a column per panel."""

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from bootstrap import Place, estimate
from curves import Point
from grid import Grid

DRAWS = 2_000


def by_step(points: Sequence[Point], arm: str, figure: str) -> dict[int, dict[Place, float]]:
    """A figure of an arm by step, then by warm start and seed; without those that have none."""
    steps: dict[int, dict[Place, float]] = defaultdict(dict)
    for point in points:
        value = getattr(point, figure)
        if point.arm == arm and not math.isnan(value):
            steps[point.step][point.warm_start, point.seed] = value
    return dict(sorted(steps.items()))


def draw(points: Sequence[Point], grid: Grid, file: Path) -> None:
    """Means over runs, with 95 % bootstrap bands over seeds; the baseline is grey in every panel."""
    panels = grid.content["panels"]
    figure, axes = plt.subplots(
        2, len(panels), figsize=(4.4 * len(panels), 7), sharex=True, sharey="row", squeeze=False, layout="constrained"
    )
    for column, panel in enumerate(panels):
        above, below = axes[0][column], axes[1][column]
        _curve(above, points, grid.baseline, "em", "0.45")
        for number, arm in enumerate(panel["arms"]):
            _curve(above, points, arm, "em", f"C{number}")
            _curve(below, points, arm, "right_share", f"C{number}")
        above.set_title(panel["title"])
        above.legend(fontsize="small", loc="lower right")
        above.set_ylim(0, 1)
        below.set_ylim(0, 1)
        below.set_xlabel("step")
    axes[0][0].set_ylabel("validation EM, one sample per question")
    axes[1][0].set_ylabel("share of hindsight weight on right queries")
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _curve(axis: Any, points: Sequence[Point], arm: str, figure: str, colour: str) -> None:
    steps = by_step(points, arm, figure)
    if not steps:
        return
    estimates = [estimate(values, draws=DRAWS) for values in steps.values()]
    axis.plot(list(steps), [e.mean for e in estimates], color=colour, label=arm, linewidth=1.6)
    axis.fill_between(
        list(steps), [e.low for e in estimates], [e.high for e in estimates], color=colour, alpha=0.15, linewidth=0
    )
