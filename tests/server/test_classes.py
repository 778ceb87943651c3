"""Classes hold every value once, in order, and are never narrower than protection blurs."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.demo import description_path
from lustrum.model import Category, CellStatus, Release, TableAxis
from lustrum.server.table_view.arrange import arrange
from lustrum.server.table_view.chart import draw
from lustrum.server.table_view.classes import MOST_CLASSES, classed
from lustrum.server.table_view.layout import lay_out
from lustrum.server.table_view.map import draw_map
from lustrum.server.urls.display import TableView
from lustrum.tabulate import read_description

VALUES = st.lists(st.integers(0, 400), min_size=1, max_size=40)


@given(VALUES, st.sampled_from(["quantile", "natural"]), st.integers(0, 30))
def test_classes_part_the_values_and_are_at_least_two_margins_wide(
    values: list[int], how: str, margin: int
) -> None:
    made = classed(values, how, margin)
    assert 1 <= len(made.ends) <= MOST_CLASSES
    held = [v for low, high in made.ends for v in sorted(values) if low <= v <= high]
    assert held == sorted(values)
    begins = [low for low, _ in made.ends]
    for low, following in pairwise(begins):
        assert following - low >= 2 * margin
    shades = [made.shade(v) for v in sorted(values)]
    assert shades == sorted(shades)
    assert len(set(shades)) == len(made.ends)


@given(st.lists(st.integers(0, 60), min_size=3, max_size=9, unique=True))
def test_natural_breaks_leave_the_least_spread(values: list[int]) -> None:
    ranked = sorted(values)

    def spread(cuts: tuple[int, ...]) -> float:
        parts = [ranked[a:b] for a, b in zip((0, *cuts), (*cuts, len(ranked)), strict=True)]
        return sum(sum((v - sum(p) / len(p)) ** 2 for v in p) for p in parts)

    best = min(spread(c) for c in combinations(range(1, len(ranked)), 2))
    made = classed(ranked, "natural", most=3)
    cuts = tuple(ranked.index(low) for low, _ in made.ends[1:])
    assert spread(cuts) == pytest.approx(best)


DEMO = read_description(description_path("demo"))
DISTRICTS = next(v for v in DEMO.variable("area").levels if v.name == "district").categories


def shaded(values: list[int], margin: int | None, drawing: str) -> dict[int, int]:
    """The shade of each figure of a table, in a drawing of it."""
    axes = [TableAxis("area", "Area", tuple(DISTRICTS))]
    if drawing == "chart":
        axes = [TableAxis.plain("a", list("1234567")), TableAxis.plain("b", list("12"))]
    published = np.array(values).reshape([len(axis) for axis in axes])
    status = np.full(published.shape, "F")
    release = Release(tuple(axes), published, status, {"method": "none"}, margin=margin)
    if drawing == "table":
        rows = lay_out(release, TableView(heat="on")).blocks[0].rows
        found = [row.cells[0].shade for row in rows]
    elif drawing == "map":
        made = draw_map(arrange(release, TableView(form="map"), "area"), DEMO)
        found = [shape.shade for shape in made.shapes]
    else:
        (panel,) = draw(arrange(release, TableView(form="chart", chart="heat"))).panels
        found = [int(mark.look[1:]) for mark in panel.marks if mark.shape == "rect"]
    assert len(found) == len(values)
    return dict(zip(values, found, strict=True))


def test_bars_are_as_long_as_figures_are_large_and_stand_for_no_hidden_cell_and_no_total() -> None:
    parts = (Category("1", "1", (0,)), Category("2", "2", (1,)), Category("T", "both", (0, 1)))
    axes = (TableAxis("a", "a", parts), TableAxis.plain("b", ["1", "2"]))
    published = np.array([[400, -100], [0, 7], [400, -93]])
    status = np.full(published.shape, "F")
    status[1, 1] = CellStatus.SECONDARY.value
    release = Release(axes, published, status, {"method": "none"})
    rows = lay_out(release, TableView(heat="bars")).blocks[0].rows
    found = {row.label: [cell.bar for cell in row.cells] for row in rows}
    assert list(found.values()) == [[100, -25], [0, None], [None, None]]
    plain = lay_out(release, TableView()).blocks[0].rows
    assert all(cell.bar is None for row in plain for cell in row.cells)


@pytest.mark.parametrize("drawing", ["table", "map", "chart"])
@given(st.lists(st.integers(0, 200), min_size=14, max_size=14, unique=True), st.integers(1, 60))
def test_shades_of_a_drawing_never_show_what_protection_may_have_changed(
    drawing: str, values: list[int], margin: int
) -> None:
    assert len(set(shaded(values, None, drawing).values())) > 1
    shades = shaded(values, margin, drawing)
    first = [min(v for v in values if shades[v] == shade) for shade in sorted(set(shades.values()))]
    for low, following in pairwise(first):
        assert following - low >= 2 * margin
