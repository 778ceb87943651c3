"""The values of a published file: numbers, symbols in their place, and what letters beside them say.

A number that stands in the file is published, whatever its letter. A symbol hides a value; it may state an
interval. What a reader cannot know becomes a doubt with the option that settles it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal

from lustrum.model.errors import NotJudgedError
from lustrum.readers.published.number_text import (
    decimals_of,
    printed,
    style_of,
    without_tails,
)
from lustrum.readers.published.reading import (
    UNKNOWN,
    Bound,
    Letter,
    Reading,
    both,
    bound_of_words,
)
from lustrum.readers.rows import Rows
from lustrum.readers.status_letters import (
    Meaning,
    StatusList,
    is_truth,
    list_of,
    meaning,
)

Number = Decimal | None

HIDDEN_SYMBOLS = frozenset(
    {
        "x",
        "c",
        "s",
        "..",
        "...",
        ".",
        ":",
        "*",
        "**",
        "(x)",
        "(c)",
        "#",
        "na",
        "n.a.",
        "nan",
        "null",
    }
)
"""What stands for a value that is not published, in small letters."""

_MORE_SYMBOLS = frozenset({"(d)", "(s)", "[c]", "np", "nd", "..c", ":c", ": c", "#n/a"})
_DASHES = frozenset({"-", "–", "—", "−"})
_REMARKS = frozenset("bdefiprsuv")  # letters behind a figure that leave it as it is
_MAYBE_ZERO = frozenset({"z", "-", "n/a", "nil"})
_TRUTH: dict[str, Letter] = {
    **dict.fromkeys(("true", "yes", "1"), "hidden"),
    **dict.fromkeys(("false", "no", "0"), "shown"),
}
_MOST = 10**15
_EXACTLY = Context(prec=1000, rounding=ROUND_HALF_EVEN)
BRACKETS = "()"
"""What ``--status`` calls brackets around numbers that are a mark and no minus."""


@dataclass(frozen=True)
class PublishedColumn:
    """One column of values, with the interval that a symbol or letter states for each hidden one.

    ``standing`` are rows whose number stands though a letter says hidden; ``shares`` are numbers with a
    per cent sign in place of a value; ``maybe_zero`` are rows whose sign could be a published 0;
    ``bracketed`` are rows whose number is negative if its brackets mean that.
    """

    values: tuple[Number, ...]
    bounds: tuple[Bound, ...]
    standing: tuple[int, ...] = ()
    shares: tuple[Number, ...] | None = None
    maybe_zero: tuple[int, ...] = ()
    bracketed: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass
class _ValueColumn:
    rows: Rows
    name: str
    reading: Reading
    values: list[Number]
    bounds: list[Bound]
    symbols: list[str | None]
    marks: list[str]
    shares: list[Number]
    maybe_zero: set[int] = field(default_factory=set)
    bracketed: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def is_numeric(rows: Rows, name: str, reading: Reading) -> tuple[int, int]:
    """How many numbers a column holds, and how many symbols for hidden values; (0, 0) if it holds words."""
    texts = rows.columns[name]
    style = style_of(texts, rows.delimiter, reading.thousands)
    numbers = symbols = 0
    for text in texts:
        if text.lower() in reading.symbols:
            symbols += 1
        elif printed(text.removesuffix("%"), style) is not None:
            numbers += 1
        elif bound_of_words(text) is not None or len(text) <= 5:
            symbols += 1
        else:
            return 0, 0
    return numbers, symbols


def published_column(
    rows: Rows,
    name: str,
    reading: Reading,
    status: str | None,
    stated: StatusList | None = None,
) -> PublishedColumn:
    """Read one column of values with the column of its letters."""
    value_column = _read(rows, name, reading)
    letters = list(rows.columns[status]) if status else [""] * len(rows)
    stated = stated or (list_of(status) if status else None)
    _clean(value_column)
    standing = _judge_letters(value_column, letters, status, stated)
    _judge_marks(value_column, standing)
    _judge_blanks(value_column, letters)
    _apply_rule(value_column, letters, stated)
    return PublishedColumn(
        tuple(value_column.values),
        tuple(value_column.bounds),
        tuple(sorted(standing)),
        tuple(value_column.shares) if any(s is not None for s in value_column.shares) else None,
        tuple(sorted(value_column.maybe_zero)),
        tuple(value_column.bracketed),
        tuple(value_column.notes),
        tuple(value_column.doubts),
    )


def _read(rows: Rows, name: str, reading: Reading) -> _ValueColumn:
    texts = list(rows.columns[name])
    known = HIDDEN_SYMBOLS | _MORE_SYMBOLS | {""}
    if any("%" in t for t in texts) and all("%" in t for t in texts if re.search(r"\d", t)):
        texts = [text.removesuffix("%").strip() for text in texts]  # one unit throughout
    style = style_of(
        (t for t in texts if t.lower() not in reading.symbols), rows.delimiter, reading.thousands
    )
    size = len(texts)
    value_column = _ValueColumn(
        rows, name, reading, [None] * size, [UNKNOWN] * size, [None] * size, [""] * size, [None] * size
    )  # fmt: skip
    if style.doubt:
        value_column.doubts.append(
            f"the {style.doubt} in the column {name!r} could separate thousands or decimals; say "
            f"--thousands , or "
            "--thousands . or --thousands none."
        )
    odd: dict[str, None] = {}
    stated: dict[str, None] = {}
    for row, text in enumerate(texts):
        key = text.lower()
        if key in reading.symbols:
            bound = reading.symbols[key]
            if bound[0] is not None and bound[0] == bound[1]:
                value_column.values[row] = bound[0]
            else:
                value_column.bounds[row], value_column.symbols[row] = bound, key
            continue
        if key in known:
            value_column.symbols[row] = key
            continue
        number = printed(text, style)
        if number is not None and abs(number.value) < _MOST:
            value_column.values[row], value_column.marks[row] = number.value, number.mark
            if number.bracketed and BRACKETS in reading.letters:
                value_column.values[row], value_column.marks[row] = -number.value, BRACKETS
            elif number.bracketed and not reading.signed:
                value_column.bracketed.append(row)
            continue
        value_column.symbols[row] = key
        stated_bound = bound_of_words(text)
        share = printed(text[:-1], style) if text.endswith("%") else None
        if stated_bound is not None:
            value_column.bounds[row] = stated_bound
            stated[text] = None
        elif share is not None:
            value_column.shares[row] = share.value
        elif re.fullmatch(r"(:|\.\.+)\s*[a-z]", key):
            value_column.marks[row] = key[-1]
        else:
            odd[text] = None
            if text in _DASHES:
                value_column.maybe_zero.add(row)
    whole = not any(decimals_of(value) for value in value_column.values)
    signed = reading.signed or any(value is not None and value < 0 for value in value_column.values)
    for row, text in enumerate(texts):
        stated_bound = bound_of_words(text)
        if stated_bound is not None and value_column.bounds[row] == stated_bound:
            value_column.bounds[row] = (
                bound_of_words(text, whole=whole, signed=signed) or stated_bound
            )
    if stated:
        value_column.notes.append(
            f"{_listed(stated)} in the column {name!r} are read as what they state."
        )
    dashes = [symbol for symbol in odd if symbol in _DASHES]
    if dashes:
        value_column.doubts.append(
            f"{_listed(dashes)} in the column {name!r} could be 0 or hide a value; say --hidden "
            f"'{dashes[0]}=0' or "
            f"--hidden {dashes[0]}."
        )
    other = [symbol for symbol in odd if symbol not in _DASHES]
    if other:
        value_column.doubts.append(
            f"nobody said what {_listed(other)} in the column {name!r} stands for; say --hidden "
            f"'{other[0]}', or "
            f"--hidden '{other[0]}=1..4' if it states which values are possible."
        )
    if any(s is not None for s in value_column.shares):
        value_column.doubts.append(
            f"the column {name!r} holds shares in place of values; say what they are shares of, such "
            f"as --formula "
            f"'{name}% = 100 * {name} / {name}[Total]'."
        )
    return value_column


def _clean(value_column: _ValueColumn) -> None:
    """Round to the decimals asked for, or take off the tails of binary floats."""
    asked = value_column.reading.decimals
    if asked is not None:
        step = Decimal(1).scaleb(-asked)
        value_column.values = [
            None if v is None else v.quantize(step, context=_EXACTLY) for v in value_column.values
        ]
        return
    value_column.values, places = without_tails(value_column.values)
    if places is not None:
        value_column.notes.append(
            f"numbers in the column {value_column.name!r} with the tails of binary floats are rounded to "
            f"{places} decimal{'s' * (places != 1)}."
        )


def _judge_letters(
    value_column: _ValueColumn,
    letters: Sequence[str],
    column: str | None,
    stated: StatusList | None,
) -> set[int]:
    """Which numbers stand beside a letter of hidden, and what letters say about hidden values."""
    said = value_column.reading.letters
    standing: set[int] = set()
    unclear: dict[str, None] = {}
    for letter in dict.fromkeys(letters):
        letter_rows = [row for row, text in enumerate(letters) if text == letter]
        numbers = [row for row in letter_rows if value_column.values[row] is not None]
        means = said.get(letter)
        if means is None and column is not None and is_truth(column):
            means = _TRUTH.get(letter.lower())
        blank = [row for row in letter_rows if value_column.values[row] is None]
        if isinstance(means, tuple):
            for row in blank:
                _narrow(value_column, row, means)
                if means[0] is not None and means[0] == means[1]:
                    value_column.values[row] = means[0]
        hides = means == "hidden" or isinstance(means, tuple)
        if means is None and letter:
            kind = meaning(letter, stated)
            if kind is Meaning.HIDDEN:
                standing.update(numbers)
            elif kind is Meaning.UNCLEAR and numbers:
                unclear[letter] = None
                hides = len(numbers) > 1 and not any(value_column.values[row] for row in numbers)
            if kind is Meaning.UNCLEAR and letter.lower() in _MAYBE_ZERO and blank:
                value_column.maybe_zero.update(blank)
                value_column.doubts.append(
                    f"{letter!r} in the column {column!r} could say that a value is 0, or hide it; say "
                    f"--status {letter}=0 or --status {letter}=hidden."
                )
        if hides and numbers:
            # Zeros beside a letter of hidden only fill the field; other numbers are the values themselves.
            if any(value_column.values[row] for row in numbers):
                standing.update(numbers)
                continue
            for row in numbers:
                value_column.values[row], value_column.symbols[row] = None, letter
                if isinstance(means, tuple):
                    _narrow(value_column, row, means)
            value_column.notes.append(
                f"the 0 beside {letter!r} in the column {column!r} is no value."
            )
    if stated == "observation" and "W" in letters:
        moved = [
            row
            for row, text in enumerate(letters)
            if text == "K" and value_column.values[row] is None
        ]
        for row in moved:
            value_column.values[row] = Decimal(0)
        if moved:
            value_column.notes.append(
                "values with the letter K are part of those with the letter W, and count as nothing "
                "of their own."
            )
    if unclear:
        way = (
            "say --status-codes confidentiality or --status-codes observation, or what each letter "
            "means, such as "
            if stated is None
            else "say what each letter means, such as "
        )
        value_column.doubts.append(
            f"numbers stand beside {_listed(unclear)} in the column {column!r}, which could mean that they are "
            f"hidden; {way}--status {next(iter(unclear))}=shown or --status {next(iter(unclear))}=hidden."
        )
    return standing


def _judge_marks(value_column: _ValueColumn, standing: set[int]) -> None:
    """Marks behind numbers: remarks leave a number as it is, unknown ones are a doubt."""
    said = value_column.reading.letters
    odd: dict[str, None] = {}
    for row, mark in enumerate(value_column.marks):
        if not mark:
            continue
        means = said.get(mark)
        if value_column.values[row] is None:
            if mark in _MAYBE_ZERO and means is None:
                odd[mark] = None
            elif isinstance(means, tuple):
                _narrow(value_column, row, means)
                if means[0] is not None and means[0] == means[1]:
                    value_column.values[row] = means[0]
        elif means == "hidden":
            standing.add(row)
        elif means != "shown" and not all(letter in _REMARKS for letter in mark):
            odd[mark] = None
    if odd:
        first = next(iter(odd))
        value_column.doubts.append(
            f"nobody said what {_listed(odd)} behind numbers in the column {value_column.name!r} means; say "
            f"--status '{first}=shown' or --status '{first}=hidden'."
        )


def _judge_blanks(value_column: _ValueColumn, letters: Sequence[str]) -> None:
    """Blanks beside other signs for hidden values could be zeros."""
    if "" in value_column.reading.symbols:
        return
    blank = [row for row, s in enumerate(value_column.symbols) if s == "" and not letters[row]]
    other = [
        row
        for row, s in enumerate(value_column.symbols)
        if value_column.values[row] is None and row not in set(blank) and s is not None
    ]
    if blank and other:
        value_column.maybe_zero.update(blank)
        value_column.doubts.append(
            f"blanks in the column {value_column.name!r} could be 0 or hide a value, since another sign hides "
            f"values; say "
            "--hidden '=0' or --hidden ''."
        )


def _apply_rule(
    value_column: _ValueColumn, letters: Sequence[str], stated: StatusList | None
) -> None:
    """What a known threshold says about hidden counts with their letters; other lists give no reasons."""
    least = value_column.reading.threshold if stated in (None, "confidentiality") else None
    for row, letter in enumerate(letters):
        if value_column.values[row] is not None:
            continue
        if least is not None and letter == "A":
            _narrow(value_column, row, (Decimal(1), Decimal(least - 1)))
        elif least is not None and letter == "D":
            _narrow(value_column, row, (Decimal(least), None))
        elif value_column.reading.zeros_shown:
            _narrow(value_column, row, (Decimal(1), None))


def _narrow(value_column: _ValueColumn, row: int, more: Bound) -> None:
    """Take what a letter or rule says about a hidden value together with what is known about it."""
    left = both(value_column.bounds[row], more)
    if left is None:
        raise NotJudgedError(
            f"{value_column.rows.where(row)}: what stands in the column {value_column.name!r} and what its "
            "letter or the rule says cannot both be true."
        )
    value_column.bounds[row] = left


def _listed(texts: Sequence[str] | dict[str, None]) -> str:
    first = list(texts)
    return ", ".join(repr(w) for w in first[:5]) + (", ..." if len(first) > 5 else "")
