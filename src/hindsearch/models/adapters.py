"""What of a student is trained: all of it, or an adapter beside frozen weights."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from hindsearch.errors import UserError
from hindsearch.models.causal_lm import CausalLM


@dataclass(frozen=True)
class NoAdapter:
    """Full fine-tuning."""

    def __call__(self, student: CausalLM) -> CausalLM:
        return student


@dataclass(frozen=True)
class Lora:
    """Low-rank adapters (arXiv 2106.09685) through peft. Dropout is 0, so that sampling and update are one policy.

    ``target_modules`` are module names, or ``all-linear``. ``seed`` alone decides the first weights. The
    adapted student begins as the one that it was given.

    Raises:
        UserError: peft is not installed, or no module has such a name.
    """

    rank: int
    alpha: int
    target_modules: str | Sequence[str] = "all-linear"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ValueError(f"adapter.rank={self.rank} adds nothing to train; use 1 or more, for example 64")

    def __call__(self, student: CausalLM) -> CausalLM:
        if importlib.util.find_spec("peft") is None:
            raise UserError("adapter=lora needs the extra lora: pip install 'hindsearch[lora]'")
        from peft import LoraConfig, get_peft_model

        named = self.target_modules
        config = LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,
            lora_dropout=0.0,
            target_modules=named if isinstance(named, str) else list(named),
            task_type="CAUSAL_LM",
        )
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                adapted = get_peft_model(student.lm, config)
        except ValueError as error:
            raise UserError(f"adapter.target_modules={named}: {str(error).split(chr(10), 1)[0]}") from error
        adapted_student = CausalLM(adapted, student.precision)
        adapted_student.narrow_frozen()
        return adapted_student
