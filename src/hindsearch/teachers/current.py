"""The student itself as its teacher, under the privileged prompt (SD-Search, arXiv 2605.18299)."""

from dataclasses import dataclass

from hindsearch.interfaces import LanguageModel


@dataclass(frozen=True)
class Current:
    """Reads with the weights that sampled the step's rollouts, without gradient; costs no memory.

    Under several updates of a rollout batch its values stay those of the first.
    """

    student: LanguageModel

    @property
    def model(self) -> LanguageModel:
        return self.student

    def follow(self, completed_steps: int) -> None:
        """It is the student."""
