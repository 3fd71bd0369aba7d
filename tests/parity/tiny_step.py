"""A step that both sides take: small models, rollouts made by hand, their rewards."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from hindsearch.tensors import Example

VOCABULARY = 23
GROUP_SIZE = 3


def tiny_gpt2(seed: int) -> nn.Module:
    """In float64, which its layer norm keeps. Its positions are absolute: left padding would move them."""
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=16,
        n_layer=2,
        n_head=2,
        n_positions=64,
        initializer_range=0.4,
        bos_token_id=0,
        eos_token_id=0,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return GPT2LMHeadModel(config).double()


def tiny_llama(seed: int) -> nn.Module:
    """In float32. Its positions are relative: a prompt may be padded on the left."""
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=64,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=None,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)


def moved(lm: nn.Module, seed: int, by: float) -> nn.Module:
    """A copy whose weights are ``by`` of their own size away: the student after some updates."""
    generator = torch.Generator().manual_seed(seed)
    other = deepcopy(lm)
    with torch.no_grad():
        for weight in other.parameters():
            noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
            weight.add_((by * noise * weight.std()).to(weight.dtype))
    return other


@dataclass(frozen=True)
class Attempt:
    """One rollout before any of the two sides has seen it: two sampled turns around an observation."""

    prompt: Tensor
    completion: Tensor
    mask: Tensor
    hint_prompt: Tensor
    hindsight: Tensor
    reward: float

    def example(self, advantage: float, in_policy: bool = True) -> Example:
        """As our collector would hand it on."""
        turn_T = torch.where(self.mask, (torch.arange(self.mask.numel()) >= 4).long(), -1)
        none_T = torch.zeros_like(self.mask)
        return Example(
            prompt_L=self.prompt,
            completion_T=self.completion,
            loss_mask_T=self.mask,
            behaviour_logprobs_T=torch.where(self.mask, -1.0, torch.nan),
            advantage=advantage,
            hint_prompt_H=self.hint_prompt,
            hindsight_mask_T=self.hindsight,
            turn_T=turn_T,
            right_T=none_T,
            good_T=none_T,
            chain_known=False,
            in_policy=in_policy,
        )


def attempts(rewards: Sequence[float], ragged_prompts: bool, observations: bool = True) -> list[Attempt]:
    """One for each reward, completions of 9 to 12 tokens; prompts of 4, or of 3 to 5 tokens by group."""
    made: list[Attempt] = []
    for index, reward in enumerate(rewards):
        generator = torch.Generator().manual_seed(index)
        length = 9 + index % 4
        mask = torch.ones(length, dtype=torch.bool)
        mask[4:7] = not observations
        hindsight = torch.zeros(length, dtype=torch.bool)
        hindsight[1 : 3 + index % 2] = True
        prompt_length = 3 + index // GROUP_SIZE % 3 if ragged_prompts else 4

        def ids(count: int, generator: torch.Generator = generator) -> Tensor:
            return torch.randint(1, VOCABULARY, (count,), generator=generator)

        made.append(Attempt(ids(prompt_length), ids(length), mask, ids(6), hindsight, reward))
    return made


def gradient(lm: nn.Module) -> Tensor:
    """All gradients as one vector; 0 where a weight has none."""
    grads = [weight.grad if weight.grad is not None else torch.zeros_like(weight) for weight in lm.parameters()]
    return torch.cat([grad.flatten() for grad in grads])
