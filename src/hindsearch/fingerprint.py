"""What identifies a run: if two runs differ in a line of it, their numbers are not of one experiment."""

import hashlib
import json
import platform
import subprocess
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import nn

PACKAGES = ("hindsearch", "torch", "lightning", "transformers", "tokenizers", "hydra-core", "bm25s", "numpy", "peft")

FREE = ("ckpt_path", "study", "run_name", "paths", "log", "checkpoint", "validation", "trainer.max_steps")
"""Settings that may change between a run and its continuation without changing a single weight."""


def run_fingerprint(
    config: Mapping[str, Any], data: Mapping[str, str], templates: Mapping[str, str], student: nn.Module
) -> dict[str, Any]:
    """Resolved config, digests of data, prompts and initial weights, package versions, git commit."""
    return {
        "config": dict(config),
        "data": dict(data),
        "templates": dict(templates),
        "student": weights_digest(student),
        "packages": {name: _version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "git_commit": _git_commit(),
    }


def weights_digest(model: nn.Module) -> str:
    """sha256 over names, shapes and values of all weights."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name}{tuple(value.shape)}{value.dtype}".encode())
        digest.update(value.detach().cpu().contiguous().view(-1).view(dtype=torch.uint8).numpy().data)
    return digest.hexdigest()


def differences(before: Mapping[str, Any], now: Mapping[str, Any], free: tuple[str, ...] = FREE) -> list[str]:
    """Config keys whose values differ, as ``key: before -> now``, but for the free ones."""
    old, new = flatten(before), flatten(now)
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    bound = [key for key in changed if not any(key == f or key.startswith(f + ".") for f in free)]
    return [f"{key}: {old.get(key, 'absent')} -> {new.get(key, 'absent')}" for key in bound]


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested keys joined by dots; lists are values."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = json.loads(json.dumps(value))
    return flat


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def _git_commit() -> str:
    try:
        command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
