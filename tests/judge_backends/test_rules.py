"""The judge without a language model, on a world small enough to follow by eye."""

import json

import pytest

from hindsearch.errors import JudgeError, RetrievalError
from hindsearch.interfaces import JudgeRequest
from hindsearch.judge_backends.rules import Explore, Generic, Habit, RulesBackend
from hindsearch.leaks import find_leaks
from hindsearch.types import Passage, Turn, TurnKind

TEXTS = {
    "Krurim": "Krurim is a film by director Krefax , writer Tidruk , star Fizzle and composer Fudar .",
    "Krefax": "Krefax has birthplace Diteam , school Vipol and home Bresurn .",
    "Tidruk": "Tidruk has birthplace Vipol , school Bresurn and home Beamarn .",
    "Fizzle": "Fizzle has birthplace Bresurn , school Vipol and home Beamarn .",
    "Fudar": "Fudar has birthplace Bresurn , school Vipol and home Beamarn .",
    "Diteam": "Diteam is a city in country Feazust on river Masuk .",
    "Vipol": "Vipol is a city in country Gromp on river Masuk .",
    "Bresurn": "Bresurn is a city in country Gromp on river Onzo .",
    "Beamarn": "Beamarn is a city in country Gromp on river Onzo .",
}
PASSAGES = [Passage(title, title, text) for title, text in TEXTS.items()]
QUESTION = "what is Krurim 's director 's birthplace 's country ?"


def retriever(queries, k):
    """The passage whose title is the last word of the query."""
    return [tuple(p for p in PASSAGES if p.title == query.split()[-1])[:k] for query in queries]


def search(query):
    return Turn(TurnKind.SEARCH, f"<search> {query} </search>", query, "", retriever([query], 1)[0])


def ask(*queries, golds=("Feazust",), question=QUESTION, **options):
    backend = RulesBackend(retriever, PASSAGES, **options)
    (reply,) = backend([JudgeRequest("", question, tuple(search(q) for q in queries), None, tuple(golds))])
    return reply


def test_the_chain_is_named_with_its_cues_and_the_first_query_that_leaves_it():
    assert ask("Krurim", "star Fizzle", "home Beamarn") == (
        "first search Krurim , then search director Krefax , then search birthplace Diteam , "
        "not star Fizzle , then answer"
    )


def test_nothing_is_avoided_where_the_rollout_stayed_on_the_chain():
    assert ask("Krurim", "director Krefax") == (
        "first search Krurim , then search director Krefax , then search birthplace Diteam , then answer"
    )


def test_a_query_that_holds_the_gold_is_not_repeated():
    assert " not " not in ask("Krurim", "country Feazust", "star Fizzle")


def test_english_names_titles_only():
    reply = ask("Krurim", "star Fizzle", phrasing="judge/rules_english.jinja")
    assert reply == (
        'First search for "Krurim", then for "Krefax", then for "Diteam", rather than "star Fizzle". '
        "Then answer from what you find."
    )


def test_of_several_shortest_chains_each_question_has_its_own_and_keeps_it():
    questions = [f"what is {'really ' * n}Fizzle 's place 's country ?" for n in range(12)]
    replies = [ask(golds=["Gromp"], question=question) for question in questions]
    assert len(set(replies)) == 3
    assert replies == [ask("Fizzle", golds=["Gromp"], question=question) for question in questions]


def test_no_chain_is_an_empty_reply():
    assert ask("Krurim", golds=["Nowhere"]) == ""
    assert ask("Krurim", golds=["Feazust"], max_hops=2) == ""
    assert ask("who", question="who knows ?") == ""


def test_the_gold_is_never_named():
    for gold in ("Krefax", "Diteam", "Feazust", "Gromp", "Masuk", "Krurim"):
        assert gold not in str(ask("Krurim", f"star {gold}", golds=[gold]))


def test_yes_or_no_names_the_titles_of_the_question():
    assert ask(golds=["yes"], question="is Krefax older than Tidruk ?") == (
        "first search Krefax , then search Tidruk , then answer"
    )


