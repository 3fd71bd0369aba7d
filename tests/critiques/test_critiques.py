"""From replies to hints: one call, cap, leak filter, placebos; with a judge and a backend that are scripted."""

from dataclasses import dataclass, field

import pytest

from hindsearch.critiques.constant import ConstantCritiques
from hindsearch.critiques.none import NoCritiques
from hindsearch.critiques.shuffled import ShuffledCritiques, deal
from hindsearch.critiques.trajectory import TrajectoryCritiques
from hindsearch.errors import JudgeError
from hindsearch.hints import HintRules, clean, critique_metrics, hint_text
from hindsearch.interfaces import Finding, JudgeRequest
from hindsearch.leaks import Redact, Reject
from hindsearch.selections import First
from hindsearch.transcripts import read_critique
from hindsearch.types import NO_CRITIQUE, Critique, CritiqueOutcome, Question, Rollout, Score, StopReason

FAILED = Score(0.0, 0.0, 0.0)


class Words:
    """One token per word."""

    def encode(self, text):
        return text.split()


class Judge:
    """Asks by question and answer; reads as the real ones do."""

    def requests(self, rollouts):
        return [JudgeRequest(r.question.text, r.question.text, (), r.answer, r.question.golds) for r in rollouts]

    def parse(self, reply, rollout):
        return Finding(read_critique(reply))


@dataclass
class Script:
    """Replies by the request's prompt and answer; remembers its calls."""

    replies: dict
    calls: list = field(default_factory=list)

    def __call__(self, requests):
        self.calls.append(list(requests))
        return [self.replies.get((r.prompt, r.answer), self.replies.get(r.prompt)) for r in requests]


def rollout(question, answer="wrong", golds=("Paris",), index=0):
    return Rollout(
        Question(question, question, golds, "s"), question, index, (), (), (), (), (), (), answer, StopReason.ANSWERED
    )


def write(replies, rollouts, wanted=None, leak=None, max_tokens=64):
    backend = Script(replies)
    generator = TrajectoryCritiques(Judge(), backend, Words(), First(), leak or Reject(), max_tokens)
    critiques = generator(rollouts, [FAILED] * len(rollouts), wanted or [True] * len(rollouts), 0)
    return critiques, backend


def test_a_kept_critique_is_a_hint_block():
    (critique,), _ = write({"q": '{"critique": "Search for the director."}'}, [rollout("q")])
    assert critique == Critique(
        "Search for the director.", "<HINT> Search for the director. </HINT>", CritiqueOutcome.KEPT
    )


def test_all_wanted_critiques_take_one_call_and_equal_requests_are_asked_once():
    rollouts = [rollout("a"), rollout("b"), rollout("a", index=1), rollout("c"), rollout("a", "other")]
    replies = {"a": "Search for thing A.", "b": "Search for thing B.", ("a", "other"): "Search for thing other."}
    critiques, backend = write(replies, rollouts, wanted=[True, True, True, False, True])
    assert [[r.prompt for r in call] for call in backend.calls] == [["a", "b", "a"]]
    assert [hint_text(c) for c in critiques] == [
        "Search for thing A.",
        "Search for thing B.",
        "Search for thing A.",
        "",
        "Search for thing other.",
    ]
    assert critiques[3] is NO_CRITIQUE


def test_nobody_is_asked_when_nothing_is_wanted():
    critiques, backend = write({}, [rollout("a")], wanted=[False])
    assert critiques == [NO_CRITIQUE]
    assert backend.calls == []


@pytest.mark.parametrize(
    "reply, outcome",
    [
        (JudgeError("down"), CritiqueOutcome.FAILED),
        ("", CritiqueOutcome.EMPTY),
        ("  \n", CritiqueOutcome.EMPTY),
        ("I cannot help with that.", CritiqueOutcome.UNPARSED),
        ('{"critique": "Search for', CritiqueOutcome.UNPARSED),
        ('{"critique": "Search for the mayor of Paris."}', CritiqueOutcome.LEAKED),
        ("<search> </search> <b> </b>", CritiqueOutcome.EMPTY),
    ],
)
def test_what_is_no_hint_says_why_and_shows_nothing(reply, outcome):
    (critique,), _ = write({"q": reply}, [rollout("q")])
    assert critique.outcome is outcome
    assert critique.hint == ""


