"""Bars are as long as the published figures say; what is suppressed has a letter and no bar."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Category, Release, TableAxis
from lustrum.server.http.templating import STATIC
from lustrum.server.table_view import chart
from lustrum.server.table_view.arrange import arrange
from lustrum.server.table_view.chart import SPACE, Chart, draw
from lustrum.server.urls.display import View
from lustrum.structure import UNBOUNDED


def axis(name: str, size: int, total: bool = False) -> TableAxis:
    own = tuple(Category(f"{i}", f"{name}{i}", (i,)) for i in range(size))
    whole = (Category("_T", "Total", tuple(range(size))),) if total else ()
    return TableAxis(name, name.title(), own + whole)


def drawn(*axes: TableAxis, values: Any, status: Any = None, view: View, **more: Any) -> Chart:
    array = np.asarray(values, dtype=np.int64).reshape([len(a) for a in axes])
    letters = np.full(array.shape, "F") if status is None else np.asarray(status)
    made = Release(axes, array, letters, {"method": "none"}, unit="people", **more)
    return draw(arrange(made, view))


PLAIN = View(form="chart")


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=12))
def test_bars_are_in_proportion_to_the_figures(values: list[int]) -> None:
    made = drawn(axis("a", len(values)), values=values, view=PLAIN)
    (panel,) = made.panels
    longest = max(values) or 1
    for group, value in zip(panel.groups, values, strict=True):
        (bar,) = group.bars
        assert bar.x == 0
        assert bar.width == pytest.approx(SPACE * value / longest, abs=0.02)
        assert bar.text.replace("\u202f", "") == str(value)
    places = [x for x, _ in made.ticks]
    assert places == sorted(places)
    assert 2 <= len(places) <= 6
    assert places[0] == 0


def test_totals_are_not_drawn_and_the_order_is_that_of_the_table() -> None:
    made = drawn(axis("a", 3, True), values=[2, 9, 4, 15], view=View(form="chart", sort="-value"))
    assert [g.label for g in made.panels[0].groups] == ["a1", "a2", "a0"]


def test_a_second_variable_gives_colours_and_a_third_panels_on_one_scale() -> None:
    axes = (axis("a", 2, True), axis("b", 3, True), axis("c", 2, True))
    made = drawn(*axes, values=np.arange(36), view=PLAIN)
    assert made.series == ("b0", "b1", "b2")
    assert [panel.labels for panel in made.panels] == [(("C", "c0"),), (("C", "c1"),)]
    first, second = (panel.groups[1].bars for panel in made.panels)
    # The cell (a1, b2, c0) holds 18 and (a1, b2, c1) holds 19.
    assert [bar.text for bar in first] == ["12", "15", "18"]
    assert [bar.text for bar in second] == ["13", "16", "19"]
    assert first[2].width / second[2].width == pytest.approx(18 / 19, abs=0.001)
    assert [bar.colour for bar in first] == [1, 2, 3]


def test_more_columns_than_colours_give_a_panel_each() -> None:
    made = drawn(axis("a", 2), axis("b", 7), values=np.arange(14), view=PLAIN)
    assert made.series == ()
    assert [panel.labels for panel in made.panels] == [(("B", f"b{i}"),) for i in range(7)]
    assert made.panels[3].groups[1].bars[0].text == "10"


def test_what_is_left_out_is_said() -> None:
    made = drawn(axis("a", 50), axis("b", 13), values=np.arange(650), view=PLAIN)
    assert len(made.panels) == chart.MOST_PANELS
    assert len(made.panels[0].groups) == chart.MOST_CATEGORIES
    assert [str(remark) for remark in made.remarks] == [
        "The first 40 of 50 categories are drawn; sorting chooses which they are.",
        "The first 12 of 13 charts are drawn; turning the table or choosing a part shows others.",
    ]


def test_stacked_bars_stand_end_to_end() -> None:
    made = drawn(
        axis("a", 2),
        axis("b", 3),
        values=[1, 2, 1, 3, 3, 4],
        view=View(form="chart", bars="stacked"),
    )
    assert made.stacked
    bars = made.panels[0].groups[1].bars
    assert [bar.x for bar in bars] == pytest.approx([0, 0.3 * SPACE, 0.6 * SPACE], abs=0.02)
    assert bars[2].x + bars[2].width == pytest.approx(SPACE, abs=0.02)
    assert {bar.y for bar in bars} == {bars[0].y}


def test_a_suppressed_figure_is_a_letter_without_a_bar() -> None:
    status = [["F", "A"], ["F", "F"]]
    for view in (PLAIN, View(form="chart", bars="stacked")):
        made = drawn(axis("a", 2), axis("b", 2), values=[5, 99, 5, 5], status=status, view=view)
        bar = made.panels[0].groups[0].bars[1]
        assert bar.hidden
        assert bar.text == "A"
        assert bar.width == 0
        assert "suppressed" in bar.words
        assert "99" not in str(made)
    assert made.words == "3 bars by a and b. 1 figure is not shown."


def test_whiskers_reach_as_far_as_the_true_value_can() -> None:
    view = View(form="chart", bounds="on")
    low, high = np.array([2, -UNBOUNDED]), np.array([8, UNBOUNDED])
    made = drawn(axis("a", 2), values=[5, 4], low=low, high=high, view=view)
    first, second = (group.bars[0] for group in made.panels[0].groups)
    assert first.whisker == (pytest.approx(SPACE * 2 / 8), SPACE)
    assert first.end == SPACE
    assert "true value: 2–8" in first.words
    assert second.whisker is None
    assert "true value: not known" in second.words
    plain = drawn(axis("a", 2), values=[5, 4], low=low, high=high, view=PLAIN)
    assert plain.panels[0].groups[0].bars[0].whisker is None


def test_percentages_are_drawn_as_the_table_shows_them() -> None:
    view = View(form="chart", show="column-percent")
    made = drawn(axis("a", 2), axis("b", 2), values=[1, 0, 3, 0], view=view)
    bars = [group.bars for group in made.panels[0].groups]
    assert [b[0].text for b in bars] == ["25.0", "75.0"]
    assert [b[1].text for b in bars] == ["–", "–"]
    assert all(b[1].hidden for b in bars)
    assert made.ticks[1] == (pytest.approx(SPACE * 20 / 75, abs=0.01), "20")


def test_negative_figures_go_the_other_way() -> None:
    made = drawn(axis("a", 2), values=[-10, 30], view=View(form="chart", bars="stacked"))
    left, right = (group.bars[0] for group in made.panels[0].groups)
    assert made.zero == pytest.approx(SPACE / 4)
    assert (left.x, left.width) == (0, pytest.approx(SPACE / 4))
    assert right.x == made.zero


@pytest.mark.parametrize("pivot", [(), (("a", "columns"),), (("a", "wafers"),)])
def test_nothing_but_zeros_or_one_cell_can_be_drawn(pivot: tuple[tuple[str, str], ...]) -> None:
    made = drawn(axis("a", 1), values=[0], view=View(form="chart", pivot=pivot))
    assert made.panels[0].groups[0].bars[0].width == 0


def _light(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return sum(v * w for v, w in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


@pytest.mark.parametrize("dark", [False, True])
def test_every_colour_stands_out_from_the_ground(dark: bool) -> None:
    def found(file: str, name: str) -> str:
        text = (STATIC / file).read_text(encoding="utf-8")
        values = re.findall(rf"--{name}: (#[0-9a-f]{{6}});", text)
        assert len(values) == 2, "one for light and one for dark"
        return str(values[dark])

    ground = _light(found("base.css", "surface"))
    for number in range(1, chart.MOST_SERIES + 1):
        bar = _light(found("table.css", f"c{number}"))
        high, low = max(bar, ground) + 0.05, min(bar, ground) + 0.05
        assert high / low >= 3
