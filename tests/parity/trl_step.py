"""TRL's side: its own trainers around the same rollouts, from rewards to a loss and its gradient.

TRL is imported where it is used: this file is also read where it is absent.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from parity.tiny_step import GROUP_SIZE, VOCABULARY, Attempt, gradient

MAX_COMPLETION = 16
"""In tokens: what TRL's ``dr_grpo`` divides by."""


class TrlStep:
    """A ``GRPOTrainer`` whose rollout function returns given attempts.

    Padding, masks, advantages, old and reference log-probabilities and the loss are all its own. ``options`` are
    those of its config; ``reference`` is saved in ``folder``, where the trainer loads its reference from.
    """

    def __init__(
        self, student: nn.Module, reference: nn.Module, attempts: Sequence[Attempt], folder: Path, **options: Any
    ) -> None:
        self.lm: Any = deepcopy(student)
        reference.save_pretrained(folder)  # type: ignore[operator]
        self.lm.config._name_or_path = str(folder)
        self.attempts = attempts
        steps = options.get("gradient_accumulation_steps", 1)
        self.trainer = self._trainer(
            output_dir=str(folder / "out"),
            report_to="none",
            use_cpu=True,
            bf16=False,
            activation_checkpointing=False,
            num_generations=GROUP_SIZE,
            per_device_train_batch_size=len(attempts) // steps,
            max_completion_length=MAX_COMPLETION,
            model_init_kwargs={"dtype": "auto"},
            **options,
        )
        self.trainer.current_gradient_accumulation_steps = steps
        self.lm.train()

    def _trainer(self, **options: Any) -> Any:
        from trl import GRPOConfig, GRPOTrainer

        class GivenRollouts(GRPOTrainer):
            def _send_telemetry(self) -> None:
                """Tests tell nobody."""

        def rollouts(prompts: Sequence[str], trainer: Any) -> dict[str, list[list[Any]]]:
            return {
                "prompt_ids": [a.prompt.tolist() for a in self.attempts],
                "completion_ids": [a.completion.tolist() for a in self.attempts],
                "logprobs": [[-1.0] * a.completion.numel() for a in self.attempts],
                "env_mask": [a.mask.long().tolist() for a in self.attempts],
            }

        return GivenRollouts(self.lm, args=GRPOConfig(**options), rollout_func=rollouts, **self._data())

    def _data(self) -> dict[str, Any]:
        from datasets import Dataset

        rewards = [attempt.reward for attempt in self.attempts]
        return {
            "reward_funcs": lambda completions, **_: rewards,
            "train_dataset": Dataset.from_list(self._rows()),
            "processing_class": words(),
        }

    def _rows(self) -> list[dict[str, str]]:
        """What TRL asks for: prompts that stand for the attempts, whose ids come from the rollout function."""
        return [{"prompt": "w1"} for _ in self.attempts]

    def experience(self) -> dict[str, Tensor]:
        """What its trainer learns from, made with the weights as they are now."""
        return self.trainer._generate_and_score_completions(self._rows())

    def loss(self, batch: dict[str, Tensor], now: nn.Module) -> tuple[Tensor, Tensor]:
        """The loss of one update under the weights of ``now``, and its gradient, over TRL's micro-batches."""
        self.lm.load_state_dict(now.state_dict())
        self.lm.zero_grad()
        parts = self.trainer.current_gradient_accumulation_steps
        total = torch.zeros(())
        for part in range(parts):
            rows = {name: value.chunk(parts)[part] if value.dim() else value for name, value in batch.items()}
            loss = self.trainer.compute_loss(self.lm, rows)
            loss.backward()
            total = total + loss.detach()
        return total, gradient(self.lm)


class RlooStep(TrlStep):
    """An ``RLOOTrainer`` that is handed given attempts in place of sampling."""

    def _trainer(self, **options: Any) -> Any:
        from trl import RLOOConfig, RLOOTrainer

        attempts = self.attempts

        class GivenRollouts(RLOOTrainer):
            def _send_telemetry(self) -> None:
                """Tests tell nobody."""

            def _tokenize_prompts(self, prompts: list[Any]) -> tuple[list[list[int]], None, dict[str, Any]]:
                return [a.prompt.tolist() for a in attempts], None, {}

            def _generate_single_turn(self, *_: Any) -> list[list[int]]:
                return [a.completion.tolist() for a in attempts]

        return GivenRollouts(self.lm, args=RLOOConfig(**options), **self._data())


def self_distillation(
    student: nn.Module, teacher: nn.Module, attempts: Sequence[Attempt], **options: Any
) -> tuple[Tensor, Tensor]:
    """The loss and gradient of ``SDPOTrainer``, whose teacher reads the hinted prompt, on the hindsight tokens.

    Logits, divergence and reduction are its own. Its constructor is left out: it would want to make the hints. It acts
    on whole completions, so the mask of the loss is put in its place. ``options`` are those of its config.
    """
    from trl.experimental.sdpo import SDPOTrainer

    class Bare(SDPOTrainer):
        def __init__(self) -> None:
            self.args = SimpleNamespace(**options)
            self.temperature = 1.0
            self.model_kwarg_keys = ()
            self.accelerator = SimpleNamespace(gather=lambda value: value)

        def _get_teacher_context_for_self_distillation(self) -> Any:
            return nullcontext()

        def _log_self_distillation_metric(self, mode: str, value: float) -> None:
            """Nobody reads it."""

    def padded(rows: list[Tensor]) -> Tensor:
        return pad_sequence(rows, batch_first=True)

    trainer: Any = Bare()
    lm = deepcopy(student)
    completions = padded([a.completion for a in attempts])
    seen = padded([torch.ones_like(a.completion) for a in attempts])
    prompts, hinted = (torch.stack([getattr(a, name) for a in attempts]) for name in ("prompt", "hint_prompt"))
    inputs = {
        "prompt_ids": prompts,
        "prompt_mask": torch.ones_like(prompts),
        "completion_ids": completions,
        "completion_mask": seen,
        "teacher_input_ids": torch.cat([hinted, completions], 1),
        "teacher_attention_mask": torch.cat([torch.ones_like(hinted), seen], 1),
    }
    logits = trainer._compute_teacher_student_logits(lm, teacher, inputs)
    logits = replace(logits, loss_mask=padded([a.hindsight.long() for a in attempts]))
    loss = trainer._compute_self_distillation_loss(lm, inputs, logits)
    loss.backward()
    return loss.detach(), gradient(lm)


def words() -> Any:
    """A tokenizer as small as the models; ids are what both sides are given, so it decides nothing."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    table = {f"w{index}": index for index in range(VOCABULARY)}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(table, unk_token="w0")), pad_token="w0", eos_token="w0"
    )
