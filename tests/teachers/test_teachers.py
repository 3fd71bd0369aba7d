"""How a teacher follows the student, and that reading with older weights leaves the student as it is."""

import pytest
import torch

from hindsearch.loops import Joint, Rounds
from hindsearch.models.snapshot import Snapshot
from hindsearch.teachers.current import Current
from hindsearch.teachers.ema import Ema
from hindsearch.teachers.frozen import Frozen
from hindsearch.teachers.larger import Larger
from hindsearch.teachers.refresh import Refresh
from hindsearch.teachers.round_start import RoundStart
from small_step import tiny


@pytest.fixture
def student():
    return tiny(0)


def step(student, by=1.0):
    """What training does: every weight moves by one number."""
    with torch.no_grad():
        for weight in student.parameters():
            weight += by


def first_weight(model):
    return next(iter(model.weights().values())).clone()


def age(student, teacher):
    """How many steps the teacher is behind."""
    return float((first_weight(Snapshot(student)) - first_weight(teacher.model)).mean())


def logprobs(model):
    hidden_ND = model.hidden([torch.tensor([3, 4, 5])], [torch.tensor([1, 2])])
    return model.logprobs(hidden_ND).detach()


def test_a_snapshot_reads_as_the_student_did_and_gives_it_back_unchanged(student):
    before, snapshot = logprobs(student), Snapshot(student)
    step(student, 0.1)
    after = logprobs(student)
    assert torch.equal(logprobs(snapshot), before)
    assert torch.equal(logprobs(student), after)
    assert not torch.equal(before, after)


def test_a_snapshot_makes_no_gradient(student):
    assert not Snapshot(student).hidden([torch.tensor([3, 4])], [torch.tensor([1])]).requires_grad


def test_a_student_that_fails_while_its_snapshot_reads_keeps_its_weights(student):
    snapshot = Snapshot(student)
    step(student, 0.1)
    after = logprobs(student)
    with pytest.raises(IndexError):
        snapshot.hidden([torch.tensor([3, 10**6])], [torch.tensor([1])])
    assert torch.equal(logprobs(student), after)


def test_an_ema_moves_by_its_rate_after_each_step(student):
    teacher = Ema(Snapshot(student), rate=0.25)
    start = first_weight(teacher.model)
    step(student)
    teacher.follow(1)
    torch.testing.assert_close(first_weight(teacher.model), start + 0.25)
    teacher.follow(2)
    torch.testing.assert_close(first_weight(teacher.model), start + 0.25 + 0.75 * 0.25)


def test_an_ema_of_rate_one_is_the_student(student):
    teacher = Ema(Snapshot(student), rate=1.0)
    step(student, 0.1)
    teacher.follow(1)
    assert torch.equal(logprobs(teacher.model), logprobs(student))


def test_a_refresh_takes_the_student_at_every_multiple_and_not_between(student):
    teacher = Refresh(Snapshot(student), every=3)
    values = []
    for completed in range(1, 8):
        step(student)
        teacher.follow(completed)
        values.append(age(student, teacher))
    assert values == pytest.approx([1, 2, 0, 1, 2, 0, 1])


def test_a_round_start_takes_the_student_where_distillation_begins(student):
    teacher = RoundStart(Snapshot(student), Rounds(policy_steps=2, distil_steps=2))
    ages = []
    for completed in range(1, 8):
        step(student)
        teacher.follow(completed)
        ages.append(age(student, teacher))
    # steps 2, 3 and 6, 7 distil: the teacher of each is the student after steps 2 and 6
    assert ages == pytest.approx([1, 0, 1, 2, 3, 0, 1])


def test_a_round_start_never_moves_without_rounds(student):
    teacher = RoundStart(Snapshot(student), Joint())
    step(student)
    teacher.follow(1)
    assert age(student, teacher) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", [Frozen, Larger])
def test_a_fixed_teacher_stays(kind, student):
    other = tiny(1)
    teacher = kind(other)
    before = logprobs(other)
    teacher.follow(1)
    assert teacher.model is other
    assert torch.equal(logprobs(other), before)


def test_the_current_teacher_is_the_student(student):
    assert Current(student).model is student


def test_weights_of_a_snapshot_go_through_a_checkpoint(student):
    teacher = Ema(Snapshot(student), rate=0.5)
    step(student)
    teacher.follow(1)
    kept = {name: weight.clone() for name, weight in teacher.model.weights().items()}
    resumed = Snapshot(tiny(2))
    resumed.load(kept)
    assert all(torch.equal(resumed.weights()[name], weight) for name, weight in kept.items())
    kept["lm.transformer.wte.weight"].zero_()  # what was loaded is a copy
    assert float(resumed.weights()["lm.transformer.wte.weight"].abs().sum()) > 0


@pytest.mark.parametrize(
    "make", [lambda s: Ema(s, rate=0.0), lambda s: Ema(s, rate=1.5), lambda s: Refresh(s, every=0)]
)
def test_a_teacher_that_could_not_follow_is_refused(make, student):
    with pytest.raises(ValueError, match=r"teacher\.(rate|every)="):
        make(Snapshot(student))
