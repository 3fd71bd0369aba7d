"""Your own questions and passages, by path."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hindsearch.data.corpus import load_passages
from hindsearch.data.questions import load_questions
from hindsearch.errors import UserError
from hindsearch.types import Passage, Question


@dataclass(frozen=True)
class Files:
    """A data source of three files; ``limit_validation`` keeps the first so many validation questions."""

    train_path: str
    validation_path: str
    corpus_path: str
    limit_validation: int | None = None

    def __post_init__(self) -> None:
        if self.limit_validation is not None and self.limit_validation < 1:
            raise ValueError(f"limit_validation={self.limit_validation} leaves no question; use 1 or more, or null")

    @cached_property
    def _train(self) -> list[Question]:
        return load_questions(self.train_path, what="data.train_path")

    @cached_property
    def _validation(self) -> list[Question]:
        return load_questions(self.validation_path, self.limit_validation, "data.validation_path")

    @cached_property
    def _passages(self) -> list[Passage]:
        return load_passages(self.corpus_path, "data.corpus_path")

    def train(self) -> Sequence[Question]:
        return self._train

    def validation(self) -> Sequence[Question]:
        return self._validation

    def passages(self) -> Sequence[Passage]:
        return self._passages

    def fingerprint(self) -> Mapping[str, str]:
        """sha256 of each file."""
        files = {"train": self.train_path, "validation": self.validation_path, "corpus": self.corpus_path}
        return {name: _digest(Path(path).expanduser(), f"data.{name}_path") for name, path in files.items()}


def _digest(path: Path, what: str) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{what}: {path} cannot be read ({error.strerror})") from error
