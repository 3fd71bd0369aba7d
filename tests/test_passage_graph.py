"""Titles in texts, and chains of passages, on a corpus small enough to follow by eye."""

from hindsearch.passage_graph import PassageGraph, Step, Titles
from hindsearch.types import Passage

TEXTS = {
    "Krurim": "Krurim is a film by director Krefax , writer Tidruk , star Fizzle and composer Fudar .",
    "Krefax": "Krefax has birthplace Diteam , school Vipol and home Bresurn .",
    "Tidruk": "Tidruk has birthplace Vipol , school Diteam and home Bresurn .",
    "Fizzle": "Fizzle has birthplace Bresurn , school Vipol and home Beamarn .",
    "Fudar": "Fudar has birthplace Bresurn , school Vipol and home Beamarn .",
    "Diteam": "Diteam is a city in country Feazust on river Masuk .",
    "Vipol": "Vipol is a city in country Gromp on river Masuk .",
    "Bresurn": "Bresurn is a city in country Gromp on river Onzo .",
    "Beamarn": "Beamarn is a city in country Gromp on river Onzo .",
}
PASSAGES = [Passage(title, title, text) for title, text in TEXTS.items()]


class Exact:
    """Finds the passage whose title is the query, or one that holds its last word; remembers its calls."""

    def __init__(self, passages=PASSAGES):
        self.passages, self.calls = passages, []

    def __call__(self, queries, k):
        self.calls.append(list(queries))
        return [tuple(p for p in self.passages if p.title == q or q.endswith(f"{p.title} ?"))[:k] for q in queries]


def names(chains):
    return {tuple(step.title for step in chain) for chain in chains}


def test_titles_are_found_whole_longest_first_with_the_word_before():
    titles = Titles(["New York", "New York City", "York", "Alien (film)", "It", "A"])
    text = "It is in New York City, and York; see also Alien, Yorkshire and new york."
    assert list(titles(text)) == [Step("New York City", "in"), Step("York", "City"), Step("Alien (film)", "also")]
    assert [step.title for step in titles("from new york to york", ignore_case=True)] == ["New York", "York"]


def test_a_comma_and_an_and_are_passed_over():
    assert list(Titles(["Fudar"])("star Kiheax , and Fudar .")) == [Step("Fudar", "Kiheax")]
    assert list(Titles(["Fudar"])("Fudar has")) == [Step("Fudar", "")]


def test_a_query_is_cue_and_title():
    assert Step("Krefax", "director").query == "director Krefax"
    assert Step("Krurim").query == "Krurim"


def test_the_three_hop_chain_is_found():
    graph = PassageGraph(Exact(), PASSAGES)
    chains = graph.shortest_chains("what is Krurim 's director 's birthplace 's country ?", ["Feazust"], 4, 200)
    assert names(chains) == {("Krurim", "Krefax", "Diteam"), ("Krurim", "Tidruk", "Diteam")}
    assert {tuple(step.query for step in chain) for chain in chains} == {
        ("Krurim", "director Krefax", "birthplace Diteam"),
        ("Krurim", "writer Tidruk", "school Diteam"),
    }


def test_the_nearest_passage_wins():
    graph = PassageGraph(Exact(), PASSAGES)
    assert names(graph.shortest_chains("what is Krurim 's director ?", ["Krefax"], 4, 200)) == {("Krurim",)}
    assert names(graph.shortest_chains("what is Fizzle 's home ?", ["Gromp"], 4, 200)) == {
        ("Fizzle", "Bresurn"),
        ("Fizzle", "Vipol"),
        ("Fizzle", "Beamarn"),
    }


def test_no_chain_within_the_bounds_is_none():
    graph = PassageGraph(Exact(), PASSAGES)
    question = "what is Krurim 's director 's birthplace 's country ?"
    assert graph.shortest_chains(question, ["Nowhere"], 4, 200) == []
    assert graph.shortest_chains(question, ["Feazust"], 2, 200) == []
    assert graph.shortest_chains(question, ["Feazust"], 4, 5) == []
    assert graph.shortest_chains("what is nothing known ?", ["Feazust"], 4, 200) == []


def test_a_title_that_is_the_gold_is_never_stepped_on():
    graph = PassageGraph(Exact(), PASSAGES)
    assert graph.shortest_chains("is Krefax from Diteam ?", ["Krefax"], 4, 200) == []
    corpus = [Passage("1", "Start", "Start knows Gold ."), Passage("2", "Gold", "Gold is Gold .")]
    assert names(PassageGraph(Exact(corpus), corpus).shortest_chains("is Start ?", ["gold"], 4, 9)) == {("Start",)}


def test_circles_end():
    corpus = [Passage("1", "Ab", "Ab likes Cd ."), Passage("2", "Cd", "Cd likes Ab .")]
    assert PassageGraph(Exact(corpus), corpus).shortest_chains("Ab ?", ["X9"], 10, 100) == []


def test_a_question_without_a_title_starts_where_it_leads():
    corpus = [Passage("1", "Seine", "The Seine ends at Le Havre.")]

    def retriever(queries, k):
        return [tuple(corpus) for _ in queries]

    graph = PassageGraph(retriever, corpus)
    assert graph.starts("where does that river of paris end") == (Step("Seine"),)


def test_each_title_is_searched_for_once():
    retriever = Exact()
    graph = PassageGraph(retriever, PASSAGES)
    for _ in range(2):
        graph.shortest_chains("what is Krurim 's director 's birthplace 's country ?", ["Feazust"], 4, 200)
    assert retriever.calls == [
        ["Krurim"],
        ["Krefax", "Tidruk", "Fizzle", "Fudar"],
        ["Diteam", "Vipol", "Bresurn", "Beamarn"],
    ]
