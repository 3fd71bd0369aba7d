"""A transformers causal LM split into body and head."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from hindsearch.errors import UserError

AUTOCAST = {"32-true": None, "64-true": None, "bf16-mixed": torch.bfloat16}
"""Lightning's precision names that this framework trains in, with what arithmetic runs in."""

_KNOWN_LAYERS = {"full_attention", "sliding_attention"}


class CausalLM(nn.Module):
    """Scores tokens with the body run on padded sequences and the head on loss rows only.

    ``precision`` is the trainer's: sampling, teacher and update all run in it, since the trainer's own autocast does
    not cover the data loader. Dropout is off, so that a mode changes nothing. ``lm`` may be wrapped by peft.

    Raises:
        UserError: an unknown precision, or a model that cannot be split so: its logits are more than head(body), as
            with soft-capped logits, its layers are not attention, or some dropout stays on.
    """

    def __init__(self, lm: Any, precision: str = "32-true") -> None:
        super().__init__()
        if precision not in AUTOCAST:
            raise UserError(f"trainer.precision={precision} is not supported; use one of {', '.join(AUTOCAST)}")
        self.lm = lm
        self.precision = precision
        _switch_dropout_off(lm)
        # transformers renamed the argument within version 5
        names = inspect.signature(self.body.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self.check_split()

    # ------------------------------------------------------------------ what it is

    @property
    def has_adapter(self) -> bool:
        """Whether the trained weights are an adapter that can be switched off."""
        return hasattr(self.lm, "get_base_model")

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
        return int(self.base.config.vocab_size)

    @property
    def end_ids(self) -> tuple[int, ...]:
        """The ids that the model's generation config ends on."""
        found = getattr(getattr(self.base, "generation_config", None), "eos_token_id", None)
        return () if found is None else tuple(found) if isinstance(found, list) else (int(found),)

    @property
    def max_positions(self) -> int:
        """The longest sequence in which every token sees all before it."""
        config = self.base.config
        limits = [getattr(config, "max_position_embeddings", None)]
        if "sliding_attention" in (getattr(config, "layer_types", None) or ["sliding_attention"]):
            limits.append(getattr(config, "sliding_window", None))
        return min(int(limit) for limit in (*limits, 2**31 - 1) if limit)

    # ------------------------------------------------------------------ what it does

    def hidden(self, sequences: Sequence[Tensor], targets: Sequence[Tensor]) -> Tensor:
        """Hidden states ``_ND`` that predict the tokens at ``targets[b]`` of ``sequences[b]``; see ``LanguageModel``.

        Sequences are padded on the right, where causal attention never looks, and positions count from 0: a row's
        values do not depend on the rows beside it.

        Raises:
            UserError: a sequence is longer than the model's context.
        """
        longest = max(sequence.numel() for sequence in sequences)
        if longest > self.max_positions:
            raise UserError(
                f"a sequence of {longest} tokens does not fit into the {self.max_positions} positions of "
                f"{type(self.base).__name__}; lower agent.context_tokens, or use a shorter hint"
            )
        ids_BS = pad_sequence(list(sequences), batch_first=True).to(self.device)
        positions_BS = torch.arange(longest, device=self.device).expand_as(ids_BS)
        target_N = torch.cat([target + b * longest for b, target in enumerate(targets)]).to(self.device)
        assert bool((torch.cat(list(targets)) >= 1).all()), "nothing predicts the first token"
        with self.autocast():
            hidden_BSD = self.body(input_ids=ids_BS, position_ids=positions_BS, use_cache=False).last_hidden_state
        return hidden_BSD.flatten(0, 1).index_select(0, target_N - 1)

    def logprobs(self, hidden_ND: Tensor) -> Tensor:
        """Log-probabilities over the vocabulary at temperature 1, in float32 or wider."""
        with self.autocast():
            logits_NV = self.head(hidden_ND)
        # outside autocast: on a CPU it would leave log_softmax in bfloat16
        with torch.autocast(self.device.type, enabled=False):
            wide_NV = logits_NV if logits_NV.dtype == torch.float64 else logits_NV.float()
            return wide_NV.log_softmax(dim=-1)

    def read(self, ids_NQ: Tensor, positions_NQ: Tensor, mask_N1QS: Tensor, cache: Any) -> Tensor:
        """Hidden states ``_NQD`` of new tokens after those in ``cache``; see ``SampledFrom``."""
        # numbers to add to the scores: every attention of transformers reads these alike
        bias_N1QS = torch.where(mask_N1QS, 0.0, -torch.inf).to(self.base.dtype)
        arguments = {"position_ids": positions_NQ, "attention_mask": bias_N1QS, self._cache_name: cache}
        with self.autocast():
            return self.body(input_ids=ids_NQ, use_cache=True, **arguments).last_hidden_state

    def autocast(self) -> AbstractContextManager[Any]:
        """The precision that everything of this model runs in."""
        dtype = AUTOCAST[self.precision]
        return torch.autocast(self.device.type, dtype=dtype) if dtype else nullcontext()

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Eval mode without gradients, as it was before on leaving.

        Not inference mode: what is made here may be kept and read in a backward pass later.
        """
        modes = {module: module.training for module in self.modules()}
        self.eval()
        try:
            # one autocast around all passes: it casts each weight once, and not once per sampled token
            with torch.no_grad(), self.autocast():
                yield
        finally:
            for module, training in modes.items():
                module.training = training

    def narrow_frozen(self) -> None:
        """Store frozen linear weights in the type that autocast casts them to at each use.

        The same numbers, in half the memory, and nothing to cast while sampling. Weights shared with the embedding
        stay as they are.
        """
        dtype = AUTOCAST[self.precision]
        embedding = self.base.get_input_embeddings().weight
        for module in self.lm.modules() if dtype else ():
            if isinstance(module, nn.Linear) and module.weight is not embedding:
                for weight in module.parameters(recurse=False):
                    if not weight.requires_grad:
                        weight.data = weight.data.to(dtype)

    def load_trained(self, state_dict: Mapping[str, Tensor]) -> None:
        """Take over the weights of a training checkpoint, whose keys begin with ``student.``.

        Raises:
            UserError: the checkpoint lacks a trained weight, or holds one that does not fit.
        """
        weights = {key.removeprefix("student."): value for key, value in state_dict.items()}
        own = self.state_dict()
        trained = {name for name, weight in self.named_parameters(remove_duplicate=False) if weight.requires_grad}
        unfit = [key for key, value in weights.items() if key not in own or own[key].shape != value.shape]
        unfit += sorted(trained - weights.keys())
        if unfit:
            raise UserError(
                f"the checkpoint is of another model: {unfit[0]} does not fit, or is on one side "
                "only; give the student and adapter of its run, or student=folder with the run's student folder"
            )
        self.load_state_dict(weights, strict=False)

    def check_split(self) -> None:
        """Refuse a model that is not head(body), or that a mode still changes."""
        if self.device.type == "meta":
            return
        name = type(self.base).__name__
        odd = set(getattr(self.base.config, "layer_types", None) or ()) - _KNOWN_LAYERS
        if odd:
            raise UserError(f"{name} has layers of {', '.join(sorted(odd))}; use a model of attention layers only")
        probe_1S = torch.arange(1, min(5, self.vocab_size), device=self.device)[None]
        with self.sampling(), self.autocast():
            logits_SV = self.lm(input_ids=probe_1S, use_cache=False).logits[0]
            hidden_SD = self.body(input_ids=probe_1S, use_cache=False).last_hidden_state[0]
            split_SV = self.head(hidden_SD)
            self.train()
            trained_SD = self.body(input_ids=probe_1S, use_cache=False).last_hidden_state[0]
        if not torch.allclose(logits_SV.double(), split_SV.double(), atol=1e-3, rtol=1e-3):
            raise UserError(
                f"{name} does more to its logits than body and head (a soft cap or a scale); "
                "use a model of the Llama, Qwen2 or Qwen3 family"
            )
        if not torch.allclose(hidden_SD.double(), trained_SD.double(), atol=1e-3, rtol=1e-3):
            raise UserError(
                f"{name} computes something else in training mode (a dropout that its config does not name)"
            )


def _switch_dropout_off(lm: nn.Module) -> None:
    """Set every dropout to 0: as modules, as numbers that modules took from the config, and in the config."""
    for module in lm.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        for name, value in list(vars(module).items()):
            if "drop" in name and isinstance(value, float):
                setattr(module, name, 0.0)
    config: Any = getattr(lm, "config", None)
    for name, value in list(vars(config).items()) if config is not None else ():
        if ("drop" in name or name.endswith("_pdrop")) and isinstance(value, float):
            setattr(config, name, 0.0)
