"""Bars, side by side or on top of each other; a suppressed figure is its letter, never a bar.

Lengths are percentages of the width and heights are pixels, so that a chart fits a phone and its words stay
readable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lustrum.server.table_view.drawing import PanelPlan, Pen, Scale

SPACE = 82.0
"""Percent of the width for bars; the rest is for the figure behind the longest of them."""

LEFT = 12.0
"""Percent of the width before the longest bar to the left of zero, for its figure."""

TOP, LABEL, THICK, GAP, BETWEEN = 22, 19, 13, 3, 10
"""Pixels: the scale above, a line of words, a bar, the gap between bars and between categories."""


@dataclass(frozen=True)
class Bar:
    """A bar, or the symbol that stands where one would be.

    ``whisker`` holds both ends of the line that shows how uncertain the figure is, and ``open`` says which of
    them nothing bounds. The figure of a ``negative`` bar stands to its left.
    """

    colour: int
    x: float
    width: float
    y: int
    text: str
    description: str
    hidden: bool = False
    whisker: tuple[float, float] | None = None
    open: tuple[bool, bool] = (False, False)
    negative: bool = False

    @property
    def caps(self) -> tuple[float, ...]:
        """The ends of the whisker that are not open."""
        ends = zip(self.whisker or (), self.open, strict=False)
        return tuple(end for end, is_open in ends if not is_open)

    @property
    def end(self) -> float:
        """Where its figure is written: behind the bar, and behind the whisker."""
        if self.negative:
            return round(min(self.x, self.whisker[0]) if self.whisker else self.x, 2)
        reach = self.x + self.width
        return round(max(reach, self.whisker[1]) if self.whisker else reach, 2)


@dataclass(frozen=True)
class BarGroup:
    """The bars of one category."""

    label: str
    y: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class ChartPanel:
    """One chart: what it is about, its bars, and the round numbers of its scale."""

    labels: tuple[tuple[str, str], ...]
    groups: tuple[BarGroup, ...]
    height: int
    ticks: tuple[tuple[float, str], ...]
    zero: float
    kind: str = field(default="bars", init=False)


def bars_panel(
    pen: Pen, slot: PanelPlan, rows: Sequence[int], ends: tuple[float, float], stacked: bool
) -> ChartPanel:
    """A panel with its groups of bars below each other."""
    left = LEFT if ends[0] < 0 else 0.0
    scale = Scale(pen, ends, left, SPACE - left)
    groups = []
    y = TOP
    for row in rows:
        bars = (
            _stack(pen, slot, row, scale, y + LABEL)
            if stacked
            else _bars(pen, slot, row, scale, y + LABEL)
        )
        groups.append(BarGroup(pen.row_name(row), y + LABEL - 6, bars))
        y += LABEL + (1 if stacked else len(slot.columns)) * (THICK + GAP) + BETWEEN
    return ChartPanel(slot.labels, tuple(groups), y, scale.ticks(), scale.at(0.0))


def _bars(pen: Pen, slot: PanelPlan, row: int, scale: Scale, y: int) -> tuple[Bar, ...]:
    """Bars of a category side by side, each with its figure."""
    bars = []
    for number, column in enumerate(slot.columns):
        at = (slot.block, row, column)
        description, top = pen.describe(at, *pen.names(row, column)), y + number * (THICK + GAP)
        if not pen.known(at):
            bars.append(
                Bar(number + 1, scale.at(0.0), 0.0, top, pen.text(at), description, hidden=True)
            )
            continue
        value = pen.value(at)
        left, right = sorted((scale.at(0.0), scale.at(value)))
        whisker, ends = pen.whisker(at, scale)
        width = round(right - left, 2)
        bars.append(
            Bar(
                number + 1,
                left,
                width,
                top,
                pen.text(at),
                description,
                whisker=whisker,
                open=ends,
                negative=value < 0,
            )
        )
    return tuple(bars)


def _stack(pen: Pen, slot: PanelPlan, row: int, scale: Scale, y: int) -> tuple[Bar, ...]:
    """Bars of a category end to end."""
    bars, start = [], 0.0
    for number, column in enumerate(slot.columns):
        at = (slot.block, row, column)
        description, left = pen.describe(at, *pen.names(row, column)), scale.at(start)
        if not pen.known(at):
            bars.append(Bar(number + 1, left, 0.0, y, pen.text(at), description, hidden=True))
            continue
        start += pen.value(at)
        bars.append(Bar(number + 1, left, round(scale.at(start) - left, 2), y, "", description))
    return tuple(bars)
