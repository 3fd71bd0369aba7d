"""Outcome rewards: what is trained on, and what counts as a success beside it."""

import math

import pytest

from hindsearch.rewards.em import ExactMatch, TokenF1
from hindsearch.types import Question, Rollout, Score, StopReason


def attempt(answer: str | None) -> Rollout:
    question = Question(id="q", text="Where was the film made?", golds=("New York City", "NYC"), source="test")
    return Rollout(
        question=question,
        group="g",
        index=0,
        prompt_ids=(1,),
        completion_ids=(2,),
        logprobs=(-math.log(2),),
        loss_mask=(True,),
        spans=(),
        turns=(),
        answer=answer,
        stop=StopReason.ANSWERED,
    )


ATTEMPTS = [attempt("the nyc."), attempt("New York"), attempt("Boston"), attempt(None)]


def test_exact_match_rewards_any_gold_and_nothing_in_between():
    scores = ExactMatch()(ATTEMPTS)
    # New York against New York City: precision 1, recall 2/3
    assert scores == [Score(1.0, 1.0, 1.0), Score(0.0, 0.0, pytest.approx(0.8)), Score(0, 0, 0), Score(0, 0, 0)]


def test_token_f1_rewards_a_part_and_still_calls_it_a_failure():
    scores = TokenF1()(ATTEMPTS)
    assert [score.reward for score in scores] == pytest.approx([1.0, 0.8, 0.0, 0.0])
    assert [score.em for score in scores] == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("reward", [ExactMatch(), TokenF1()])
def test_no_answer_earns_nothing_even_where_a_gold_normalises_to_nothing(reward):
    asked = Question(id="q", text="Which band sang Gloria?", golds=("The The",), source="test")
    none, empty = (Rollout(**{**vars(attempt(answer)), "question": asked}) for answer in (None, ""))
    assert reward([none]) == [Score(0.0, 0.0, 0.0)]
    assert reward([empty])[0].em == 1.0  # an empty answer is an answer, and scored as public scorers do


def test_no_rollout_has_no_score():
    assert ExactMatch()([]) == []
