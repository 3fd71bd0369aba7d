"""`hindsearch score FILE`: EM and F1 of predictions, or of agent transcripts, whoever made them."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hindsearch.data.rows import fields_of, golds_of, read_rows
from hindsearch.errors import UserError
from hindsearch.protocol import transcript_answer
from hindsearch.scoring import exact_match, token_f1

_TRANSCRIPTS = ("response", "raw", "completion")


def main(argv: Sequence[str] | None = None) -> int:
    """Print EM and F1; return 0, or 2 after one sentence about bad input."""
    parser = argparse.ArgumentParser(
        prog="hindsearch score",
        description="EM and F1 of a file of rows (JSONL, a JSON list, parquet; plain or gzip) with golden_answers and "
        "either prediction, or response: a transcript whose last own <answer> is scored.",
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument(
        "--out",
        metavar="OUT",
        help="JSONL: the same rows with em, f1 and, for transcripts, answer (student_answer where there is an answer)",
    )
    options = parser.parse_args(argv)
    try:
        rows = [score_row(row, place) for place, row in read_rows(options.file, "predictions")]
        if options.out:
            _write(Path(options.out).expanduser(), rows)
    except (UserError, OSError) as error:
        print(f"hindsearch score: {error}", file=sys.stderr)
        return 2
    for line in summary(rows):
        print(line)
    return 0


def score_row(row: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The row with ``em``, ``f1`` and, for a transcript, ``answer`` added; no answer scores 0.

    A column ``answer`` that is there already stays: the student's is then ``student_answer``. A ``prediction`` that is
    null says that there was no answer.

    Raises:
        UserError: the row has neither prediction nor transcript, or no golds.
    """
    golds = golds_of(row, place, "predictions")
    scored = dict(row)
    if "prediction" in row:
        answer = row["prediction"]
    else:
        field = next((name for name in _TRANSCRIPTS if name in row), None)
        if field is None:
            raise UserError(f"{place} has neither prediction nor response; it has {fields_of(row)}")
        if not isinstance(row[field], str):
            raise UserError(f"{place}: {field} is {type(row[field]).__name__}, not text")
        answer = transcript_answer(row[field])
        scored[_answer_column(row)] = answer
    if answer is not None and not isinstance(answer, str):
        raise UserError(f"{place}: prediction is {type(answer).__name__}, not text")
    scored["em"] = exact_match(answer, golds) if answer is not None else 0.0
    scored["f1"] = token_f1(answer, golds) if answer is not None else 0.0
    return scored


def summary(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Means over rows, and how many gave an answer where not all did or the answers are from transcripts."""
    count = len(rows)
    lines = [f"n {count}", *(f"{name.upper()} {sum(row[name] for row in rows) / count:.4f}" for name in ("em", "f1"))]
    given = [_given(row) is not None for row in rows]
    if not all(given) or any("prediction" not in row for row in rows):
        lines.append(f"answered {sum(given) / count:.4f}")
    return lines


def _answer_column(row: Mapping[str, Any]) -> str:
    return "student_answer" if "answer" in row else "answer"


def _given(row: Mapping[str, Any]) -> Any:
    return next((row[name] for name in ("prediction", "student_answer", "answer") if name in row), None)


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {path.parent} to write {path.name} to")
    if path.suffix in (".parquet", ".gz", ".json"):
        raise UserError(f"--out {path.name}: rows are written as JSON lines; name it {path.stem.split('.')[0]}.jsonl")
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(_line(row) for row in rows)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _line(row: Mapping[str, Any]) -> bytes:
    try:
        return (json.dumps(row, ensure_ascii=False, default=_plain) + "\n").encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which models do write: only an escape can hold it
        return (json.dumps(row, default=_plain) + "\n").encode()


def _plain(value: Any) -> Any:
    """What parquet holds and JSON does not: arrays become lists, dates and bytes text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


if __name__ == "__main__":
    sys.exit(main())