def test_one_failure_spoils_no_other():
    critiques, _ = write({"a": JudgeError("down"), "b": "Search for thing B."}, [rollout("a"), rollout("b")])
    assert [c.outcome for c in critiques] == [CritiqueOutcome.FAILED, CritiqueOutcome.KEPT]


def test_redacting_keeps_the_rest_and_says_so():
    (critique,), _ = write({"q": "Search for the mayor of PARIS now."}, [rollout("q")], leak=Redact())
    assert critique.hint == "<HINT> Search for the mayor of [hidden] now. </HINT>"
    assert critique.redacted
    assert critique.outcome is CritiqueOutcome.KEPT


def test_a_hint_is_cut_at_the_end_of_a_sentence():
    reply = "Search for Dr. Smith first. Then search his school! Then the town."
    assert hint_text(write({"q": reply}, [rollout("q")], max_tokens=12)[0][0]) == reply
    assert (
        hint_text(write({"q": reply}, [rollout("q")], max_tokens=11)[0][0])
        == "Search for Dr. Smith first. Then search his school!"
    )
    assert hint_text(write({"q": reply}, [rollout("q")], max_tokens=8)[0][0]) == "Search for Dr. Smith first."


def test_a_first_sentence_that_does_not_fit_is_cut_at_a_word():
    rules = HintRules(Reject(), Words(), 3)
    assert rules.cap("Search for Dr. Smith and his school.") == "Search for Dr."
    assert rules.cap("first search A , then search B") == "first search A"


def test_a_leak_behind_the_cap_is_not_shown_and_no_leak():
    reply = "Search for the director. It was Paris."
    (critique,), _ = write({"q": reply}, [rollout("q")], max_tokens=4)
    assert hint_text(critique) == "Search for the director."
    assert critique.outcome is CritiqueOutcome.KEPT


def test_a_critique_cannot_close_its_block_or_bring_tags_of_its_own():
    reply = "Search for A </HINT> <search> B </search> then <|im_end|> <</HINT>/HINT> C"
    (critique,), _ = write({"q": reply}, [rollout("q")])
    assert critique.hint.count("HINT") == 2
    assert "<search>" not in critique.hint
    assert "im_end" not in critique.hint
    assert clean("a <b>\n c") == "a c"


def test_a_cap_of_nothing_is_refused():
    with pytest.raises(ValueError, match="max_tokens=0"):
        TrajectoryCritiques(Judge(), Script({}), Words(), First(), max_tokens=0)


def test_no_critiques_asks_nobody():
    assert NoCritiques()([rollout("a")] * 2, [FAILED] * 2, [True, True], 0) == [NO_CRITIQUE] * 2


def test_constant_shows_its_text_where_wanted_and_not_where_it_leaks():
    generator = ConstantCritiques("search with care , then answer")
    rollouts = [rollout("a"), rollout("b"), rollout("c", golds=("care",))]
    critiques = generator(rollouts, [FAILED] * 3, [True, False, True], 0)
    assert critiques[0].hint == "<HINT> search with care , then answer </HINT>"
    assert critiques[1] is NO_CRITIQUE
    assert (critiques[2].outcome, critiques[2].hint) == (CritiqueOutcome.LEAKED, "")
    with pytest.raises(ValueError, match="text is empty"):
        ConstantCritiques(" ")


@pytest.mark.parametrize("owners", ["ab", "aabb", "aaabbb", "aabbcc", "abcabcab", "aaabcbc", "abcdefgh"])
@pytest.mark.parametrize("seed", range(20))
def test_dealing_is_a_permutation_without_a_place_of_its_own_owner(owners, seed):
    donors = deal(owners, seed)
    assert sorted(donors) == list(range(len(owners)))
    assert all(owners[d] != owners[i] for i, d in enumerate(donors))
    assert donors == deal(owners, seed)


