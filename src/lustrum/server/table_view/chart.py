"""The table as bars, drawn from the figures that the table shows; a suppressed one is its letter, never a bar.

Lengths are percentages of the width and heights are pixels, so that a chart fits a phone and its words stay
readable. One variable gives bars, a second one bars side by side or on top of each other, and whatever is left
a small chart each. Totals are not drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import floor, isfinite

import numpy as np
import numpy.typing as npt

from lustrum.arithmetic import power_of_ten
from lustrum.model.text import say, say_many
from lustrum.server.table_view.arrange import Arrangement, meaning
from lustrum.server.table_view.figures import NO_PERCENTAGE
from lustrum.server.table_view.layout import named
from lustrum.server.table_view.titles import lowered

__all__ = ["Bar", "Chart", "Group", "Panel", "draw"]

MOST_SERIES = 6
MOST_CATEGORIES = 40
MOST_PANELS = 12
"""More colours, bars or charts than this could not be told apart."""

SPACE = 82.0
"""Percent of the width for bars; the rest is for the figure behind the longest of them."""

TOP, LABEL, THICK, GAP, BETWEEN = 22, 19, 13, 3, 10
"""Pixels: the scale above, a line of words, a bar, the gap between bars and between categories."""


@dataclass(frozen=True)
class Bar:
    """A bar, or the symbol that stands where one would be. ``whisker`` holds both its ends."""

    colour: int
    x: float
    width: float
    y: int
    text: str
    words: str
    hidden: bool = False
    whisker: tuple[float, float] | None = None

    @property
    def end(self) -> float:
        """Where its figure is written: behind the bar, and behind the whisker."""
        reach = self.x + self.width
        return round(max(reach, self.whisker[1]) if self.whisker else reach, 2)


@dataclass(frozen=True)
class Group:
    """The bars of one category."""

    label: str
    y: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Panel:
    """One chart: what it is about, and its bars."""

    labels: tuple[tuple[str, str], ...]
    groups: tuple[Group, ...]
    height: int


@dataclass(frozen=True)
class Chart:
    """Charts on one scale. ``remarks`` say what is not drawn."""

    words: str
    series: tuple[str, ...]
    panels: tuple[Panel, ...]
    ticks: tuple[tuple[float, str], ...]
    zero: float
    stacked: bool
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class _Slot:
    """A panel before it is drawn: a block of rows, and columns with the number of their colour."""

    labels: tuple[tuple[str, str], ...]
    block: int
    columns: tuple[int, ...]


def draw(table: Arrangement, point: str = ".") -> Chart:
    """The chart of a table that was turned, sorted and thinned out."""
    slots, series = _slots(table)
    lines: dict[int, list[int]] = {}
    only_totals = bool(table.total_rows.all())
    for line in table.lines:
        if only_totals or not table.total_rows[line.row]:
            lines.setdefault(line.block, []).append(line.row)
    slots = [slot for slot in slots if slot.block in lines]
    most = max((len(rows) for rows in lines.values()), default=0)
    remarks = []
    if most > MOST_CATEGORIES:
        text = say(
            "The first {drawn} of {all} categories are drawn; sorting chooses which they are.",
            drawn=MOST_CATEGORIES,
            all=most,
        )
        remarks.append(text)
    if len(slots) > MOST_PANELS:
        text = say(
            "The first {drawn} of {all} charts are drawn; turning the table or choosing a part shows "
            "others.",
            drawn=MOST_PANELS,
            all=len(slots),
        )
        remarks.append(text)
        slots = slots[:MOST_PANELS]
    parts = {slot: lines[slot.block][:MOST_CATEGORIES] for slot in slots}
    values = table.values
    drawn = [values[s.block][np.ix_(rows, s.columns)] for s, rows in parts.items()]
    everything = np.concatenate([v.ravel() for v in drawn]) if drawn else np.zeros(0)
    stacked = table.view.bars == "stacked" and bool(series) and not np.any(everything < 0)
    pen = _Pen(table, point, stacked, _scale(table, parts, drawn, stacked))
    return Chart(
        words=_words(table, everything, series),
        series=tuple(series),
        panels=tuple(pen.panel(slot, rows) for slot, rows in parts.items()),
        ticks=pen.ticks(),
        zero=pen.x(0.0),
        stacked=stacked,
        remarks=tuple(remarks),
    )


class _Pen:
    """Draws on one scale from the least to the largest value."""

    def __init__(
        self, table: Arrangement, point: str, stacked: bool, ends: tuple[float, float]
    ) -> None:
        self._table, self._point, self._stacked = table, point, stacked
        self._least, self._most = ends
        made = table.figures
        self._units, self._known = table.turned(made.units), table.turned(made.known)
        self._status, self._shown = (
            table.turned(table.release.status),
            table.turned(table.release.shown),
        )
        self._ends = None
        if table.view.bounds == "on" and made.low is not None and made.high is not None:
            self._ends = table.turned(made.low), table.turned(made.high)

    def x(self, value: float) -> float:
        """Where a value stands, in percent of the width."""
        return round(SPACE * (value - self._least) / (self._most - self._least), 2)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Round numbers along the scale."""
        decimals = self._table.figures.decimals
        step = _step((self._most - self._least) / 4, decimals)
        first = int(np.ceil(self._least / step))
        places = [k * step for k in range(first, floor(self._most / step + 1e-9) + 1)]
        return tuple((self.x(v), self._tick(v)) for v in places)

    def _tick(self, value: float) -> str:
        decimals = self._table.figures.decimals
        text = self._table.text(round(value * 10**decimals), self._point)
        return text.rstrip("0").rstrip(self._point) if self._point in text else text

    def panel(self, slot: _Slot, rows: Sequence[int]) -> Panel:
        """A panel with its groups of bars below each other."""
        groups = []
        y = TOP
        for row in rows:
            category = self._table.rows[row]
            label = (
                self._table.release.unit
                if category is None
                else named(category, self._table.view.names)
            )
            bars = self._bars(slot, row, label, y + LABEL)
            groups.append(Group(label, y + LABEL - 6, bars))
            count = 1 if self._stacked else len(slot.columns)
            y += LABEL + count * (THICK + GAP) + BETWEEN
        return Panel(slot.labels, tuple(groups), y)

    def _bars(self, slot: _Slot, row: int, label: str, y: int) -> tuple[Bar, ...]:
        bars: list[Bar] = []
        start = 0.0
        for colour, column in enumerate(slot.columns):
            at = (slot.block, row, column)
            of = self._names(label, column)
            colour += 1
            if not self._known[at]:
                letter = str(self._status[at]) if not self._shown[at] else NO_PERCENTAGE
                words = say("{what}: {meaning}", what=of, meaning=meaning(letter))
                where = self.x(start) if self._stacked else self.x(0.0)
                bars.append(Bar(colour, where, 0.0, y, letter, words, hidden=True))
            else:
                units = int(self._units[at])
                value = units / 10**self._table.figures.decimals
                text = self._table.text(units, self._point, int(self._table.dropped[at]))
                left, right = sorted((self.x(start), self.x(start + value)))
                whisker, span = self._whisker(at)
                words = say("{what}: {figure}", what=of, figure=text)
                if span:
                    words = say("{what}; true value: {span}", what=words, span=span)
                bars.append(
                    Bar(
                        colour,
                        left,
                        round(right - left, 2),
                        y,
                        "" if self._stacked else text,
                        words,
                        whisker=whisker,
                    )
                )
                start += value if self._stacked else 0.0
            y += 0 if self._stacked else THICK + GAP
        return tuple(bars)

    def _whisker(self, at: tuple[int, int, int]) -> tuple[tuple[float, float] | None, str]:
        if self._ends is None:
            return None, ""
        low, high = float(self._ends[0][at]), float(self._ends[1][at])
        span = self._table.span(low, high, self._point, int(self._table.dropped[at]))
        if self._stacked or not (isfinite(low) and isfinite(high)):
            return None, span
        scale = 10**self._table.figures.decimals
        return (self.x(max(low / scale, self._least)), self.x(min(high / scale, self._most))), span

    def _names(self, label: str, column: int) -> str:
        if not self._table.placing.columns:
            return label
        inner = named(self._table.columns[column][-1][1], self._table.view.names)
        return say("{some}, {next}", some=label, next=inner)


