"""Value and gradient of the KL term against enumeration of a small vocabulary."""

import pytest
import torch
from torch.testing import assert_close

from hindsearch.policies.kl import K1, K2, K3, Differentiated, Kl, ReverseKl


@pytest.fixture
def models():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6, generator=generator, dtype=torch.float64, requires_grad=True)
    reference = torch.randn(6, generator=generator, dtype=torch.float64).log_softmax(-1)
    return logits, reference


def exact(logits, reference):
    logprobs = logits.log_softmax(-1)
    value = (logprobs.exp() * (logprobs - reference)).sum()
    value.backward()
    gradient, logits.grad = logits.grad.clone(), None
    return float(value.detach()), gradient


def expected(term, logits):
    """What a per-token term gives on average over samples of the policy: value and gradient."""
    logprobs = logits.log_softmax(-1)
    value = (logprobs.detach().exp() * term(logprobs)).sum()
    value.backward()
    gradient, logits.grad = logits.grad.clone(), None
    return float(value.detach()), gradient


@pytest.mark.parametrize("estimator", [K1(), K3()])
def test_k1_and_k3_are_unbiased_values(models, estimator):
    logits, reference = models
    value, _ = exact(logits, reference)
    assert expected(lambda lp: estimator(lp, reference), logits)[0] == pytest.approx(value)


def test_the_reverse_kl_term_has_its_gradient(models):
    logits, reference = models
    _, gradient = exact(logits, reference)
    got = expected(lambda lp: ReverseKl()(lp, lp.detach(), reference), logits)[1]
    assert_close(got, gradient, atol=1e-12, rtol=0)


def test_the_reverse_kl_term_has_its_gradient_off_policy_too(models):
    logits, reference = models
    _, gradient = exact(logits, reference)
    sampled = torch.linspace(-1.0, 1.0, 6, dtype=torch.float64).log_softmax(-1)
    # enumerate what another policy samples: Σ_v p_old(v) · term(v)
    (sampled.exp() * ReverseKl()(logits.log_softmax(-1), sampled, reference)).sum().backward()
    assert_close(logits.grad, gradient, atol=1e-12, rtol=0)


def test_k2_differentiated_has_it_too_and_k3_and_k1_have_not(models):
    logits, reference = models
    _, gradient = exact(logits, reference)
    for estimator, same in ((K2(), True), (K3(), False), (K1(), False)):
        term = Differentiated(estimator)
        got = expected(lambda lp, term=term: term(lp, lp.detach(), reference), logits)[1]
        assert torch.allclose(got, gradient, atol=1e-9) is same


def test_differentiating_k1_teaches_nothing(models):
    logits, reference = models
    got = expected(lambda lp: Differentiated(K1())(lp, lp.detach(), reference), logits)[1]
    assert_close(got, torch.zeros_like(got), atol=1e-12, rtol=0)


def test_it_reports_the_value_and_descends_the_gradient(models):
    logits, reference = models
    logprobs = logits.log_softmax(-1)
    output = Kl(0.5)(logprobs, logprobs.detach(), reference)
    assert_close(output.loss_N.detach(), 0.5 * K3()(logprobs.detach(), reference))
    assert_close(output.metrics["kl"], K3()(logprobs.detach(), reference))
    (logprobs.detach().exp() * output.loss_N).sum().backward()
    got, logits.grad = logits.grad.clone(), None
    assert_close(got, 0.5 * exact(logits, reference)[1], atol=1e-12, rtol=0)


def test_a_weight_of_zero_never_asks_the_reference():
    assert not Kl(0.0).active
    with pytest.raises(ValueError, match="push away"):
        Kl(-0.1)
