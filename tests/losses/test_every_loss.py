"""What holds for every option of conf/loss: a new one is picked up here by itself."""

from dataclasses import replace

import pytest
import torch
from omegaconf import OmegaConf
from torch.testing import assert_close

from hindsearch.errors import UserError
from hindsearch.making import conf_dir, make
from loss_inputs import on_support

OPTIONS = sorted(path.stem for path in (conf_dir() / "loss").glob("*.yaml"))


def option(name):
    return make("loss", OmegaConf.load(conf_dir() / "loss" / f"{name}.yaml"))


@pytest.fixture(params=OPTIONS)
def loss(request):
    return option(request.param)


def inputs(count=4, scale=2.0, seed=0):
    """Over a vocabulary of six that is its own support, with the student's logits as the leaf that gradient reaches."""
    generator = torch.Generator().manual_seed(seed)

    def logits():
        return scale * torch.randn(count, 6, generator=generator, dtype=torch.float64)

    leaf = logits().requires_grad_()
    student = leaf.log_softmax(-1)
    return on_support(student, student.detach(), logits().log_softmax(-1)), leaf


def gradient(loss, made, leaf):
    (grad,) = torch.autograd.grad(loss(made).loss_N.sum(), leaf)
    return grad


def test_values_are_per_token(loss):
    made, _ = inputs()
    output = loss(made)
    assert output.loss_N.shape == (4,)
    assert all(value_N.shape == (4,) and not value_N.requires_grad for value_N in output.metrics.values())


def test_tokens_do_not_know_each_other(loss):
    made, _ = inputs()
    order = torch.tensor([2, 0, 3, 1])
    shuffled = replace(made, **{name: getattr(made, name)[order] for name in vars(made)})
    assert_close(loss(shuffled).loss_N, loss(made).loss_N[order])


def test_gradient_reaches_the_student_alone(loss):
    made, _ = inputs()
    teacher = made.teacher_NK.clone().requires_grad_()
    sampled = made.teacher_logprobs_N.clone().requires_grad_()
    loss(replace(made, teacher_NK=teacher, teacher_logprobs_N=sampled)).loss_N.sum().backward()
    assert teacher.grad is None or float(teacher.grad.abs().max()) == 0.0
    assert sampled.grad is None or float(sampled.grad.abs().max()) == 0.0


def test_it_stays_finite_where_probabilities_vanish(loss):
    made, leaf = inputs(scale=100.0)
    assert torch.isfinite(loss(made).loss_N).all()
    assert torch.isfinite(gradient(loss, made, leaf)).all()


PULLS_UNTAUGHT = {"sdar"}
"""Losses whose coefficient is not 0 where the teacher agrees: SDAR's gate is then one half, as published."""


@pytest.mark.parametrize("name", [name for name in OPTIONS if option(name).needs_teacher])
def test_a_teacher_that_agrees_teaches_nothing(name):
    loss = option(name)
    made, leaf = inputs()
    agreeing = replace(made, teacher_NK=made.old_NK, teacher_logprobs_N=made.logprobs_N.detach())
    largest = float(gradient(loss, agreeing, leaf).abs().max())
    assert largest > 0.1 if name in PULLS_UNTAUGHT else largest < 1e-12


@pytest.mark.parametrize("name", OPTIONS)
def test_whether_a_teacher_is_read_is_no_setting(name):
    node = OmegaConf.load(conf_dir() / "loss" / f"{name}.yaml")
    node.needs_teacher = not option(name).needs_teacher
    with pytest.raises(UserError, match=r"loss\.needs_teacher is not an option of"):
        make("loss", node)
