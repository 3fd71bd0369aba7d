"""Rows of a file, each with the place it stands at, so that every complaint can name file and line."""

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hindsearch.errors import UserError

Row = Mapping[str, Any]

_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


def read_rows(path: str | Path, what: str) -> Iterator[tuple[str, Row]]:
    """Yield ``(place, row)`` from JSON lines, a JSON list, TSV with a header or parquet, plain or gzipped.

    The kind is told from the file's first bytes (and, for TSV, from its name). ``what`` is the file's role in errors.

    Raises:
        UserError: no such file, an empty one, text that is not UTF-8, a line that is no JSON object.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        beside = sorted(p.name for p in path.parent.glob("*")) if path.parent.is_dir() else []
        near = f"; {path.parent} holds {', '.join(beside[:5])}" if beside else ""
        raise UserError(f"{what}: there is no file {path}{near}")
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise UserError(f"{what}: {path} is empty")
    count = 0
    for count, placed in enumerate(_rows(path, start, what), 1):  # noqa: B007
        yield placed
    if count == 0:
        raise UserError(f"{what}: {path} has no rows")


def _rows(path: Path, start: bytes, what: str) -> Iterator[tuple[str, Row]]:
    if start == _PARQUET:
        import pyarrow.parquet as parquet

        for batch_number, batch in enumerate(parquet.ParquetFile(path).iter_batches(batch_size=1024)):
            for i, row in enumerate(batch.to_pylist()):
                yield f"{path} row {batch_number * 1024 + i + 1}", row
        return
    opener = gzip.open if start[:2] == _GZIP else open
    try:
        with opener(path, "rb") as raw:
            text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")  # type: ignore[arg-type]
            if ".tsv" in path.suffixes:
                reader = csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
                for row in reader:
                    yield f"{path} line {reader.line_num}", row
            else:
                yield from _json_rows(path, text, what)
    except UnicodeDecodeError as error:
        raise UserError(f"{what}: {path} is not UTF-8 ({error.reason}); convert it, or check what it is") from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise UserError(f"{what}: {path} is a gzip file that is cut or damaged") from error


def _json_rows(path: Path, text: io.TextIOWrapper, what: str) -> Iterator[tuple[str, Row]]:
    for number, line in enumerate(text, 1):
        stripped = line.strip()
        if not stripped:
            continue
        if number == 1 and stripped.startswith("["):
            yield from _json_list(path, line + text.read(), what)
            return
        place = f"{path} line {number}"
        try:
            row = json.loads(stripped)
        except json.JSONDecodeError as error:
            raise UserError(f"{what}: {place} is not JSON ({error.msg} at column {error.colno})") from error
        if not isinstance(row, dict):
            raise UserError(f"{what}: {place} is a JSON {type(row).__name__}, not an object with fields")
        yield place, row


def _json_list(path: Path, text: str, what: str) -> Iterator[tuple[str, Row]]:
    try:
        rows = json.loads(text)
    except json.JSONDecodeError as error:
        raise UserError(f"{what}: {path} is not a JSON list ({error.msg} at line {error.lineno})") from error
    for i, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise UserError(f"{what}: {path} item {i} is a JSON {type(row).__name__}, not an object with fields")
        yield f"{path} item {i}", row


def text_field(row: Row, names: tuple[str, ...], place: str, what: str) -> str:
    """The first of ``names`` that the row has, as text; ``UserError`` naming the place if none is text."""
    for name in names:
        if name in row and row[name] is not None:
            if isinstance(row[name], str):
                return row[name]
            raise UserError(f"{what}: {place}: {name} is {type(row[name]).__name__}, not text")
    raise UserError(f"{what}: {place} has no {' or '.join(names)}; it has {', '.join(map(str, row)) or 'no fields'}")


def golds_of(row: Row, place: str, what: str) -> tuple[str, ...]:
    """The gold answers of a row, from any of the field's names for them: a string, a list, or an array.

    Raises:
        UserError: there are none, or one is no text.
    """
    found: Any = None
    for name in ("golden_answers", "golds", "gold_answers", "answers", "answer"):
        if row.get(name) is not None:
            found = row[name]
            break
    else:
        reward = row.get("reward_model") or {}
        truth = reward.get("ground_truth") if isinstance(reward, Mapping) else None
        found = truth.get("target") if isinstance(truth, Mapping) else truth
    if found is None:
        raise UserError(f"{what}: {place} has no golden_answers; it has {', '.join(map(str, row)) or 'no fields'}")
    if hasattr(found, "tolist"):
        found = found.tolist()
    golds = [found] if isinstance(found, str) else found
    if not isinstance(golds, list | tuple) or not golds:
        raise UserError(f"{what}: {place}: golden_answers is {found!r}; give a string or a list with one or more")
    for gold in golds:
        if not isinstance(gold, str):
            raise UserError(f"{what}: {place}: golden_answers holds {gold!r} ({type(gold).__name__}), not text")
    return tuple(golds)
