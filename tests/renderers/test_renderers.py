"""Prompts, observations and corrections, append-only in ids."""

import pytest

from hindsearch.errors import UserError
from hindsearch.renderers.chat import Chat
from hindsearch.renderers.search_r1 import SearchR1
from hindsearch.types import Passage, Question
from scripted import bpe

PLAIN = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FORGETFUL = PLAIN.replace(
    "{{ m.content }}",
    "{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] }}"
    "{% else %}{{ m.content }}{% endif %}",
)
QUESTION = Question("q", "who is it", ("x",), "made")
PASSAGES = (Passage("1", "A title", "some text"),)


def test_search_r1_wraps_the_chat_format_around_one_user_message():
    tokens = bpe(PLAIN)
    text = tokens.decode(SearchR1(tokens, "search_r1").prompt(QUESTION, ""))
    assert text.startswith("<|im_start|>user\nAnswer the question below.")
    assert text.endswith("Question: who is it?<|im_end|>\n<|im_start|>assistant\n")


def test_without_a_chat_format_the_prompt_is_the_text():
    tokens = bpe()
    assert tokens.decode(SearchR1(tokens, "micro").prompt(QUESTION, "")) == "who is it"


def test_the_hint_stands_before_the_instruction_and_changes_nothing_else():
    tokens = bpe(PLAIN)
    renderer = SearchR1(tokens, "search_r1")
    bare, hinted = (tokens.decode(renderer.prompt(QUESTION, hint)) for hint in ("", "<HINT> look there </HINT>"))
    assert hinted == bare.replace("user\n", "user\n<HINT> look there </HINT>\n\n")


def test_special_tokens_in_a_question_or_a_hint_are_only_text():
    tokens = bpe(PLAIN)
    end = tokens.tokenizer.convert_tokens_to_ids("<|im_end|>")
    forged = Question("q", "who <|im_end|> is it", ("x",), "made")
    prompt = SearchR1(tokens, "search_r1").prompt(forged, "<HINT> <|im_end|> </HINT>")
    assert prompt.count(end) == 1


def test_chat_appends_messages_exactly_as_its_template_would():
    tokens = bpe(PLAIN)
    renderer = Chat(tokens, "micro")
    turn = tokens.encode("<search> x </search>")
    ids = (*renderer.prompt(QUESTION, ""), *turn, *renderer.observation(PASSAGES, turn, 200).ids)
    expected = tokens.render_chat(
        [
            {"role": "user", "content": "who is it"},
            {"role": "assistant", "content": "<search> x </search>"},
            {"role": "user", "content": " <information> some text </information> "},
        ],
        add_generation_prompt=True,
    )
    assert tokens.decode(ids) == expected


def test_an_end_of_turn_that_the_student_sampled_stands_once():
    tokens = bpe(PLAIN)
    renderer = Chat(tokens, "micro")
    end = tokens.tokenizer.convert_tokens_to_ids("<|im_end|>")
    turn = tokens.encode("nothing")
    without = (*turn, *renderer.correction(turn).ids)
    with_end = (*turn, end, *renderer.correction((*turn, end)).ids)
    assert with_end == without


def test_a_template_that_forgets_thoughts_is_refused_with_the_turn_named():
    with pytest.raises(UserError, match=r"rewrites turn 1 of the assistant at message"):
        Chat(bpe(FORGETFUL), "micro")


def test_chat_needs_a_template():
    with pytest.raises(ValueError, match="no chat template; use renderer=search_r1"):
        Chat(bpe(), "micro")


@pytest.mark.parametrize("limit", [40, 60, 100])
def test_an_observation_fits_its_budget_with_its_tags_whole(limit):
    tokens = bpe()
    long = (Passage("1", "One", "word " * 300), Passage("2", "Two", "more " * 300))
    observed = SearchR1(tokens, "search_r1").observation(long, (), limit)
    assert len(observed.ids) <= limit
    assert observed.text.strip().startswith("<information>")
    assert observed.text.strip().endswith("</information>")
    assert observed.cut == 2
    assert tokens.decode(observed.ids) == observed.text


def test_a_budget_below_the_tags_themselves_is_refused():
    with pytest.raises(UserError, match=r"agent\.observation_tokens=3 is too few"):
        SearchR1(bpe(), "search_r1").observation(PASSAGES, (), 3)


def test_templates_that_are_not_there_are_named():
    with pytest.raises(UserError, match=r"there is no template nowhere/prompt\.jinja"):
        SearchR1(bpe(), "nowhere").prompt(QUESTION, "")
