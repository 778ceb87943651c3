"""A release turned and put in order: which variable runs down, across or through it, which rows, in what order.

Outer variables of the rows, and the layers, cut the table into blocks of rows under a header of their own;
outer variables of the columns stand above the inner ones. Everything is judged by published values only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import isfinite, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.formats.cell_text import Placing, usual_placing
from lustrum.model import Category, CellStatus, QueryError, Release, TableAxis
from lustrum.model.arrays import Mask
from lustrum.model.errors import choices
from lustrum.model.text import say
from lustrum.model.variable import TOTAL_CODE
from lustrum.server.table_view.figures import (
    ENGLISH_SIGNS,
    NO_PERCENTAGE,
    CellFigures,
    Signs,
    figures,
    number,
)
from lustrum.server.urls.display import TableView, column_key, column_of


@dataclass(frozen=True)
class TableLine:
    """A row of the table: in which block it stands, and which category of the inner variable it is."""

    block: int
    row: int


@dataclass(frozen=True, eq=False)
class Arrangement:
    """A release turned as the view says.

    ``values``, ``units`` and so on run over blocks, rows and columns. ``lines`` are the rows that are left, in
    their order.
    """

    release: Release
    view: TableView
    placing: Placing
    figures: CellFigures
    picks: tuple[npt.NDArray[np.intp], ...]
    lines: tuple[TableLine, ...]
    empty_rows: int

    @property
    def axes(self) -> tuple[TableAxis, ...]:
        return self.release.axes

    @property
    def outer(self) -> tuple[int, ...]:
        """The axes whose categories head blocks of rows: layers, then all but the last of the rows."""
        return (*self.placing.layers, *self.placing.rows[:-1])

    @property
    def inner(self) -> int | None:
        """The axis that runs down."""
        return self.placing.rows[-1] if self.placing.rows else None

    @cached_property
    def blocks(self) -> list[tuple[tuple[TableAxis, Category], ...]]:
        return list(self._combinations(self.outer))

    @cached_property
    def block_keys(self) -> tuple[str, ...]:
        """What names each block of rows that can be folded to its totals; nothing where none can."""
        can = bool(self.outer) and self.view.form == "table"
        if not can or not self.total_rows.any() or self.total_rows.all():
            return ()
        return tuple(sort_key(block) for block in self.blocks)

    @cached_property
    def columns(self) -> list[tuple[tuple[TableAxis, Category], ...]]:
        """The variables and categories above each column, the outer ones first."""
        return list(self._combinations(self.placing.columns))

    @cached_property
    def rows(self) -> tuple[Category | None, ...]:
        """The categories that run down; a single one without a category where no variable does."""
        if self.inner is None:
            return (None,)
        return tuple(self.axes[self.inner].categories[i] for i in self.picks[self.inner])

    @cached_property
    def total_rows(self) -> Mask:
        """Which rows hold others of them."""
        return np.zeros(1, dtype=np.bool_) if self.inner is None else self._totals(self.inner)

    @cached_property
    def total_columns(self) -> Mask:
        """Which columns hold others of them."""
        return _crossed([self._totals(i) for i in self.placing.columns])

    @cached_property
    def total_blocks(self) -> Mask:
        """Which blocks hold others of them."""
        return _crossed([self._totals(i) for i in self.outer])

    def turned(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Something of the release's shape over blocks, rows and columns."""
        order = (*self.outer, *self.placing.rows[-1:], *self.placing.columns)
        part = array[np.ix_(*self.picks)] if self.picks else array
        height = 1 if self.inner is None else len(self.picks[self.inner])
        width = prod(len(self.picks[i]) for i in self.placing.columns)
        return part.transpose(order).reshape(-1, height, width)

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        """The figures as numbers over blocks, rows and columns; NaN where there is none."""
        return self.turned(self.figures.values)

    @cached_property
    def margins(self) -> npt.NDArray[np.float64] | None:
        """How far figures rarely are off, over blocks, rows and columns; None where nothing is stated."""
        margins = self.figures.margins
        return None if margins is None else self.turned(margins) / 10**self.figures.decimals

    @cached_property
    def typical_margin(self) -> float:
        """The margin of a figure in the middle, which is that of all counts; 0 where none is stated."""
        there = () if self.margins is None else self.margins[np.isfinite(self.margins)]
        return float(np.median(there)) if len(there) else 0.0

    @cached_property
    def dropped(self) -> npt.NDArray[np.int64]:
        """How many of the last decimals are not written, over blocks, rows and columns."""
        release = self.release
        if not release.statistics or self.view.share:
            return np.zeros(self.values.shape, dtype=np.int64)
        places = np.array([release.decimals - s.decimals for s in release.statistics])
        return self.turned(np.broadcast_to(places, release.shape))

    def text(self, units: int, signs: Signs = ENGLISH_SIGNS, dropped: int = 0) -> str:
        return number(units // 10**dropped, self.figures.decimals - dropped, signs)

    def span(self, low: float, high: float, signs: Signs = ENGLISH_SIGNS, dropped: int = 0) -> str:
        """What is known of a true value, in words."""
        ends = [self.text(int(v), signs, dropped) if isfinite(v) else "" for v in (low, high)]
        if all(ends):
            return ends[0] if ends[0] == ends[1] else f"{ends[0]}\u2013{ends[1]}"
        if ends[0]:
            return say("at least {least}", least=ends[0])
        return say("at most {most}", most=ends[1]) if ends[1] else say("not known")

    def _totals(self, axis: int) -> Mask:
        return np.asarray(~self.axes[axis].inner[self.picks[axis]])

    def _combinations(
        self, axes: Sequence[int]
    ) -> Iterator[tuple[tuple[TableAxis, Category], ...]]:
        for places in product(*(self.picks[i] for i in axes)):
            yield tuple(
                (self.axes[i], self.axes[i].categories[p])
                for i, p in zip(axes, places, strict=True)
            )


def arrange(release: Release, view: TableView, mapped: str | None = None) -> Arrangement:
    """Turn, pick, sort and thin out as the view says; what it cannot say of this table is a mistake.

    A map shows the variable ``mapped`` and a single category of every other one.
    """
    if not release.additive and view.share:
        view = replace(view, show="counts")  # a share of means has no meaning
    if view.compared and (view.form != "table" or release.statistics):
        view = replace(
            view, show="counts"
        )  # drawn or of several statistics it would not be read rightly
    if view.form == "map":
        view = _for_map(release, view, mapped)
    placing = placed(release, view)
    if view.form == "map":
        # Shares are within a place, though a single category is shown of it.
        placing = Placing(placing.rows, placing.layers, ())
    if (view.compared or view.show in ("row-percent", "row-rate")) and not placing.columns:
        view = replace(view, show="counts")  # there is no other column, and a row is all of itself
    over = {
        "counts": (),
        "row-percent": placing.columns,
        "row-rate": placing.columns,
        "column-percent": placing.rows,
        "whole-percent": tuple(range(len(release.axes))),
        "difference": placing.columns[-1:],
        "index": placing.columns[-1:],
    }[view.show]
    table_figures = figures(release, view.show, over, view.decimals)
    if view.form == "map":
        placing = Placing(placing.rows, (), placing.columns)
    picks = _picked(release, view, placing)
    bare = Arrangement(release, view, placing, table_figures, picks, (), 0)
    view = _tidied(bare)
    bare = replace(bare, view=view)
    empty = _empty_rows(bare)
    if view.empty == "hide" and not empty.all():
        hidden = int(empty.sum()) // max(1, _layers(bare))
    else:
        empty, hidden = np.zeros_like(empty), 0
    keys = bare.block_keys
    folded = {block for block, key in enumerate(keys) if key in view.fold}
    lines = tuple(
        TableLine(block, int(row))
        for block, order in enumerate(_orders(bare))
        for row in order
        if not empty[block, row] and (block not in folded or bare.total_rows[row])
    )
    return Arrangement(release, view, placing, table_figures, picks, lines, hidden)


def _for_map(release: Release, view: TableView, mapped: str | None) -> TableView:
    """The view turned for a map; a plain table where nothing can be mapped."""
    names = {axis.name: axis for axis in release.axes}
    if mapped not in names:
        return replace(view, form="table")
    chosen = dict(view.layer)
    for name, axis in names.items():
        if name != mapped and chosen.get(name) not in axis.codes:
            total = next((c for c in axis.codes if c == TOTAL_CODE), axis.codes[0])
            chosen[name] = total if axis.name != "statistic" else axis.codes[0]
    others = [axis for name, axis in names.items() if name != mapped]
    if (
        view.show in ("row-percent", "row-rate")
        and others
        and all(c == TOTAL_CODE for c in chosen.values())
    ):
        # The total of a place is all of it; its first category says something.
        chosen[others[0].name] = next(c for c in others[0].codes if c != TOTAL_CODE)
    pivot = ((mapped, "rows"), *((name, "layers") for name in names if name != mapped))
    layer = tuple((name, chosen[name]) for name in names if name != mapped)
    return replace(view, pivot=pivot, layer=layer)


def meaning(letter: str) -> str:
    """What a symbol that stands for a figure means."""
    if letter == NO_PERCENTAGE:
        return say("no figure, since the number to divide by is 0 or not shown")
    return CellStatus(letter).meaning


def placed(release: Release, view: TableView) -> Placing:
    """Where each axis stands: as the view says, the others as usual."""
    names = [axis.name for axis in release.axes]
    usual = usual_placing(release.shape)
    if release.statistics and view.form == "chart":
        # Bars of different units have no common scale, so a chart shows one statistic at a time.
        rest = usual_placing(release.shape[:-1])
        usual = Placing(rest.rows, rest.columns, (*rest.layers, len(names) - 1))
        view = replace(view, pivot=tuple(pair for pair in view.pivot if pair[0] != names[-1]))
    if not view.pivot:
        return usual
    for variable, _ in view.pivot:
        if variable not in names:
            raise QueryError(
                say(
                    "'pivot' names {variable!r}; {choices}.",
                    variable=variable,
                    choices=choices(variable, names),
                )
            )
    said = {names.index(variable): zone for variable, zone in view.pivot}
    places: dict[str, list[int]] = {"rows": [], "columns": [], "layers": []}
    for zone, there in places.items():
        there += [i for i in getattr(usual, zone) if i not in said]
        there += [i for i, wanted in said.items() if wanted == zone]
    return Placing(*(tuple(there) for there in places.values()))


def _picked(
    release: Release, view: TableView, placing: Placing
) -> tuple[npt.NDArray[np.intp], ...]:
    names = [axis.name for axis in release.axes]
    picks = []
    layers = dict(view.layer)
    if release.statistics and view.form == "chart":
        layers.setdefault(names[-1], release.statistics[0].code)
    for variable in layers:
        if variable not in names:
            raise QueryError(
                say(
                    "'layer' names {variable!r}; {choices}.",
                    variable=variable,
                    choices=choices(variable, names),
                )
            )
    for position, axis in enumerate(release.axes):
        wanted = layers.get(axis.name)
        if wanted is not None:
            if wanted not in axis.codes:
                raise QueryError(
                    say(
                        "{variable!r} has no code {code!r} here; {choices}.",
                        variable=axis.name,
                        code=wanted,
                        choices=choices(wanted, axis.codes),
                    )
                )
            if position in placing.layers:
                picks.append(np.array([axis.codes.index(wanted)], dtype=np.intp))
                continue
        keep = axis.inner if view.margins == "off" else np.ones(len(axis), dtype=np.bool_)
        picks.append(np.flatnonzero(keep))
    return tuple(picks)


def _tidied(bare: Arrangement) -> TableView:
    """The view without what changes nothing here, so that the same table has the same address."""
    view, placing = bare.view, bare.placing
    here = {bare.axes[i].name for i in placing.layers}
    key = view.sort.removeprefix("-")
    idle = key not in ("", "label") and _column(bare, key) is None
    return replace(
        view,
        pivot=()
        if placing == usual_placing(bare.release.shape) or view.form == "map"
        else view.pivot,
        layer=tuple(pair for pair in view.layer if pair[0] in here),
        fold=tuple(key for key in view.fold if key in bare.block_keys),
        sort="" if idle else view.sort,
        heat=view.heat if view.form == "table" else TableView.heat,
        decimals=view.decimals if view.share else TableView.decimals,
        chart=view.chart if view.form == "chart" else TableView.chart,
        scale=view.scale if view.form == "chart" else TableView.scale,
        classes=view.classes if view.form == "map" else TableView.classes,
    )


def _layers(bare: Arrangement) -> int:
    return prod(len(bare.picks[i]) for i in bare.placing.layers)


def _empty_rows(bare: Arrangement) -> Mask:
    """Which rows hold nothing but published zeros in all columns of all layers, totals excepted."""
    release, placing = bare.release, bare.placing
    zero = release.shown & (release.numbers == 0)  # what does not exist is 0 here too
    others = tuple(i for i in range(len(release.axes)) if i not in placing.rows)
    empty = zero.all(axis=others, keepdims=True) & np.ones(release.shape, dtype=np.bool_)
    flags: Mask = bare.turned(empty)[:, :, 0] & ~bare.total_rows
    return flags


def _orders(bare: Arrangement) -> Iterator[npt.NDArray[np.intp]]:
    """The order of the rows of each block; totals come last, and what is not shown just before them."""
    # A ranked list stands beside a map.
    sort = bare.view.sort or ("-value" if bare.view.form == "map" else "")
    height = len(bare.rows)
    blocks = len(bare.blocks)
    key = sort.removeprefix("-")
    sign = -1 if sort.startswith("-") else 1
    if key == "label":
        ranks = _ranks([_folded(row, bare.view.names) for row in bare.rows])
        for _ in range(blocks):
            yield np.lexsort((sign * ranks, bare.total_rows))
        return
    column = _column(bare, key) if key else None
    if column is None:
        for _ in range(blocks):
            yield np.arange(height)
        return
    for block in range(blocks):
        values = bare.values[block, :, column]
        unknown = np.isnan(values)
        yield np.lexsort((sign * np.where(unknown, 0, values), unknown, bare.total_rows))


def _column(bare: Arrangement, key: str) -> int | None:
    """The column that a sorting names; nothing where its variables do not run across now."""
    if key == "value":
        return None if bare.placing.columns else 0
    wanted = column_of(key)
    by_name = {axis.name: axis for axis in bare.axes}
    for variable, code in wanted.items():
        if variable not in by_name:
            raise QueryError(
                say(
                    "'sort' names {variable!r}; {choices}.",
                    variable=variable,
                    choices=choices(variable, by_name),
                )
            )
        if code not in by_name[variable].codes:
            codes = by_name[variable].codes
            raise QueryError(
                say(
                    "{variable!r} has no code {code!r} here; {choices}.",
                    variable=variable,
                    code=code,
                    choices=choices(code, codes),
                )
            )
    keys = [
        frozenset((axis.name, category.code) for axis, category in column)
        for column in bare.columns
    ]
    wanted_key = frozenset(wanted.items())
    return keys.index(wanted_key) if wanted_key in keys else None


def sort_key(column: Sequence[tuple[TableAxis, Category]]) -> str:
    return column_key((axis.name, category.code) for axis, category in column)


def _folded(row: Category | None, names: str) -> str:
    if row is None:
        return ""
    text = row.label if names == "labels" else row.code
    plain = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(c for c in plain if not unicodedata.combining(c))
    # Numbers go by their size: 5 to 9 before 10 to 14.
    return re.sub(r"\d+", lambda digits: digits.group().zfill(12), bare)


def _ranks(texts: list[str]) -> npt.NDArray[np.int64]:
    places = {text: i for i, text in enumerate(sorted(set(texts)))}
    return np.array([places[text] for text in texts], dtype=np.int64)


def _crossed(masks: Sequence[Mask]) -> Mask:
    """Whether any of the categories of each combination is marked."""
    marked = np.zeros(1, dtype=np.bool_)
    for mask in masks:
        marked = (marked[:, None] | mask[None, :]).ravel()
    return marked
