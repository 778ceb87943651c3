"""Bars are as long as the published figures say; what is suppressed has a letter and no bar."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Category, Release, TableAxis
from lustrum.numeric.structure import UNBOUNDED
from lustrum.server.http.templating import DESIGN, STATIC
from lustrum.server.table_view import chart
from lustrum.server.table_view.arrange import arrange
from lustrum.server.table_view.chart import Chart, draw
from lustrum.server.table_view.marks import LEFT, SPACE
from lustrum.server.urls.display import TableView
from server.test_layout import axis


def drawn(*axes: TableAxis, values: Any, status: Any = None, view: TableView, **more: Any) -> Chart:
    array = np.asarray(values, dtype=np.int64).reshape([len(a) for a in axes])
    letters = np.full(array.shape, "F") if status is None else np.asarray(status)
    made = Release(axes, array, letters, {"method": "none"}, unit="people", **more)
    return draw(arrange(made, view))


PLAIN = TableView(form="chart", chart="bars")


def at(panel: Any, value: float) -> Any:
    """Where a value stands by the scale that a reader sees."""
    (x, first), *_, (to_x, last) = panel.ticks
    low, high = (
        float(re.sub(r"[^\d.-]", "", text.replace("\u2212", "-"))) for text in (first, last)
    )
    return pytest.approx(x + (to_x - x) * (value - low) / (high - low), abs=0.02)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=12))
def test_bars_are_in_proportion_to_the_figures(values: list[int]) -> None:
    made = drawn(axis("a", len(values)), values=values, view=PLAIN)
    (panel,) = made.panels
    for group, value in zip(panel.groups, values, strict=True):
        (bar,) = group.bars
        assert bar.x == panel.zero == at(panel, 0)
        assert bar.x + bar.width == at(panel, value)
        assert bar.text.replace(",", "") == str(value)
    places = [x for x, _ in panel.ticks]
    assert places == sorted(places)
    assert 2 <= len(places) <= 6
    assert (places[0], places[-1]) == (panel.zero, SPACE)  # no figure lies beyond the last number


def test_totals_are_not_drawn_and_the_order_is_that_of_the_table() -> None:
    made = drawn(
        axis("a", 3, True),
        values=[2, 9, 4, 15],
        view=TableView(form="chart", chart="bars", sort="-value"),
    )
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
        view=TableView(form="chart", chart="stacked"),
    )
    assert made.kind == "stacked"
    bars = made.panels[0].groups[1].bars
    panel = made.panels[0]
    assert [bar.x for bar in bars] == [at(panel, 0), at(panel, 3), at(panel, 6)]
    assert bars[2].x + bars[2].width == at(panel, 10)
    assert {bar.y for bar in bars} == {bars[0].y}


def test_a_suppressed_figure_is_a_letter_without_a_bar() -> None:
    status = [["F", "A"], ["F", "F"]]
    for view in (PLAIN, TableView(form="chart", chart="stacked")):
        made = drawn(axis("a", 2), axis("b", 2), values=[5, 99, 5, 5], status=status, view=view)
        bar = made.panels[0].groups[0].bars[1]
        assert bar.hidden
        assert bar.text == "A"
        assert bar.width == 0
        assert "suppressed" in bar.description
        assert "99" not in str(made)
    assert made.description == "3 bars by a and b. 1 figure is not shown."


def test_whiskers_reach_as_far_as_the_true_value_can() -> None:
    view = TableView(form="chart", chart="bars", bounds="on")
    low, high = np.array([2, -UNBOUNDED]), np.array([8, UNBOUNDED])
    made = drawn(axis("a", 2), values=[5, 4], least=low, most=high, view=view)
    first, second = (group.bars[0] for group in made.panels[0].groups)
    panel = made.panels[0]
    assert first.whisker == (at(panel, 2), at(panel, 8))
    assert first.end == at(panel, 8)
    assert "true value: 2–8" in first.description
    assert second.whisker == (
        panel.zero,
        SPACE,
    )  # nothing bounds it: the line has no end on either side
    assert second.caps == ()
    assert "true value: not known" in second.description
    plain = drawn(axis("a", 2), values=[5, 4], least=low, most=high, view=PLAIN)
    assert plain.panels[0].groups[0].bars[0].whisker is None


def test_percentages_are_drawn_as_the_table_shows_them() -> None:
    view = TableView(form="chart", chart="bars", show="column-percent")
    made = drawn(axis("a", 2), axis("b", 2), values=[1, 0, 3, 0], view=view)
    bars = [group.bars for group in made.panels[0].groups]
    assert [b[0].text for b in bars] == ["25.0", "75.0"]
    assert [b[1].text for b in bars] == ["–", "–"]
    assert all(b[1].hidden for b in bars)
    assert [text for _, text in made.panels[0].ticks] == [
        "0\u202f%",
        "25\u202f%",
        "50\u202f%",
        "75\u202f%",
    ]


def test_negative_figures_go_the_other_way() -> None:
    made = drawn(axis("a", 2), values=[-10, 30], view=TableView(form="chart", chart="stacked"))
    left, right = (group.bars[0] for group in made.panels[0].groups)
    zero = made.panels[0].zero
    panel = made.panels[0]
    assert zero == at(panel, 0)
    assert (left.x, left.x + left.width) == (at(panel, -10), zero)
    assert (left.negative, left.end) == (True, left.x)  # its figure stands to its left
    assert left.x >= panel.beside + LEFT
    assert right.x == zero


def test_what_is_typical_is_drawn_unasked_and_said() -> None:
    errors = np.array([2, -1])
    survey = drawn(
        axis("a", 2), values=[8, 4], errors=errors, grades=np.array(["", ""]), view=PLAIN
    )
    first, second = (group.bars[0] for group in survey.panels[0].groups)
    panel = survey.panels[0]
    assert first.whisker == (at(panel, 6), at(panel, 10))
    assert second.whisker is None
    assert survey.captions == ("Thin lines: one standard error to either side",)
    counts = drawn(axis("a", 2), values=[8, 1], margin=2, view=PLAIN)
    panel = counts.panels[0]
    first, second = (group.bars[0] for group in panel.groups)
    assert first.caps == (at(panel, 6), at(panel, 10))
    assert second.whisker == (panel.zero, at(panel, 3))
    assert "margin of error, 2 to either side" in counts.captions[0]


def test_a_margin_that_would_be_a_speck_is_said_and_not_drawn() -> None:
    made = drawn(axis("a", 2), values=[60_000, 900], margin=18, view=PLAIN)
    assert [group.bars[0].whisker for group in made.panels[0].groups] == [None, None]
    assert made.captions == ("Margin of error: 18 to either side, too small to draw",)


def test_small_charts_of_unlike_size_have_scales_of_their_own() -> None:
    values = [100, 80, 2, 1]
    pivot = (("a", "layers"), ("b", "rows"))
    axes = axis("a", 2), axis("b", 2)
    made = drawn(*axes, values=values, view=TableView(form="chart", pivot=pivot))
    for panel, most in zip(made.panels, (100, 2), strict=True):
        bar = panel.groups[0].bars[0]
        assert bar.x + bar.width == at(panel, most) == SPACE
    assert "Each chart has a scale of its own." in made.remarks
    shared = drawn(*axes, values=values, view=TableView(form="chart", pivot=pivot, scale="shared"))
    small = shared.panels[1]
    assert small.zero + small.groups[0].bars[0].width == at(small, 2)
    assert small.ticks == shared.panels[0].ticks


@pytest.mark.parametrize("pivot", [(), (("a", "columns"),), (("a", "layers"),)])
def test_nothing_but_zeros_or_one_cell_can_be_drawn(pivot: tuple[tuple[str, str], ...]) -> None:
    made = drawn(axis("a", 1), values=[0], view=TableView(form="chart", pivot=pivot))
    assert made.panels[0].groups[0].bars[0].width == 0


def _light(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return sum(v * w for v, w in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


@pytest.mark.parametrize("dark", [False, True])
def test_every_colour_stands_out_from_the_ground(dark: bool) -> None:
    def found(file: str, name: str) -> str:
        place = next(folder / file for folder in (STATIC, DESIGN) if (folder / file).is_file())
        text = place.read_text(encoding="utf-8")
        values = re.findall(rf"--{name}: (#[0-9a-f]{{6}});", text)
        assert len(values) == 2, "one for light and one for dark"
        return str(values[dark])

    ground = _light(found("base.css", "surface"))
    for number in range(1, chart.MOST_SERIES + 1):
        bar = _light(found("table.css", f"c{number}"))
        high, low = max(bar, ground) + 0.05, min(bar, ground) + 0.05
        assert high / low >= 3


def ages(*labels: str) -> TableAxis:
    return TableAxis("age", "Age", tuple(Category(x, x, (i,)) for i, x in enumerate(labels)))


SEX = TableAxis("sex", "Sex", (Category("1", "Male", (0,)), Category("2", "Female", (1,))))
BANDS = ages(*(f"{10 * i} to {10 * i + 9}" for i in range(9)))


@pytest.mark.parametrize(
    ("axes", "view", "kind"),
    [
        ((BANDS, SEX), {}, "pyramid"),
        ((BANDS, axis("region", 3)), {}, "lines"),
        ((BANDS, axis("region", 3)), {"show": "row-percent"}, "stacked"),
        ((axis("a", 8), axis("b", 9)), {}, "heat"),
        ((axis("a", 3), axis("b", 3)), {}, "bars"),
        ((axis("a", 3), axis("b", 3)), {"chart": "pyramid"}, "bars"),
        ((axis("a", 3), axis("b", 3)), {"chart": "heat"}, "heat"),
        ((BANDS, SEX), {"chart": "stacked"}, "stacked"),
    ],
)
def test_the_chart_fits_the_question_unless_another_one_is_asked_for(
    axes: tuple[TableAxis, ...], view: dict[str, str], kind: str
) -> None:
    size = int(np.prod([len(a) for a in axes]))
    made = drawn(*axes, values=np.arange(1, size + 1), view=TableView(form="chart", **view))  # type: ignore[arg-type]
    assert made.kind == kind


def test_a_pyramid_has_two_halves_on_one_scale_and_draws_the_margin() -> None:
    values = np.arange(18).reshape(9, 2) * 10
    made = drawn(BANDS, SEX, values=values, margin=10, view=TableView(form="chart"))
    rects = [m for m in made.panels[0].marks if m.shape == "rect"]  # type: ignore[union-attr]
    assert len(rects) == 18
    widths = {m.description: m.to_x for m in rects}
    unit = widths["80 to 89, Female: 170"] / 170
    assert widths["40 to 49, Male: 80"] == pytest.approx(80 * unit, abs=0.02)
    lefts = [m for m in rects if m.look == "c1"]
    assert all(m.x + m.to_x <= 37.01 for m in lefts)
    assert any(m.look == "whisker" for m in made.panels[0].marks)  # type: ignore[union-attr]
    assert made.description.startswith("A pyramid by age and sex. Largest: 80 to 89, Female: 170.")


def test_lines_are_broken_where_a_figure_is_hidden_and_never_drawn_at_zero() -> None:
    status = np.full((9, 1), "F")
    status[4] = "A"
    axes = (BANDS, axis("b", 1))
    made = drawn(
        *axes, values=np.arange(9) + 5, status=status, view=TableView(form="chart", chart="lines")
    )
    marks = made.panels[0].marks  # type: ignore[union-attr]
    assert sum(m.shape == "dot" for m in marks) == 8
    assert sum(m.look.startswith("stroke") for m in marks) == 6  # two gaps beside the hidden one
    assert [m.text for m in marks if m.look == "figure"] == ["A"]
    assert "9" not in [m.text for m in marks]


def test_lines_are_named_where_they_end_and_no_name_covers_another() -> None:
    values = np.array([[9] * 6] * 9) + np.arange(6)
    made = drawn(BANDS, axis("b", 6), values=values, view=TableView(form="chart", chart="lines"))
    names = [m for m in made.panels[0].marks if m.look.startswith("end ")]  # type: ignore[union-attr]
    assert made.named
    assert {m.text for m in names} == {f"b{i}" for i in range(6)}
    assert all(b.y - a.y >= 14 for a, b in pairwise(names))
    assert all(0 < m.y <= made.panels[0].height for m in names)
