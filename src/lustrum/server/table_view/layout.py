"""The table on a page: headers, figures and symbols, page by page where it is long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from lustrum.formats.cell_text import WIDEST
from lustrum.model import Category, CellStatus, Level, Release, TableAxis, Variable
from lustrum.model.arrays import Floats
from lustrum.model.text import lowered, opening, say
from lustrum.model.variable import TOTAL_CODE
from lustrum.server.table_view.arrange import Arrangement, arrange, meaning, sort_key
from lustrum.server.table_view.classes import Classes, classed
from lustrum.server.table_view.figures import ENGLISH_SIGNS, NO_PERCENTAGE, Signs, number
from lustrum.server.urls.display import TableView

__all__ = ["WIDEST", "Grid", "Head", "Row", "RowBlock", "ShownCell", "lay_out", "number"]

CELLS = 4000
"""About this many cells stand on a page; more would make a browser slow."""

FEWEST_ROWS = 25

LONG = range(25, 5000)
"""How many rows a table has that is cut into the parts of a coarser level, such as areas by district."""


@dataclass(frozen=True)
class Head:
    """A column header over one or several columns; totals are marked, and so are first columns of a group.

    ``sort`` is what the parameter says to sort by this column.
    """

    label: str
    span: int = 1
    total: bool = False
    starts: bool = False
    sort: str = ""


@dataclass(frozen=True)
class ShownCell:
    """A figure, or the symbol that stands for one that is not shown. Suppressed is never 0."""

    text: str
    hidden: str = ""
    total: bool = False
    starts: bool = False
    span: str = ""
    shade: int = 0
    blurred: bool = False
    bar: int | None = None
    """How long its bar is, in hundredths of the longest one; less than 0 for a number below 0."""


@dataclass(frozen=True)
class Row:
    """A row of figures."""

    label: str
    cells: tuple[ShownCell, ...]
    total: bool = False
    code: str = ""


@dataclass(frozen=True)
class RowBlock:
    """Rows under a common header: pairs of a variable and its category; none if the table is not cut."""

    labels: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    continued: bool = False
    key: str = ""
    """What names it where it can be folded to its totals."""


@dataclass(frozen=True)
class Grid:
    """A laid-out table, or the page of it that is shown."""

    corner: str
    across: str
    cut_by: tuple[str, ...]
    cuts: int
    levels: tuple[tuple[Head, ...], ...]
    blocks: tuple[RowBlock, ...]
    legend: tuple[tuple[str, str], ...]
    rows: int
    first: int
    page: int
    pages: int
    empty_rows: int
    percentages: frozenset[str]
    parts: str = ""
    """The level that cuts a long table, such as district."""

    @property
    def columns(self) -> tuple[Head, ...]:
        """The headers right above the figures."""
        return self.levels[-1]

    @property
    def groups(self) -> tuple[Head, ...]:
        """The outermost headers where there are several levels."""
        return self.levels[0] if len(self.levels) > 1 else ()

    @property
    def width(self) -> int:
        return len(self.columns)

    @property
    def shown(self) -> int:
        return sum(len(block.rows) for block in self.blocks)

    @property
    def last(self) -> int:
        return self.first - 1 + self.shown


@dataclass(frozen=True)
class Parts:
    """A level in whose categories the rows of a long table lie, and the place of each row; totals come last."""

    level: Level
    places: tuple[int, ...]

    @classmethod
    def of(cls, table: Arrangement, variable: Variable | None) -> Parts | None:
        """The finest such level; None where there is none, or where blocks cut the table already."""
        if variable is None or len(table.blocks) > 1 or len(table.rows) not in LONG:
            return None
        for level in (level for hierarchy in variable.hierarchies for level in hierarchy.levels):
            place_of = {m: at for at, whole in enumerate(level.categories) for m in whole.members}
            lie_in = [{place_of[m] for m in row.members} for row in table.rows if row is not None]
            total = len(level.categories)
            places = tuple(
                total if heavy else min(places)
                for places, heavy in zip(lie_in, table.total_rows.tolist(), strict=True)
            )
            inside = all(len(p) == 1 for p, at in zip(lie_in, places, strict=True) if at < total)
            if inside and 1 < len(set(places)) <= len(places) // 2:
                return cls(level, places)
        return None


def lay_out(release: Release, view: TableView | None = None, signs: Signs = ENGLISH_SIGNS) -> Grid:
    """The page of a table that the view asks for."""
    return grid(arrange(release, view or TableView()), signs)


def grid(
    table: Arrangement, signs: Signs = ENGLISH_SIGNS, variable: Variable | None = None
) -> Grid:
    """A table that was turned and sorted, written out.

    ``variable`` runs down; rows of a long table that nobody has sorted stand under headings of a coarser level.
    """
    view, lines = table.view, table.lines
    parts = None if view.sort else Parts.of(table, variable)
    place_of = [0] * len(table.rows) if parts is None else parts.places
    lines = tuple(sorted(lines, key=lambda line: (line.block, place_of[line.row])))
    height = max(FEWEST_ROWS, CELLS // max(1, len(table.columns)))
    pages = max(1, ceil(len(lines) / height))
    page = min(view.page or 1, pages)
    first = (page - 1) * height
    shown = lines[first : first + height] if view.page is not None else lines
    levels = _levels(table)
    writer = _Writer(table, levels[-1], signs)
    blocks: list[RowBlock] = []
    start = 0
    for end in range(1, len(shown) + 1):
        block, place = shown[start].block, place_of[shown[start].row]
        if end < len(shown) and (shown[end].block, place_of[shown[end].row]) == (block, place):
            continue
        labels = tuple(
            (axis.label, named(category, view.names)) for axis, category in table.blocks[block]
        )
        if parts is not None:
            labels = labels if not blocks else ()
            there = parts.level.categories[place : place + 1]
            labels += tuple((parts.level.label, named(part, view.names)) for part in there)
        rows = tuple(writer.row(block, line.row) for line in shown[start:end])
        before = lines[first - 1] if start == 0 and first else None
        continued = before is not None and (before.block, place_of[before.row]) == (block, place)
        key = table.block_keys[block] if table.block_keys else ""
        blocks.append(RowBlock(labels, rows, continued, key))
        start = end
    return Grid(
        corner=_corner(table),
        across=_within([table.axes[i] for i in table.placing.columns]),
        cut_by=tuple(lowered(table.axes[i].label) for i in table.outer),
        cuts=len({line.block for line in lines}),
        levels=levels,
        blocks=tuple(blocks),
        legend=_legend(table),
        rows=len(lines),
        first=first + 1,
        page=page,
        pages=pages,
        empty_rows=table.empty_rows,
        percentages=table.figures.based_on,
        parts="" if parts is None else lowered(parts.level.label),
    )


def named(category: Category, names: str) -> str:
    """A category by its label, its code or both."""
    if names == "codes":
        return category.code
    label = say("Total") if category.code == TOTAL_CODE else category.label
    if names == "both" and category.code != label:
        return say("{code} {label}", code=category.code, label=label)
    return label


class _Writer:
    """Writes rows. Large tables repeat the same few figures, so each is put into words once."""

    def __init__(self, table: Arrangement, heads: Sequence[Head], signs: Signs) -> None:
        self._table = table
        self._heads = heads
        self._signs = signs
        release, figures = table.release, table.figures
        self._units = table.turned(figures.units)
        self._known = table.turned(figures.known)
        self._status = table.turned(release.status)
        self._shown = table.turned(release.shown)
        self._dropped = table.dropped
        self._texts: dict[tuple[int, int], str] = {}
        self._spans: dict[tuple[float, float, int], str] = {}
        self._ends = None
        if table.view.bounds == "on" and figures.low is not None and figures.high is not None:
            self._ends = table.turned(figures.low), table.turned(figures.high)
        self._classes = _classes(table) if table.view.heat == "on" else None
        self._longest = _longest(table) if table.view.heat == "bars" else 0.0
        self._blurred = None if figures.blurred is None else table.turned(figures.blurred)
        self._errors = None
        if release.errors is not None and release.grades is not None and not table.view.derived:
            self._errors = table.turned(release.errors), table.turned(release.grades)

    def row(self, block: int, row: int) -> Row:
        table = self._table
        category = table.rows[row]
        total = bool(table.total_rows[row])
        outer = total or bool(table.total_blocks[block])
        cells = []
        known, shown = self._known[block, row].tolist(), self._shown[block, row].tolist()
        dropped = self._dropped[block, row].tolist()
        for column, (head, units) in enumerate(
            zip(self._heads, self._units[block, row].tolist(), strict=True)
        ):
            heavy = outer or head.total
            if known[column]:
                drop = dropped[column]
                text = self._texts.get((units, drop)) or self._text(units, drop)
                at = (block, row, column)
                span = self._error(at) if self._ends is None else self._span(at)
                shade = 0
                if self._classes is not None and not heavy:
                    shade = self._classes.shade(units / 10**table.figures.decimals)
                blurred = self._blurred is not None and bool(self._blurred[at])
                bar = None
                if self._longest and not heavy:
                    bar = round(100 * units / 10**table.figures.decimals / self._longest)
                cells.append(ShownCell(text, "", heavy, head.starts, span, shade, blurred, bar))
            else:
                letter = NO_PERCENTAGE
                if not shown[column]:
                    letter = str(self._status[block, row, column])
                cells.append(ShownCell(letter, meaning(letter), heavy, head.starts))
        label = _counted(table) if category is None else named(category, table.view.names)
        # Only a map has to find its rows again.
        code = category.code if category is not None and table.view.form == "map" else ""
        return Row(label, tuple(cells), total, code)

    def _text(self, units: int, dropped: int) -> str:
        text = self._texts[units, dropped] = self._table.text(units, self._signs, dropped)
        return text

    def _error(self, at: tuple[int, int, int]) -> str:
        """The standard error of an estimate, and a word where it is not reliable."""
        if self._errors is None or int(self._errors[0][at]) < 0:
            return ""
        error = self._table.text(int(self._errors[0][at]), self._signs, int(self._dropped[at]))
        grade = str(self._errors[1][at])
        if grade == "caution":
            return say("± {error}, use with caution", error=error)
        if grade == "unreliable":
            return say("± {error}, unreliable", error=error)
        return say("± {error}", error=error)

    def _span(self, at: tuple[int, int, int]) -> str:
        assert self._ends is not None
        low, high, dropped = (
            float(self._ends[0][at]),
            float(self._ends[1][at]),
            int(self._dropped[at]),
        )
        if (low, high, dropped) not in self._spans:
            self._spans[low, high, dropped] = self._table.span(low, high, self._signs, dropped)
        return self._spans[low, high, dropped]


def _inner(table: Arrangement) -> Floats:
    """The figures of all cells but totals."""
    heavy = table.total_blocks[:, None, None] | table.total_rows[:, None] | table.total_columns
    return np.asarray(table.values[~heavy & np.isfinite(table.values)])


def _classes(table: Arrangement) -> Classes:
    """Shades for all cells but totals; no class is narrower than twice the margin of error."""
    return classed(np.unique(_inner(table)).tolist(), "quantile", table.typical_margin)


def _longest(table: Arrangement) -> float:
    return float(np.abs(_inner(table)).max(initial=0.0))


def _levels(table: Arrangement) -> tuple[tuple[Head, ...], ...]:
    """Headers above the columns, one row for each variable that runs across."""
    columns, depth = table.columns, len(table.placing.columns)
    if not depth:
        return ((Head(_counted(table), sort="value"),),)
    names = table.view.names
    levels: list[tuple[Head, ...]] = []
    below = len(columns)
    flags = [~axis.inner for axis in table.axes]
    for level, position in enumerate(table.placing.columns):
        below //= len(table.picks[position])
        heads = []
        for start in range(0, len(columns), below):
            category = columns[start][level][1]
            total = any(
                flags[axis][table.axes[axis].categories.index(columns[start][above][1])]
                for above, axis in enumerate(table.placing.columns[: level + 1])
            )
            inner = level == depth - 1
            first = depth > 1 and (not inner or start % len(table.picks[position]) == 0)
            key = sort_key(columns[start]) if inner else ""
            heads.append(Head(named(category, names), below, total, first, key))
        levels.append(tuple(heads))
    return tuple(levels)


def _counted(table: Arrangement) -> str:
    """What the figures are, where no variable says more."""
    if table.view.percent:
        return say("Per cent")
    if table.view.share:
        return say("Per 1,000")
    unit, label = table.release.unit, table.release.label
    if label and not table.release.statistics:
        return say("{label} ({unit})", label=label, unit=unit)
    return opening(unit)


def _corner(table: Arrangement) -> str:
    return "" if table.inner is None else table.axes[table.inner].label


def _within(axes: Sequence[TableAxis]) -> str:
    """Variables that run across, the inner ones first: ``Sex within age``."""
    if not axes:
        return ""
    said: str = axes[-1].label
    for axis in reversed(axes[:-1]):
        said = say("{inner} within {outer}", inner=said, outer=lowered(axis.label))
    return said


def _legend(table: Arrangement) -> tuple[tuple[str, str], ...]:
    status = table.release.status
    letters = sorted({str(s) for s in np.unique(status)} - {CellStatus.FREE.value})
    if np.any(table.release.shown & ~table.figures.known):
        letters.append(NO_PERCENTAGE)
    return tuple((letter, meaning(letter)) for letter in letters)
