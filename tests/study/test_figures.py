"""Figures are drawn from what the studies computed."""

from __future__ import annotations

from typing import Any

import pytest

from lustrum.model import InputError
from lustrum.study import Line, Panel, Study
from lustrum.study.figures import components_figure, map_figure


def rows_of(spec: dict[str, Any], chart: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a chart, wherever the specification keeps them."""
    data = chart["data"]
    rows: list[dict[str, Any]] = data.get("values") or spec["datasets"][data["name"]]
    return rows


def test_the_three_terms_of_the_risk_are_three_curves() -> None:
    spec = components_figure().to_dict()
    panels = spec["hconcat"]
    assert [panel["encoding"]["x"]["title"] for panel in panels] == [
        "Share of empty cells",
        "Empty cells of ten, the rest even",
        "People in the table",
    ]
    entropy = [row["y"] for row in rows_of(spec, panels[1])]
    assert entropy == sorted(entropy)
    assert entropy[-1] == 1.0


def test_a_map_has_a_point_for_every_pair_of_risk_and_utility() -> None:
    lines = (
        Line("table 1: rounding: risk", 0.2, 0.1, 1.0),
        Line("table 1: rounding: utility", 0.9, 0.95, 1.0),
        Line("alone: risk", None, 0.5, 1.0),
    )
    spec = map_figure(Study("x", "x", "x", (Panel("p", lines),))).to_dict()
    points = {(r["figure"], r["risk"], r["utility"], r["short"]) for r in rows_of(spec, spec)}
    assert points == {("ours", 0.1, 0.95, "T1"), ("printed", 0.2, 0.9, "T1")}


def test_a_study_without_pairs_has_no_map() -> None:
    with pytest.raises(InputError, match="no pairs of risk and utility"):
        map_figure(Study("x", "x", "x", ()))
