import subprocess
import sys

from hindsearch.seeding import seed_of


def test_the_same_place_has_the_same_seed_in_another_process():
    command = "from hindsearch.seeding import seed_of; print(seed_of(0, 'train', 3, 1, 2))"
    other = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert int(other.stdout) == seed_of(0, "train", 3, 1, 2)


def test_neighbouring_places_and_types_differ():
    places = [(0, "a", 1), (0, "a", 2), (1, "a", 1), (0, "a1"), (0, "a", "1"), (0, 1, "a")]
    assert len({seed_of(*place) for place in places}) == len(places)


def test_seeds_fit_a_generator():
    assert 0 <= seed_of("x") < 2**63
