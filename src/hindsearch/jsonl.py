"""Append-only JSON lines that survive a kill: a line cut in the middle is dropped, a resumed run repeats nothing."""

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


def append(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append one line per row. Values that are not finite become null, which JSON can hold."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(_finite(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def keep(path: Path, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
    """Drop the rows that are not wanted, and a last line that was cut, in one move."""
    if not path.exists():
        return
    temporary = path.with_name(path.name + ".tmp")
    with path.open(encoding="utf-8", errors="replace") as old, temporary.open("w", encoding="utf-8") as new:
        for line in old:
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            if wanted(row):
                new.write(line)
    os.replace(temporary, path)


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, without lines that a kill cut in the middle; none where there is no file."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                continue


def write_json(path: Path, value: Any) -> None:
    """Write a whole JSON file in one move."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(_finite(value), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
