"""What a warm start imitates: text with loss weights, and the same as ids."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

ACTION, RETRIEVED, GIVEN = 1.0, 0.3, 0.0
"""Loss weights: what the model writes, what a retriever pastes, and prompt, hint and steps not to be imitated."""

Pieces = list[tuple[str, float]]
"""Text and loss weight, in order."""


@dataclass(frozen=True)
class Demonstration:
    """A trajectory to imitate: ids and the loss weight of each, of one length."""

    ids: tuple[int, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        assert len(self.ids) == len(self.weights), f"{len(self.ids)} ids and {len(self.weights)} weights"


@dataclass(frozen=True)
class DemonstrationBatch:
    """The demonstrations of one step. Ids become tensors where they are used, so there is nothing to move."""

    demonstrations: tuple[Demonstration, ...]

    def to(self, device: object) -> "DemonstrationBatch":
        """Itself; Lightning calls this."""
        return self


def collate(demonstrations: Sequence[Demonstration]) -> DemonstrationBatch:
    return DemonstrationBatch(tuple(demonstrations))


def encode_pieces(pieces: Pieces, encode: Callable[[str], Sequence[int]]) -> Demonstration:
    """Encode piece by piece, so that no token straddles two weights."""
    ids: list[int] = []
    weights: list[float] = []
    for text, weight in pieces:
        piece = encode(text)
        ids += piece
        weights += [weight] * len(piece)
    return Demonstration(tuple(ids), tuple(weights))
