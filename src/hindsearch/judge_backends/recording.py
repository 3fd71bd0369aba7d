"""Keeps every reply of a judge in a file, so that ``judge_backend=replay`` can give it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hindsearch import jsonl
from hindsearch.interfaces import JudgeBackend, JudgeRequest
from hindsearch.transcripts import request_hash


@dataclass(frozen=True)
class Recorded:
    """Passes requests on, and appends one line per new reply or error: ``{"hash": …, "reply": …}``.

    A reply that the file holds already is not written again. One that differs from an earlier one is appended, and the
    last counts; older lines, and one cut by a kill, are dropped when the file is next opened.
    """

    backend: JudgeBackend
    path: Path

    @property
    def digests(self) -> dict[str, str]:
        """What identifies the wording of the backend, if it has any."""
        return dict(getattr(self.backend, "digests", {}))

    @cached_property
    def _known(self) -> dict[str, tuple[str, str]]:
        """What the file holds, by hash; made clean at first use."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        rows = [row for row in jsonl.read(self.path) if "hash" in row]
        last = {row["hash"]: (kind, row[kind]) for row in rows for kind in ("reply", "error") if kind in row}
        if self.path.exists() and (len(last) < len(rows) or not _ends_in_newline(self.path)):
            pending = dict(last)

            def is_last(row: Mapping[str, str]) -> bool:
                kind = "reply" if "reply" in row else "error"
                is_kept = pending.get(row.get("hash", "")) == (kind, row.get(kind))
                if is_kept:
                    del pending[row["hash"]]
                return is_kept

            jsonl.keep(self.path, is_last)
        return last

    def __call__(self, requests: Sequence[JudgeRequest]) -> list[str | Exception]:
        replies = list(self.backend(requests))
        new: dict[str, tuple[str, str]] = {}
        for request, reply in zip(requests, replies, strict=True):
            name = request_hash(request)
            entry = ("error", str(reply)) if isinstance(reply, Exception) else ("reply", reply)
            is_worse = entry[0] == "error" and self._known.get(name, new.get(name, ("error",)))[0] == "reply"
            if self._known.get(name) != entry and not is_worse:
                new[name] = entry
        if new:
            jsonl.append(self.path, [{"hash": name, kind: text} for name, (kind, text) in new.items()])
            self._known.update(new)
        return replies


def _ends_in_newline(path: Path) -> bool:
    text = path.read_bytes()
    return not text or text.endswith(b"\n")
