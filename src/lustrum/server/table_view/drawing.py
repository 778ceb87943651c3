"""What every kind of chart needs: which part of a table it shows, how uncertain figures are, and a scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isnan

import numpy as np
import numpy.typing as npt

from lustrum.model.described_statistic import PERCENT
from lustrum.model.text import say
from lustrum.numeric.arithmetic import power_of_ten
from lustrum.server.table_view.arrange import Arrangement, meaning
from lustrum.server.table_view.figures import NO_PERCENTAGE, THIN_SPACE, Signs
from lustrum.server.table_view.layout import named

LEAST_LINE = 0.015
"""A line shorter than this share of a scale would be a speck."""

At = tuple[int, int, int]
"""A cell by its block, row and column."""


@dataclass(frozen=True)
class PanelPlan:
    """A panel before it is drawn: a block of rows, and columns with the number of their colour."""

    labels: tuple[tuple[str, str], ...]
    block: int
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Reach:
    """How far true values can be or are likely to be, over blocks, rows and columns."""

    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    says: str
    certain: bool = False
    too_small: str = ""
    """What is said instead where every line would be a speck."""


def reach_of(table: Arrangement) -> Reach | None:
    """The uncertainty that can be drawn: certain bounds if they are asked for, else what is typical."""
    figures, release = table.figures, table.release
    scale = 10**figures.decimals
    if table.view.bounds == "on":
        if figures.low is None or figures.high is None:
            return None
        says = say("Thin lines: what the true value can be; a line without an end goes on")
        return Reach(
            table.turned(figures.low) / scale, table.turned(figures.high) / scale, says, True
        )
    if release.errors is not None and not table.view.derived:
        errors = np.where(release.errors < 0, np.nan, release.errors) / scale
        says = say("Thin lines: one standard error to either side")
    elif figures.margins is not None:
        errors = figures.margins / scale
        says = (
            say("Thin lines: the margin of error, {margin:,} to either side", margin=release.margin)
            if release.margin is not None and not table.view.derived
            else say("Thin lines: the margin of error")
        )
    else:
        return None
    small = say("The margin of error is too small to draw")
    if release.margin is not None and not table.view.derived:
        small = say(
            "Margin of error: {margin:,} to either side, too small to draw", margin=release.margin
        )
    spread = table.turned(errors)
    return Reach(table.values - spread, table.values + spread, says, too_small=small)


def ends_of(
    reach: Reach | None,
    slot: PanelPlan,
    rows: Sequence[int],
    values: npt.NDArray[np.float64],
    stacked: bool,
) -> tuple[float, float]:
    """The least and the largest value of a panel that must fit, 0 among them."""
    ends = [np.nansum(values, axis=1) if stacked else values.ravel()]
    if reach is not None:
        for array in (reach.low, reach.high):
            there = array[slot.block][np.ix_(rows, slot.columns)]
            ends.append(np.where(np.isnan(values), np.nan, there).ravel())
    if reach is not None and not reach.certain and np.nanmin(values, initial=0.0) >= 0:
        # A margin around a small count is cut at 0 instead of making room for less than nothing.
        ends = [np.maximum(end, 0) for end in ends]
    all_ends = np.concatenate([*ends, np.zeros(1)])
    all_ends = all_ends[np.isfinite(all_ends)]
    least, most = float(all_ends.min()), float(all_ends.max())
    return least, most if most > least else least + 1.0


def step_of(least: float, most: float, about: int, decimals: int) -> float:
    """The step between round numbers of a scale: ``about`` so many, and no finer than figures.

    Of 1, 2, 2.5 and 5 times a power of ten it is the one that leaves least room beyond the figures.
    """
    finest = 1 / 10**decimals
    power = power_of_ten(max((most - least) / about, finest))
    steps = [k * power for k in (1.0, 2.0, 2.5, 5.0, 10.0) if k != 2.5 or power > 5 * finest]
    whole = {s: ceil(most / s - 1e-9) - floor(least / s + 1e-9) for s in steps}
    few = [s for s in steps if whole[s] <= about + 1] or steps[-1:]
    return min(few, key=lambda s: (round(whole[s] * s / power), abs(whole[s] - about)))


class Scale:
    """Values along a line from the least to the largest, which begins at ``start`` and is ``length`` long.

    It has ``about`` so many round numbers, and ends at one of them where a scale goes up from 0.
    """

    def __init__(
        self, pen: Pen, ends: tuple[float, float], start: float, length: float, about: int = 4
    ) -> None:
        self._pen, (self.least, self.most) = pen, ends
        self._start, self._length = start, length
        self._step = step_of(self.least, self.most, about, pen.table.figures.decimals)
        self.most = ceil(self.most / self._step - 1e-9) * self._step
        self.least = floor(self.least / self._step + 1e-9) * self._step

    def at(self, value: float) -> float:
        room = self._length * (value - self.least) / (self.most - self.least)
        return round(self._start + room, 2)

    def seen(self, low: float, high: float) -> bool:
        return abs(high - low) > LEAST_LINE * abs(self._length)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Round numbers along the scale."""
        step = self._step
        first = ceil(self.least / step - 1e-9)
        places = [k * step for k in range(first, floor(self.most / step + 1e-9) + 1)]
        return tuple((self.at(v), self._pen.tick(v)) for v in places)


