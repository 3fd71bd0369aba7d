"""Advantages stay as the policy made them."""

from dataclasses import dataclass, field

from torch import Tensor

from hindsearch.tensors import CreditInputs


@dataclass(frozen=True)
class NoCredit:
    """Changes nothing."""

    needs_teacher: bool = field(default=False, init=False)
    needs_labels: bool = field(default=False, init=False)

    def __call__(self, inputs: CreditInputs) -> Tensor:
        return inputs.advantages_N
