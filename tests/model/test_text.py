"""Sentences that can be said in another language."""

import json
import pickle
from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Dataset
from lustrum.model.search_text import SearchText, words_of
from lustrum.model.text import Message, lowered, say, say_many, translated


class French:
    words: ClassVar[dict[str, str]] = {
        "At most {most} cells of {what}.": "Au plus {most} cellules de {what}.",
        "the table": "la table",
    }

    def gettext(self, message: str) -> str:
        return self.words.get(message, message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return "{number} case" if n < 2 else "{number} cases"


def test_a_message_is_the_english_sentence_for_code_that_does_not_translate() -> None:
    text = say("At most {most} cells of {what}.", most=3, what=say("the table"))
    assert text == "At most 3 cells of the table."
    assert json.dumps([text]) == '["At most 3 cells of the table."]'


def test_a_catalogue_says_it_in_another_language_with_all_that_was_filled_in() -> None:
    text = say("At most {most} cells of {what}.", most=3, what=say("the table"))
    assert translated(text, French()) == "Au plus 3 cellules de la table."


def test_a_message_inside_a_sentence_begins_in_lower_case_in_every_language() -> None:
    text = lowered(say("At most {most} cells of {what}.", most=3, what=say("the table")))
    assert text == "at most 3 cells of the table."
    assert translated(text, French()) == "au plus 3 cellules de la table."
    assert translated(pickle.loads(pickle.dumps(text)), French()) == translated(text, French())
    assert lowered(say("EU {what}", what="citizens")) == "EU citizens"


def test_what_no_catalogue_knows_stays_as_it_is() -> None:
    assert translated(say("Nobody knows {x}.", x=1), French()) == "Nobody knows 1."
    assert translated(7, French()) == 7


def test_the_labels_of_a_dataset_are_never_translated() -> None:
    assert translated("the table", French()) == "the table"
    text = say("At most {most} cells of {what}.", most=3, what="the table")
    assert translated(text, French()) == "Au plus 3 cellules de the table."


def test_the_form_follows_the_number() -> None:
    one = say_many("{number} cell", "{number} cells", 1)
    many = say_many("{number} cell", "{number} cells", 0)
    assert (one, many) == ("1 cell", "0 cells")
    assert (translated(one, French()), translated(many, French())) == ("1 case", "0 case")


def test_a_value_that_looks_like_a_template_is_not_filled_in_again() -> None:
    assert say("Area {name}.", name="{most}") == "Area {most}."


def test_a_message_survives_being_sent_to_another_process() -> None:
    text = pickle.loads(pickle.dumps(say_many("{number} cell", "{number} cells", 2)))
    assert isinstance(text, Message)
    assert translated(text, French()) == "2 cases"


def test_digits_are_grouped_as_the_language_does() -> None:
    class Swiss(French):
        def formatted(self, value: float, spec: str) -> str:
            return format(value, spec).replace(",", "'")

    text = say("{cells:,} cells", cells=12345)
    assert text == "12,345 cells"
    assert translated(text, Swiss()) == "12'345 cells"
    assert translated(text, French()) == "12,345 cells"
    assert translated(say("{name:>4}", name="x"), Swiss()) == "   x"


LETTERS = st.text("aAbß İ\n1", max_size=6)


@given(texts=st.lists(LETTERS, max_size=8), wanted=LETTERS)
def test_a_search_finds_the_texts_that_hold_every_word(texts: list[str], wanted: str) -> None:
    words = wanted.casefold().split()
    one_by_one = [i for i, t in enumerate(texts) if all(w in t.casefold() for w in words)]
    assert SearchText(texts).find(words_of(wanted)).tolist() == one_by_one


@given(texts=st.lists(LETTERS, max_size=8), one=st.sampled_from("ab1"), other=LETTERS)
def test_one_spelling_of_a_word_is_enough(texts: list[str], one: str, other: str) -> None:
    spellings = [one, *other.casefold().split()]
    one_by_one = [i for i, t in enumerate(texts) if any(w in t.casefold() for w in spellings)]
    assert SearchText(texts).find([spellings]).tolist() == one_by_one


def test_a_variable_is_searched_level_by_level() -> None:
    level = {"name": "half", "groups": [{"code": "N", "label": "North", "members": ["1", "2"]}]}
    area = {
        "name": "area",
        "codes": [["1", "Upper North"], ["2", "Lower North"], ["3", "South"]],
        "hierarchies": [{"name": "h", "levels": [level]}],
    }
    found = Dataset.from_mapping({"dataset": {"name": "d"}, "variables": [area]}).variable("area")
    assert [c.code for c in found.search(words_of("NORTH low"))] == ["2"]
    assert [c.code for c in found.search(words_of("north"), "half")] == ["N"]
    assert [c.code for c in found.search(words_of(""), "half")] == ["N", "3"]
    assert [found.is_at(code) for code in ("1", "N", "x")] == [True, False, False]
    assert [found.is_at(code, "half") for code in ("1", "N", "3")] == [False, True, True]
    assert found.label_text.find(words_of("half")).tolist() == [4]
