"""Which cells are kept, one meaning for every door, and levels that reach as far as they are asked to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lustrum.cli.application import app
from lustrum.model import Category, Table, TableAxis
from lustrum.protect.adjustment import ControlledAdjustment
from lustrum.protect.method import kept_cells
from lustrum.protect.suppression import Suppression
from lustrum.protect.suppression.method import lower_levels
from lustrum.sensitivity import GivenCells, Threshold


def axis(name: str, codes: int, *, total: bool = True) -> TableAxis:
    own = [Category(f"{name}{i}", f"{name}{i}", (i,)) for i in range(codes)]
    if total:
        own.append(Category("_T", "all", tuple(range(codes))))
    return TableAxis(name, name, tuple(own))


def table(*axes: TableAxis, start: int = 40) -> Table:
    finest = np.arange(start, start + int(np.prod([int(a.inner.sum()) for a in axes])))
    values = finest.reshape([int(a.inner.sum()) for a in axes])
    for place, own in enumerate(axes):
        if len(own.categories) > own.inner.sum():
            more = values.sum(axis=place, keepdims=True)
            values = np.concatenate([values, more], axis=place)
    return Table(axes, values)


def test_the_grand_total_is_the_total_of_everybody() -> None:
    both = table(axis("a", 3), axis("b", 2))
    assert np.argwhere(kept_cells(both, "grand-total")).tolist() == [[3, 2]]
    one = table(axis("a", 3))
    assert np.flatnonzero(kept_cells(one, "grand-total")).tolist() == [3]


def test_totals_of_parts_are_not_taken_for_a_grand_total_that_is_missing() -> None:
    lines = table(axis("a", 3), axis("b", 2, total=False))
    assert not kept_cells(lines, "grand-total").any()
    assert np.array_equal(kept_cells(lines, "totals"), ~lines.inner)
    problem = Suppression(rule=Threshold(3), keep="grand-total").problem(lines)
    assert not problem.frozen.any()


def test_a_variable_with_one_code_does_not_hide_the_grand_total() -> None:
    narrow = table(axis("a", 3), axis("b", 1, total=False))
    assert np.flatnonzero(kept_cells(narrow, "grand-total")).tolist() == [3]


def test_adjustment_keeps_the_same_cells_as_suppression() -> None:
    lines = table(axis("a", 3), axis("b", 2, total=False), start=1)
    release = ControlledAdjustment(rule=Threshold(3), keep="grand-total").apply(
        lines, np.random.default_rng(1)
    )
    # Nothing is kept, so nothing may be called exact.
    assert np.all(release.most > release.least)


def test_a_loss_of_the_largest_size_is_protected_as_far_down_as_its_level() -> None:
    values = np.array([-1_000_000, 300, 400, 500, -998_800])
    losses = Table((axis("a", 4),), values, kind="magnitude")
    cells = np.array([True, False, False, False, False])
    spec = Suppression(rule=GivenCells(cells, np.where(cells, 100_000, 0)))
    problem = spec.problem(losses)
    assert problem.low[0] <= -1_100_000
    assert spec.pattern(losses).safe


@pytest.mark.parametrize(
    ("lower", "wanted"),
    [
        (4, [4, 0, 0, 4]),  # as asked for
        (40, [36, 0, 0, 72]),  # as far as the finest cells can fall: to 1 each
    ],
)
def test_cells_that_are_named_keep_their_lower_levels_among_counts(
    lower: int, wanted: list[int]
) -> None:
    counts = Table((axis("a", 3),), np.array([37, 2, 36, 75]))
    cells = np.array([True, False, False, True])
    rule = GivenCells(cells, np.full(4, 4), np.full(4, lower))
    found = rule.judge(counts)
    assert (
        lower_levels(counts, found, zeros=False).tolist()
        == np.minimum(np.where(cells, lower, 0), wanted).tolist()
    )


def test_small_counts_need_nothing_below_them() -> None:
    counts = Table((axis("a", 3),), np.array([2, 9, 8, 19]))
    found = Threshold(3).judge(counts)
    assert not lower_levels(counts, found, zeros=False).any()
    assert lower_levels(counts, found, zeros=True).tolist() == [1, 0, 0, 0]


def test_subtotals_of_small_counts_are_told_by_their_codes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = "D,4\nD1,1\nD2,1\nD3,2\nE,20\nE1,11\nE2,9\nE3,0\nTotal,24\n"
    path.write_text("nace,value\n" + rows)
    words = ["suppress", str(path), "--rule", "threshold=5", "--kind", "counts"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "2 subtotals D, E (by code)" in done.output
    # Without the codes' help nothing adds up, and the refusal stays.
    path.write_text("nace,value\n" + rows.replace("E,20", "E,21").replace("Total,24", "Total,25"))
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 1
