"""A teacher that follows the student slowly (SDPO, arXiv 2601.20802: rate 0.05)."""

from dataclasses import dataclass

from hindsearch.interfaces import LanguageModel, MovingModel


@dataclass(frozen=True)
class Ema:
    """After each step its weights move by ``rate`` toward the student's."""

    snapshot: MovingModel
    rate: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"teacher.rate={self.rate} is not within 0 and 1; use for example 0.05, or teacher=frozen")

    @property
    def model(self) -> LanguageModel:
        return self.snapshot

    def follow(self, completed_steps: int) -> None:
        self.snapshot.blend(self.rate)