class Pen:
    """Writes the figures of a table and says what they are."""

    def __init__(self, table: Arrangement, signs: Signs, reach: Reach | None) -> None:
        self.table, self._signs, self.reach = table, signs, reach
        self.lines = 0
        """So many lines show how uncertain figures are."""
        figures = table.figures
        self._units, self._known = table.turned(figures.units), table.turned(figures.known)
        self._status = table.turned(table.release.status)
        self._shown = table.turned(table.release.shown)

    def known(self, at: At) -> bool:
        return bool(self._known[at])

    def value(self, at: At) -> float:
        return float(int(self._units[at]) / 10**self.table.figures.decimals)

    def text(self, at: At) -> str:
        """A figure as it is written, or the symbol that stands for it."""
        if not self._known[at]:
            return str(self._status[at]) if not self._shown[at] else NO_PERCENTAGE
        return self.table.text(int(self._units[at]), self._signs, int(self.table.dropped[at]))

    def describe(self, at: At, *names: str) -> str:
        """A figure with its categories, for whoever points at it or cannot see it."""
        of = names[0]
        for name in names[1:]:
            of = say("{some}, {next}", some=of, next=name)
        if not self._known[at]:
            return say("{what}: {meaning}", what=of, meaning=meaning(self.text(at)))
        figure = f"{self.text(at)}{THIN_SPACE}%" if self._percent() else self.text(at)
        description: str = say("{what}: {figure}", what=of, figure=figure)
        margins = self.table.margins
        scale = 10**self.table.figures.decimals
        derived = self.table.view.derived or self.table.release.margins is not None
        if derived and margins is not None and np.isfinite(margins[at]):
            far: str = self.table.text(round(float(margins[at]) * scale), self._signs)
            far = say("{margin} points", margin=far) if self._percent() else far
            description = say("{what}: {figure} (± {margin})", what=of, figure=figure, margin=far)
        if self.reach is not None and self.reach.certain:
            ends = float(self.reach.low[at]), float(self.reach.high[at])
            if not any(map(isnan, ends)):
                dropped = int(self.table.dropped[at])
                span = self.table.span(ends[0] * scale, ends[1] * scale, self._signs, dropped)
                description = say("{what}; true value: {span}", what=description, span=span)
        return description

    def row_name(self, row: int) -> str:
        """The category of a row, or what is counted where there is none."""
        category = self.table.rows[row]
        if category is None:
            return self.table.release.unit
        return named(category, self.table.view.names)

    def names(self, row: int, column: int) -> tuple[str, ...]:
        """The categories of a cell inside its panel."""
        if not self.table.placing.columns:
            return (self.row_name(row),)
        return self.row_name(row), named(self.table.columns[column][-1][1], self.table.view.names)

    def whisker(self, at: At, scale: Scale) -> tuple[tuple[float, float] | None, tuple[bool, bool]]:
        """Both ends of the line that shows how uncertain a figure is, and which of them are open."""
        if self.reach is None:
            return None, (False, False)
        low, high = float(self.reach.low[at]), float(self.reach.high[at])
        if isnan(low) or isnan(high):
            return None, (False, False)
        places = scale.at(max(low, scale.least)), scale.at(min(high, scale.most))
        if not scale.seen(*places):
            return None, (False, False)
        self.lines += 1
        return places, (low < scale.least, high > scale.most)

    def tick(self, value: float, *, short: bool = True) -> str:
        """A number of the scale; if short without zeros at its end."""
        decimals = self.table.figures.decimals
        text = self.table.text(round(value * 10**decimals), self._signs)
        # Only with decimals is the point of the language in the text.
        text = text.rstrip("0").rstrip(self._signs.point) if decimals and short else text
        return f"{text}{THIN_SPACE}%" if self._percent() else text

    def _percent(self) -> bool:
        """Whether the figures are percentages; of several statistics one is drawn at a time."""
        release = self.table.release
        if self.table.view.percent or not release.statistics:
            return self.table.view.percent or release.unit == PERCENT
        picked = self.table.picks[-1]
        return len(picked) == 1 and release.unit_at(int(picked[0])) == PERCENT
