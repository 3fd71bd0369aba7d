import torch
from torch import nn

from hindsearch.fingerprint import differences, weights_digest


def test_one_changed_weight_changes_the_digest():
    model = nn.Linear(3, 2)
    before = weights_digest(model)
    assert weights_digest(model) == before
    with torch.no_grad():
        model.bias[1] += 1e-6
    assert weights_digest(model) != before


def test_differences_name_the_key_and_both_values():
    before = {"loss": {"high": 1.0}, "seed": 0, "trainer": {"max_steps": 5}}
    now = {"loss": {"high": 2.0}, "seed": 0, "trainer": {"max_steps": 9}}
    assert differences(before, now) == ["loss.high: 1.0 -> 2.0"]


def test_a_key_that_is_new_differs():
    assert differences({}, {"loss": {"low": 0}}) == ["loss.low: absent -> 0"]


def test_lists_and_tuples_are_one_value():
    assert differences({"optim": {"betas": [0.9, 0.95]}}, {"optim": {"betas": (0.9, 0.95)}}) == []
