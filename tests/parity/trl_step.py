"""TRL's side: its own trainer around the same rollouts, from rewards to a loss and its gradient."""

import warnings
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from parity.tiny_step import GROUP_SIZE, VOCABULARY, Attempt, gradient, take_weights

MAX_COMPLETION = 16


class TrlStep:
    """A ``GRPOTrainer`` whose rollout function returns given attempts.

    Padding, masks, advantages, old and reference log-probabilities and the loss are all its own. ``options`` are
    those of ``GRPOConfig``; ``reference`` is saved in ``folder``, where the trainer loads its reference from.
    """

    def __init__(
        self, student: nn.Module, reference: nn.Module, attempts: Sequence[Attempt], folder: Path, **options: Any
    ) -> None:
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer

        self.lm: Any = deepcopy(student)
        reference.save_pretrained(folder)  # type: ignore[operator]
        self.lm.config._name_or_path = str(folder)
        self.attempts = attempts
        rewards = [attempt.reward for attempt in attempts]

        class Silent(GRPOTrainer):
            def _send_telemetry(self) -> None:
                """Tests tell nobody."""

        arguments = GRPOConfig(
            output_dir=str(folder / "out"),
            report_to="none",
            use_cpu=True,
            bf16=False,
            activation_checkpointing=False,
            num_generations=GROUP_SIZE,
            per_device_train_batch_size=len(attempts) // options.get("gradient_accumulation_steps", 1),
            max_completion_length=MAX_COMPLETION,
            model_init_kwargs={"dtype": "auto"},
            **options,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trainer: Any = Silent(
                self.lm,
                reward_funcs=lambda completions, **_: rewards,
                args=arguments,
                train_dataset=Dataset.from_dict({"prompt": ["w1"] * len(attempts)}),
                processing_class=words(),
                rollout_func=self._rollouts,
            )
        self.trainer.current_gradient_accumulation_steps = arguments.gradient_accumulation_steps
        self.lm.train()

    def _rollouts(self, prompts: Sequence[str], trainer: Any) -> dict[str, list[list[Any]]]:
        assert len(prompts) == len(self.attempts)
        return {
            "prompt_ids": [a.prompt.tolist() for a in self.attempts],
            "completion_ids": [a.completion.tolist() for a in self.attempts],
            "logprobs": [[-1.0] * a.completion.numel() for a in self.attempts],
            "env_mask": [a.mask.long().tolist() for a in self.attempts],
        }

    def experience(self) -> dict[str, Tensor]:
        """What its trainer learns from, made with the weights as they are now."""
        return self.trainer._generate_and_score_completions([{"prompt": "w1"} for _ in self.attempts])

    def loss(self, batch: dict[str, Tensor], weights: nn.Module) -> tuple[Tensor, Tensor]:
        """The loss under ``weights`` and its gradient, over the micro-batches of one update."""
        take_weights(self.lm, weights.state_dict())
        parts = self.trainer.current_gradient_accumulation_steps
        total = torch.zeros(())
        for part in range(parts):
            rows = {key: value if value.dim() == 0 else value.chunk(parts)[part] for key, value in batch.items()}
            loss = self.trainer.compute_loss(self.lm, rows)
            loss.backward()
            total = total + loss.detach()
        return total, gradient(self.lm)


def words() -> Any:
    """A tokenizer as small as the models; ids are what both sides are given, so it decides nothing."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    table = {f"w{index}": index for index in range(VOCABULARY)}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel(table, unk_token="w0")), pad_token="w0", eos_token="w0"
    )
