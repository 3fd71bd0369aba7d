"""Rollouts as they go through a model together: weighed, packed by length, their loss tokens laid end to end."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from hindsearch.tensors import Example


@dataclass(frozen=True)
class Share:
    """An example with the weight of each of its loss tokens in the step's policy and hindsight sums.

    ``policy_weights_N`` are of its loss tokens in order, ``hindsight_weights_M`` of its hindsight tokens.
    """

    example: Example
    policy_weights_N: Tensor
    hindsight_weights_M: Tensor

    @property
    def num_positions(self) -> int:
        return self.example.prompt_L.numel() + self.example.completion_T.numel()


def micro_batches(shares: Sequence[Share], max_tokens: int) -> list[list[Share]]:
    """Longest first, as many to a micro-batch as fit ``max_tokens`` padded positions; one at least."""
    batches: list[list[Share]] = []
    for share in sorted(shares, key=lambda s: s.num_positions, reverse=True):
        if batches and (len(batches[-1]) + 1) * batches[-1][0].num_positions <= max_tokens:
            batches[-1].append(share)
        else:
            batches.append([share])
    return batches


@dataclass(frozen=True)
class Rows:
    """The loss tokens of a micro-batch laid end to end; ``M`` counts those with hindsight, as indices into ``N``."""

    ids_N: Tensor
    behaviour_logprobs_N: Tensor
    advantages_N: Tensor
    policy_weights_N: Tensor
    rollout_N: Tensor
    turn_N: Tensor
    hindsight_M: Tensor
    hindsight_weights_M: Tensor
    right_M: Tensor
    good_N: Tensor
    chain_known: bool

    @staticmethod
    def of(shares: Sequence[Share]) -> "Rows":
        masks = [s.example.loss_mask_T for s in shares]
        counts_B = torch.tensor([int(mask.sum()) for mask in masks], device=masks[0].device)

        def gathered(name: str) -> Tensor:
            return torch.cat([getattr(s.example, name)[mask] for s, mask in zip(shares, masks, strict=True)])

        def spread(values: list[float]) -> Tensor:
            return torch.tensor(values, dtype=torch.float64, device=masks[0].device).repeat_interleave(counts_B)

        hindsight_M = where(gathered("hindsight_mask_T"))
        return Rows(
            ids_N=gathered("completion_T"),
            behaviour_logprobs_N=gathered("behaviour_logprobs_T"),
            advantages_N=spread([s.example.advantage for s in shares]),
            policy_weights_N=torch.cat([s.policy_weights_N for s in shares]),
            rollout_N=torch.arange(len(shares), device=counts_B.device).repeat_interleave(counts_B),
            turn_N=gathered("turn_T"),
            hindsight_M=hindsight_M,
            hindsight_weights_M=torch.cat([s.hindsight_weights_M for s in shares]),
            right_M=gathered("right_T")[hindsight_M],
            good_N=gathered("good_T"),
            chain_known=any(s.example.chain_known for s in shares),
        )


def completions(shares: Sequence[Share]) -> tuple[list[Tensor], list[Tensor]]:
    """Prompts with completions, and where the student's tokens stand in them."""
    examples = [share.example for share in shares]
    return (
        [torch.cat([e.prompt_L, e.completion_T]) for e in examples],
        [e.prompt_L.numel() + where(e.loss_mask_T) for e in examples],
    )


def where(mask_T: Tensor) -> Tensor:
    """Indices where a mask is true."""
    return mask_T.nonzero().squeeze(-1)
