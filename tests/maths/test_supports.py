import pytest
import torch

from hindsearch.maths.supports import SampledToken, StudentTopK, TeacherTopK

STUDENT = torch.tensor([[0.1, 0.6, 0.3], [0.7, 0.1, 0.2]]).log()
TEACHER = torch.tensor([[0.5, 0.1, 0.4], [0.1, 0.1, 0.8]]).log()


def test_each_takes_its_own_likeliest():
    assert StudentTopK(2)(STUDENT, TEACHER)[0].tolist() == [[1, 2], [0, 2]]
    assert TeacherTopK(1)(STUDENT, TEACHER)[0].tolist() == [[0], [2]]


def test_more_than_the_vocabulary_is_the_vocabulary():
    ids, valid = StudentTopK(9)(STUDENT, TEACHER)
    assert sorted(ids[0].tolist()) == [0, 1, 2]
    assert bool(valid.all())


def test_the_sampled_token_needs_no_entry():
    assert SampledToken().size == 0


def test_none_is_refused():
    with pytest.raises(ValueError, match="k=0 entries holds nothing"):
        StudentTopK(0)
