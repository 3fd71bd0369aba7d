"""Where a text gives a gold answer away, by hand."""

import pytest

from hindsearch.leaks import Haystack, Redact, Reject, find_leaks


@pytest.mark.parametrize(
    "text, gold",
    [
        ("Search for PARIS first.", "Paris"),
        ("Search for the Beatles' first manager.", "Beatles"),
        ("Search for Beatles albums.", "The Beatles"),
        ("Search for “Paris”, then for its mayor.", "Paris"),
        ("Ask about the Paris-based publisher.", "Paris"),
        ("Ask about Paris's mayor.", "paris"),
        ("Look up Beyonce Knowles.", "Beyoncé"),
        ("Look up the U.S. census.", "US"),
        ("Look up OBrien.", "O'Brien"),
        ("Look up O'Brien.", "O'Brien"),
        ("Find the 1000 km race.", "1,000"),
        ("Find the film Lost in  the\nTranslation.", "Lost in Translation"),
        ("Search the 2 rivers.", "2"),
        ("Search for 巴黎市長的名字", "巴黎"),
        ("Search the band The The.", "The The"),
        ("Ask who wrote !!!", "!!!"),
    ],
)
def test_a_gold_in_the_text_is_found_whatever_its_dress(text, gold):
    assert find_leaks(text, ["no such thing at all", gold])


@pytest.mark.parametrize(
    "text, gold",
    [
        ("Search for Romeo and Juliet.", "Rome"),
        ("Search for the director, then the birthplace.", "Paris"),
        ("Search New Orleans, then York.", "New York"),
        ("Search the 1920s.", "1920"),
        ("Search for the director.", ""),
        ("Search for a band and the drummer.", "The The"),
        ("Search for Paris.", "Paris Hilton"),
    ],
)
def test_words_that_are_not_the_gold_are_no_leak(text, gold):
    assert find_leaks(text, [gold]) == []


@pytest.mark.parametrize(
    "text, gold, leaks",
    [
        ("There is no need to look up the cast; search for the director.", "no", False),
        ("Compare both release dates; the answer is no.", "no", True),
        ("No, search for the release dates.", "no", True),
        ("Answer 'yes' after searching both dates.", "Yes", True),
        ("Search for it and its cast.", "It", False),
        ("Search for the cast of It before answering.", "It", True),
        ("It has a director: search for that.", "It", False),
    ],
)
def test_a_common_word_leaks_only_where_it_is_meant_as_the_answer(text, gold, leaks):
    assert bool(find_leaks(text, [gold])) is leaks


def test_reject_shows_nothing_of_a_leaking_hint_and_all_of_another():
    assert Reject()("Search for Paris.", ["Paris"]) == ""
    assert Reject()("Search for the capital.", ["Paris"]) == "Search for the capital."


def test_redact_hides_every_place_and_keeps_the_rest_as_it_was():
    text = "Search for Paris-based firms, then for the Mayor of Paris."
    # "Paris-based" is one word to the scores and two to a reader; only the reader's Paris goes
    assert Redact()(text, ["Paris"]) == "Search for [hidden]-based firms, then for the Mayor of [hidden]."


def test_redact_shows_nothing_when_too_little_is_left():
    assert Redact(min_words=3)("Search Paris now", ["Paris"]) == ""
    assert Redact(min_words=2)("Search Paris now", ["Paris"]) == "Search [hidden] now"


def test_redact_never_puts_a_gold_back():
    assert Redact(placeholder="the answer")("Search for all about Paris first", ["Paris", "answer first"]) == ""


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="placeholder"):
        Redact(placeholder=" ")
    with pytest.raises(ValueError, match="min_words=-1"):
        Redact(min_words=-1)


def test_a_passage_holds_an_alias_as_whole_words():
    passage = Haystack("Born in Saint-Denis, near Paris (France), in 1,900.")
    assert passage.holds(["paris"])
    assert passage.holds(["1900"])
    assert passage.holds(["nothing", "denis"])
    assert not passage.holds(["Pari", "Franc", "Denis near"[:5] + "x", ""])
