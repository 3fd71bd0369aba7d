"""The teacher of HindSearch (arXiv 2608.01597): the student's initial weights, never trained."""

from dataclasses import dataclass

from hindsearch.interfaces import LanguageModel


@dataclass(frozen=True)
class Frozen:
    """Reads the privileged prompt with the reference weights; costs no memory beside them.

    With a LoRA student the reference is the student with its adapter off, and costs none at all.
    """

    reference: LanguageModel

    @property
    def model(self) -> LanguageModel:
        """What scores the student's tokens under the privileged prompt."""
        return self.reference

    def follow(self, completed_steps: int) -> None:
        """Stays."""
