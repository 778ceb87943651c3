"""Waivers and requests count for cells and for sums of cells."""

from __future__ import annotations

import numpy as np

from lustrum.protect.suppression import RuleOnUnions, Suppression
from lustrum.sensitivity import Background, PPercent, Request
from protect.suppression.test_problem_parts import magnitudes


def table() -> object:
    """Every inner cell has one contributor of its own, who holds all of it."""
    values = np.array([[50, 40, 30], [45, 60, 35], [55, 65, 70]])
    return magnitudes(values, np.arange(9).reshape(3, 3), np.full((3, 3), 9))


def test_a_waiver_takes_a_cell_out_of_the_primary_ones() -> None:
    spec = Suppression(rule=PPercent(p=10), attacker="outsider")
    made = table()
    every = spec.pattern(made).primary.reshape(4, 4)[:3, :3]
    assert every.all()
    some = Background(waived=[1, 2, 3, 4, 5, 6, 7, 8])
    pattern = spec.pattern(made, background=some)
    assert np.flatnonzero(pattern.primary).tolist() == [0]
    release = spec.release(made, pattern, some)
    assert not release.shown[0, 0]
    assert release.status[0, 0] == "N"
    assert int((~release.shown).sum()) == 4


def test_a_request_is_honoured_only_with_the_background() -> None:
    spec = Suppression(rule=Request(shares=(70,)))
    made = table()
    assert not spec.judge(made).mask.any()
    asked = Background(requested=[4])
    assert np.argwhere(spec.judge(made, asked).mask).tolist() == [[1, 1]]
    pattern = spec.pattern(made, background=asked)
    assert pattern.safe
    assert pattern.suppressed.reshape(4, 4)[1, 1]


def test_sums_of_cells_are_judged_with_waivers_and_requests() -> None:
    made = table()
    rule = Request(shares=(30,))
    cells = np.array([0, 1])
    assert not RuleOnUnions(made, rule).reveals(cells)
    assert RuleOnUnions(made, rule, Background(requested=[0])).reveals(cells)
    strict = PPercent(p=10)
    assert RuleOnUnions(made, strict).reveals(cells)
    assert not RuleOnUnions(made, strict, Background(waived=[0, 1])).reveals(cells)
