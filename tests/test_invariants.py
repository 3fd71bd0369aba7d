"""The scientific contract of the objective, with a small model in float64 and rollouts made by hand."""

from dataclasses import replace

import pytest
import torch

from hindsearch.anchors.none import NoAnchor
from hindsearch.coefficients import Constant
from hindsearch.credits.none import NoCredit
from hindsearch.loops import Joint
from hindsearch.losses.forward_kl import ForwardKl
from hindsearch.losses.jsd import Jsd
from hindsearch.losses.none import NoLoss
from hindsearch.losses.openclaw import OpenClaw
from hindsearch.losses.openclaw_token import OpenClawToken
from hindsearch.losses.plain_clamp import Attached, BatchMean, PlainClamp
from hindsearch.losses.plain_clamp import SpanMean as SpanMeanBaseline
from hindsearch.losses.reverse_kl import ReverseKl
from hindsearch.losses.sdar import Sdar
from hindsearch.losses.self_nll import SelfNll
from hindsearch.losses.topk_tail import TopkTail
from hindsearch.maths.reductions import ConstantLength, SequenceMean, SpanMean, TokenMean
from hindsearch.maths.supports import FullVocabulary, TeacherTopK, UnionTopK
from hindsearch.micro_batch import Share
from hindsearch.models.frozen import frozen_copy
from hindsearch.objective import Objective
from hindsearch.policies.grpo import Grpo
from hindsearch.policies.kl import Kl
from hindsearch.tensors import Example
from small_step import VOCABULARY, example, gradient, group, one_part, plan, tiny

LOSSES = [
    *(PlainClamp(), PlainClamp(baseline=BatchMean()), PlainClamp(baseline=SpanMeanBaseline(), graph=Attached())),
    *(OpenClaw(), OpenClawToken(), TopkTail(4), Jsd(UnionTopK(4)), ForwardKl(TeacherTopK(4))),
    *(ReverseKl(FullVocabulary()), Sdar(), SelfNll()),
]
# where the teacher agrees, SDAR's gate is one half, and a differentiated clamp stands on its edge
STILL = [loss for loss in LOSSES if not isinstance(loss, Sdar | SelfNll) and getattr(loss, "graph", None) != Attached()]
REDUCTIONS = [TokenMean(), SequenceMean(), SpanMean(), ConstantLength(8)]


def named(choice: object) -> str:
    baseline = getattr(choice, "baseline", None)
    return type(choice).__name__ + (f"-{type(baseline).__name__}" if baseline else "")


@pytest.fixture(scope="module")
def student():
    return tiny(0)


@pytest.fixture(scope="module")
def teacher():
    return frozen_copy(tiny(1))


def objective(loss=LOSSES[0], weight=0.5, kl=0.0, reduction=None, head_rows=2048) -> Objective:
    reduction = reduction or TokenMean()
    policy = Grpo(kl=Kl(kl), reduction=reduction)
    return Objective(policy, NoAnchor(), loss, NoCredit(), Constant(weight), Joint(), reduction, head_rows)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