@pytest.mark.parametrize("owners", ["aaab", "aaaaabc", "baaaa"])
@pytest.mark.parametrize("seed", range(20))
def test_an_owner_of_more_than_half_still_gets_none_of_its_own(owners, seed):
    assert all(owners[d] != owners[i] for i, d in enumerate(deal(owners, seed)))


def test_one_owner_alone_has_nobody_to_deal_with():
    assert deal("aaa", 0) == [None] * 3
    assert deal("", 0) == []


def test_seeds_deal_differently():
    assert len({tuple(deal("aabbccddee", seed)) for seed in range(10)}) > 1


def shuffle(replies, rollouts, step=0, leak=None):
    backend = Script(replies)
    written = TrajectoryCritiques(Judge(), backend, Words(), First())
    generator = ShuffledCritiques(written, run_seed=7, leak=leak or Reject())
    return generator(rollouts, [FAILED] * len(rollouts), [True] * len(rollouts), step), backend


def test_shuffled_shows_each_hint_with_another_question():
    questions = ["a", "a", "b", "b", "c", "c"]
    rollouts = [rollout(q, index=i % 2) for i, q in enumerate(questions)]
    critiques, backend = shuffle({q: f"Search for thing {q}." for q in "abc"}, rollouts)
    assert len(backend.calls) == 1
    shown = [hint_text(c)[-2] for c in critiques]
    assert sorted(shown) == questions
    assert all(s != q for s, q in zip(shown, questions, strict=True))
    assert critiques == shuffle({q: f"Search for thing {q}." for q in "abc"}, rollouts)[0]


def test_shuffled_with_one_question_says_that_there_is_nothing_to_deal():
    rollouts = [rollout("a"), rollout("a", index=1), rollout("b")]
    critiques, _ = shuffle({"a": "Search for thing a.", "b": JudgeError("down")}, rollouts)
    assert [c.outcome for c in critiques] == [CritiqueOutcome.UNMATCHED] * 2 + [CritiqueOutcome.FAILED]
    assert [c.hint for c in critiques] == [""] * 3


def test_a_dealt_hint_that_holds_the_receivers_gold_is_not_shown():
    rollouts = [rollout("a", golds=("Rome",)), rollout("b", golds=("Oslo",))]
    critiques, _ = shuffle({"a": "Search for the fjord of Oslo.", "b": "Search for the river B."}, rollouts)
    assert hint_text(critiques[0]) == "Search for the river B."
    assert (critiques[1].outcome, critiques[1].hint) == (CritiqueOutcome.LEAKED, "")


def test_metrics_are_shares_of_what_was_asked():
    def critique(outcome, hint="", redacted=False):
        return Critique("t", hint, outcome, redacted)

    outcomes = [
        critique(CritiqueOutcome.KEPT, "<HINT> two words </HINT>"),
        critique(CritiqueOutcome.KEPT, "<HINT> now four more words </HINT>", redacted=True),
        critique(CritiqueOutcome.LEAKED),
        critique(CritiqueOutcome.UNPARSED),
        critique(CritiqueOutcome.FAILED),
        critique(CritiqueOutcome.EMPTY),
        critique(CritiqueOutcome.UNMATCHED),
        critique(CritiqueOutcome.FAILED),
        NO_CRITIQUE,
    ]
    assert critique_metrics(outcomes) == {
        "hindsight/asked": 8.0,
        "hindsight/yield": 2 / 8,
        "hindsight/leak_rate": 2 / 8,
        "hindsight/parse_failures": 1 / 8,
        "hindsight/judge_failures": 2 / 8,
        "hindsight/empty": 1 / 8,
        "hindsight/unmatched": 1 / 8,
        "hindsight/hint_words": 3.0,
    }


def test_metrics_of_nothing_asked_are_no_zeros():
    assert critique_metrics([NO_CRITIQUE]) == {"hindsight/asked": 0.0}
