"""What a budget refuses before a run, with the numbers that work."""

import pytest

from hindsearch.budget import Budget
from hindsearch.errors import UserError

BUDGET = Budget(max_turns=2, turn_tokens=10, observation_tokens=20, context_tokens=100, top_k=1)


def test_a_budget_that_always_fits_says_nothing():
    # 3 turns of 10 and 2 observations of 20 make 70
    assert BUDGET.worst_case == 70
    assert BUDGET.check(longest_prompt=30, max_positions=100) == ""


def test_a_rollout_that_may_be_cut_short_is_a_warning_with_its_length():
    assert "would take 101 tokens" in BUDGET.check(longest_prompt=31, max_positions=100)


def test_a_search_and_an_answer_must_fit():
    # two turns of 10 and one observation of 20
    assert BUDGET.check(longest_prompt=60, max_positions=100)
    with pytest.raises(UserError, match=r"longest prompt \(61 tokens\).*that takes 101"):
        BUDGET.check(longest_prompt=61, max_positions=100)


def test_a_context_beyond_the_model_is_refused_with_one_that_works():
    with pytest.raises(UserError, match=r"context_tokens=100 is more than the 99 positions.*use 99 or fewer"):
        BUDGET.check(longest_prompt=1, max_positions=99)


def test_without_searches_only_the_answer_must_fit():
    budget = Budget(max_turns=0, turn_tokens=10, observation_tokens=500, context_tokens=100, top_k=1)
    assert budget.check(longest_prompt=90, max_positions=100) == ""
