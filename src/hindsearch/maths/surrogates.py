"""The clipped policy term that several policies share."""

from torch import Tensor

from hindsearch.maths.divergences import clipped_surrogate
from hindsearch.tensors import LossOutput, PolicyInputs


def clipped_policy(inputs: PolicyInputs, ratio_N: Tensor, clip_low: float, clip_high: float) -> LossOutput:
    """PPO's surrogate for given ratios, with the ratio and the share of clipped tokens as metrics."""
    loss_N, clipped_N = clipped_surrogate(ratio_N, inputs.advantages_N, clip_low, clip_high)
    return LossOutput(loss_N, {"ratio": ratio_N.detach(), "clipped": clipped_N.to(loss_N.dtype)})
