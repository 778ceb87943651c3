"""Letters, blanks, odd numbers and layouts, one by one: none is read as something else, in silence."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from lustrum.model import InputError, Release
from lustrum.model.errors import NotJudgedError
from lustrum.readers import (
    ColumnNames,
    Reading,
    StatedTotals,
    TableFile,
    recognise,
    releases_of,
    table_of_csv,
)
from lustrum.readers.levels import default_level, protection_of
from lustrum.readers.published.number_text import (
    Style,
    decimals_of,
    plain_number,
    printed,
    style_of,
    without_tails,
)
from lustrum.readers.published.reading import (
    both,
    bound_of_words,
    said_letters,
    said_symbols,
)
from lustrum.readers.status_letters import (
    Meaning,
    StatusList,
    hides,
    is_letter,
    is_truth,
    judged,
    list_of,
    meaning,
)

OPEN = StatedTotals(none=frozenset({""}))
SHOWN, HIDDEN, UNCLEAR = Meaning.PUBLISHED, Meaning.HIDDEN, Meaning.UNCLEAR


def read(text: str, named: ColumnNames = ColumnNames(), **said: Any) -> TableFile:  # noqa: B008
    return table_of_csv(text, "x.csv", named, reading=Reading(published=True, **said))


def released(file: TableFile) -> Release:
    return releases_of([file], recognise([file], OPEN, published=True))[0]


def said_once(file: TableFile, words: str) -> bool:
    return sum(words in doubt for doubt in file.doubts) == 1


# Letters.


@pytest.mark.parametrize(
    ("letters", "stated", "expected"),
    [
        ("ABDEFGINPSUVWXYZ", "observation", SHOWN),
        ("HJKLMOQR", "observation", HIDDEN),
        ("CTa1", "observation", UNCLEAR),
        ("bdefinprsuv", "flags", SHOWN),
        ("c", "flags", HIDDEN),
        ("zCAx", "flags", UNCLEAR),
        ("F", "confidentiality", SHOWN),
        ("ABCDEGHINPQRSTUVWXYZ", "confidentiality", HIDDEN),
        ("acfz1É", "confidentiality", UNCLEAR),
        ("F", None, SHOWN),
        ("ACDNQacx1", None, UNCLEAR),
    ],
)
def test_every_letter_has_one_meaning_in_its_list(
    letters: str, stated: StatusList | None, expected: Meaning
) -> None:
    assert {letter: meaning(letter, stated) for letter in letters} == dict.fromkeys(
        letters, expected
    )
    assert meaning("", stated) is SHOWN


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("bp", SHOWN),
        ("bc", UNCLEAR),
        ("cc", UNCLEAR),
    ],
)
def test_flags_together_are_remarks_only_if_all_of_them_are(words: str, expected: Meaning) -> None:
    assert meaning(words, "flags") is expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        *((w, SHOWN) for w in ("published", "Shown", "public", "normal", "OK")),
        *((w, HIDDEN) for w in ("Suppressed", "confidential", "withheld", "secret", "hidden")),
        *((w, HIDDEN) for w in ("redacted", "not published", "unpublished", "geheim", "vertraulich")),
        *((w, UNCLEAR) for w in ("not confidential", "non-confidential", "not suppressed", "no secret")),
        *((w, UNCLEAR) for w in ("not disclosed", "unsuppressed", "nicht geheim", "never hidden")),
        *((w, UNCLEAR) for w in ("provisional", "keine Angabe vertraulich", "not for publication")),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stated", [None, "confidentiality", "observation"])
def test_words_that_say_hidden_are_believed_and_their_opposites_are_asked_about(
    words: str, expected: Meaning, stated: StatusList | None
) -> None:
    assert meaning(words, stated) is expected
    assert hides(words) == (
        expected is HIDDEN or words not in ("provisional", "not for publication", *_SHOWN)
    )


_SHOWN = ("published", "Shown", "public", "normal", "OK")


def test_columns_of_letters_are_told_by_name_and_by_what_they_hold() -> None:
    assert [list_of(n) for n in ("x-conf-status", "my OBS_STATUS", "geo flag", "statusflags")] == [
        "confidentiality",
        "observation",
        "flags",
        "flags",
    ]
    assert list_of("flag_text") is list_of("conf_status_x") is None
    assert [
        is_truth(n) for n in ("Suppressed", "is_hidden", "IS_SECRET", "status", "is_status")
    ] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert [
        is_letter(t) for t in ("", "A", "bp", "ok", "TRUE", "no", "withheld", "abc", "123")
    ] == [
        *[True] * 7,
        False,
        False,
    ]


def test_letters_are_judged_beside_numbers_only_and_rows_are_named() -> None:
    letters = ["F", "A", "A", "?", "?", "!"]
    numbers = [True, True, False, True, False, False]
    rows, doubt = judged("conf_status", letters, numbers)
    assert rows == (1,)
    assert "'?'" in doubt
    assert "'!'" not in doubt
    assert "--status-codes" not in doubt, "the list is known"
    rows, doubt = judged("status", letters, numbers)
    assert rows == ()
    assert "'A', '?'" in doubt
    assert "--status-codes" in doubt
    assert judged("status", letters, numbers, "confidentiality")[0] == (1,)
    assert judged(None, letters, numbers) == ((), "")
    assert judged("status", list("FFFFFF"), numbers) == ((), "")
    many = judged("status", list("abcdef"), [True] * 6)[1]
    assert "'e', ..." in many
    assert "'f'" not in many
    assert ", ..." not in judged("status", list("abcde"), [True] * 5)[1]


# Levels.


def levels(
    true: str,
    public: str = "a,value,status\n1,,A\n2,,D\n3,,A\nTotal,30,F\n",
    default: str = "",
    rounded: bool = False,
) -> dict[str, tuple[int, int, int]]:
    release = released(table_of_csv(public, "p.csv"))
    found = protection_of(
        table_of_csv(true, "t.csv"), release, default_level(default) if default else None, rounded=rounded
    )  # fmt: skip
    return {
        ",".join(a.codes[i] for a, i in zip(release.axes, at, strict=True)): (
            int(found.true[at]),
            int(found.low[at]),
            int(found.high[at]),
        )
        for at in zip(*found.needed.nonzero(), strict=True)
    }  # fmt: skip


TRUE = "a,value,lower,upper\n1,4,1,\n2,10,,\n3,16,,2\nTotal,30,9,9\n"


@pytest.mark.parametrize(
    ("default", "expected"),
    [
        # A cell with one level of its own is asked for that; the default fills the other one.
        ("", {"1": (4, 3, 4), "3": (16, 16, 18)}),
        ("5", {"1": (4, 3, 9), "3": (16, 11, 18)}),
        ("50%", {"1": (4, 3, 6), "3": (16, 8, 18)}),
        ("10%", {"1": (4, 3, 5), "3": (16, 14, 18)}),
    ],
)
def test_levels_are_those_of_the_file_and_the_default_for_hidden_cells(
    default: str, expected: dict[str, tuple[int, int, int]]
) -> None:
    assert levels(TRUE, default=default) == expected


def test_levels_of_rounded_cells_hold_for_all_and_secondary_cells_only_have_their_own() -> None:
    true = "a,value,lower\n1,4,\n2,10,3\nTotal,14,\n"
    public = "a,value,status\n1,,D\n2,,D\nTotal,15,F\n"
    assert levels(true, public, "2") == {"2": (10, 7, 12)}
    everything = "a,value\n1,5\n2,10\nTotal,15\n"
    assert levels(true, everything, "2", rounded=True) == {
        "1": (4, 2, 6),
        "2": (10, 7, 12),
        "Total": (14, 12, 16),
    }
    assert levels(true, everything, rounded=True) == {"2": (10, 7, 10)}


def test_levels_are_never_narrower_in_the_units_of_the_published_table() -> None:
    """A true value of 4.5 with a level of 1 must stay open from 3.5 to 5.5, in whole numbers 3 to 6."""
    true = "b,a,value,lower,upper\nx,1,4.5,1,1\nx,2,-2.25,0.5,0.5\n"
    public = "a,b,value,status\n1,x,,A\n2,x,,A\n"
    assert levels(true, public) == {"1,x": (4, 3, 6), "2,x": (-2, -3, -1)}
    tenths = "a,b,value,status\n1,x,,A\n2,x,,A\n3,x,0.1,F\n"
    assert levels(true, tenths) == {"1,x": (45, 35, 55), "2,x": (-22, -28, -17)}
    assert levels("a,value\n1,-7\n", "a,value,status\n1,,A\n", "10%") == {"1": (-7, -8, -6)}


def test_levels_as_large_as_can_be_exact_are_kept_and_larger_ones_refused() -> None:
    public, most = "a,value,status\n1,,A\n2,0.1,F\n", 2**53
    assert levels("a,value\n1,10100\n", public, "10%") == {"1": (101000, 90900, 111100)}
    for column, ends in (("lower", (0, -most, 0)), ("upper", (0, 0, most))):
        exact = f"a,value,{column}\n1,0,900719925474099.2\n"
        assert levels(exact, public) == {"1": ends}
        with pytest.raises(InputError, match="more digits than can be computed with exactly"):
            levels(exact.replace("99.2", "99.3"), public)


@pytest.mark.parametrize(
    "words", ["", "%", "x", "-1", "nan", "inf", "1e400", "1_0", "10%%", "1e15"]
)
def test_a_level_that_is_no_number_is_refused(words: str) -> None:
    with pytest.raises(InputError, match="is a percentage such as 10% or a number"):
        default_level(words)
    assert default_level(" 7.5% ") == (Decimal("7.5"), True)
    assert default_level("0") == (Decimal(0), False)


@pytest.mark.parametrize(
    ("true", "default", "sentence"),
    [
        ("a,value\n1,4\n", "1", "t.csv: a cell that needs protection has no true value"),
        ("a,value\n1,4\n2,5\n3,\n", "1", "t.csv: a cell that needs protection has no true value"),
        ("b,value\n1,4\n", "1", "t.csv: the variables are b; those of the published table are a"),
        ("a,value,upper\n1,4,900000000000000.0001\n", "", "more digits than can be computed with"),
        ("a,value,lower\n1,4,-0.5\n", "", "t.csv, line 2: the level 'lower'"),
        ("a,value,upper\n1,4,1\n2,5,ten\n", "", "t.csv, line 3: the level 'upper'"),
        ("a,value,upper\n1,4,1e15\n", "", "t.csv, line 2: the level 'upper'"),
    ],
)
def test_levels_that_cannot_be_used_are_one_sentence(
    true: str, default: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as refused:
        levels(
            true,
            "a,value,status\n1,,A\n3,,A\nTotal,9.00001,F\n",
            default,
        )
    assert "900000" not in str(refused.value)


# Numbers as they are printed.


@pytest.mark.parametrize(
    "text",
    [
        *("12 1", "1 234 2", "1 23", "12'3", "1 2345", "1234 567", "12'345 678", "1'234 5", "1\u2009 234"),
        *("1,234.5,6", "1,23,4", ",123,456", "1,,234", "12,34", "1.5 000", "1.234.5", "1,234,56"),
        *("1e100", "1e-100", "5.", "5,", "--12", "+-12", "(-5)", "(5) p", "-€5", "5p c", "1/2", "½", "1..5"),
        *("12 %", "5 pcs", "12 3p", "12[12345]", "1_000", "0x12", "5.-", "(12", "12)", '="12', "€"),
        *("-", ".", ","),
    ],
)  # fmt: skip
def test_a_text_that_could_be_another_number_is_none(text: str) -> None:
    assert printed(text, Style()) is None


@pytest.mark.parametrize(
    ("text", "decimal", "value", "mark", "bracketed"),
    [
        ("1.234,5", ",", "1234.5", "", False),
        ("1 234,5", ",", "1234.5", "", False),
        ("12'345'678.90", ".", "12345678.90", "", False),
        ("1\u02bc234", ".", "1234", "", False),
        (",25", ",", "0.25", "", False),
        ("-.5", ".", "-0.5", "", False),
        ("+7", ".", "7", "", False),
        ("1.5e3", ".", "1500", "", False),
        ("2E-02", ".", "0.02", "", False),
        ("( 1 234 )", ".", "-1234", "", True),
        ("12 -", ".", "-12", "", False),
        ("\u20135", ".", "-5", "", False),
        ("£ 12 ", ".", "12", "", False),
        ("\t12\u00a0", ".", "12", "", False),
        ("12 (a)", ".", "12", "(a)", False),
        ("12[abcd]", ".", "12", "[abcd]", False),
        ("12 bc", ".", "12", "bc", False),
        ("12***", ".", "12", "***", False),
        ("12\u00b9", ".", "12", "\u00b9", False),
        ('="-5"', ".", "-5", "", False),
    ],
)
def test_a_number_is_read_with_its_sign_mark_and_brackets(
    text: str, decimal: str, value: str, mark: str, bracketed: bool
) -> None:
    found = printed(text, Style(decimal))
    assert found is not None
    assert (found.value, found.mark, found.bracketed) == (Decimal(value), mark, bracketed)


@pytest.mark.parametrize(
    ("texts", "thousands", "delimiter", "decimal", "doubt"),
    [
        # Said: one sign separates thousands, so the other one decimals; or neither does.
        (["1,444"], ",", ";", ".", ""),
        (["1,444"], ".", ";", ",", ""),
        (["1,444"], "none", ",", ",", ""),
        (["1.444"], "none", ",", ".", ""),
        (["1,444"], "space", ",", ",", ""),
        (["12"], "none", ",", ".", ""),
        (["1.5", "1,5"], "'", ";", ".", "points and commas"),
        # Found: the last sign of a number that has both.
        (["1,234.5", "1.234,5"], None, ";", ".", "points and commas"),
        (["1.234,5", "17,5", "1.234"], None, ";", ",", ""),
        (["1,234", "12.5"], None, ";", ".", ""),
        (["1.234", "12,5"], None, ";", ",", ""),
        (["1,234", "1.234"], None, ";", ".", "points and commas"),
        (["1,234", "12,5", "1.5"], None, ";", ".", "points and commas"),
        # Only one sign occurs.
        (["1,234,567"], None, ";", ".", ""),
        (["1.234.567", "1.234"], None, ";", ",", ""),
        ([], None, ";", ".", ""),
        (["0,123"], None, ";", ",", ""),
        (["1,234", "1234"], None, ";", ",", ""),
        (["1,234", "123"], None, ";", ".", "commas"),
        (["1,234", "123"], None, ",", ".", ""),
        (["1.234"], None, ";", ".", ""),
        (["1.234"], None, ",", ".", ""),
        (["1.234", "2.345"], None, ",", ",", "points"),
        (["12,5", "1,234"], None, ",", ",", ""),
        (["x", "..", "12"], None, ";", ".", ""),
    ],
)
def test_what_separates_decimals_is_said_or_shown_by_the_column_or_asked(
    texts: list[str], thousands: str | None, delimiter: str, decimal: str, doubt: str
) -> None:
    assert style_of(texts, delimiter, thousands) == Style(decimal, doubt)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((t, t) for t in ("12", "-0.5", "+3", "1e3", "999999999999999.9", "0", "1e-99")),
        *((t, None) for t in ("", "x", "nan", "sNaN", "inf", "1e15", "-1e15", "1_0", "1,5", "1e-100")),
    ],
)  # fmt: skip
def test_a_number_of_a_program_is_finite_and_below_a_thousand_million_million(
    text: str, value: str | None
) -> None:
    assert plain_number(text) == (None if value is None else Decimal(value))


@pytest.mark.parametrize(
    ("values", "expected", "places"),
    [
        (["0.1", "0.30000000000000004"], ["0.1", "0.3"], 1),
        (["5", "2.99999999999999"], ["5", "3"], 0),
        (["5", None, "2.99999999999999"], ["5", None, "3"], 0),
        (["0.1", "0.3000000001"], ["0.1", "0.3000000001"], None),
        (["0.1", "0.30000000000002"], ["0.1", "0.30000000000002"], None),
        (["0.123456789", "0.1"], ["0.123456789", "0.1"], None),
        (["0.1234567890123"], ["0.1234567890123"], None),
        (["0.1", "0.30000000000001"], ["0.1", "0.3"], 1),
        (["0.25", "0.5", "0.26000000000000004"], ["0.25", "0.5", "0.26"], 2),
        # Far less than a unit of the last digit, whatever the largest number.
        (["1000000000000", "5.0050000000001"], ["1000000000000", "5.0050000000001"], None),
        (["1000000000000", "5.00150000001"], ["1000000000000", "5.00150000001"], None),
        (["1000000000000", "5.00099950001"], ["1000000000000", "5"], 0),
        # The last bits of a large number are larger.
        (["1000", "0.3000000000001"], ["1000", "0.3000000000001"], None),
        (["1000.1", "0.30000000002"], ["1000.1", "0.30000000002"], None),
        (["1000.1", "0.300000000009"], ["1000.1", "0.3"], 1),
        (["100000.1", "0.3000000001"], ["100000.1", "0.3"], 1),
        (["10000000000000", "0.0999"], ["10000000000000", "0.0999"], None),
        ([None, None], [None, None], None),
    ],
)
def test_only_tails_of_binary_floats_are_cut(
    values: list[str | None], expected: list[str | None], places: int | None
) -> None:
    def numbers(texts: list[str | None]) -> list[Decimal | None]:
        return [None if t is None else Decimal(t) for t in texts]

    assert without_tails(numbers(values)) == (numbers(expected), places)


def test_decimals_are_counted_without_zeros_at_the_end() -> None:
    counts = [("12", 0), ("12.0", 0), ("12.50", 1), ("1e3", 0), ("0.001", 3), ("0.000", 0)]
    counts += [("0." + "1" * 40, 40), ("123456789." + "0" * 30 + "1", 31)]
    assert [(t, decimals_of(Decimal(t))) for t, _ in counts] == counts
    assert decimals_of(None) == 0


# Symbols that state values.


@pytest.mark.parametrize(
    ("word", "whole", "signed", "expected"),
    [
        ("<5", True, False, (0, 4)),
        ("<5", False, False, (0, 5)),
        ("<5", True, True, (None, 4)),
        ("<2.5", True, False, (0, Decimal("2.5"))),
        ("<=5", False, True, (None, 5)),
        ("≤5", True, False, (0, 5)),
        (">5", True, False, (6, None)),
        (">5", False, False, (5, None)),
        (">2.5", True, True, (Decimal("2.5"), None)),
        (">= 5", True, False, (5, None)),
        ("≥5", True, False, (5, None)),
        ("10-19", True, False, (10, 19)),
        ("10 to 19", True, False, (10, 19)),
        ("5-5", True, False, (5, 5)),
        ("19-10", True, False, None),
        ("<x", True, False, None),
        ("5", True, False, None),
    ],
)
def test_a_symbol_states_what_values_of_its_column_can_be(
    word: str, whole: bool, signed: bool, expected: Any
) -> None:
    assert bound_of_words(word, whole=whole, signed=signed) == expected


def test_two_statements_about_a_value_hold_together_or_not_at_all() -> None:
    d = Decimal
    assert both((None, None), (None, None)) == (None, None)
    assert both((None, None), (None, d(4))) == (None, 4)
    assert both((d(1), None), (None, None)) == (1, None)
    assert both((d(1), None), (None, d(4))) == (1, 4)
    assert both((d(1), d(9)), (d(3), d(4))) == (3, 4)
    assert both((d(1), d(4)), (d(4), None)) == (4, 4)
    assert both((d(1), d(4)), (d(5), None)) is None


def test_what_the_user_says_about_symbols_and_letters() -> None:
    found = said_symbols([" X ", "low=..4", "a=b=7", "k=-3..-1", "m=..", "<5", "x=y", "half=0.5"])
    assert found == {
        "x": (None, None),
        "low": (None, 4),
        "a=b": (7, 7),
        "k": (-3, -1),
        "m=..": (None, None),
        "<5": (0, 4),
        "x=y": (None, None),
        "half": (Decimal("0.5"), Decimal("0.5")),
    }
    letters = said_letters(["A=shown", "N=hidden", "c=1..", "d=..4", "()=shown"])
    assert letters == {
        "A": "shown",
        "N": "hidden",
        "c": (1, None),
        "d": (None, 4),
        "()": "shown",
    }
    assert said_symbols(["x=4..4"])["x"] == (4, 4)
    with pytest.raises(InputError, match="lower end above"):
        said_letters(["A=4..3"])


# Values and the letters beside them.


def test_symbols_hide_and_others_are_asked_about() -> None:
    hidden = ["x", "C", "..", ":", "*", "**", "(D)", "np", "..c", ":c", ": c", "#N/A", "null", ""]
    for symbol in hidden:
        found = read(f"a,value\nTotal,9\n1,{symbol}\n2,4\n3,3\n")
        assert found.values["value"][1] is None, symbol
        assert not found.doubts, symbol
        assert found.bounds["value"] == ((None, None),) * 4
    for symbol in ("-", "–", "—", "−"):
        found = read(f"a,value\nTotal,9\n1,{symbol}\n2,4\n3,3\n")
        assert found.values["value"][1] is None
        assert said_once(found, "could be 0 or hide a value")
        assert len(found.doubts) == 1
        assert found.maybe_zero["value"] == (1,)
    for symbol in ("low", "%", "1e999", "12 1", "9" * 16, "1" + "0" * 15):
        found = read(f"a,value\nTotal,9\n1,{symbol}\n2,4\n3,3\n")
        assert found.values["value"][1] is None
        assert said_once(found, f"nobody said what {symbol!r}")
        assert len(found.doubts) == 1
        assert found.maybe_zero["value"] == ()


@pytest.mark.parametrize(
    ("others", "said", "expected"),
    [
        ("4", {}, (0, 4)),
        ("0", {}, (0, 4)),
        ("4.5", {}, (0, 5)),
        ("-4", {}, (None, 4)),
        ("4", {"signed": True}, (None, 4)),
        ("4.5", {"symbols": said_symbols(["<5"])}, (0, 5)),
        ("4.5", {"symbols": said_symbols(["<5=1..3"])}, (1, 3)),
    ],
)
def test_a_bound_in_place_of_a_value_fits_the_numbers_of_its_column(
    others: str, said: dict[str, Any], expected: Any
) -> None:
    found = read(f"a,value\nTotal,9\n1,<5\n2,{others}\n", **said)
    assert found.bounds["value"] == ((None, None), expected, (None, None))
    assert found.values["value"][1] is None
    assert not found.doubts
    assert any("read as what they state" in note for note in found.notes) == ("symbols" not in said)


def test_a_symbol_that_is_one_number_is_that_number() -> None:
    found = read("a,value\nTotal,9\n1,-\n2,9\n", symbols=said_symbols(["-=0"]))
    assert found.values["value"] == (9, 0, 9)
    assert found.bounds["value"][1] == (None, None)
    found = read("a,value\nTotal,9\n1,k\n2,3\n", symbols=said_symbols(["k=1..6"]))
    assert found.values["value"] == (9, None, 3)
    assert found.bounds["value"][1] == (1, 6)


def test_shares_in_place_of_values_and_a_column_of_shares() -> None:
    found = read("a,value\nTotal,200\n1,12%\n2,x\n")
    assert found.values["value"] == (200, None, None)
    assert said_once(found, "holds shares in place of values")
    settled = read(
        "a,value\nTotal,200\n1,12%\n2,x\n", formulas=("value% = 100 * value / value[Total]",)
    )
    assert not settled.doubts
    assert [fact.terms[1][2] for fact in settled.facts] == [Fraction(-23, 2), Fraction(-25, 2)]
    with pytest.raises(InputError, match="speaks of the column 'value%'"):
        read("a,value\nTotal,200\n1,12\n2,x\n", formulas=("value% = 100 * value / value[Total]",))
    assert read("a,value\nTotal,100%\n1,12 %\n2,88%\n").values["value"] == (100, 12, 88)
    whole = read("a,value\nTotal,100%\n1,12 %\n2,x\n")
    assert whole.values["value"] == (100, 12, None)
    assert not whole.doubts


def test_brackets_are_a_minus_until_somebody_says_that_they_are_a_mark() -> None:
    text = "a,value\nTotal,9\n1,(4)\n2,13\n"
    found = read(text)
    assert found.values["value"] == (9, -4, 13)
    assert found.bracketed["value"] == (1,)
    assert read(text, signed=True).bracketed["value"] == ()
    mark = read(text, letters={"()": "shown"})
    assert mark.values["value"] == (9, 4, 13)
    assert mark.bracketed["value"] == ()
    hidden = read(text, letters={"()": "hidden"})
    assert hidden.values["value"] == (9, 4, 13)
    assert hidden.standing["value"] == (1,), "a number that stands in the file is known"


def test_decimals_that_are_asked_for_round_half_to_even() -> None:
    found = read("a,value\nTotal,9.25\n1,4.15\n2,x\n", decimals=1)
    assert found.values["value"] == (Decimal("9.2"), Decimal("4.2"), None)
    many = read("a,value\nTotal,123456789012345.25\n1,4\n2,x\n", decimals=20)
    assert many.values["value"] == (Decimal("123456789012345.25"), 4, None)
    note = read("a,value\nTotal,9.5\n1,4.30000000000001\n2,x\n").notes
    assert any("rounded to 1 decimal." in n for n in note)
    note = read("a,value\nTotal,9\n1,4.00000000000001\n2,x\n").notes
    assert any("rounded to 0 decimals." in n for n in note)


LETTERS = "a,value,status\nTotal,9,{0}\n1,{2},{1}\n2,{3},{1}\n3,{4},\n"


@pytest.mark.parametrize(
    ("letter", "numbers", "letters", "values", "standing", "doubts"),
    [
        # A number beside a letter of hidden is known, whatever the letter.
        ("A", "4,3,2", {"A": "hidden"}, (9, 4, 3, 2), (1, 2), 0),
        ("A", "4,,2", {"A": "hidden"}, (9, 4, None, 2), (1,), 0),
        ("A", "4,3,2", {"A": "shown"}, (9, 4, 3, 2), (), 0),
        ("A", "4,,2", {"A": "shown"}, (9, 4, None, 2), (), 0),
        ("A", "4,3,2", {}, (9, 4, 3, 2), (), 1),
        ("A", ",,2", {}, (9, None, None, 2), (), 0),
        ("confidential", "4,3,2", {}, (9, 4, 3, 2), (1, 2), 0),
        ("not confidential", "4,3,2", {}, (9, 4, 3, 2), (), 1),
        # Zeros only fill the field, unless one of the numbers is none.
        ("A", "0,0,2", {"A": "hidden"}, (9, None, None, 2), (), 0),
        ("A", "0,3,2", {"A": "hidden"}, (9, 0, 3, 2), (1, 2), 0),
        ("A", "0,,2", {"A": "hidden"}, (9, None, None, 2), (), 0),
        ("A", "0,0,2", {"A": (Decimal(1), Decimal(4))}, (9, None, None, 2), (), 0),
        ("A", "0,0,2", {"A": "shown"}, (9, 0, 0, 2), (), 0),
        ("A", "0,0,2", {}, (9, None, None, 2), (), 1),
        ("A", "0,,2", {}, (9, 0, None, 2), (), 1),
        ("A", "0,5,2", {}, (9, 0, 5, 2), (), 1),
        # A letter that is a number fills blanks.
        ("z", ",,2", {"z": (Decimal(0), Decimal(0))}, (9, 0, 0, 2), (), 0),
        ("z", "5,,2", {"z": (Decimal(0), Decimal(0))}, (9, 5, 0, 2), (1,), 0),
        ("z", ",,2", {"z": (Decimal(1), Decimal(4))}, (9, None, None, 2), (), 0),
        ("z", ",,2", {"z": (Decimal(1), None)}, (9, None, None, 2), (), 0),
        ("z", ",,2", {"z": (None, Decimal(4))}, (9, None, None, 2), (), 0),
        ("z", ",,2", {}, (9, None, None, 2), (), 1),
        ("n/a", ",,2", {}, (9, None, None, 2), (), 1),
        ("y", ",,2", {}, (9, None, None, 2), (), 0),
    ],
)
def test_letters_beside_numbers(
    letter: str, numbers: str, letters: Any, values: Any, standing: Any, doubts: int
) -> None:
    found = read(LETTERS.format("", letter, *numbers.split(",")), letters=letters)
    assert found.values["value"] == values
    assert found.standing["value"] == standing
    assert len(found.doubts) == doubts
    zeros = (1, 2) if letter in ("z", "n/a") and doubts else ()
    assert found.maybe_zero["value"] == zeros
    if isinstance(letters.get(letter), tuple) and None in values:
        assert found.bounds["value"][1] == letters[letter]
    assert any("is no value" in note for note in found.notes) == (
        None in values and "0" in numbers.split(",") and values[1] is None
    )


def test_a_letter_and_the_field_beside_it_are_taken_together() -> None:
    text = "a,value,status\nTotal,9,\n1,{},{}\n2,4,\n"
    wide = {"a": (Decimal(0), Decimal(19))}
    assert read(text.format("<5", "a"), letters=wide).bounds["value"][1] == (0, 4)
    assert read(text.format("", "a"), letters=wide).bounds["value"][1] == (0, 19)
    with pytest.raises(NotJudgedError, match=r"x\.csv, line 3: what stands in the column 'value'"):
        read(text.format(">=20", "a"), letters=wide)
    # Marks behind a symbol, as Eurostat writes them.
    for bound in (wide["a"], (Decimal(1), None), (None, Decimal(4))):
        marked = read(text.format(": a", ""), letters={"a": bound})
        assert (marked.bounds["value"][1], marked.values["value"][1]) == (bound, None)
    assert read(text.format(": z", ""), letters=said_letters(["z=0"])).values["value"][1] == 0
    assert said_once(read(text.format(": z", "")), "nobody said what 'z' behind numbers")
    assert not read(text.format(": b", "")).doubts


def test_marks_behind_numbers_are_remarks_or_asked_about() -> None:
    text = "a,value\nTotal,9\n1,5{}\n2,4\n"
    assert not read(text.format("p")).doubts
    assert not read(text.format(" bd")).doubts
    assert said_once(read(text.format(" pc")), "nobody said what 'pc' behind numbers")
    assert said_once(read(text.format("*")), "--status '*=shown'")
    assert not read(text.format("*"), letters={"*": "shown"}).doubts
    hidden = read(text.format("*"), letters={"*": "hidden"})
    assert (hidden.values["value"], hidden.standing["value"]) == ((9, 5, 4), (1,))
    assert not hidden.doubts


def test_a_column_of_yes_and_no_says_which_numbers_are_hidden() -> None:
    for yes, no in (("true", "false"), ("Yes", "No"), ("1", "0")):
        found = read(f"a,value,is_suppressed\nTotal,9,{no}\n1,5,{yes}\n2,4,{no}\n")
        assert found.standing["value"] == (1,), yes
        assert not found.doubts
        hidden = read(f"a,value,is_suppressed\nTotal,9,{no}\n1,0,{yes}\n2,4,{no}\n")
        assert hidden.values["value"] == (9, None, 4)
    assert read("a,value,suppressed\nTotal,9,0\n1,5,2\n2,4,0\n").doubts


def test_values_with_the_letter_k_count_as_nothing_only_where_others_hold_them() -> None:
    text = "a,value,OBS_STATUS\nTotal,9,A\n1,,K\n2,4,{}\n"
    found = read(text.format("W"))
    assert found.values["value"] == (9, 0, 4)
    assert any("letter K" in note for note in found.notes)
    assert read(text.format("A")).values["value"] == (9, None, 4)
    assert read("a,value,OBS_STATUS\nTotal,9,A\n1,5,K\n2,4,W\n").values["value"] == (9, 5, 4)
    assert read("a,value,status\nTotal,9,\n1,,K\n2,4,W\n").values["value"][1] is None
    assert read("a,value,OBS_STATUS\nTotal,9,A\n1,5,A\n2,4,W\n").notes == ()


@pytest.mark.parametrize(
    ("column", "said", "expected"),
    [
        ("CONF_STATUS", {"threshold": 3}, [(1, 2), (3, None), (None, None)]),
        ("status", {"threshold": 4}, [(1, 3), (4, None), (None, None)]),
        ("CONF_STATUS", {"threshold": 3, "zeros_shown": True}, [(1, 2), (3, None), (1, None)]),
        ("CONF_STATUS", {"zeros_shown": True}, [(1, None)] * 3),
        ("CONF_STATUS", {}, [(None, None)] * 3),
        # A is a normal value in another list, and gives no reason there.
        ("OBS_STATUS", {"threshold": 3}, [(None, None)] * 3),
        ("OBS_FLAG", {"threshold": 3, "zeros_shown": True}, [(1, None)] * 3),
    ],
)
def test_a_known_rule_bounds_hidden_counts_by_their_letters(
    column: str, said: dict[str, Any], expected: Any
) -> None:
    found = read(f"a,value,{column}\nTotal,9,F\n1,,A\n2,,D\n3,,N\n", **said)
    assert list(found.bounds["value"][1:]) == expected
    assert found.bounds["value"][0] == (None, None)


def test_blanks_are_asked_about_only_beside_another_sign_and_without_a_letter() -> None:
    def asked(text: str, **said: Any) -> tuple[int, ...]:
        found = read(text, **said)
        assert bool(found.maybe_zero["value"]) == any("blanks" in d for d in found.doubts)
        return found.maybe_zero["value"]

    assert asked("a,value\nTotal,9\n1,\n2,x\n3,4\n") == (1,)
    assert asked("a,value\nTotal,9\n1,\n2,low\n3,4\n") == (1,)
    assert asked("a,value\nTotal,9\n1,\n2,4\n3,4\n") == ()
    assert asked("a,value,status\nTotal,9,F\n1,,A\n2,x,A\n3,4,F\n") == ()
    assert asked("a,value,status\nTotal,9,F\n1,,\n2,,A\n3,4,F\n") == (1,)
    assert asked("a,value\nTotal,9\n1,\n2,x\n3,4\n", symbols=said_symbols([""])) == ()
    assert (
        read("a,value\nTotal,9\n1,\n2,x\n3,4\n", symbols=said_symbols(["=0"])).values["value"][1]
        == 0
    )


def test_doubts_list_the_first_signs_and_say_what_settles_them() -> None:
    odd = ["[a]", "[b]", "[d]", "[e]", "[f]", "[g]"]
    for count, more in ((5, False), (6, True)):
        lines = "".join(f"{i},{symbol}\n" for i, symbol in enumerate(odd[:count]))
        (doubt,) = read(f"a,value\nTotal,9\n{lines}9,4\n").doubts
        assert "'[f]'" in doubt
        assert ("'[f]', ..." in doubt) == more
        assert "'[g]'" not in doubt
    text = "a,value,{}\nTotal,9,\n1,5,?\n"
    (plain,) = read(text.format("status")).doubts
    assert "--status-codes confidentiality" in plain
    (listed,) = read(text.format("CONF_STATUS")).doubts
    assert "--status-codes" not in listed
    assert "--status ?=shown" in listed
    # A symbol that looks like a number says nothing about what separates decimals.
    said = {"symbols": said_symbols(["9.9X"])}
    assert said_once(read("a;value\nTotal;1,234\n1;9.9X\n2;274\n", **said), "--thousands")
    assert not read("a;value\nTotal;1,234\n1;9.9p\n2;274\n").doubts
    assert read("a,value\nTotal,9\n1,999999999999999\n2,4\n").values["value"][1] == 10**15 - 1
