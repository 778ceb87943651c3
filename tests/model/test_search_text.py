"""Words are found in many texts at once exactly as they are found one text at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Dataset
from lustrum.model.search_text import SearchText, words_of

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
