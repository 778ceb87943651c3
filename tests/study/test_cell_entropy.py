"""The study of Domingo-Ferrer, Oganian and Torra reproduces every figure."""

from __future__ import annotations

import pytest

from lustrum.study import Line, Study
from lustrum.study.cell_entropy import cell_entropy

STEPS: list[float] = []


@pytest.fixture(scope="module")
def study() -> Study:
    STEPS.clear()
    return cell_entropy(STEPS.append)


@pytest.fixture(scope="module")
def lines(study: Study) -> list[Line]:
    return [line for panel in study.panels for line in panel.lines]


def test_every_figure_comes_out(study, lines):
    assert [line for line in lines if not line.reproduced] == []
    assert study.reproduced
    assert len(lines) > 50


def test_the_one_slip_is_a_total_that_does_not_add_up(lines):
    slips = [line for line in lines if line.slip]
    assert [(line.paper, line.ours) for line in slips] == [(1148, 1448)]
    assert all(line.note for line in slips)


@pytest.mark.parametrize(
    ("title", "values"),
    [
        ("Example 1", [0, 60, 1, 80]),
        ("Table 2", [650, 407, 1276, 2383, 3468, 8180] * 2),
        ("Section 4.2", [3, 2, 30, 15, 1]),
        ("Section 4.4: an insider", [595, 604, 10, 1004]),
    ],
)
def test_the_figures_that_are_whole_numbers(study, title, values):
    (panel,) = (p for p in study.panels if p.title.startswith(title))
    found = [line.ours for line in panel.lines if "risk" not in line.what or "m = 1" in line.what]
    assert found == values


def test_progress_runs_to_its_end(study):
    assert sorted(STEPS) == STEPS
    assert STEPS[-1] == 1.0
