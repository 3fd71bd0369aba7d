import pytest

from hindsearch.maths.advantages import centred, standardised


def test_centred_rewards_keep_their_scale():
    assert centred([1.0, 0.0, 0.0, 3.0]) == [0.0, -1.0, -1.0, 2.0]


def test_a_tiny_spread_is_damped_by_the_millionth_in_the_denominator():
    # mean 1e-6, unbiased std 1e-6·√2: ∓1e-6 / (1.41421e-6 + 1e-6)
    assert standardised([0.0, 2e-6]) == pytest.approx([-(2**0.5 - 1), 2**0.5 - 1])


def test_two_rewards_that_vary_and_sum_to_the_same_total_teach_nothing():
    # an exact match without format beside a format without match
    assert standardised([1.0 + 0.0, 0.0 + 1.0]) == [0.0, 0.0]


@pytest.mark.parametrize("advantages", [centred, standardised])
def test_one_reward_alone_and_none_at_all(advantages):
    assert advantages([0.7]) == [0.0]
    with pytest.raises(ValueError, match=r"must be finite numbers, saw \[\]"):
        advantages([])
