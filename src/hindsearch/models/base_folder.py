"""A base model to warm-start, from a Hugging Face folder."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from hindsearch.errors import UserError


@dataclass(frozen=True)
class BaseFolder:
    """A folder with config.json, weights in safetensors and a tokenizer.

    Raises:
        UserError: if it is no such folder.
    """

    path: str

    def __post_init__(self) -> None:
        if not (self.folder / "config.json").is_file():
            raise UserError(f"{self.path} has no config.json; give a folder that save_pretrained wrote")

    @property
    def folder(self) -> Path:
        return Path(self.path).expanduser()

    def tokenizer(self) -> Any:
        return AutoTokenizer.from_pretrained(self.folder, local_files_only=True)

    def model(self, seed: int) -> Any:
        """Return the model in float32; ``seed`` changes nothing here."""
        return AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32, local_files_only=True)

    def fingerprint(self) -> dict[str, str]:
        """Digest over all files but hidden ones."""
        digest = hashlib.sha256()
        for file in sorted(self.folder.glob("[!.]*")):
            if file.is_file():
                digest.update(file.name.encode())
                with file.open("rb") as content:
                    digest.update(hashlib.file_digest(content, "sha256").digest())
        return {"base": digest.hexdigest()}
