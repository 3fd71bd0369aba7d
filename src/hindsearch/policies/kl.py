"""The pull toward the reference, value and gradient estimated apart.

Differentiating a good value estimator gives the gradient of something else: k3's is that of the forward KL, k1's
vanishes on average.
"""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from hindsearch.maths.divergences import k1, k2, k3, ratio
from hindsearch.tensors import LossOutput


class Estimator(Protocol):
    """A per-token estimate of KL(π ‖ reference)."""

    def __call__(self, logprobs_N: Tensor, reference_logprobs_N: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class K1:
    """See ``maths.divergences.k1``."""

    def __call__(self, logprobs_N: Tensor, reference_logprobs_N: Tensor) -> Tensor:
        return k1(logprobs_N, reference_logprobs_N)


@dataclass(frozen=True)
class K2:
    """See ``maths.divergences.k2``."""

    def __call__(self, logprobs_N: Tensor, reference_logprobs_N: Tensor) -> Tensor:
        return k2(logprobs_N, reference_logprobs_N)


@dataclass(frozen=True)
class K3:
    """See ``maths.divergences.k3``."""

    def __call__(self, logprobs_N: Tensor, reference_logprobs_N: Tensor) -> Tensor:
        return k3(logprobs_N, reference_logprobs_N)


class Gradient(Protocol):
    """A per-token term whose gradient is what descends; its value is not reported."""

    def __call__(self, logprobs_N: Tensor, old_logprobs_N: Tensor, reference_logprobs_N: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class ReverseKl:
    """The unbiased gradient of KL(π ‖ reference) on policy: ``sg[log π − log ref] · π / π_old``."""

    def __call__(self, logprobs_N: Tensor, old_logprobs_N: Tensor, reference_logprobs_N: Tensor) -> Tensor:
        return (logprobs_N - reference_logprobs_N).detach() * ratio(logprobs_N, old_logprobs_N)


@dataclass(frozen=True)
class Differentiated:
    """The gradient of an estimator itself, as Search-R1's ``low_var_kl`` has it with ``K3``."""

    estimator: Estimator

    def __call__(self, logprobs_N: Tensor, old_logprobs_N: Tensor, reference_logprobs_N: Tensor) -> Tensor:
        return self.estimator(logprobs_N, reference_logprobs_N)


@dataclass(frozen=True)
class Kl:
    """``weight`` times a KL term: reported by ``value``, descended by ``gradient``. A weight of 0 switches it off."""

    weight: float
    value: Estimator = K3()
    gradient: Gradient = ReverseKl()

    def __post_init__(self) -> None:
        if not self.weight >= 0:
            raise ValueError(f"kl.weight={self.weight} would push away from the reference; use 0 or more")

    @property
    def active(self) -> bool:
        return self.weight > 0

    def __call__(self, logprobs_N: Tensor, old_logprobs_N: Tensor, reference_logprobs_N: Tensor) -> LossOutput:
        value_N = self.value(logprobs_N.detach(), reference_logprobs_N)
        gradient_N = self.gradient(logprobs_N, old_logprobs_N, reference_logprobs_N)
        # the value of one, the gradient of the other
        loss_N = self.weight * (value_N + gradient_N - gradient_N.detach())
        return LossOutput(loss_N, {"kl": value_N})
