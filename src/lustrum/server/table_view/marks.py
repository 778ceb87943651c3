"""Charts of simple marks: a pyramid, lines and a heat map. Across in percent of the width, down in pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from textwrap import wrap

from lustrum.server.table_view.classes import Classes
from lustrum.server.table_view.drawing import At, PanelPlan, Pen, Scale

TOP, ROW, BAR = 24, 18, 13
"""Pixels: the scale above, a row of a pyramid and its bar."""

MIDDLE = (37.0, 63.0)
"""Percent of the width between the halves of a pyramid, where its labels stand."""

PLOT = 260
"""Pixels: how tall lines may rise."""

END = 97.0
"""Percent of the width where lines end; they begin behind the numbers of the scale."""

LABEL, STRIP = 19, 20
"""Pixels: a line of words and a strip of a heat map."""

LETTER = 2.1
"""Percent of the width of the narrowest chart, on a phone, that a letter of a name takes."""

MOST_NAMES = 6
"""So many categories are named below lines; more would overlap on a phone."""

WIDE_LETTER = 1.0
"""Percent of the width that a letter takes on a chart of 700 pixels and more."""

LONGEST_BESIDE = 16
"""Names with no more letters than this stand beside bars, strips and lines."""

MOST_FIGURES = 200
"""A heat map writes so many figures into its cells where there is room."""


@dataclass(frozen=True)
class Mark:
    """A mark: ``rect``, ``line``, ``dot`` or ``text``; ``description`` is for whoever points at it."""

    shape: str
    look: str
    x: float
    y: float
    to_x: float = 0.0
    to_y: float = 0.0
    text: str = ""
    description: str = ""
    anchor: str = "start"


@dataclass(frozen=True)
class MarksPanel:
    """One chart as marks, the ones behind first."""

    labels: tuple[tuple[str, str], ...]
    marks: tuple[Mark, ...]
    height: int
    named: bool = False
    kind: str = field(default="marks", init=False)


def _beside(names: Sequence[str]) -> float:
    """Percent of the width for names beside what they name; 0 where one is too long for it."""
    longest = max(map(len, names), default=0)
    return LETTER * longest + 2 if longest <= LONGEST_BESIDE else 0.0


def pyramid_panel(
    pen: Pen, slot: PanelPlan, rows: Sequence[int], ends: tuple[float, float]
) -> MarksPanel:
    """Two series back to back, the first row at the bottom, as ages are drawn."""
    halves = (
        Scale(pen, (0.0, ends[1]), MIDDLE[0], 5 - MIDDLE[0]),
        Scale(pen, (0.0, ends[1]), MIDDLE[1], 95 - MIDDLE[1]),
    )
    height = TOP + len(rows) * ROW + 4
    marks = []
    for scale in halves:
        ticks = scale.ticks()
        for tick in ticks:
            x, text = tick
            anchor = "middle" if text != pen.tick(0) else ("end", "start")[scale is halves[1]]
            look = "scale" if tick in (ticks[0], ticks[-1]) else "scale wide"
            marks.append(Mark("line", "tick", x, TOP - 6, x, height))
            marks.append(Mark("text", look, x, 11, text=text, anchor=anchor))
    for position, row in enumerate(rows):
        y = TOP + (len(rows) - 1 - position) * ROW
        marks.append(Mark("text", "label", 50.0, y + 11, text=pen.row_name(row), anchor="middle"))
        for number, (column, scale) in enumerate(zip(slot.columns, halves, strict=True)):
            at = (slot.block, row, column)
            description = pen.describe(at, *pen.names(row, column))
            zero, look = scale.at(0.0), f"c{number + 1}"
            if not pen.known(at):
                side = ("end", "start")[number]
                text = pen.text(at)
                marks.append(
                    Mark(
                        "text",
                        "figure",
                        zero,
                        y + 11,
                        text=text,
                        description=description,
                        anchor=side,
                    )
                )
                continue
            left, right = sorted((zero, scale.at(pen.value(at))))
            marks.append(
                Mark("rect", look, left, y, round(right - left, 2), BAR, description=description)
            )
            marks += _whisker_across(pen, at, scale, y + BAR / 2)
    return MarksPanel(slot.labels, tuple(marks), height)


def lines_panel(
    pen: Pen, slot: PanelPlan, rows: Sequence[int], ends: tuple[float, float]
) -> MarksPanel:
    """A line for each series along the rows; it is broken where a figure is not shown."""
    scale = Scale(pen, ends, TOP + PLOT, -PLOT, 6)
    names = [pen.names(rows[0], column)[-1] for column in slot.columns] if rows else []
    after = _beside(names) if len(names) > 1 else 0.0
    start = LETTER * max(len(text) for _, text in scale.ticks()) + 1
    step = (END - after - start) / max(1, len(rows) - 1)
    places = [round(start + i * step, 2) for i in range(len(rows))]
    marks = []
    for y, text in scale.ticks():
        marks.append(Mark("line", "tick", 0.0, y, 100.0, y))
        marks.append(Mark("text", "scale", 0.0, y - 4, text=text))
    row_names = [pen.row_name(row) for row in rows]
    for look, letter, most in (
        ("scale narrow", LETTER, MOST_NAMES),
        ("scale wide", WIDE_LETTER, 21),
    ):
        for i, anchor in _names_below(row_names, places, letter, most):
            tick = look.replace("scale", "tick")
            marks.append(Mark("line", tick, places[i], TOP + PLOT, places[i], TOP + PLOT + 5))
            y, name = TOP + PLOT + 18, row_names[i]
            marks.append(Mark("text", look, places[i], y, text=name, anchor=anchor))
    ends_at: list[tuple[float, int]] = []
    for number, column in enumerate(slot.columns):
        look = f"c{number + 1}"
        before: tuple[float, float] | None = None
        dots = []
        for x, row in zip(places, rows, strict=True):
            at = (slot.block, row, column)
            description = pen.describe(at, *pen.names(row, column))
            if not pen.known(at):
                before = None
                text = pen.text(at)
                dots.append(
                    Mark(
                        "text",
                        "figure",
                        x,
                        scale.at(0.0) - 3,
                        text=text,
                        description=description,
                        anchor="middle",
                    )
                )
                continue
            y = scale.at(pen.value(at))
            if before is not None:
                marks.append(Mark("line", f"stroke {look}", *before, x, y))
            whisker, _ = pen.whisker(at, scale)
            if whisker is not None:
                marks.append(Mark("line", "whisker", x, whisker[0], x, whisker[1]))
            dots.append(Mark("dot", look, x, y, description=description))
            before = (x, y)
        marks += dots
        ends_at.append((before[1] if before else scale.at(0.0), number))
    if after:
        # Each name stands where its line ends, below the one before it.
        lowest = TOP - 10.0
        for place, (y, number) in enumerate(sorted(ends_at)):
            last = TOP + PLOT + 4 - 14 * (len(ends_at) - 1 - place)
            lowest = max(lowest + 14, min(y + 4, last))
            x = round(places[-1] + 1.5, 2)
            marks.append(Mark("text", f"end e{number + 1}", x, lowest, text=names[number]))
    return MarksPanel(slot.labels, tuple(marks), TOP + PLOT + 26, bool(after))


def _names_below(
    names: Sequence[str], places: Sequence[float], letter: float, most: int
) -> list[tuple[int, str]]:
    """Which names fit below lines, the first and the last before others, and how they are anchored."""
    free = [(0.0, 100.0)]  # what no name takes yet, from left to right
    fitting = []
    ends = (0, len(names) - 1)
    for i in sorted(range(0, len(names), ceil(len(names) / most)), key=lambda i: i not in ends):
        anchor = "start" if i == 0 else "end" if i == ends[1] else "middle"
        width = letter * len(names[i])
        left = places[i] - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
        room = next((r for r in free if r[0] <= left and left + width <= r[1]), None)
        if i and room is None:
            continue
        if room is not None:
            free.remove(room)
            free += [(room[0], left - letter), (left + width + letter, room[1])]
        fitting.append((i, anchor))
    return fitting


def heat_panel(pen: Pen, slot: PanelPlan, rows: Sequence[int], classes: Classes) -> MarksPanel:
    """A strip of shades for each row; columns whose names would not fit are numbered, and explained above."""
    row_names = [pen.row_name(row) for row in rows]
    left = _beside(row_names)
    above = 0 if left else LABEL
    width = (100 - left) / len(slot.columns)
    middles = [round(left + (i + 0.5) * width, 2) for i in range(len(slot.columns))]
    names = [pen.names(rows[0], column)[-1] for column in slot.columns] if rows else []
    lines = [wrap(name, max(len(name) // 2 + 3, int(width / WIDE_LETTER) - 1)) for name in names]
    deep = max(map(len, lines), default=1)
    longest = max((len(line) for name in lines for line in name), default=0) + 1
    named = deep <= 2 and WIDE_LETTER * longest <= width
    plain = named and LETTER * longest <= width
    y = TOP - 4 + (14 if named and deep > 1 else 0)
    marks = []
    for i, (x, name) in enumerate(zip(middles, lines, strict=True)):
        for place, line in enumerate(name if named else ()):
            look, at_y = "scale" if plain else "scale wide", y - 9 - 14 * (len(name) - 1 - place)
            marks.append(Mark("text", look, x, at_y, text=line, anchor="middle"))
        if not plain:
            look = "scale narrow" if named else "scale"
            marks.append(Mark("text", look, x, y - 9, text=str(i + 1), anchor="middle"))
    figures = len(rows) * len(slot.columns) <= MOST_FIGURES
    for row, row_name in zip(rows, row_names, strict=True):
        anchor, x = ("end", left - 1.5) if left else ("start", 0.0)
        marks.append(Mark("text", "label", x, y + 14, text=row_name, anchor=anchor))
        for i, column in enumerate(slot.columns):
            at = (slot.block, row, column)
            description = pen.describe(at, *pen.names(row, column))
            known = pen.known(at)
            look = f"h{classes.shade(pen.value(at))}" if known else "h0"
            size = (round(width, 3), STRIP)
            marks.append(
                Mark(
                    "rect",
                    look,
                    round(left + i * width, 3),
                    y + above,
                    *size,
                    description=description,
                )
            )
            text = pen.text(at)
            fits = WIDE_LETTER * (len(text) + 1) <= width
            if not known or (figures and fits):
                look = f"figure wide on-{look}" if known else "figure"
                marks.append(
                    Mark("text", look, middles[i], y + above + 14, text=text, anchor="middle")
                )
        y += above + STRIP + (6 if above else 1)
    return MarksPanel(slot.labels, tuple(marks), y, named)


def _whisker_across(pen: Pen, at: At, scale: Scale, y: float) -> list[Mark]:
    whisker, is_open = pen.whisker(at, scale)
    if whisker is None:
        return []
    caps = [x for x, without_end in zip(whisker, is_open, strict=True) if not without_end]
    marks = [Mark("line", "whisker", whisker[0], y, whisker[1], y)]
    return marks + [Mark("line", "whisker", x, y - 3, x, y + 3) for x in caps]


# --- Bars, side by side or on top of each other; a suppressed figure is its letter, never a bar
# Lengths are percentages of the width and heights are pixels, so that a chart fits a phone and its words stay
# readable.

SPACE = 82.0
"""Percent of the width for bars; the rest is for the figure behind the longest of them."""

STACKED = 95.0
"""Percent of the width for stacked bars, which have no figure behind them."""

LEFT = 12.0
"""Percent of the width before the longest bar to the left of zero, for its figure."""

ABOVE, THICK, GAP, BETWEEN = 22, 13, 3, 10
"""Pixels: the scale above, a bar, the gap between bars and between categories."""


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
    """The bars of one category, with its name above or beside them."""

    label: str
    y: float
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class ChartPanel:
    """One chart: what it is about, its bars, and the round numbers of its scale."""

    labels: tuple[tuple[str, str], ...]
    groups: tuple[BarGroup, ...]
    height: int
    ticks: tuple[tuple[float, str], ...]
    zero: float
    beside: float = 0.0
    """Where names end that stand beside bars, in percent of the width."""
    kind: str = field(default="bars", init=False)


def bars_panel(
    pen: Pen, slot: PanelPlan, rows: Sequence[int], ends: tuple[float, float], stacked: bool
) -> ChartPanel:
    """A panel with its groups of bars below each other."""
    beside = _beside([pen.row_name(row) for row in rows])
    left = beside + (LEFT if ends[0] < 0 else 0.0)
    scale = Scale(pen, ends, left, (STACKED if stacked else SPACE) - left, 2 if beside else 4)
    groups = []
    above = 0 if beside else LABEL
    thick = (1 if stacked else len(slot.columns)) * (THICK + GAP)
    y = ABOVE + 2
    for row in rows:
        draw = _stack if stacked else _bars
        at = y + above - 6 if above else y + thick / 2 + 3
        groups.append(BarGroup(pen.row_name(row), at, draw(pen, slot, row, scale, y + above)))
        y += above + thick + (BETWEEN if above or thick > THICK + GAP else BETWEEN // 2)
    return ChartPanel(slot.labels, tuple(groups), y, scale.ticks(), scale.at(0.0), beside)


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
