"""Templates: found, filled, identified, and named in one sentence where they are wrong."""

import pytest

from hindsearch.errors import UserError
from hindsearch.prompts import Template


def own(tmp_path, source):
    path = tmp_path / "mine.jinja"
    path.write_text(source, encoding="utf-8")
    return str(path)


def test_the_packages_template_asks_for_the_four_tags_and_ends_the_question():
    text = Template.load("search_r1/prompt.jinja").render(question="who is it", hint="", hint_after="")
    assert all(f"<{tag}>" in text for tag in ("think", "search", "information", "answer"))
    assert text.endswith("Question: who is it?")


def test_a_question_mark_stands_once():
    assert (
        Template.load("search_r1/prompt.jinja")
        .render(question="who?", hint="", hint_after="")
        .endswith("Question: who?")
    )


def test_the_micro_worlds_templates_are_plain():
    assert Template.load("micro/prompt.jinja").render(question="q", hint="h", hint_after="") == "h q"
    assert Template.load("micro/prompt.jinja").render(question="q", hint="", hint_after="") == "q"
    assert Template.load("micro/correction.jinja").render() == " <information> invalid </information> "


def test_a_template_of_your_own_is_found_by_its_path(tmp_path):
    assert Template.load(own(tmp_path, "Q: {{ question }}")).render(question="x") == "Q: x"


def test_values_are_data_and_neither_rendered_nor_escaped(tmp_path):
    value = "{{ hint }} <b> & {% if %}"
    assert Template.load(own(tmp_path, "{{ question }}")).render(question=value, hint="no") == value


def test_the_digest_follows_the_text(tmp_path):
    first = Template.load(own(tmp_path, "a")).digest
    assert Template.load(own(tmp_path, "a")).digest == first
    assert Template.load(own(tmp_path, "b")).digest != first


def test_a_variable_that_is_not_there_is_named_with_the_file(tmp_path):
    with pytest.raises(UserError, match=r"mine\.jinja: 'questoin' is undefined; it may use hint, question"):
        Template.load(own(tmp_path, "{{ questoin }}")).render(question="x", hint="")


def test_a_template_that_is_no_jinja_is_named(tmp_path):
    with pytest.raises(UserError, match=r"mine\.jinja cannot be rendered"):
        Template.load(own(tmp_path, "{% if %}")).render()


def test_a_template_reaches_nothing_but_its_values(tmp_path):
    with pytest.raises(UserError, match=r"mine\.jinja"):
        Template.load(own(tmp_path, "{{ question.__class__.__mro__ }}")).render(question="x")


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "mine.jinja"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"mine\.jinja cannot be read.*save it as UTF-8"):
        Template.load(str(path))
