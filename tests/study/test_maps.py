"""The maps of the papers: figures of 2001, the order of 2015, and what holds beyond, with fixed seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lustrum.demo import people
from lustrum.model import InputError, Table
from lustrum.risk import EntropyRisk
from lustrum.rumap import RUMap, grid, rumap
from lustrum.study import Line
from lustrum.study.figures import components_figure, map_figure, tables_figure
from lustrum.study.maps import (
    RegionSwapping,
    _by,  # claims are read from this form
    _figures,
    _map_of_2001,
    beyond_claims,
    map_of_2015,
    map_with_totals,
    order_claims,
    property_lines,
    study_cube,
)
from lustrum.study.result import Panel, Study
from lustrum.study.table_server_outcomes import hypercube, output_tables

TABLES = ("table 1", "table 2", "table 3", "table 4")


@pytest.fixture(scope="module")
def counts() -> np.ndarray:
    return hypercube(people(100_000, seed=2001))


@pytest.fixture(scope="module")
def found(counts: np.ndarray) -> RUMap:
    return map_of_2015(study_cube(counts), 2001, draws=3)


def test_the_tables_of_the_map_are_those_of_the_paper(counts: np.ndarray, found: RUMap) -> None:
    for name, true in zip(TABLES, output_tables(counts), strict=True):
        assert np.array_equal(found.sweep.cases.tables[name].values, true)


@pytest.mark.parametrize("table", TABLES)
def test_the_order_of_the_methods_is_that_of_the_paper(found: RUMap, table: str) -> None:
    before = next(p for p in found.of(table) if p.family == "original data").risk
    claims = order_claims(_by(found, table), before)
    assert len(claims) == 4
    assert [what for what, holds in claims.items() if not holds] == []


@pytest.mark.parametrize("table", TABLES)
def test_what_the_map_says_beyond_the_paper(found: RUMap, table: str) -> None:
    claims = beyond_claims(_by(found, table))
    assert [what for what, holds in claims.items() if not holds] == []


@pytest.mark.parametrize("table", TABLES)
def test_protection_lowers_the_risk_where_that_can_be_expected(found: RUMap, table: str) -> None:
    lines = property_lines(table, found)
    assert [line.what for line in lines if not line.reproduced] == []
    assert all(line.expected == 1.0 for line in lines)  # there are small cells among so few people


def test_a_small_part_without_people_lets_the_risk_rise() -> None:
    """The one case in which protection raises the risk by much, from a table made for it."""
    number = np.arange(400).reshape(20, 20)
    table = Table.from_counts(np.where(number < 80, number**2 % 997 + 8, 0))
    noisy = rumap(table, grid("differential-privacy", epsilon=2.0), [EntropyRisk()], replications=3)
    original, private = (p for p in noisy.of() if p.family != "no data")
    assert EntropyRisk().terms_before(table).small == 0.0
    assert private.risk > original.risk + 0.1


def test_swapping_leaves_a_table_without_regions_as_it_is(found: RUMap) -> None:
    swapped = [p for p in found.of("table 3") if p.family.startswith("region-swapping")]
    assert [p.utility for p in swapped] == [1.0] * 4


def test_the_map_of_2001_has_suppression_and_rounding_on_its_frontier() -> None:
    lines = {line.what: line for line in _map_of_2001()}
    assert all(line.reproduced for line in lines.values())
    assert [what for what, line in lines.items() if line.ours] == [
        "suppression is on the frontier",
        "rounding to base 3 is on the frontier",
    ]
    # As printed, Markov perturbation with theta 0.2 is on it too.
    assert lines["Markov, theta 0.2 is on the frontier"].slip


def test_suppression_is_compared_with_rounding_by_certainty(counts: np.ndarray) -> None:
    points = {p.label: p for p in map_with_totals(study_cube(counts), 2001, draws=1).of()}
    assert all(np.isfinite(p.risk) and np.isfinite(p.utility) for p in points.values())
    assert points["suppression"].utility > points["random-rounding base 3"].utility
    assert points["random-rounding base 5"].risk < points["random-rounding base 3"].risk
    assert points["original data"].risk == 1.0


def test_regions_keep_their_sizes_when_people_swap() -> None:
    table = Table.from_counts(np.random.default_rng(1).integers(0, 9, size=(2, 4, 3)))
    release = RegionSwapping(0.1).apply(table, np.random.default_rng(2))
    before, after = (a.reshape(2, -1).sum(axis=1) for a in (table.values, release.published))
    assert before.tolist() == after.tolist()


def test_the_figure_has_a_panel_for_each_table(found: RUMap) -> None:
    study = Study("maps", "", "", (Panel("figures", _figures(found)),))
    rows = next(iter(tables_figure(study).to_dict()["datasets"].values()))
    assert {row["short"] for row in rows} == {"T1", "T2", "T3", "T4"}


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
