"""Deviations that stand for many cells: the audit takes them only where relations and bounds allow them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lustrum.audit import Bounds, bounds
from lustrum.protect.suppression import audit_pattern, check, shown, singleton_views, suppress
from lustrum.protect.suppression.shown import CheckedMoves, shown_ends
from protect.suppression.test_boxes import FLAT, TREE, table


def share_deviations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown, "_MUCH", 0)


@pytest.mark.parametrize("seed", range(3))
def test_what_deviations_show_is_within_what_programs_find(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = table((TREE, FLAT, FLAT), seed)
    suppressed = np.asarray(suppress(problem, algorithm="quick").suppressed)
    cells = np.flatnonzero(problem.primary)
    plain = audit_pattern(problem, suppressed).cells
    assert plain.sharp.all()
    assert not plain.shown.any()
    assert shown_ends(problem, suppressed, cells, None) is None
    share_deviations(monkeypatch)
    ends = shown_ends(problem, suppressed, cells, None)
    assert ends is not None
    value = problem.values[cells]
    assert (value + ends[0] <= plain.high + 1e-6).all()
    assert (value - ends[1] >= plain.low - 1e-6).all()
    assert (ends[0] >= problem.upper[cells] - 1e-6).all()
    audit = audit_pattern(problem, suppressed)
    assert audit.safe
    # These ends are reached, and an outsider may be left with more: nobody may read them as bounds.
    assert not audit.cells.sharp.any()
    assert audit.cells.shown.all()
    assert (plain.low <= audit.cells.low).all()
    assert (audit.cells.high <= plain.high).all()


def test_bounds_that_are_not_sharp_are_neither_shown_nor_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = table((FLAT, FLAT), 1)
    suppressed = np.asarray(suppress(problem, algorithm="quick").suppressed)
    assert audit_pattern(problem, suppressed).safe

    def wider(*words: Any, **options: Any) -> Bounds:
        found = bounds(*words, **options)
        return replace(found, sharp=np.zeros(len(found), dtype=np.bool_))

    monkeypatch.setattr(check, "bounds", wider)
    audit = audit_pattern(problem, suppressed)
    assert not audit.safe
    assert not (audit.cells.sharp | audit.cells.shown).any()


@pytest.mark.parametrize("seed", range(3))
def test_a_pattern_with_one_cell_less_gets_the_same_verdict(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = table((TREE, FLAT), seed)
    pattern = suppress(problem, algorithm="quick")
    less = []
    for cell in np.flatnonzero(pattern.secondary)[:4]:
        fewer = np.array(pattern.suppressed)
        fewer[cell] = False
        less.append(fewer)
    plain = [audit_pattern(problem, mask) for mask in less]
    share_deviations(monkeypatch)
    for mask, before in zip(less, plain, strict=True):
        after = audit_pattern(problem, mask)
        assert (after.safe, after.short) == (before.safe, before.short)
    assert not all(audit.safe for audit in plain)


def test_wrong_deviations_show_nothing() -> None:
    problem = table((TREE, FLAT), 1)
    suppressed = np.asarray(suppress(problem, algorithm="boxes").suppressed)
    cells = np.flatnonzero(problem.primary)
    row = np.zeros(problem.values.size)
    row[np.flatnonzero(suppressed)] = 1.0
    assert not np.concatenate(CheckedMoves(problem, suppressed, row[None]).ends(cells)).any()
    # Two by two cells that rise and fall together keep all relations; only suppressed ones may move.
    box = np.zeros((TREE.size, FLAT.size))
    box[np.ix_([0, 1], [0, 1])] = [[1.0, -1.0], [-1.0, 1.0]]
    move = box.ravel()[None]
    inside = np.flatnonzero(move[0])
    every = np.ones(problem.values.size, dtype=np.bool_)
    up, down = CheckedMoves(problem, every, move).ends(inside)
    values = problem.values[inside]
    assert up[0] == down[1] == min(values[1], values[2])
    assert down[0] == up[1] == min(values[0], values[3])
    for cell in inside:
        fewer = every.copy()
        fewer[cell] = False
        assert not np.concatenate(CheckedMoves(problem, fewer, move).ends(inside)).any()


def test_contributors_have_closer_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = table((TREE, FLAT), 3)
    suppressed = np.asarray(suppress(problem, algorithm="quick").suppressed)
    cells = np.flatnonzero(problem.primary)
    alone = np.isin(np.arange(problem.values.size), cells[:2])
    share_deviations(monkeypatch)
    for view in singleton_views(problem.values, alone):
        targets = np.setdiff1d(cells, view.cells)
        ends = shown_ends(problem, suppressed, targets, view)
        outside = shown_ends(problem, suppressed, np.union1d(targets, view.cells), view)
        if ends is not None:
            assert (np.maximum(*ends) >= 0).all()
        # What a contributor knows exactly does not move, so no deviation is found for it.
        assert outside is None
