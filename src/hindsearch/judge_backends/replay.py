"""Replies from a recording (``critiques.jsonl`` of an earlier run): no model, no network, the same hints again."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hindsearch import jsonl
from hindsearch.errors import JudgeError, UserError
from hindsearch.interfaces import JudgeRequest
from hindsearch.transcripts import request_hash


@dataclass(frozen=True)
class ReplayBackend:
    """Gives each request the reply that was recorded for an equal one; the last recorded one counts.

    A request that was never recorded, or whose judge was down then, gets a ``JudgeError``.

    Raises:
        UserError: there is no such file, or a line of it is no recording.
    """

    path: str | Path

    def __post_init__(self) -> None:
        if not Path(self.path).is_file():
            raise UserError(
                f"judge_backend.path={self.path} is not a file; give the critiques.jsonl of a run that asked a judge"
            )

    @cached_property
    def _rows(self) -> dict[str, dict[str, str]]:
        rows: dict[str, dict[str, str]] = {}
        for number, row in enumerate(jsonl.read(Path(self.path)), 1):
            if "hash" not in row or not {"reply", "error"} & row.keys():
                raise UserError(f"{self.path}, row {number}: no recorded reply (needs hash, and reply or error)")
            rows[row["hash"]] = row
        return rows

    def __call__(self, requests: Sequence[JudgeRequest]) -> list[str | Exception]:
        return [self._reply(request_hash(request)) for request in requests]

    def _reply(self, name: str) -> str | Exception:
        row = self._rows.get(name)
        if row is None:
            return JudgeError(f"{self.path} holds no reply to request {name}; it was recorded with other settings")
        return row["reply"] if "reply" in row else JudgeError(f"recorded as failed, request {name}: {row['error']}")
