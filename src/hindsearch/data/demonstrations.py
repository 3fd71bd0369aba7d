"""Demonstrations from a file, for the warm start of a real base model."""

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from hindsearch.demonstration import ACTION, GIVEN, RETRIEVED, Demonstration, Pieces, encode_pieces
from hindsearch.errors import UserError
from hindsearch.interfaces import Renderer
from hindsearch.seeding import seed_of
from hindsearch.types import Question


@dataclass(frozen=True)
class DemonstrationFile:
    """Demonstrations from JSON lines: ``question``, and ``turns`` as a list of ``text`` and ``observation``.

    ``text`` is what the model should write and ``observation`` what the agent pastes after it, '' if nothing; both
    are taken as they stand, chat markers included. The prompt is the renderer's. Order is shuffled anew each epoch.

    Raises:
        UserError: if the file cannot be read, is empty, or has a bad line; file, line and field are named.
    """

    path: str
    renderer: Renderer
    encode: Callable[[str], Sequence[int]]
    retrieved_weight: float = RETRIEVED
    """Loss weight of observations; 0 to imitate the model's own words alone."""

    def __post_init__(self) -> None:
        if not 0 <= self.retrieved_weight <= 1:
            raise ValueError(f"retrieved_weight={self.retrieved_weight} is outside [0, 1]; 0.3 is usual")
        if not self.scripts:
            raise UserError(f"{self.path} holds no demonstrations; give one JSON object per line")

    @cached_property
    def scripts(self) -> tuple[tuple[str, Pieces], ...]:
        """Question and weighted pieces of each line."""
        try:
            lines = Path(self.path).expanduser().read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{self.path} cannot be read ({error}); give a file of JSON lines") from error
        return tuple(self._script(line, f"{self.path}, line {n}") for n, line in enumerate(lines, 1) if line.strip())

    def _script(self, line: str, where: str) -> tuple[str, Pieces]:
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{where}: not JSON ({error.msg} at column {error.colno})") from error
        if not isinstance(row, dict):
            raise UserError(f"{where}: a JSON object is needed, not {type(row).__name__}")
        question = _text(row, "question", where, may_be_empty=False)
        turns = row.get("turns")
        if not isinstance(turns, list) or not turns:
            raise UserError(f"{where}: turns must be a list of at least one turn, not {turns!r:.60}")
        pieces: Pieces = []
        for n, turn in enumerate(turns):
            if not isinstance(turn, dict):
                raise UserError(f"{where}: turns[{n}] must be an object with text and observation, not {turn!r:.60}")
            pieces.append((_text(turn, "text", f"{where}: turns[{n}]", may_be_empty=False), ACTION))
            observation = _text(turn, "observation", f"{where}: turns[{n}]", may_be_empty=True)
            pieces.append((observation, self.retrieved_weight))
        return question, pieces

    def __call__(self, place: int, step: int, seed: int) -> Demonstration:
        """Return demonstration ``place`` of a run; ``step`` changes nothing here."""
        epoch, position = divmod(place, len(self.scripts))
        index = _order(len(self.scripts), seed, epoch)[position]
        question, pieces = self.scripts[index]
        prompt = self.renderer.prompt(Question(str(index), question, (), "demonstrations"), "")
        turns = encode_pieces(pieces, self.encode)
        return Demonstration((*prompt, *turns.ids), (*(GIVEN for _ in prompt), *turns.weights))

    def fingerprint(self) -> dict[str, str]:
        return {"demonstrations": hashlib.sha256(Path(self.path).expanduser().read_bytes()).hexdigest()}


def _text(row: dict[str, object], field: str, where: str, may_be_empty: bool) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not (value or may_be_empty):
        seen = f"{value!r:.60}" if field in row else "missing"
        raise UserError(f"{where}: {field} must be a {'' if may_be_empty else 'non-empty '}string; it is {seen}")
    return value


@lru_cache(maxsize=2)
def _order(count: int, seed: int, epoch: int) -> list[int]:
    order = list(range(count))
    random.Random(seed_of(seed, "order", epoch)).shuffle(order)
    return order
