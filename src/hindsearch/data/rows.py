"""Rows of a file, each with the place it stands at, so that every complaint can name file and line."""

import csv
import difflib
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hindsearch.errors import UserError

Row = Mapping[str, Any]

_GZIP, _PARQUET, _BOM = b"\x1f\x8b", b"PAR1", b"\xef\xbb\xbf"
_LIST_AS_TEXT = re.compile(r"""\s*\[\s*(["']).*\1\s*,?\s*\]\s*""", re.DOTALL)
_JOINED = "<|answer_split|>"
"""Between the golds that DeepResearcher's files (arXiv 2504.03160) join into one text."""
_WIDEST = 2**31 - 1
"""Characters of a TSV field: passages are longer than the csv module's own limit."""


def read_rows(path: str | Path, what: str) -> Iterator[tuple[str, Row]]:
    """Yield ``(place, row)`` from JSON lines, a JSON list, TSV with a header or parquet, plain or gzipped.

    The kind is told from the file's first bytes (and, for TSV, from its name). ``what`` is the file's role in errors.

    Raises:
        UserError: no such file, an empty one, text that is not UTF-8, a line that is no JSON object.
    """
    path = Path(path).expanduser()
    if not path.is_file():
        raise UserError(f"{what}: there is no file {path}{_beside(path)}")
    with path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise UserError(f"{what}: {path} is empty")
    count = 0
    for count, placed in enumerate(_rows(path, start, what), 1):  # noqa: B007
        yield placed
    if count == 0:
        raise UserError(f"{what}: {path} has no rows")


def _beside(path: Path) -> str:
    """What may have been meant instead of a path that is no file."""
    if path.is_dir():
        return ": it is a folder; name a file in it"
    if not path.parent.is_dir():
        return f"; there is no folder {path.parent} either"
    names = sorted(p.name for p in path.parent.iterdir() if p.is_file())
    near = difflib.get_close_matches(path.name, names, n=1)
    if near:
        return f"; {path.parent} holds {near[0]}"
    return f"; {path.parent} holds {', '.join(names[:5])}" if names else f"; {path.parent} holds no files"


def _rows(path: Path, start: bytes, what: str) -> Iterator[tuple[str, Row]]:
    if start == _PARQUET:
        yield from _parquet_rows(path, what)
        return
    opener = gzip.open if start[:2] == _GZIP else open
    try:
        with opener(path, "rb") as raw:
            if ".tsv" in path.suffixes:
                yield from _tsv_rows(path, raw, what)
            else:
                yield from _json_rows(path, raw, what)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{what}: {path} is a gzip file that is cut or damaged") from error


def _parquet_rows(path: Path, what: str) -> Iterator[tuple[str, Row]]:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        batches = parquet.ParquetFile(path).iter_batches(batch_size=1024)
        for number, row in enumerate((row for batch in batches for row in batch.to_pylist()), 1):
            yield f"{path} row {number}", row
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{what}: {path} is a parquet file that is cut or damaged") from error


def _tsv_rows(path: Path, raw: io.BufferedIOBase, what: str) -> Iterator[tuple[str, Row]]:
    csv.field_size_limit(_WIDEST)
    text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")  # type: ignore[arg-type]
    reader = csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
    try:
        for row in reader:
            place = f"{path} line {reader.line_num}"
            # DictReader keeps what is too much under None, and fills what is missing with None
            if None in row or None in row.values():
                raise UserError(f"{what}: {place} has not the {len(reader.fieldnames or ())} fields of the first line")
            yield place, row
    except UnicodeDecodeError as error:
        raise UserError(f"{what}: {path} is not UTF-8 ({error.reason}); save it as UTF-8") from error


def _json_rows(path: Path, raw: io.BufferedIOBase, what: str) -> Iterator[tuple[str, Row]]:
    # read as bytes, so that what is not UTF-8 has a line too
    first = True
    for number, line in enumerate(raw, 1):
        stripped = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
        if not stripped:
            continue
        place = f"{path} line {number}"
        if first and stripped.startswith(b"["):
            yield from _json_list(path, _decoded(stripped + b"\n" + raw.read(), str(path), what), what)
            return
        first = False
        try:
            row = json.loads(_decoded(stripped, place, what))
        except json.JSONDecodeError as error:
            raise UserError(
                f"{what}: {place} is not JSON ({error.msg} at column {error.colno}); one object a line is wanted"
            ) from error
        if not isinstance(row, dict):
            raise UserError(f"{what}: {place} is a JSON {type(row).__name__}, not an object with fields")
        yield place, row


def _decoded(text: bytes, place: str, what: str) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte 0x{text[error.start]:02x} at column {error.start + 1}"
        raise UserError(f"{what}: {place} is not UTF-8 ({byte}); save it as UTF-8") from error


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
    raise UserError(f"{what}: {place} has no {' or '.join(names)}; it has {fields_of(row)}")


def fields_of(row: Row) -> str:
    """The names of a row's fields, for an error; a file without a header has whole texts for names."""
    names = [name if len(name) <= 40 else f"{name[:37]}..." for name in map(str, row)]
    return ", ".join(names[:20]) + ", ..." * (len(names) > 20) or "no fields"


def golds_of(row: Row, place: str, what: str) -> tuple[str, ...]:
    """The gold answers of a row, from any of the field's names for them: a string, a list, or an array.

    ``answer`` and ``answers`` are asked last: beside another name they are what a model said. MuSiQue's own files keep
    further golds beside ``answer``, as ``answer_aliases``.

    Raises:
        UserError: there are none, one is no text, or a list was written as text.
    """
    name, found = _found_golds(row)
    if found is None:
        raise UserError(f"{what}: {place} has no golden_answers; it has {fields_of(row)}")
    if hasattr(found, "tolist"):
        found = found.tolist()
    golds = [found] if isinstance(found, str) else found
    if name == "answer" and isinstance(golds, list) and isinstance(aliases := row.get("answer_aliases"), list):
        golds = [*golds, *aliases]
    if not isinstance(golds, list | tuple) or not golds:
        raise UserError(f"{what}: {place}: {name} is {found!r}; give a string or a list with one or more")
    for gold in golds:
        if not isinstance(gold, str):
            raise UserError(f"{what}: {place}: {name} holds {gold!r} ({type(gold).__name__}), not text")
        if _LIST_AS_TEXT.fullmatch(gold):
            raise UserError(f"{what}: {place}: {name} is a list written as text, {gold[:60]!r}; write it as a list")
    return tuple(part for gold in golds for part in gold.split(_JOINED))


def _found_golds(row: Row) -> tuple[str, Any]:
    for name in ("golden_answers", "golds", "gold_answers"):
        if row.get(name) is not None:
            return name, row[name]
    reward = row.get("reward_model")
    truth = reward.get("ground_truth") if isinstance(reward, Mapping) else None
    target = truth.get("target") if isinstance(truth, Mapping) else truth
    if target is not None:
        return "reward_model.ground_truth.target", target
    return next(((name, row[name]) for name in ("answers", "answer") if row.get(name) is not None), ("", None))
