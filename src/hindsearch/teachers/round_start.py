"""The student as it was when the round of distillation began (Search-E1, arXiv 2605.22511).

Search-E1 trains an adapter in each such round and merges it afterwards; its teacher is the model with the adapter off.
Keeping a copy of what is trained, all weights or an adapter's, is the same teacher for both kinds of student.
"""

from dataclasses import dataclass

from hindsearch.interfaces import LanguageModel, Loop, MovingModel


@dataclass(frozen=True)
class RoundStart:
    """Takes the student's weights where ``loop`` begins a round of distillation."""

    snapshot: MovingModel
    loop: Loop

    @property
    def model(self) -> LanguageModel:
        return self.snapshot

    def follow(self, completed_steps: int) -> None:
        if self.loop.starts_round(completed_steps):
            self.snapshot.blend(1.0)
