"""Another checkpoint of the same tokenizer as the teacher: HindSearch's ablation with a 7B model, which collapses."""

from dataclasses import dataclass

from hindsearch.interfaces import LanguageModel


@dataclass(frozen=True)
class Larger:
    """Reads with the weights of ``teacher_model``, never trained.

    Vocabularies padded to different sizes are cut to the shared part where distributions are compared.
    """

    teacher_model: LanguageModel

    @property
    def model(self) -> LanguageModel:
        return self.teacher_model

    def follow(self, completed_steps: int) -> None:
        """Stays."""
