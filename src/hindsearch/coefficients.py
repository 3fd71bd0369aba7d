"""The weight λ of the hindsight loss beside the policy loss, by step; step 0 is the first."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Constant:
    """The same weight throughout (HindSearch: 0.01)."""

    weight: float

    def __post_init__(self) -> None:
        _refuse_negative(self.weight)

    def __call__(self, step: int) -> float:
        return self.weight


@dataclass(frozen=True)
class LinearDecay:
    """From ``weight`` at step 0 down a straight line to 0 at ``steps``, and 0 from there on."""

    weight: float
    steps: int

    def __post_init__(self) -> None:
        _refuse_negative(self.weight)
        if self.steps < 1:
            raise ValueError(f"coefficient.steps={self.steps} leaves no step to decay over; use 1 or more")

    def __call__(self, step: int) -> float:
        return self.weight * max(0.0, 1.0 - step / self.steps)


def _refuse_negative(weight: float) -> None:
    if not weight >= 0:
        raise ValueError(f"coefficient.weight={weight} would push away from the teacher; use 0 or more")
