"""Numbers as agencies print them; what could be read in two ways is a doubt and never a guess in silence."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError
from lustrum.readers import Reading, table_of_csv
from lustrum.readers.published.number_text import (
    Style,
    printed,
    style_of,
    without_tails,
)
from lustrum.readers.published.reading import (
    bound_of_words,
    said_letters,
    said_symbols,
)

PUBLISHED = Reading(published=True)


@pytest.mark.parametrize(
    ("text", "value", "mark"),
    [
        ("1234", "1234", ""),
        ("1,234", "1234", ""),
        ("12,34,567", "1234567", ""),
        ("1 234", "1234", ""),
        ("1\u00a0234\u202f567", "1234567", ""),
        ("52'793", "52793", ""),
        ("63\u2019428", "63428", ""),
        ("(1,234)", "-1234", ""),
        ("\u22121360", "-1360", ""),
        ("337-", "-337", ""),
        ("- 12", "-12", ""),
        ("€ 50919", "50919", ""),
        ('="58319"', "58319", ""),
        ("5.6942E+04", "56942", ""),
        ("769p", "769", "p"),
        ("172 §", "172", "§"),
        ("19206*", "19206", "*"),
        ("17993 [2]", "17993", "[2]"),
        (".5", "0.5", ""),
    ],
)
def test_a_printed_number_is_read_as_it_is_meant(text: str, value: str, mark: str) -> None:
    found = printed(text, Style())
    assert found is not None
    assert (found.value, found.mark) == (Decimal(value), mark)


@pytest.mark.parametrize(
    "text", ["x", "10-19", "<5", "1,23,4", "12 to 14", "(D)", "2021-05-01", ""]
)
def test_what_is_no_number_is_not_read_as_one(text: str) -> None:
    assert printed(text, Style()) is None


@pytest.mark.parametrize(
    ("texts", "delimiter", "decimal", "doubtful"),
    [
        (["65591,2", "17"], ";", ",", False),
        (["38.165,9", "1.039,2"], ";", ",", False),
        (["1,234.5"], ",", ".", False),
        (["1,444", "274"], ",", ".", False),
        (["1,444", "274"], ";", ".", True),
        (["1,444", "2741"], ";", ",", False),
        (["42.425", "1.627"], "\t", ",", True),
        (["2.812", "1.345", "999"], ";", ",", True),
        (["2.812", "1.345", "9990"], ";", ".", False),
        (["0.125", "1.345"], ",", ".", False),
        (["1.234.567"], ";", ",", False),
        (["12.5", "1,5"], ",", ".", True),
    ],
)
def test_the_column_decides_what_separates_decimals(
    texts: list[str], delimiter: str, decimal: str, doubtful: bool
) -> None:
    found = style_of(texts, delimiter)
    assert (found.decimal, bool(found.doubt)) == (decimal, doubtful)


def test_a_doubtful_separator_is_settled_by_the_user() -> None:
    text = "p;value\nTotal;2.812\na;1.345\nb;..\n"
    found = table_of_csv(text, "x", reading=PUBLISHED)
    assert any("--thousands" in doubt for doubt in found.doubts)
    assert found.values["value"][0] == 2812
    said = table_of_csv(text, "x", reading=Reading(published=True, thousands="."))
    assert not said.doubts
    assert said.values["value"][0] == 2812
    other = table_of_csv(text, "x", reading=Reading(published=True, thousands="none"))
    assert not other.doubts
    assert other.values["value"][0] == Decimal("2.812")


@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=8), st.sampled_from(" '\u00a0"))
def test_grouped_digits_read_back(numbers: list[int], sign: str) -> None:
    texts = [f"{n:,}".replace(",", sign) for n in numbers]
    style = style_of(texts, ";")
    assert [printed(t, style).value for t in texts] == numbers  # type: ignore[union-attr]


def test_tails_of_binary_floats_are_cut_and_said_and_other_digits_are_kept() -> None:
    text = "a,value\nTotal,1000000000.4\n1,1000000000.1\n2,0.30000000000000004\n"
    found = table_of_csv(text, "x", reading=PUBLISHED)
    assert found.values["value"][2] == Decimal("0.3")
    assert any("tails of binary floats" in note for note in found.notes)
    values = [Decimal("0.5"), Decimal("0.123456789012")]
    assert without_tails(values) == (values, None)


def test_more_digits_than_can_be_computed_with_are_one_sentence() -> None:
    text = "a,value\n1,123456789012.1234567890123\n2,3\nTotal,4\n"
    found = table_of_csv(text, "x.csv", reading=PUBLISHED)
    with pytest.raises(
        InputError, match="more digits than can be computed with exactly; say --decimals"
    ):
        found.known_values  # noqa: B018
    rounded = table_of_csv(text, "x.csv", reading=Reading(published=True, decimals=1))
    assert rounded.known_values[0][0].tolist() == [1234567890121, 30, 40]


@pytest.mark.parametrize(
    ("word", "low", "high"),
    [
        ("<5", 0, 4),
        ("<=5", 0, 5),
        ("≤ 5", 0, 5),
        (">100", 101, None),
        ("10-19", 10, 19),
        ("10–19", 10, 19),
    ],
)
def test_a_symbol_that_states_its_values_is_read_so(word: str, low: int, high: int | None) -> None:
    assert bound_of_words(word) == (low, high)
    assert said_symbols([word])[word.lower()] == (low, high)


def test_the_user_says_what_symbols_and_letters_mean() -> None:
    found = said_symbols(["X", "<5=1..4", "-=0", "=0", "big=100.."])
    assert found == {
        "x": (None, None),
        "<5": (1, 4),
        "-": (0, 0),
        "": (0, 0),
        "big": (100, None),
    }
    assert said_letters(["A=shown", "N=hidden", "z=0", "a=0..19"])["a"] == (0, 19)
    for wrong in ("A", "A=maybe", "=shown"):
        with pytest.raises(InputError, match="--status is"):
            said_letters([wrong])
    with pytest.raises(InputError, match="lower end above"):
        said_symbols(["x=5..1"])
