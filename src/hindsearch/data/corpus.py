"""Corpora in the field's shapes: ``contents`` with a quoted title on its first line, or ``title`` and ``text``."""

from pathlib import Path

from hindsearch.data.rows import Row, read_rows, text_field
from hindsearch.errors import UserError
from hindsearch.types import Passage


def load_passages(path: str | Path) -> list[Passage]:
    """Passages in file order.

    Raises:
        UserError: a row of neither shape, or an id that comes twice.
    """
    passages: list[Passage] = []
    places: dict[str, str] = {}
    for place, row in read_rows(path, "corpus"):
        passage = _passage(row, place, number=len(passages))
        if passage.id in places:
            raise UserError(f"corpus: {place} has the id {passage.id!r} of {places[passage.id]}")
        places[passage.id] = place
        passages.append(passage)
    return passages


def _passage(row: Row, place: str, number: int) -> Passage:
    identifier = str(row.get("id", row.get("_id", number)))
    if row.get("contents") is not None:
        title, _, text = text_field(row, ("contents",), place, "corpus").partition("\n")
        return Passage(identifier, title.strip().strip('"'), text.strip())
    if "text" not in row:
        raise UserError(
            f"corpus: {place} has neither contents nor title and text; it has {', '.join(map(str, row)) or 'no fields'}"
        )
    title = row.get("title")
    return Passage(
        identifier, str(title).strip() if title is not None else "", text_field(row, ("text",), place, "corpus")
    )