def test_the_words_of_the_question_decide_nothing_but_its_titles():
    nonsense = "Krurim whose composer 's school 's river ?"
    assert "director Krefax , then search birthplace Diteam" in ask(question=nonsense)


def test_a_lost_retriever_is_a_judge_error():
    def lost(queries, k):
        raise RetrievalError("gone")

    replies = RulesBackend(lost, PASSAGES)([JudgeRequest("", QUESTION, (), None, ("Feazust",))] * 2)
    assert [type(reply) for reply in replies] == [JudgeError] * 2
    assert "gone" in str(replies[0])


def test_replies_are_in_order_and_repeatable():
    requests = [
        JudgeRequest("", f"what is {name} 's place ?", (), None, ("Gromp",)) for name in ("Krefax", "Vipol", "Fudar")
    ]
    backend = RulesBackend(retriever, PASSAGES)
    replies = backend(requests)
    assert [name in reply for name, reply in zip(("Krefax", "Vipol", "Fudar"), replies, strict=True)] == [True] * 3
    assert replies == backend(requests) == RulesBackend(retriever, PASSAGES)(requests)


def test_without_the_answer_habit_follows_the_cues_used_most():
    reply = ask("Krurim", "star Fizzle", "star Fizzle", "home Beamarn", golds=(), unknowing=Habit())
    assert reply == "first search Krurim , then search star Fizzle , then search home Beamarn , then answer"


def test_without_the_answer_explore_takes_links_that_were_not_tried():
    for extra in range(20):
        queries = ["Krurim", "star Fizzle", "director Krefax", "writer Tidruk", *["Krurim"] * extra]
        reply = ask(*queries, golds=(), unknowing=Explore())
        assert reply.startswith("first search Krurim , then search composer Fudar , then search ")
        assert ", not star Fizzle" in reply
        assert reply == ask(*queries, golds=(), unknowing=Explore())


def test_explore_differs_between_rollouts():
    replies = {ask(*["Krurim"] * n, golds=(), unknowing=Explore()) for n in range(20)}
    assert len(replies) > 4


def test_without_the_answer_generic_says_the_same_of_everything():
    assert ask("Krurim", golds=(), unknowing=Generic(["look again"])) == "look again"


def test_walks_are_as_long_as_asked_and_empty_without_a_start():
    assert ask(golds=(), unknowing=Habit(hops=1)) == "first search Krurim , then answer"
    assert ask(golds=(), unknowing=Habit(), question="who knows ?") == ""
    assert ask(golds=(), unknowing=Explore(), question="who knows ?") == ""


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="max_hops=0"):
        RulesBackend(retriever, PASSAGES, max_hops=0)
    with pytest.raises(ValueError, match="hops=0"):
        Explore(hops=0)
    with pytest.raises(ValueError, match="texts is empty"):
        Generic(())


def test_on_real_passages_chains_are_found_and_none_gives_its_answer_away(realdata):
    folder = realdata / "hipporag_hotpot"
    rows = [json.loads(line) for line in (folder / "passages.jsonl").read_text(encoding="utf-8").splitlines()]
    parts = [(row["id"], *row["contents"].partition("\n")[::2]) for row in rows]
    passages = [Passage(name, title.strip('"'), text) for name, title, text in parts]
    by_title = {passage.title: passage for passage in passages}

    def exact(queries, k):
        return [(by_title[query],) if query in by_title else () for query in queries]

    questions = [json.loads(line) for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    golds = [tuple(question["golden_answers"]) for question in questions]
    requests = [JudgeRequest("", q["question"], (), None, g) for q, g in zip(questions, golds, strict=True)]
    replies = RulesBackend(exact, passages, phrasing="judge/rules_english.jinja")(requests)
    assert sum(bool(reply) for reply in replies) > len(replies) / 2
    assert not any(find_leaks(reply, gold) for reply, gold in zip(replies, golds, strict=True))
