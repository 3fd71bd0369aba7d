"""A transformers causal LM split into body and head."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from hindsearch.errors import UserError

AUTOCAST = {"32-true": None, "64-true": None, "bf16-mixed": torch.bfloat16}
"""Lightning's precision names that this framework trains in, with what arithmetic runs in."""


class CausalLM(nn.Module):
    """Scores tokens with the body run on padded sequences and the head on loss rows only.

    ``precision`` is the trainer's: sampling, teacher and update all run in it, since the trainer's own autocast does
    not cover the data loader. Dropout is off, so that a mode changes nothing. ``lm`` may be wrapped by peft.

    Raises:
        UserError: the model's logits are more than head(body), as with soft-capped logits.
    """

    def __init__(self, lm: Any, precision: str = "32-true") -> None:
        super().__init__()
        if precision not in AUTOCAST:
            raise UserError(f"trainer.precision={precision} is not supported; use one of {', '.join(AUTOCAST)}")
        self.lm = lm
        self.precision = precision
        for module in lm.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        for name in ("attention_dropout", "attn_pdrop", "resid_pdrop", "embd_pdrop"):
            if hasattr(lm.config, name):
                setattr(lm.config, name, 0.0)
        self._refuse_unsplittable()

    # ------------------------------------------------------------------ what it is

    @property
    def has_adapter(self) -> bool:
        """Whether trained weights are an adapter that can be switched off."""
        return hasattr(self.lm, "disable_adapter")

    @property
    def base(self) -> Any:
        """The transformers model, below any adapter wrapper."""
        return self.lm.get_base_model() if self.has_adapter else self.lm

    @property
    def body(self) -> nn.Module:
        return self.base.base_model

    @property
    def head(self) -> nn.Module:
        return self.base.get_output_embeddings()

    @property
    def device(self) -> torch.device:
        return next(self.lm.parameters()).device

    @property
    def vocab_size(self) -> int:
        return int(self.head.weight.shape[0])  # type: ignore[arg-type, union-attr]

    @property
    def max_positions(self) -> int:
        return int(getattr(self.base.config, "max_position_embeddings", 2**31 - 1))

    # ------------------------------------------------------------------ what it does

    def hidden(self, sequences: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
        """Hidden states ``_ND`` that predict the tokens at ``targets[b]`` of ``sequences[b]``; see ``LanguageModel``.

        Sequences are padded on the right, where causal attention never looks, and positions count from 0: a row's
        values do not depend on the rows beside it.
        """
        longest = max(s.numel() for s in sequences)
        ids_BS = torch.zeros((len(sequences), longest), dtype=torch.long, device=self.device)
        for row_S, sequence in zip(ids_BS, sequences, strict=True):
            row_S[: sequence.numel()] = sequence
        positions_BS = torch.arange(longest, device=self.device).expand_as(ids_BS)
        with self.autocast():
            hidden_BSD = self.body(input_ids=ids_BS, position_ids=positions_BS, use_cache=False).last_hidden_state
        rows = [hidden_S[target.to(self.device) - 1] for hidden_S, target in zip(hidden_BSD, targets, strict=True)]
        return torch.cat(rows)

    def logprobs(self, hidden_ND: Tensor) -> Tensor:
        """Log-probabilities over the vocabulary at temperature 1, in float32 or wider."""
        with self.autocast():
            logits_NV = self.head(hidden_ND)
        wide_NV = logits_NV if logits_NV.dtype == torch.float64 else logits_NV.float()
        with torch.autocast(self.device.type, enabled=False):
            return wide_NV.log_softmax(dim=-1)

    def read(self, ids_NQ: Tensor, positions_NQ: Tensor, mask_N1QS: Tensor, cache: Any) -> Tensor:
        """Hidden states ``_NQD`` of new tokens after those in ``cache``; see ``SampledFrom``."""
        with self.autocast():
            return self.body(
                input_ids=ids_NQ, position_ids=positions_NQ, attention_mask=mask_N1QS, cache=cache, use_cache=True
            ).last_hidden_state

    def autocast(self) -> AbstractContextManager[Any]:
        dtype = AUTOCAST[self.precision]
        return torch.autocast(self.device.type, dtype=dtype) if dtype else nullcontext()

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Eval mode without gradients, as it was before on leaving.

        Not inference mode: what is made here may be kept and read in a backward pass later.
        """
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.train(was_training)

    def load_trained(self, state_dict: dict[str, Tensor]) -> None:
        """Take over the weights of a training checkpoint, whose keys begin with ``student.``."""
        weights = {key.removeprefix("student."): value for key, value in state_dict.items()}
        own = self.state_dict()
        unfit = [key for key, value in weights.items() if key not in own or own[key].shape != value.shape]
        if unfit or not weights:
            raise UserError(f"the checkpoint is of another model: {unfit[0] if unfit else 'it holds no weights'}")
        self.load_state_dict(weights, strict=False)

    def _refuse_unsplittable(self) -> None:
        if self.device.type == "meta":
            return
        probe = torch.arange(1, min(5, self.vocab_size), device=self.device)
        with self.sampling(), self.autocast():
            whole = self.lm(input_ids=probe[None], use_cache=False).logits[0]
            parts = self.head(self.body(input_ids=probe[None], use_cache=False).last_hidden_state[0])
        if not torch.allclose(whole.float(), parts.float(), atol=1e-3, rtol=1e-3):
            raise UserError(
                f"{type(self.base).__name__} does more to its logits than body and head (a soft cap or a scale); "
                "use a model of the Llama, Qwen2 or Qwen3 family"
            )