@pytest.mark.parametrize("reduction", REDUCTIONS, ids=named)
def test_micro_batches_change_nothing(student, teacher, loss, reduction):
    whole = objective(loss, kl=0.1, reduction=reduction)
    expected, total = gradient(whole, student, teacher, group())
    assert expected.norm() > 1e-3
    for max_tokens in (1, 30, 45):
        got, split_total = gradient(whole, student, teacher, group(), max_tokens)
        torch.testing.assert_close(got, expected, atol=1e-12, rtol=1e-10)
        assert split_total == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_the_order_of_rollouts_changes_nothing(student, teacher, loss):
    expected, _ = gradient(objective(loss), student, teacher, group())
    got, _ = gradient(objective(loss), student, teacher, group()[::-1])
    torch.testing.assert_close(got, expected, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_a_head_in_chunks_gives_the_gradient_of_a_head_in_one(student, teacher, loss):
    expected, _ = gradient(objective(loss, kl=0.1), student, teacher, group())
    got, _ = gradient(objective(loss, kl=0.1, head_rows=3), student, teacher, group())
    torch.testing.assert_close(got, expected, atol=1e-12, rtol=1e-10)


def test_observation_tokens_are_context_and_never_targets(student, teacher):
    """Their targets carry no loss: with the last observation token changed, only what reads it may change."""
    before = group()
    changed = [replace(e, completion_T=e.completion_T.clone()) for e in before]
    for e in changed:
        e.completion_T[~e.loss_mask_T] = (e.completion_T[~e.loss_mask_T] + 1) % VOCABULARY
    shares = plan(objective(), before)
    rows = [int(s.example.loss_mask_T.sum()) for s in shares]
    part = one_part(objective(), student, teacher, shares)
    assert float(part.means["policy/ratio"][1]) == sum(rows)


def test_all_rewards_equal_and_no_hint_give_exactly_zero_gradient(student, teacher):
    failed = [replace(e, hindsight_mask_T=torch.zeros_like(e.hindsight_mask_T)) for e in group(all_equal=True)]
    assert plan(objective(), failed) == []


def test_a_group_that_failed_whole_moves_the_student_by_hindsight_alone(student, teacher):
    with_hindsight, _ = gradient(objective(PlainClamp()), student, teacher, group(all_equal=True))
    without, _ = gradient(objective(PlainClamp(), weight=0.0), student, teacher, group(all_equal=True))
    assert with_hindsight.norm() > 1e-3
    assert without.norm() == 0.0


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_reading_a_rollout_only_as_far_as_hindsight_goes_changes_nothing(student, teacher, loss):
    examples = group(all_equal=True)
    short, _ = gradient(objective(loss), student, teacher, examples)
    student.zero_grad()
    whole = [whole_share(share, e) for share, e in zip(plan(objective(loss), examples), examples, strict=True)]
    one_part(objective(loss), student, teacher, whole).loss.backward()
    expected = torch.cat([p.grad.flatten() for p in student.parameters()])
    torch.testing.assert_close(short, expected, atol=1e-12, rtol=1e-10)


def whole_share(share: Share, example: Example) -> Share:
    """The uncut rollout, whose advantage is 0 anyway."""
    return replace(share, example=example, policy_weights_N=torch.zeros(int(example.loss_mask_T.sum())).double())


def test_with_every_rollout_successful_hindsight_and_grpo_are_one_to_the_bit(student, teacher):
    successes = [example(seed, a, hindsight=False) for seed, a in enumerate([0.7, -0.7, 1.1, -1.1])]
    grpo, _ = gradient(objective(NoLoss()), student, teacher, successes)
    hindsearch, _ = gradient(objective(PlainClamp()), student, teacher, successes)
    assert torch.equal(grpo, hindsearch)


def test_hindsight_changes_the_gradient_only_by_its_own_term(student, teacher):
    grpo, _ = gradient(objective(NoLoss()), student, teacher, group())
    both, _ = gradient(objective(PlainClamp(), weight=0.5), student, teacher, group())
    more, _ = gradient(objective(PlainClamp(), weight=1.0), student, teacher, group())
    torch.testing.assert_close(more - both, both - grpo, atol=1e-12, rtol=1e-8)


@pytest.mark.parametrize("loss", STILL, ids=named)
def test_a_teacher_equal_in_weights_and_prompt_teaches_nothing(student, loss):
    own_prompt = [replace(e, hint_prompt_H=e.prompt_L) for e in group(all_equal=True)]
    got, _ = gradient(objective(loss), student, frozen_copy(student), own_prompt)
    assert got.norm() < 1e-12


def test_the_hint_moves_the_teachers_view_but_not_the_rows(student, teacher):
    """A hint twice as long shifts every index; the value of each token stays that of the same token."""
    one = group(all_equal=True)[0]
    long = replace(one, hint_prompt_H=torch.cat([one.hint_prompt_H, one.hint_prompt_H]))
    hidden = teacher.hidden(
        [torch.cat([long.hint_prompt_H, long.completion_T])],
        [long.hint_prompt_H.numel() + long.hindsight_mask_T.nonzero().squeeze(-1)],
    )
    expected = teacher.logprobs(hidden).gather(-1, long.completion_T[long.hindsight_mask_T][:, None]).squeeze(-1)
    part = one_part(objective(), student, teacher, plan(objective(), [long]))
    hidden = student.hidden(
        [torch.cat([long.prompt_L, long.completion_T])], [long.prompt_L.numel() + torch.tensor([1, 2])]
    )
    own = student.logprobs(hidden).gather(-1, long.completion_T[1:3][:, None]).squeeze(-1)
    assert float(part.means["hindsight/gap"][0]) == pytest.approx(float((expected - own).sum().detach()), abs=1e-9)


def test_the_teacher_gets_no_gradient_and_stays_in_eval(student, teacher):
    gradient(objective(), student, teacher, group())
    teacher.train()
    assert all(p.grad is None for p in teacher.parameters())
    assert not any(module.training for module in teacher.modules())


def test_ratio_is_one_on_the_first_update(student, teacher):
    part = one_part(objective(), student, teacher, plan(objective(), group()))
    total, count = part.means["policy/ratio"]
    assert float(total / count) == 1.0
