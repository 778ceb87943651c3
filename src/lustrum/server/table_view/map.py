"""The table as a map, where a dataset has shapes for the categories of a variable.

The variable runs down the table, and of every other one a single category is shown. Shades are classes of the
published figures, never narrower than protection may have moved them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lustrum.model import Dataset, TableAxis
from lustrum.model.geography import Ring
from lustrum.model.text import lowered, say, say_many
from lustrum.server.table_view.arrange import Arrangement
from lustrum.server.table_view.chart import shades
from lustrum.server.table_view.classes import classed
from lustrum.server.table_view.drawing import Pen
from lustrum.server.table_view.figures import ENGLISH_SIGNS, Signs
from lustrum.server.table_view.layout import Parts, named

MOST_NAMED = 24
"""So many places have their names on the map."""


@dataclass(frozen=True)
class Shape:
    """A category on the map: its outline, its shade (0 where no figure is shown) and its figure in words."""

    code: str
    path: str
    shade: int
    description: str


@dataclass(frozen=True)
class Place:
    """A name on the map."""

    name: str
    x: int
    y: int


@dataclass(frozen=True)
class Map:
    """Shapes on a sheet, with what their shades mean and how many categories have each.

    ``shown`` names the category of every other variable. Where there are too many shapes to be named, names and
    ``borders`` are those of the coarser parts that they lie in.
    """

    description: str
    width: int
    height: int
    shapes: tuple[Shape, ...]
    places: tuple[Place, ...]
    borders: str
    shown: tuple[tuple[str, str], ...]
    legend: tuple[tuple[int, str, int], ...]
    hidden: int
    remarks: tuple[str, ...]
    source: str


def draw_map(
    table: Arrangement,
    dataset: Dataset,
    signs: Signs = ENGLISH_SIGNS,
    beside: Arrangement | None = None,
) -> Map:
    """The map of a table that :func:`arrange` turned for one, in the same classes as the table beside it."""
    assert table.inner is not None
    axis = table.axes[table.inner]
    geography = next(g for g in dataset.maps if g.variable == axis.name)
    variable = dataset.variable(axis.name)
    parts = Parts.of(table, variable)
    pen = Pen(table, signs, None)
    rows, known = _rows(table, pen)
    values = [pen.value((0, row, 0)) for row in known]
    both, margin = list(values), table.typical_margin
    if beside is not None:
        other = Pen(beside, signs, None)
        both += [other.value((0, row, 0)) for row in _rows(beside, other)[1]]
        margin = max(margin, beside.typical_margin)
    classes = classed(both, table.view.classes, margin)
    counts = [classes.shade(value) for value in values]
    shapes, places, missing = [], [], []
    borders = ""
    for part in () if parts is None else parts.level.categories:
        outline = geography.outline(variable.codes[m] for m in part.members)
        if outline:
            places.append(Place(named(part, table.view.names), *_middle(outline)))
            borders += _path(outline)
    for row in rows:
        category = table.rows[row]
        assert category is not None
        outline = geography.outline(variable.codes[m] for m in category.members)
        if not outline:
            missing.append(pen.row_name(row))
            continue
        at = (0, row, 0)
        shade = classes.shade(pen.value(at)) if pen.known(at) else 0
        description = pen.describe(at, pen.row_name(row))
        shapes.append(Shape(category.code, _path(outline), shade, description))
        if len(rows) <= MOST_NAMED:
            places.append(Place(pen.row_name(row), *_middle(outline)))
    return Map(
        description=_words(pen, axis, known, rows),
        width=geography.width,
        height=geography.height,
        shapes=tuple(shapes),
        places=tuple(places[:MOST_NAMED]),
        borders=borders,
        shown=tuple((a.label, named(c, table.view.names)) for a, c in table.blocks[0]),
        hidden=len(rows) - len(known),
        legend=tuple((shade, text, counts.count(shade)) for shade, text in shades(classes, pen)),
        remarks=tuple(_remarks(table, pen, missing)),
        source=geography.label,
    )


def _rows(table: Arrangement, pen: Pen) -> tuple[list[int], list[int]]:
    """The rows of places, and those with a figure."""
    rows = sorted(line.row for line in table.lines if not table.total_rows[line.row])
    return rows, [row for row in rows if pen.known((0, row, 0))]


def _remarks(table: Arrangement, pen: Pen, missing: Sequence[str]) -> list[str]:
    said: list[str] = []
    if table.typical_margin:
        text = say(
            "Each class is at least {width} wide, twice the margin of error, so that shades do not show "
            "differences that protection may have made.",
            width=pen.tick(2 * table.typical_margin),
        )
        said.append(text)
    if not table.view.percent and table.release.additive:
        said.append(
            say("Counts are larger where more are counted; percentages compare places better.")
        )
    if missing:
        said.append(
            say_many(
                "{number} category has no shape on the map.",
                "{number} categories have no shape on the map.",
                len(missing),
            )
        )
    return said


def _words(pen: Pen, axis: TableAxis, known: Sequence[int], rows: Sequence[int]) -> str:
    """The map for people who cannot see it."""
    whole: str = say(
        "A map of {number:,} places by {variable}.", number=len(rows), variable=lowered(axis.label)
    )
    if len(known) > 1:
        ranked = sorted(known, key=lambda row: pen.value((0, row, 0)))
        least, most = (
            pen.describe((0, row, 0), pen.row_name(row)) for row in (ranked[0], ranked[-1])
        )
        ends = say("Largest: {most}. Smallest: {least}.", most=most, least=least)
        whole = say("{some} {more}", some=whole, more=ends)
    hidden = len(rows) - len(known)
    if hidden:
        more = say_many("{number} figure is not shown.", "{number} figures are not shown.", hidden)
        whole = say("{some} {more}", some=whole, more=more)
    return whole


def _middle(outline: Sequence[Ring]) -> tuple[int, int]:
    """The middle of the largest part, where a name is written."""
    ends = [
        (
            min(x for x, _ in ring),
            max(x for x, _ in ring),
            min(y for _, y in ring),
            max(y for _, y in ring),
        )
        for ring in outline
    ]
    left, right, top, bottom = max(ends, key=lambda e: (e[1] - e[0]) * (e[3] - e[2]))
    return (left + right) // 2, (top + bottom) // 2


def _path(outline: Sequence[Ring]) -> str:
    """Rings as the path of an SVG, in steps, which are shorter."""
    parts = []
    for ring in outline:
        x, y = ring[0]
        steps = []
        for a, b in ring[1:]:
            steps.append(f"{a - x},{b - y}")
            x, y = a, b
        parts.append(f"M{ring[0][0]},{ring[0][1]}l{' '.join(steps)}z")
    return "".join(parts)
