"""The cells of a release as lines of CSV, made column by column in pieces of bounded size."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

import numpy as np

from lustrum.model import Release, TableAxis
from lustrum.model.arrays import Ints, Mask

_PIECE = 50_000
"""About how many cells are turned into text at a time."""

FACTS = ("value", "unit", "status", "low", "high", "standard_error", "reliability", "margin")
"""What files say of a cell, in the order of their columns."""

NO_NUMBER = "\u2013"
"""Stands for a number that does not exist, such as a mean over nobody."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def inert(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def free_name(name: str, taken: set[str]) -> str:
    """A name that no variable of the table has."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


@dataclass(frozen=True)
class HeadNames:
    """What columns are called beside those of the variables, the same in every file of a table.

    A variable keeps its own name, also where it is called ``value``; a column of the cells gives way.
    """

    labels: tuple[str, ...]
    members: tuple[str, ...]
    facts: Mapping[str, str]

    @classmethod
    def of(cls, axes: Sequence[TableAxis]) -> HeadNames:
        """The names that are free beside these variables."""
        taken = {axis.name for axis in axes}
        return cls(
            tuple(free_name(f"{axis.name}_label", taken) for axis in axes),
            tuple(free_name(f"{axis.name}_members", taken) for axis in axes),
            {name: free_name(name, taken) for name in FACTS},
        )


def number_text(value: int, decimals: int) -> str:
    """A whole number of units of the last decimal, as it is written."""
    if decimals == 0:
        return str(value)
    digits = f"{abs(value):0{decimals + 1}d}"
    return f"{'-' if value < 0 else ''}{digits[:-decimals]}.{digits[-decimals:]}"


def field(text: str) -> str:
    """A text as a field of CSV, in quotation marks where it needs them."""
    out = io.StringIO()
    csv.writer(out).writerow([text, ""])  # and the end of a line, \r\n
    return out.getvalue()[:-3]


def names_of(axis: TableAxis, labels: bool, guard: bool = True) -> list[str]:
    """The code of every category as a field, its label beside it if ``labels``; unchanged without ``guard``."""
    kept = inert if guard else str
    codes = [field(kept(category.code)) for category in axis.categories]
    if not labels:
        return codes
    return [
        f"{code},{field(kept(category.label))}"
        for code, category in zip(codes, axis.categories, strict=True)
    ]


def numbers(release: Release, values: Ints, where: Mask, low: int, high: int) -> list[str]:
    """Some values of a release in the order of its cells, with the decimals of each; empty elsewhere."""
    part, there = values.ravel()[low:high], where.ravel()[low:high]
    many = len(release.statistics)
    if not many:
        return _written(part, there, release.decimals)
    texts = [""] * part.size
    for index in range(many):
        # Pieces end with a whole line of the last axis, along which statistics stand.
        cells = slice(index, None, many)
        decimals = release.decimals_at(index)
        whole = part[cells] // 10 ** (release.decimals - decimals)
        texts[cells] = _written(whole, there[cells], decimals)
    return texts


def _written(values: Ints, where: Mask, decimals: int) -> list[str]:
    if decimals == 0:
        texts = list(map(str, values.tolist()))
    else:
        texts = [number_text(value, decimals) for value in values.tolist()]
    for index in np.flatnonzero(~where).tolist():
        texts[index] = ""
    return texts


def csv_lines(
    head: Sequence[str],
    axes: Sequence[Sequence[str]],
    columns: Callable[[int, int], Sequence[Sequence[str]]],
    end: str,
) -> Iterator[str]:
    """A file of CSV in pieces: the names, then a line for every combination of categories.

    ``axes`` holds the fields of the categories of each variable, the last of which runs fastest; ``columns``
    gives the fields that follow them for the cells from one number to another.
    """
    yield ",".join(field(inert(name)) for name in head) + end
    if not axes:
        yield ",".join(column[0] for column in columns(0, 1)) + end
        return
    if not all(axes):
        return  # a variable without categories has no cells
    *outer, inner = axes
    rest = product(*outer)
    done = 0
    while block := list(islice(rest, max(1, _PIECE // len(inner)))):
        count = len(block) * len(inner)
        # Whole before the first is used: columns of another length must not pass for these cells.
        tails = iter([*map(",".join, zip(*columns(done, done + count), strict=True))])
        done += count
        lines = []
        for names in block:
            start = "".join(f"{name}," for name in names)
            lines += [f"{start}{name},{tail}" for name, tail in zip(inner, tails, strict=False)]
        yield end.join(lines) + end


# --- Where the variables of a table stand if nobody says: the same on a page and in a workbook
# The first variable runs down, the second across. A third stands above the columns while that stays
# readable; otherwise, like any further one, it cuts the table into parts.

WIDEST = 30
"""Most columns of figures before a third variable moves from above the columns to parts of the table."""


@dataclass(frozen=True)
class Placing:
    """Positions of the axes that run down, across and through the table, the outer ones first."""

    rows: tuple[int, ...]
    columns: tuple[int, ...] = ()
    layers: tuple[int, ...] = ()


def usual_placing(sizes: Sequence[int]) -> Placing:
    """The placing of axes with this many categories.

    >>> usual_placing([21, 2, 5])
    Placing(rows=(0,), columns=(2, 1), layers=())
    >>> usual_placing([2, 21, 5]).layers
    (2,)
    """
    count = len(sizes)
    if count < 3:
        return Placing(tuple(range(min(count, 1))), tuple(range(1, count)))
    if sizes[1] * sizes[2] <= WIDEST:
        return Placing((0,), (2, 1), tuple(range(3, count)))
    return Placing((0,), (1,), tuple(range(2, count)))
