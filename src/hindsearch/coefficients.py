"""The weight λ of the hindsight loss beside the policy loss, by step; step 0 is the first.

Each schedule is 0 during its first ``warmup_steps``: nobody is asked for critiques then.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Constant:
    """The same weight throughout (HindSearch: 0.01), or from the end of the warm-up on (SD-Search: 1e-3 after 50)."""

    weight: float
    warmup_steps: int = 0

    def __post_init__(self) -> None:
        _refuse_odd(self.weight, self.warmup_steps)

    def __call__(self, step: int) -> float:
        return self.weight if step >= self.warmup_steps else 0.0


@dataclass(frozen=True)
class LinearDecay:
    """From ``weight`` after the warm-up down a straight line to 0 after ``steps`` more, and 0 from there on."""

    weight: float
    steps: int
    warmup_steps: int = 0

    def __post_init__(self) -> None:
        _refuse_odd(self.weight, self.warmup_steps, self.steps)

    def __call__(self, step: int) -> float:
        if step < self.warmup_steps:
            return 0.0
        return self.weight * max(0.0, 1.0 - (step - self.warmup_steps) / self.steps)


@dataclass(frozen=True)
class CosineDecay:
    """From ``weight`` after the warm-up down half a cosine to 0 after ``steps`` more, and 0 from there on."""

    weight: float
    steps: int
    warmup_steps: int = 0

    def __post_init__(self) -> None:
        _refuse_odd(self.weight, self.warmup_steps, self.steps)

    def __call__(self, step: int) -> float:
        if step < self.warmup_steps:
            return 0.0
        done = min(1.0, (step - self.warmup_steps) / self.steps)
        return self.weight * 0.5 * (1.0 + math.cos(math.pi * done))


def _refuse_odd(weight: float, warmup_steps: int, steps: int = 1) -> None:
    if not weight >= 0:
        raise ValueError(f"coefficient.weight={weight} would push away from the teacher; use 0 or more")
    if warmup_steps < 0:
        raise ValueError(f"coefficient.warmup_steps={warmup_steps} is no number of steps; use 0 or more")
    if steps < 1:
        raise ValueError(f"coefficient.steps={steps} leaves no step to decay over; use 1 or more")