def _slots(table: Arrangement) -> tuple[list[_Slot], list[str]]:
    """A panel for each block and outer column; for each column too, if there are more than colours."""
    names = table.view.names
    inner = len(table.picks[table.placing.columns[-1]]) if table.placing.columns else 1
    outer = len(table.columns) // inner
    heavy = table.total_columns.reshape(outer, inner)
    # A total is drawn only where there is nothing else.
    kept = [j for j in range(inner) if not heavy[:, j].all()] or list(range(inner))
    groups = [k for k in range(outer) if not heavy[k].all()] or list(range(outer))
    blocks = [b for b, total in enumerate(table.total_blocks.tolist()) if not total]
    blocks = blocks or list(range(len(table.blocks)))
    series = [
        named(table.columns[j][-1][1], names)
        for j in kept
        if table.placing.columns and len(kept) > 1
    ]
    apart = len(kept) > MOST_SERIES
    slots = []
    for block, group in product(blocks, groups):
        above = [*table.blocks[block], *table.columns[group * inner][:-1]]
        labels = tuple((axis.label, named(category, names)) for axis, category in above)
        columns = [group * inner + j for j in kept]
        if not apart:
            slots.append(_Slot(labels, block, tuple(columns)))
            continue
        for column in columns:
            axis, category = table.columns[column][-1]
            own = (*labels, (axis.label, named(category, names)))
            slots.append(_Slot(own, block, (column,)))
    return slots, [] if apart else series


