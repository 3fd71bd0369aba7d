"""Question files in the field's shapes: FlashRAG and Search-R1 JSONL, verl parquet, NQ-open."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hindsearch.data.rows import Row, golds_of, read_rows, text_field
from hindsearch.errors import UserError
from hindsearch.types import Question


def load_questions(path: str | Path, limit: int | None = None, what: str = "questions") -> list[Question]:
    """Questions in file order, the first ``limit`` of them.

    ``source`` is the row's ``data_source``, else the file's name. A row without an id is named after its line. Blank
    golds are left out: an empty answer would match them. ``what`` is the file's role in errors.

    Raises:
        UserError: a row without question or golds, or an id that comes twice.
    """
    questions: list[Question] = []
    places: dict[str, str] = {}
    for place, row in read_rows(path, what):
        if limit is not None and len(questions) >= limit:
            break
        question = _question(row, place, Path(path), what)
        if question.id in places:
            raise UserError(f"{what}: {place} has the id {question.id!r} of {places[question.id]}")
        places[question.id] = place
        questions.append(question)
    return questions


def _question(row: Row, place: str, path: Path, what: str) -> Question:
    text = _text(row, place, what).strip()
    if not text:
        raise UserError(f"{what}: {place}: the question is empty")
    golds = tuple(gold for gold in golds_of(row, place, what) if gold.strip())
    if not golds:
        raise UserError(f"{what}: {place}: its golden answers are blank; give one that can be answered")
    source = str(row.get("data_source") or _source_of(path))
    identifier = row["id"] if row.get("id") is not None else row.get("_id")
    if identifier is None:
        extra: Any = row.get("extra_info")
        index = extra.get("index") if isinstance(extra, Mapping) else None
        identifier = f"{source}-{index}" if index is not None else place.rsplit(" ", 1)[-1]
    gold_ids: Any = row.get("gold_ids")
    if gold_ids is not None and not isinstance(gold_ids, list | tuple):
        raise UserError(f"{what}: {place}: gold_ids is {type(gold_ids).__name__}, not a list of passage ids")
    return Question(str(identifier), text, golds, source, tuple(str(i) for i in gold_ids or ()))


def _text(row: Row, place: str, what: str) -> str:
    if row.get("question") is None and isinstance(prompt := row.get("prompt"), list) and prompt:
        # verl's shape: the question stands at the end of the instruction
        content = str(prompt[-1].get("content", "")) if isinstance(prompt[-1], Mapping) else ""
        return content.rsplit("Question:", 1)[-1]
    return text_field(row, ("question", "query"), place, what)


def _source_of(path: Path) -> str:
    stem = path.name.split(".", 1)[0]
    return path.resolve().parent.name if stem in ("questions", "train", "test", "dev", "validation") else stem
