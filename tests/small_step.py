"""A small model in float64, rollouts made by hand, and a step of them: what tests of the objective stand on."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from hindsearch.micro_batch import Share, micro_batches
from hindsearch.models.causal_lm import CausalLM
from hindsearch.objective import Objective, Part
from hindsearch.tensors import Example

VOCABULARY = 23


def tiny(seed: int) -> CausalLM:
    """GPT-2's shape: its layer norm keeps float64, where Llama's rounds to float32 on the way."""
    config = GPT2Config(
        vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=2, n_positions=64, initializer_range=0.4, bos_token_id=0
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return CausalLM(GPT2LMHeadModel(config).double(), "64-true")


def example(seed: int, advantage: float, hindsight: bool) -> Example:
    """A prompt of 3 to 5 tokens; a completion of two sampled turns around an observation."""
    generator = torch.Generator().manual_seed(seed)

    def ids(count: int) -> torch.Tensor:
        return torch.randint(0, VOCABULARY, (count,), generator=generator)

    length = 9 + seed % 3
    mask = torch.ones(length, dtype=torch.bool)
    mask[4:7] = False
    hindsight_mask = torch.zeros(length, dtype=torch.bool)
    hindsight_mask[1:3] = hindsight
    turn = torch.where(mask, torch.where(torch.arange(length) < 4, 0, 1), -1)
    return Example(
        prompt_L=ids(3 + seed % 3),
        completion_T=ids(length),
        loss_mask_T=mask,
        behaviour_logprobs_T=torch.where(mask, torch.tensor(-1.0), torch.tensor(torch.nan)),
        advantage=advantage,
        hint_prompt_H=ids(6) if hindsight else ids(0),
        hindsight_mask_T=hindsight_mask,
        turn_T=turn,
        right_T=torch.zeros(length, dtype=torch.bool),
        good_T=torch.zeros(length, dtype=torch.bool),
        chain_known=False,
    )


def group(all_equal: bool = False) -> list[Example]:
    advantages = [0.0] * 6 if all_equal else [1.2, -0.4, 0.0, -0.4, 0.9, -1.3]
    return [example(seed, a, hindsight=a <= 0) for seed, a in enumerate(advantages)]


def plan(objective: Objective, examples: list[Example]) -> list[Share]:
    return objective.plan(examples, objective.divisors(examples), step=0)


def one_part(objective: Objective, student: CausalLM, teacher: CausalLM, shares: list[Share]) -> Part:
    reading = objective.read(teacher, teacher, shares)
    return objective(student, teacher, shares, reading, reading.gap_M, step=0)


def gradient(objective, student, teacher, examples, max_tokens=10_000):
    """Gradient of a step made of micro-batches; also the loss."""
    student.zero_grad()
    micros = micro_batches(plan(objective, examples), max_tokens)
    readings = [objective.read(teacher, teacher, micro) for micro in micros]
    gaps = torch.cat([reading.gap_M for reading in readings]) if readings else torch.zeros(0)
    total = 0.0
    for micro, reading in zip(micros, readings, strict=True):
        part = objective(student, teacher, micro, reading, gaps, step=0)
        part.loss.backward()
        total += float(part.loss.detach())
    parts = [p.grad.flatten() if p.grad is not None else p.new_zeros(p.numel()) for p in student.parameters()]
    return torch.cat(parts).clone(), total