def _scale(
    table: Arrangement,
    parts: dict[_Slot, list[int]],
    drawn: Sequence[npt.NDArray[np.float64]],
    stacked: bool,
) -> tuple[float, float]:
    """The least and the largest value that must fit, 0 among them."""
    ends = [np.nansum(v, axis=1) if stacked else v.ravel() for v in drawn]
    made = table.figures
    if table.view.bounds == "on" and not stacked and made.low is not None and made.high is not None:
        scale = 10**made.decimals
        for array in (made.low, made.high):
            turned = np.where(made.known, array, np.nan)
            whole = table.turned(turned) / scale
            ends += [whole[s.block][np.ix_(rows, s.columns)].ravel() for s, rows in parts.items()]
    found = np.concatenate([*ends, np.zeros(1)])
    found = found[np.isfinite(found)]
    least, most = float(found.min()), float(found.max())
    return least, most if most > least else least + 1.0


def _step(about: float, decimals: int) -> float:
    """A round number near the one given: 1, 2 or 5 times a power of ten, no finer than figures are."""
    power = power_of_ten(about)
    step = next(k * power for k in (1, 2, 5, 10) if k * power >= about * 0.999)
    return float(max(step, 1 / 10**decimals))


def _words(table: Arrangement, values: npt.NDArray[np.float64], series: Sequence[str]) -> str:
    """The chart in a sentence, for screen readers."""
    inner = table.axes[table.inner].label if table.inner is not None else table.release.unit
    known = int(np.isfinite(values).sum())
    said: str = say_many(
        "{number} bar by {variable}.",
        "{number} bars by {variable}.",
        known,
        variable=lowered(inner),
    )
    if series:
        across = table.axes[table.placing.columns[-1]].label
        said = say_many(
            "{number} bar by {variable} and {other}.",
            "{number} bars by {variable} and {other}.",
            known,
            variable=lowered(inner),
            other=lowered(across),
        )
    hidden = values.size - known
    if hidden:
        more = say_many("{number} figure is not shown.", "{number} figures are not shown.", hidden)
        said = say("{some} {more}", some=said, more=more)
    return said
