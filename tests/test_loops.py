"""Which terms act when."""

import pytest

from hindsearch.loops import Joint, Rounds


def test_joint_is_both_at_every_step():
    loop = Joint()
    assert all(loop.policy(step) == loop.hindsight(step) == 1.0 for step in range(5))
    assert not any(loop.starts_round(step) for step in range(5))


def test_rounds_alternate_and_begin_with_the_policy():
    loop = Rounds(policy_steps=3, distil_steps=2)
    assert [loop.policy(step) for step in range(11)] == [1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1]
    assert [loop.hindsight(step) for step in range(11)] == [0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0]
    assert [step for step in range(11) if loop.starts_round(step)] == [3, 8]


@pytest.mark.parametrize("steps", [(0, 1), (1, 0)])
def test_an_empty_round_is_refused(steps):
    with pytest.raises(ValueError, match=r"loop\.(policy|distil)_steps=0 leaves a round empty"):
        Rounds(*steps)
