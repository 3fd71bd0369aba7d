import json

import pytest

from hindsearch.scoring import exact_match, normalise_answer, token_f1


def test_all_public_cases(realdata):
    """EM and F1 as Search-R1 and FlashRAG give them, on every row."""
    rows = [json.loads(line) for line in (realdata / "em_cases.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) > 300
    for row in rows:
        assert exact_match(row["prediction"], row["golds"]) == row["em"], row["id"]
        assert token_f1(row["prediction"], row["golds"]) == pytest.approx(row["f1"], abs=1e-5), row["id"]


@pytest.mark.parametrize(
    "text, normal",
    [
        ("The  New-York, a!", "newyork"),
        ("An A the", ""),
        ("Thé «x»", "thé «x»"),
        ("U.S.A.", "usa"),
        ("STRASSE", "strasse"),
    ],
)
def test_normalising(text, normal):
    assert normalise_answer(text) == normal


@pytest.mark.parametrize(
    "prediction, golds, em, f1",
    [
        ("Paris", ["Paris"], 1, 1),
        ("It is Paris, France", ["Paris"], 0, 2 * (1 / 4) * 1 / (1 / 4 + 1)),
        ("the Paris", ["London", "paris."], 1, 1),
        ("The The", ["The The"], 1, 0),  # both vanish: equal, and no token is shared
        ("no", ["No Country for Old Men"], 0, 0),  # a closed answer earns no part marks
        ("no", ["No."], 1, 1),
        ("a b b", ["b b c"], 0, 2 / 2 * 2 / 3 / (2 / 2 + 2 / 3) * 2),
    ],
)
def test_by_hand(prediction, golds, em, f1):
    assert exact_match(prediction, golds) == em
    assert token_f1(prediction, golds) == pytest.approx(f1)


@pytest.mark.parametrize(
    "prediction, golds, em, f1",
    [
        ("a", ["the"], 1, 0),
        ("???", ["..."], 1, 0),
        ("Paris", ["The The"], 0, 0),
        ("", ["Paris"], 0, 0),
        ("yes", ["yes it is"], 0, 0),
        ("Yes!", ["yes"], 1, 1),
        ("noanswer", ["no answer"], 0, 0),
        ("no", ["No Country", "no"], 1, 1),  # the rule is of one gold, the score of the best
        ("New York City", ["NYC", "The New York City!"], 1, 1),
        ("New York", ["London", "New York City"], 0, 0.8),
        ("Jay-Z", ["JayZ"], 1, 1),
        ("Jay-Z", ["Jay Z"], 0, 0),
        ("1.5", ["15"], 1, 1),
        ("C++", ["C#"], 1, 1),
        ("Straße", ["STRASSE"], 0, 0),
        ("Zoe\u0308", ["Zo\u00eb"], 0, 0),  # NFD and NFC
        ("a\u00a0b c", ["b c"], 1, 1),  # a no-break space is white space
        ("theatre", ["atre"], 0, 0),  # containment is no match
    ],
)
def test_what_the_field_counts_as_equal(prediction, golds, em, f1):
    assert exact_match(prediction, golds) == em
    assert token_f1(prediction, golds) == pytest.approx(f1)


@pytest.mark.parametrize("score", [exact_match, token_f1])
def test_no_gold_is_no_score(score):
    with pytest.raises(ValueError, match="against no gold answer"):
        score("x", [])
