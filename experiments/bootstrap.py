"""Means with intervals, over runs that are paired by warm start and seed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Place = tuple[str, int]
"""Warm start and seed."""


@dataclass(frozen=True)
class Estimate:
    """A mean, the ends of its interval, and of how many runs or pairs."""

    mean: float
    low: float
    high: float
    count: int

    def text(self, signed: bool = False) -> str:
        sign = "+" if signed else ""
        if not self.count:
            return "–"
        if self.count == 1:
            return f"{self.mean:{sign}.3f}"
        return f"{self.mean:{sign}.3f} [{self.low:{sign}.3f}, {self.high:{sign}.3f}]"


def estimate(values: Mapping[Place, float], seed: int = 0, draws: int = 10_000, share: float = 0.95) -> Estimate:
    """The mean and its percentile bootstrap interval.

    Seeds are drawn anew within each warm start: warm starts are chosen, not sampled, and the interval does not speak
    of others. With five seeds such an interval is too narrow rather than too wide.
    """
    if not values:
        return Estimate(np.nan, np.nan, np.nan, 0)
    rng = np.random.default_rng(seed)
    sums = np.zeros(draws)
    for warm_start in sorted({start for start, _ in values}):
        own = np.array([values[place] for place in sorted(values) if place[0] == warm_start])
        sums += rng.choice(own, size=(draws, len(own))).sum(axis=1)
    low, high = np.quantile(sums / len(values), [(1 - share) / 2, (1 + share) / 2])
    return Estimate(float(np.mean(list(values.values()))), float(low), float(high), len(values))


def paired(left: Mapping[Place, float], right: Mapping[Place, float], seed: int = 0, draws: int = 10_000) -> Estimate:
    """The mean of left − right over the places where both were run."""
    both = left.keys() & right.keys()
    return estimate({place: left[place] - right[place] for place in both}, seed, draws)
