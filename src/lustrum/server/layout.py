"""A release laid out on a page: rows, columns, and further variables as column groups or blocks.

The first variable runs down, the second across. A third stands above the columns while that stays
readable; otherwise, like any further one, it cuts the table into blocks of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from lustrum.model import CellStatus, Release, TableAxis
from lustrum.server.words import lowered

__all__ = ["Block", "Cell", "Grid", "Head", "Row", "lay_out", "number"]

WIDEST = 30
"""Most columns of figures before a third variable moves from above the columns to blocks of rows."""

THIN_SPACE = "\u202f"


@dataclass(frozen=True)
class Head:
    """A column header over one or several columns; totals are told apart, so are first columns of a group."""

    label: str
    span: int = 1
    total: bool = False
    starts: bool = False


@dataclass(frozen=True)
class Cell:
    """A figure, or the letter that stands for a suppressed one. Suppressed is never 0."""

    text: str
    hidden: str = ""
    total: bool = False
    starts: bool = False


@dataclass(frozen=True)
class Row:
    """A row of figures."""

    label: str
    cells: tuple[Cell, ...]
    total: bool = False


@dataclass(frozen=True)
class Block:
    """Rows under a common header; a table without further variables is one block without one."""

    label: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Grid:
    """A laid-out table."""

    corner: str
    across: str
    cut_by: str
    groups: tuple[Head, ...]
    columns: tuple[Head, ...]
    blocks: tuple[Block, ...]
    legend: tuple[tuple[str, str], ...]

    @property
    def width(self) -> int:
        """Columns of figures."""
        return len(self.columns)


def lay_out(release: Release) -> Grid:
    """Decide where each variable stands, and write the figures."""
    axes = release.axes
    down, across = axes[0], axes[1] if len(axes) > 1 else None
    grouped = len(axes) > 2 and across is not None and len(across) * len(axes[2]) <= WIDEST
    over = axes[2] if grouped else None
    cutting = axes[3:] if grouped else axes[2:]
    places = [
        (i, *((j,) if across else ()), *((k,) if over else ()))
        for i, k, j in product(range(len(down)), range(len(over or "x")), range(len(across or "x")))
    ]
    heads = _columns(across, over, release.unit)
    width = len(heads)
    texts = _texts(release)
    down_totals = _totals(down)
    blocks = []
    for cut in product(*(range(len(axis)) for axis in cutting)):
        rows = []
        for i, category in enumerate(down.categories):
            cells = tuple(
                _cell(release, texts, (*place, *cut), down_totals[i] or head.total, head.starts)
                for place, head in zip(places[i * width : (i + 1) * width], heads, strict=True)
            )
            rows.append(Row(category.label, cells, down_totals[i]))
        label = ", ".join(
            f"{axis.label}: {axis.labels[p]}" for axis, p in zip(cutting, cut, strict=True)
        )
        blocks.append(Block(label, tuple(rows)))
    return Grid(
        corner=down.label,
        across=_across(across, over),
        cut_by=" and ".join(lowered(axis.label) for axis in cutting),
        groups=()
        if over is None or across is None
        else tuple(
            Head(label, len(across), total, True)
            for label, total in zip(over.labels, _totals(over), strict=True)
        ),
        columns=heads,
        blocks=tuple(blocks),
        legend=_legend(release),
    )


def number(value: int, decimals: int = 0) -> str:
    """A figure with thin spaces between thousands.

    >>> number(1234567) == f"1{THIN_SPACE}234{THIN_SPACE}567"
    True
    >>> number(-1250, 2)
    '-12.50'
    """
    whole, rest = divmod(abs(value), 10**decimals)
    sign = "-" if value < 0 else ""
    fraction = f".{rest:0{decimals}d}" if decimals else ""
    return f"{sign}{whole:,}{fraction}".replace(",", THIN_SPACE)


def _across(across: TableAxis | None, over: TableAxis | None) -> str:
    if across is None:
        return ""
    return across.label if over is None else f"{across.label} within {lowered(over.label)}"


def _columns(across: TableAxis | None, over: TableAxis | None, unit: str) -> tuple[Head, ...]:
    if across is None:
        return (Head(unit[:1].upper() + unit[1:]),)
    totals = _totals(across)
    above = _totals(over) if over else [False]
    return tuple(
        Head(label, 1, total or outer, over is not None and j == 0)
        for outer in above
        for j, (label, total) in enumerate(zip(across.labels, totals, strict=True))
    )


def _totals(axis: TableAxis) -> list[bool]:
    """Which categories hold others of their axis."""
    return [not inner for inner in axis.inner.tolist()]


def _texts(release: Release) -> dict[int, str]:
    """Each distinct figure written once: large tables repeat the same few."""
    return {
        int(value): number(int(value), release.decimals)
        for value in np.unique(release.published[release.shown])
    }


def _cell(
    release: Release, texts: dict[int, str], place: Sequence[int], total: bool, starts: bool
) -> Cell:
    at = tuple(place)
    if not release.shown[at]:
        letter = str(release.status[at])
        return Cell(letter, CellStatus(letter).meaning, total, starts)
    return Cell(texts[int(release.published[at])], "", total, starts)


def _legend(release: Release) -> tuple[tuple[str, str], ...]:
    letters = sorted({str(s) for s in np.unique(release.status)} - {CellStatus.FREE.value})
    return tuple((letter, CellStatus(letter).meaning) for letter in letters)
