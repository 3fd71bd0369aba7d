"""Which run goes on, from which checkpoint, in which folder; and that nobody else writes there meanwhile."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from hindsearch.errors import UserError
from hindsearch.fingerprint import differences

LAST = "last"
_STAMP = r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d-\d+"


def find_checkpoint(ckpt_path: str | None, output_dir: Path, run_name: str, config: Mapping[str, Any]) -> Path | None:
    """The file to resume from, or ``None`` if there is none yet.

    ``last`` is this folder's. A folder that was named by its time is new in every run: then it is that of the newest
    run beside it that has the same name and the same settings.

    Raises:
        UserError: a path that is no file.
    """
    if ckpt_path is None:
        return None
    if ckpt_path != LAST:
        path = Path(ckpt_path).expanduser()
        if not path.is_file():
            raise UserError(f"ckpt_path={ckpt_path} is not a file; give a .ckpt file, or ckpt_path=last")
        return path.resolve()
    stamped = re.compile(rf"{_STAMP}-{re.escape(run_name)}")
    folders = [output_dir]
    if stamped.fullmatch(output_dir.name):
        beside = sorted((p for p in output_dir.parent.iterdir() if stamped.fullmatch(p.name)), reverse=True)
        folders += [folder for folder in beside if _has_settings(folder, config)]
    found = (folder / "checkpoints" / "last.ckpt" for folder in folders)
    return next((path.resolve() for path in found if path.is_file()), None)


def _has_settings(folder: Path, config: Mapping[str, Any]) -> bool:
    try:
        before = json.loads((folder / "fingerprint.json").read_text(encoding="utf-8"))["config"]
    except (OSError, ValueError, KeyError):
        return False
    return not differences(before, config)


def read_checkpoint(checkpoint: Path) -> dict[str, Any]:
    """The contents of a checkpoint, weights-only; ``UserError`` where it is none."""
    try:
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # whatever a file that is no checkpoint makes torch say
        best = checkpoint.with_name("best.ckpt")
        way_on = f"go on from ckpt_path={best}, or" if best.is_file() and best != checkpoint else "give another one, or"
        raise UserError(
            f"{checkpoint} is cut short, or no checkpoint ({type(error).__name__}); {way_on} start in another "
            "paths.output_dir"
        ) from error
    if not isinstance(saved, dict) or not {"state_dict", "completed_steps"} <= saved.keys():
        raise UserError(f"{checkpoint} is not a checkpoint of a run; give a .ckpt file out of a checkpoints folder")
    return saved


def check_same_run(saved: Mapping[str, Any], fingerprint: Mapping[str, Any], path: Path) -> None:
    """Refuse to go on with other settings than the checkpoint's: the result would be of neither."""
    before = saved.get("fingerprint", {})
    changed = differences(before.get("config", {}), fingerprint["config"])
    for part in ("data", "templates"):
        changed += differences(before.get(part, {}), fingerprint[part])
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise UserError(
            f"{path} is a checkpoint of other settings ({changed[0]}{more}); use the same ones, or start a new run"
        )


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder for this process; the system lets go of it however the process ends.

    Raises:
        UserError: another process is writing there.
    """
    try:
        import fcntl
    except ImportError:  # only Unix can lock a folder
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"another process is writing to {folder}; wait for it, or give another output_dir"
            ) from error
        yield
    finally:
        os.close(handle)
