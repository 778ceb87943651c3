"""The study of Duncan, Fienberg, Krishnan, Padman and Roehrig reproduces every figure."""

from __future__ import annotations

import pytest

from lustrum.study import Line, Study
from lustrum.study.markov import markov

STEPS: list[float] = []


@pytest.fixture(scope="module")
def study() -> Study:
    STEPS.clear()
    return markov(STEPS.append)


@pytest.fixture(scope="module")
def lines(study: Study) -> dict[str, Line]:
    return {
        f"{panel.title.split(':')[0]} {line.what}": line
        for panel in study.panels
        for line in panel.lines
    }


def test_every_figure_comes_out(study, lines):
    assert [line for line in lines.values() if not line.reproduced] == []
    assert study.reproduced
    assert len(lines) == sum(len(panel.lines) for panel in study.panels)


def test_every_slip_is_explained(lines):
    assert all(line.note for line in lines.values() if line.slip)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Section 5 Markov, theta 0.05: utility", 0.2405),
        ("Section 5 Markov, theta 0.05: risk", 1.3388),
        ("Section 5 Markov, theta 0.1: utility", 0.2327),
        ("Section 5 Markov, theta 0.1: risk", 0.9675),
        ("Section 5 Markov, theta 0.2: utility", 0.2181),
        ("Section 5 Markov, theta 0.2: risk", 0.7752),
        ("Section 5 suppression: utility", 0.1587),
        ("Section 5 suppression: risk", 0.5730),
        ("Section 5 rounding to base 3: utility", 0.3462),
        ("Section 5 rounding to base 3: risk", 0.6965),
    ],
)
def test_the_risk_utility_table(lines, name, value):
    assert lines[name].ours == pytest.approx(value, abs=5e-5)


def test_the_three_disclosures_in_the_hidden_margin(lines):
    named = {n.split()[2]: line.ours for n, line in lines.items() if n.endswith("one of them")}
    assert named == {"(1,1)": 1, "(2,2)": 1, "(3,3)": 0, "(4,3)": 1}
    assert lines["Section 4 (3,3) is one of them"].slip


def test_progress_runs_to_its_end(study):
    assert STEPS[-1] == 1.0
