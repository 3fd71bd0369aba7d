"""From a run's metrics.jsonl to its curve, and from curves to figures."""

import itertools
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Curve = list[tuple[int, float]]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """One validation of a cell: sampled and greedy EM, and the right share of the steps since the one before."""

    arm: str
    weight: float | None
    warm_start: str
    seed: int
    step: int
    em: float
    em_greedy: float
    right_share: float


def read_rows(run: Path) -> list[Row]:
    """A run that is still going gives what it has."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def curve_of(rows: Sequence[Row], metric: str, stage: str = "validation") -> Curve:
    """Steps and values of a metric, where it was logged."""
    return [(row["step"], row[metric]) for row in rows if row["stage"] == stage and metric in row]


def area(curve: Curve) -> float:
    """Mean height of the curve by trapezoids."""
    pairs = itertools.pairwise(curve)
    width = curve[-1][0] - curve[0][0]
    return sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairs) / width if width else curve[0][1]


def first_at(curve: Curve, threshold: float) -> int | None:
    return next((step for step, value in curve if value >= threshold), None)


def last_mean(curve: Curve, points: int) -> float:
    """Mean of the last ``points`` values."""
    return statistics.mean(value for _, value in curve[-points:])


def mean_between(curve: Curve, after: int, until: int) -> float:
    """Mean over steps in (after, until]; not a number where there is none."""
    values = [value for step, value in curve if after < step <= until]
    return statistics.mean(values) if values else math.nan
