"""The table as a chart, drawn from the figures that the table shows; totals are not drawn.

One variable gives bars, a second one bars side by side or on top of each other, lines, a pyramid or a heat map,
and whatever is left a small chart each. Without a choice the kind is what fits the question. Lines over the
marks show how uncertain a figure is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from lustrum.model.text import listed, lowered, say, say_many
from lustrum.server.table_view.arrange import Arrangement
from lustrum.server.table_view.classes import Classes, classed
from lustrum.server.table_view.drawing import PanelPlan, Pen, ends_of, reach_of
from lustrum.server.table_view.figures import ENGLISH_SIGNS, Signs
from lustrum.server.table_view.layout import named
from lustrum.server.table_view.marks import (
    ChartPanel,
    MarksPanel,
    bars_panel,
    heat_panel,
    lines_panel,
    pyramid_panel,
)
from lustrum.server.table_view.percentages import SHARES

MOST_SERIES = 6
MOST_CATEGORIES = 40
MOST_PANELS = 12
"""More colours, bars or charts than this could not be told apart."""

MOST_STRIPS = 160
MOST_COLUMNS = 30
"""A heat map may have so many rows and columns."""

_SEX = ("sex", "gender")
"""What the variable that divides a pyramid is called."""

ALONG = 8
"""So many ages, years or the like are drawn as lines."""

UNLIKE = 25.0
"""Where sizes of small charts differ by more than this factor, each has a scale of its own."""


@dataclass(frozen=True)
class Chart:
    """Charts side by side. ``captions`` say what the figures and lines are, ``remarks`` what is not drawn.

    ``shades`` explain the colours of a heat map.
    """

    kind: str
    description: str
    series: tuple[str, ...]
    panels: tuple[ChartPanel | MarksPanel, ...]
    captions: tuple[str, ...]
    remarks: tuple[str, ...]
    shades: tuple[tuple[int, str], ...] = ()
    named: bool = False
    """Whether names stand beside lines or above columns, so that no key is needed where there is room."""


def draw(table: Arrangement, signs: Signs = ENGLISH_SIGNS) -> Chart:
    """The chart of a table that was turned, sorted and thinned out."""
    kind = kind_of(table)
    slots, series = _slots(table, together=kind == "heat")
    lines = _drawn_rows(table)
    slots = [slot for slot in slots if slot.block in lines]
    most, room = max((len(rows) for rows in lines.values()), default=0), MOST_CATEGORIES
    if kind == "heat":
        room = MOST_STRIPS
    remarks = []
    if most > room:
        text = say(
            "The first {drawn} of {all} categories are drawn; sorting chooses which they are.",
            drawn=room,
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
    parts = {slot: lines[slot.block][:room] for slot in slots}
    values = table.values
    drawn = [values[s.block][np.ix_(rows, s.columns)] for s, rows in parts.items()]
    everything = np.concatenate([v.ravel() for v in drawn]) if drawn else np.zeros(0)
    reach = reach_of(table) if kind not in ("stacked", "heat") else None
    scales = [
        ends_of(reach, slot, rows, values, kind == "stacked")
        for (slot, rows), values in zip(parts.items(), drawn, strict=True)
    ]
    if not _apart(table.view.scale, scales):
        scales = [(min(s[0] for s in scales), max(s[1] for s in scales))] * len(scales)
    elif len(scales) > 1 and kind != "heat":
        remarks.append(say("Each chart has a scale of its own."))
    pen = Pen(table, signs, reach)
    known = everything[np.isfinite(everything)].tolist()
    classes = classed(known, "natural", table.typical_margin) if kind == "heat" else Classes(())
    panels: list[ChartPanel | MarksPanel] = []
    for (slot, rows), ends in zip(parts.items(), scales, strict=True):
        if kind == "pyramid":
            panels.append(pyramid_panel(pen, slot, rows, ends))
        elif kind == "lines":
            panels.append(lines_panel(pen, slot, rows, ends))
        elif kind == "heat":
            panels.append(heat_panel(pen, slot, rows, classes))
        else:
            panels.append(bars_panel(pen, slot, rows, ends, kind == "stacked"))
    return Chart(
        kind=kind,
        description=_words(pen, kind, parts, everything, series),
        series=tuple(series),
        panels=tuple(panels),
        captions=tuple(_captions(pen)),
        remarks=tuple(remarks),
        shades=shades(classes, pen),
        named=any(isinstance(p, MarksPanel) and p.named for p in panels),
    )


def shades(classes: Classes, pen: Pen) -> tuple[tuple[int, str], ...]:
    """What the figures of each class are, with its shade."""
    texts = [
        low if low == high else say("{low} to {high}", low=low, high=high)
        for low, high in ([pen.tick(end, short=False) for end in ends] for ends in classes.ends)
    ]
    return tuple(zip(classes.shades, texts, strict=True))


def kinds(table: Arrangement) -> tuple[str, ...]:
    """The kinds of charts that can show the table."""
    series = len(_slots(table)[1])
    rows = max((len(r) for r in _drawn_rows(table).values()), default=0)
    plain = not np.any(table.values < 0)
    columns = len(_slots(table, together=True)[1])
    suitable = {
        "bars": True,
        "stacked": series > 1 and plain,
        "lines": rows > 2,
        "pyramid": series == 2 and plain and rows > 2,
        "heat": 1 < columns <= MOST_COLUMNS and rows > 1,
    }
    return tuple(kind for kind, fits in suitable.items() if fits)


def kind_of(table: Arrangement) -> str:
    """The kind that was chosen; otherwise, or where it cannot be drawn, the one that fits the question."""
    wanted = table.view.chart
    return wanted if wanted in kinds(table) else fitting_kind(table)


def fitting_kind(table: Arrangement) -> str:
    """The kind that fits the question: a pyramid for ages by sex, lines along ages or years, and so on."""
    possible = kinds(table)
    rows = max(_drawn_rows(table).values(), key=len, default=[])
    labels = [named(c, "labels") for r in rows if (c := table.rows[r]) is not None]
    in_order = bool(labels) and 2 * sum(x[:1].isdigit() for x in labels) > len(labels)
    across = table.axes[table.placing.columns[-1]] if table.placing.columns else None
    by_sex = across is not None and any(
        x in f"{across.name} {across.label}".casefold() for x in _SEX
    )
    series, columns = len(_slots(table)[1]), len(_slots(table, together=True)[1])
    if in_order and by_sex and "pyramid" in possible and len(rows) >= ALONG // 2:
        return "pyramid"
    if "stacked" in possible and table.view.show == "row-percent":
        return "stacked"
    if in_order and len(rows) >= ALONG and (series or columns < 2):
        return "lines"
    if "heat" in possible and columns > MOST_SERIES and len(rows) > MOST_SERIES:
        return "heat"
    return "bars"


def _drawn_rows(table: Arrangement) -> dict[int, list[int]]:
    """The rows of each block that are drawn: totals only where there is nothing else."""
    block_rows: dict[int, list[int]] = {}
    only_totals = bool(table.total_rows.all())
    for line in table.lines:
        if only_totals or not table.total_rows[line.row]:
            block_rows.setdefault(line.block, []).append(line.row)
    return block_rows


def _captions(pen: Pen) -> list[str]:
    """What the figures are where they are no plain numbers, and what the lines are."""
    said: list[str] = []
    table, reach = pen.table, pen.reach
    release = table.release
    if table.view.derived:
        said.append(SHARES[table.view.show])
    if release.label and not release.statistics and release.unit and not table.view.percent:
        said.append(say("Unit: {unit}", unit=release.unit))
    if reach is None:
        return said
    return [*said, reach.says if pen.lines else reach.too_small or reach.says]


def _apart(wanted: str, scales: Sequence[tuple[float, float]]) -> bool:
    """Whether each small chart has a scale of its own: as the view says, otherwise where sizes differ much."""
    if wanted != "fitting":
        return wanted == "own"
    sizes = [high - low for low, high in scales]
    return len(sizes) > 1 and max(sizes) > UNLIKE * min(sizes)


def _slots(table: Arrangement, together: bool = False) -> tuple[list[PanelPlan], list[str]]:
    """A panel for each block and outer column; for each column too, if there are more than colours.

    All columns stay ``together`` where colours do not tell them apart.
    """
    names = table.view.names
    inner = len(table.picks[table.placing.columns[-1]]) if table.placing.columns else 1
    outer = len(table.columns) // inner
    heavy = table.total_columns.reshape(outer, inner)
    # A total is drawn only where there is nothing else.
    inner_columns = [j for j in range(inner) if not heavy[:, j].all()] or list(range(inner))
    groups = [k for k in range(outer) if not heavy[k].all()] or list(range(outer))
    blocks = [b for b, total in enumerate(table.total_blocks.tolist()) if not total]
    blocks = blocks or list(range(len(table.blocks)))
    series = [
        named(table.columns[j][-1][1], names)
        for j in inner_columns
        if table.placing.columns and len(inner_columns) > 1
    ]
    apart = len(inner_columns) > MOST_SERIES and not together
    slots = []
    for block, group in product(blocks, groups):
        above = [*table.blocks[block], *table.columns[group * inner][:-1]]
        labels = tuple((axis.label, named(category, names)) for axis, category in above)
        columns = [group * inner + j for j in inner_columns]
        if not apart:
            slots.append(PanelPlan(labels, block, tuple(columns)))
            continue
        for column in columns:
            axis, category = table.columns[column][-1]
            panel_labels = (*labels, (axis.label, named(category, names)))
            slots.append(PanelPlan(panel_labels, block, (column,)))
    return slots, [] if apart else series


def _words(
    pen: Pen,
    kind: str,
    parts: dict[PanelPlan, list[int]],
    values: npt.NDArray[np.float64],
    series: Sequence[str],
) -> str:
    """The chart for people who cannot see it: what is drawn, and its smallest and largest figure."""
    table = pen.table
    inner = table.axes[table.inner].label if table.inner is not None else table.release.unit
    by = lowered(inner)
    if series:
        across = table.axes[table.placing.columns[-1]].label
        by = say("{some} and {last}", some=by, last=lowered(across))
    known = int(np.isfinite(values).sum())
    what: dict[str, str] = {
        "pyramid": say("A pyramid by {variables}.", variables=by),
        "lines": say("Lines by {variables}.", variables=by),
        "heat": say("Shades by {variables}.", variables=by),
    }
    bars = say_many(
        "{number} bar by {variables}.", "{number} bars by {variables}.", known, variables=by
    )
    said = [what.get(kind, bars)]
    ends = _extremes(pen, parts)
    if ends:
        said.append(say("Largest: {most}. Smallest: {least}.", most=ends[1], least=ends[0]))
    hidden = values.size - known
    if hidden:
        said.append(
            say_many("{number} figure is not shown.", "{number} figures are not shown.", hidden)
        )
    whole = said[0]
    for more in said[1:]:
        whole = say("{some} {more}", some=whole, more=more)
    return whole


def _extremes(pen: Pen, parts: dict[PanelPlan, list[int]]) -> tuple[str, str] | None:
    """The smallest and the largest figure with their categories; none where all are alike."""
    places = [
        (slot, (slot.block, row, column))
        for slot, rows in parts.items()
        for row in rows
        for column in slot.columns
        if pen.known((slot.block, row, column))
    ]
    if len(places) < 2:
        return None
    extremes = [pick(places, key=lambda p: pen.value(p[1])) for pick in (min, max)]
    if pen.value(extremes[0][1]) == pen.value(extremes[1][1]):
        return None
    least, most = (
        pen.describe(at, listed([*(name for _, name in slot.labels), *pen.names(at[1], at[2])]))
        for slot, at in extremes
    )
    return least, most
