"""The order of questions is a function of the step; ranks share a step and nothing else."""

from itertools import islice

import pytest

from hindsearch.datamodule import StepSampler
from hindsearch.errors import UserError


def steps(num_questions, per_step, count, seed=0, rank=0, world_size=1, start=0):
    sampler = StepSampler(num_questions, per_step, seed, rank, world_size)
    sampler.next_step = start
    return list(islice(iter(sampler), count))


def test_each_epoch_asks_every_question_once():
    asked = [index for step in steps(num_questions=10, per_step=4, count=5) for _, _, index in step]
    assert sorted(asked[:10]) == list(range(10))
    assert sorted(asked[10:]) == list(range(10))
    assert asked[:10] != asked[10:]


def test_a_run_started_at_step_k_goes_on_where_step_k_stands():
    assert steps(7, 4, 3, start=2) == steps(7, 4, 5)[2:]


def test_ranks_split_the_slots_of_a_step_and_keep_its_questions():
    whole = steps(9, 4, 6)
    halves = [steps(9, 4, 6, rank=rank, world_size=2) for rank in (0, 1)]
    assert [left + right for left, right in zip(*halves, strict=True)] == whole


def test_seeds_give_other_orders():
    assert steps(50, 10, 5, seed=0) != steps(50, 10, 5, seed=1)


def test_the_state_names_the_next_step_while_a_batch_is_in_use():
    sampler = StepSampler(5, 2, 0, 0, 1)
    iterator = iter(sampler)
    next(iterator)
    assert sampler.next_step == 1


def test_questions_that_do_not_divide_over_ranks_are_refused_with_a_number_that_does():
    with pytest.raises(UserError, match=r"rollout\.questions=5 does not divide over 2 ranks; 4 would"):
        StepSampler(10, 5, 0, 0, 2)
