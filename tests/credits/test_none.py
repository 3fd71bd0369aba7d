import torch

from hindsearch.credits.none import NoCredit
from hindsearch.tensors import CreditInputs


def test_advantages_stay_to_the_bit_whatever_the_teacher_thinks():
    advantages = torch.tensor([1.5, -0.3, 0.0], dtype=torch.float64)
    zeros = torch.zeros(3, dtype=torch.long)
    inputs = CreditInputs(torch.tensor([2.0, -4.0, 0.5], dtype=torch.float64), advantages, zeros, zeros)
    assert torch.equal(NoCredit()(inputs), advantages)
    assert not NoCredit().needs_teacher
