"""Corpora in the field's shapes: ``contents`` with a quoted title on its first line, or ``title`` and ``text``."""

from pathlib import Path

from hindsearch.data.rows import Row, fields_of, read_rows, text_field
from hindsearch.errors import UserError
from hindsearch.types import Passage


def load_passages(path: str | Path, what: str = "corpus") -> list[Passage]:
    """Passages in file order. A row without an id is named after its place; ``what`` is the file's role in errors.

    Raises:
        UserError: a row of neither shape, or an id that comes twice.
    """
    passages: list[Passage] = []
    places: dict[str, str] = {}
    for place, row in read_rows(path, what):
        passage = _passage(row, place, len(passages), what)
        if passage.id in places:
            raise UserError(f"{what}: {place} has the id {passage.id!r} of {places[passage.id]}")
        places[passage.id] = place
        passages.append(passage)
    return passages


def _passage(row: Row, place: str, number: int, what: str) -> Passage:
    identifier = next((str(row[name]) for name in ("id", "_id") if row.get(name) is not None), str(number))
    if row.get("contents") is not None:
        return Passage(identifier, *_title_and_text(text_field(row, ("contents",), place, what)))
    if row.get("text") is None:
        raise UserError(f"{what}: {place} has neither contents nor title and text; it has {fields_of(row)}")
    title = text_field(row, ("title",), place, what) if row.get("title") is not None else ""
    return Passage(identifier, title.strip(), text_field(row, ("text",), place, what))


def _title_and_text(contents: str) -> tuple[str, str]:
    """The title is the first line, less the pair of quotes around it; a single line without them is text."""
    title, newline, text = contents.strip().partition("\n")
    title = title.strip()
    quoted = len(title) >= 2 and title[0] == title[-1] == '"'
    if not newline and not quoted:
        return "", title
    return (title[1:-1] if quoted else title).strip(), text.strip()
