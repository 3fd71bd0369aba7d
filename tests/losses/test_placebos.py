import pytest
import torch
from torch.testing import assert_close

from hindsearch.losses.none import NoLoss
from hindsearch.losses.self_nll import SelfNll
from loss_inputs import sampled


def test_self_nll_raises_every_token_alike_whatever_the_teacher_thinks():
    inputs = sampled([-1.0, -2.0], [-9.0, -0.1])
    output = SelfNll(weight=0.1)(inputs)
    assert_close(output.loss_N.detach(), torch.tensor([0.1, 0.2], dtype=torch.float64))
    output.loss_N.sum().backward()
    assert_close(inputs.logprobs_N.grad, torch.tensor([-0.1, -0.1], dtype=torch.float64))


def test_no_loss_has_no_gradient():
    inputs = sampled([-1.0], [-0.1])
    NoLoss()(inputs).loss_N.sum().backward()
    assert float(inputs.logprobs_N.grad) == 0.0


@pytest.mark.parametrize("weight", [0.0, -0.1])
def test_a_placebo_that_pulls_nowhere_is_refused(weight):
    with pytest.raises(ValueError, match="pulls nowhere"):
        SelfNll(weight=weight)
