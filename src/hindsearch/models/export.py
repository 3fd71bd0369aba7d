"""A trained student as a plain Hugging Face folder."""

import copy
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hindsearch.models.causal_lm import CausalLM


def export_folder(student: CausalLM, tokenizer: Any, folder: Path) -> None:
    """Write what ``AutoModelForCausalLM`` and ``AutoTokenizer`` load; an adapter is merged into a copy first.

    The folder appears whole: it is written beside its place and moved there, over an older one.
    """
    model = copy.deepcopy(student.lm).merge_and_unload() if student.has_adapter else student.lm
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".export-"))
    try:
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
        made.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        made.rename(folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
