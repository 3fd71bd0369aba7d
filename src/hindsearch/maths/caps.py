"""How much one vocabulary entry, or one token, may contribute to a divergence."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class NoCap:
    """Any amount."""

    def __call__(self, terms_NK: Tensor) -> Tensor:
        return terms_NK.sum(-1)


@dataclass(frozen=True)
class PerEntry:
    """At most ``limit`` nats from one entry: ``Σ_v min(term_v, limit)`` (Search-E1, arXiv 2605.22511).

    Without it, style words, whose divergence is many times that of content words, dominate (OPSD, arXiv 2601.18734).
    A capped entry has no gradient.
    """

    limit: float

    def __post_init__(self) -> None:
        _refuse_no_room(self.limit)

    def __call__(self, terms_NK: Tensor) -> Tensor:
        return terms_NK.clamp(max=self.limit).sum(-1)


@dataclass(frozen=True)
class PerToken:
    """At most ``limit`` nats from one token: ``min(Σ_v term_v, limit)``; a capped token has no gradient."""

    limit: float

    def __post_init__(self) -> None:
        _refuse_no_room(self.limit)

    def __call__(self, terms_NK: Tensor) -> Tensor:
        return terms_NK.sum(-1).clamp(max=self.limit)


def _refuse_no_room(limit: float) -> None:
    if not limit > 0:
        raise ValueError(f"limit={limit} caps every term to nothing; use more than 0, for example 0.05")
