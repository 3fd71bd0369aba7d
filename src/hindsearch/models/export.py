"""A trained student as a plain Hugging Face folder."""

import copy
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch

from hindsearch.models.causal_lm import CausalLM


def export_folder(student: CausalLM, tokenizer: Any, folder: Path) -> None:
    """Write what ``AutoModelForCausalLM`` and ``AutoTokenizer`` load; an adapter is merged into a copy first.

    The folder appears whole: it is written beside its place and moved there, over an older one.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".export-"))
    try:
        made = beside / "made"
        (_merged(student) if student.has_adapter else student.lm).save_pretrained(made)
        tokenizer.save_pretrained(made)
        if folder.exists():
            folder.rename(beside / "older")
        made.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _merged(student: CausalLM) -> Any:
    """A plain model with the adapter added to its weights, on the CPU: a GPU may have no room for a second copy."""
    device = student.device
    try:
        merged = copy.deepcopy(student.to("cpu").lm)
    finally:
        student.to(device)
    wide = torch.float64 if student.precision == "64-true" else torch.float32
    return merged.to(wide).merge_and_unload()
