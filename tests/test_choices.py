"""Which rollouts, which tokens, which weight."""

import pytest

from hindsearch.coefficients import Constant, LinearDecay
from hindsearch.selects import AllFailGroups, Failed
from hindsearch.spans import Policy, Search, SearchWithTags
from hindsearch.types import Score, Span, SpanKind

RIGHT, WRONG = Score(1.0, 1.0, 1.0), Score(0.0, 0.0, 0.4)
GROUPS = [[WRONG, RIGHT], [WRONG, WRONG], [RIGHT, RIGHT]]
NOBODY = [[], [], []]  # what looks at scores alone needs no rollouts


def test_failed_is_em_zero_whatever_the_f1():
    assert Failed()(NOBODY, GROUPS) == [[True, False], [True, True], [False, False]]


def test_all_fail_groups_are_those_without_a_success():
    assert AllFailGroups()(NOBODY, GROUPS) == [[False, False], [True, True], [False, False]]


SPANS = [
    Span(SpanKind.TURN, 0, 8, 0, 8, 0),
    Span(SpanKind.THINK, 1, 2, 0, 3, 0),
    Span(SpanKind.SEARCH, 4, 6, 3, 7, 0),
    Span(SpanKind.OBSERVATION, 8, 20, 8, 20, 0),  # whatever tags stand in it, it is one span
    Span(SpanKind.TURN, 20, 25, 20, 25, 1),
    Span(SpanKind.SEARCH, 21, 24, 20, 25, 1),
    Span(SpanKind.OBSERVATION, 25, 30, 25, 30, 1),
    Span(SpanKind.TURN, 30, 33, 30, 33, 2),
    Span(SpanKind.ANSWER, 31, 32, 30, 33, 2),
]


def test_search_is_strictly_between_the_tags_of_both_searches():
    assert Search()(SPANS) == [(4, 6), (21, 24)]


def test_search_with_tags_adds_both_tags():
    assert SearchWithTags()(SPANS) == [(3, 7), (20, 25)]


def test_policy_is_every_turn_and_no_observation():
    assert Policy()(SPANS) == [(0, 8), (20, 25), (30, 33)]


def test_a_constant_stays():
    assert [Constant(0.01)(step) for step in (0, 1, 10**6)] == [0.01] * 3


def test_a_decay_starts_whole_and_is_zero_from_its_last_step_on():
    decay = LinearDecay(0.4, steps=4)
    assert [decay(step) for step in (0, 1, 3, 4, 9)] == pytest.approx([0.4, 0.3, 0.1, 0.0, 0.0])


@pytest.mark.parametrize("make", [lambda: Constant(-1.0), lambda: LinearDecay(0.1, 0), lambda: LinearDecay(-0.1, 3)])
def test_weights_and_steps_that_cannot_be_are_refused(make):
    with pytest.raises(ValueError, match=r"coefficient\.(weight|steps)="):
        make()
