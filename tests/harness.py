"""Run the command as a user does, in a process of its own, and read what it left."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

TINY = [
    "experiment=quickstart",
    "trainer.max_steps=4",
    "rollout.questions=2",
    "rollout.group_size=4",
    "validation.every=2",
    "data.validation_questions=12",
    "checkpoint.every=1",
]
"""A run that exercises everything in seconds."""


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "HF_HUB_OFFLINE": "1"}


def start(*arguments: str, cwd: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "hindsearch.cli", *arguments]
    return subprocess.Popen(
        command, cwd=cwd, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def run(*arguments: str, cwd: Path, code: int = 0) -> "subprocess.CompletedProcess[str]":
    process = start(*arguments, cwd=cwd)
    out, err = process.communicate(timeout=600)
    assert process.returncode == code, f"exit {process.returncode}\n{out}\n{err}"
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def weights(folder: Path, name: str = "last.ckpt") -> dict[str, torch.Tensor]:
    return torch.load(folder / "checkpoints" / name, weights_only=True)["state_dict"]


def same_weights(left: Path, right: Path) -> bool:
    a, b = weights(left), weights(right)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def rows(folder: Path, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
    """Every whole row: the last one may be in the writing."""
    lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def without_time(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if not key.startswith("time/")}
