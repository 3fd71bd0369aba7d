"""A teacher that is the student of some steps ago (SSPO, arXiv 2608.12764: refreshed every 50)."""

from dataclasses import dataclass

from hindsearch.interfaces import LanguageModel, MovingModel


@dataclass(frozen=True)
class Refresh:
    """Takes the student's weights after every ``every`` steps."""

    snapshot: MovingModel
    every: int = 50

    def __post_init__(self) -> None:
        if self.every < 1:
            raise ValueError(f"teacher.every={self.every} is no number of steps; use 1 or more, for example 50")

    @property
    def model(self) -> LanguageModel:
        return self.snapshot

    def follow(self, completed_steps: int) -> None:
        if completed_steps % self.every == 0:
            self.snapshot.blend(1.0)
