"""The audit of a pattern against all tables that an attacker cannot rule out, and against plain programs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from examples import examples
from lustrum.audit import Bounds, ContradictionError, bounds
from lustrum.protect.suppression import check, suppress
from lustrum.protect.suppression.check import (
    CheckedMoves,
    audit_deviations,
    audit_pattern,
    certificate_of,
)
from lustrum.protect.suppression.problem import ContributorView, SuppressionProblem
from lustrum.protect.suppression.search.boxes import Deviations
from lustrum.protect.suppression.unions import PublishedUnion, revealing_unions
from protect.suppression.test_boxes import FLAT, TREE, table

# Two by two cells with totals, as a b | r, c d | s, p q | t.
SUMS = [(2, [0, 1]), (5, [3, 4]), (8, [6, 7]), (6, [0, 3]), (7, [1, 4]), (8, [2, 5])]
INNER = (0, 1, 3, 4)
MOST = 7
_INSIDE = np.array(list(product(range(MOST + 1), repeat=4)))
TABLES = np.zeros((len(_INSIDE), 9), dtype=np.int64)
TABLES[:, INNER] = _INSIDE
for _total, _parts in SUMS[:2] + SUMS[3:5] + SUMS[5:]:
    TABLES[:, _total] = TABLES[:, _parts].sum(axis=1)


def left(
    problem: SuppressionProblem, suppressed: np.ndarray, view: ContributorView | None
) -> np.ndarray:
    """The tables that agree with everything published and with what an attacker knows."""
    ok = (TABLES[:, ~suppressed] == problem.values[~suppressed]).all(axis=1)
    low, high = problem.low.copy(), problem.high.copy()
    if view is not None:
        low[view.cells] = np.maximum(low[view.cells], view.low)
        high[view.cells] = np.minimum(high[view.cells], view.high)
    ok &= ((low <= TABLES) & (high >= TABLES))[:, suppressed].all(axis=1)
    return TABLES[ok]


def made(rng: np.random.Generator, whole: bool) -> tuple[SuppressionProblem, np.ndarray]:
    values = TABLES[rng.integers(len(TABLES))]
    suppressed = rng.random(9) < 0.7
    primary = suppressed & (rng.random(9) < 0.5)
    primary[rng.choice(INNER)] = True
    if rng.random() < 0.8:
        suppressed |= primary
    high = np.full(9, 4 * MOST)
    high[list(INNER)] = MOST
    views = []
    for number in range(int(rng.integers(0, 3))):
        cells = np.sort(rng.choice(9, int(rng.integers(1, 3)), replace=False))
        low = np.maximum(values[cells] - rng.integers(0, 3, cells.size), 0)
        top = np.minimum(values[cells] + rng.integers(0, 3, cells.size), high[cells])
        targets = None if rng.random() < 0.5 else rng.random(9) < 0.6
        views.append(ContributorView(f"v{number}", cells, low, top, targets))
    count = int(primary.sum())
    upper, lower, sliding = (rng.integers(0, most, count) for most in (3, 3, 4))
    sliding[upper + lower == 0] = 1 + rng.integers(0, 3)
    problem = SuppressionProblem.of(
        values,
        SUMS,
        np.flatnonzero(primary),
        upper,
        lower,
        sliding=sliding,
        low=np.zeros(9, dtype=np.int64),
        high=high,
        never=np.flatnonzero(rng.random(9) < 0.05),
        whole=whole,
        views=views,
    )
    return problem, suppressed


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("whole", [False, True])
def test_an_audit_finds_exactly_what_is_not_protected(seed: int, whole: bool) -> None:
    """The relations of one table have whole corners, so that whole and real ranges are the same."""
    rng = np.random.default_rng([seed, whole])
    outcomes = set()
    for _ in range(12):
        problem, suppressed = made(rng, whole)
        found = audit_pattern(problem, suppressed, workers=1)
        short = set()
        for attacker, view in enumerate((None, *problem.views), start=-1):
            tables = left(problem, suppressed, view)
            targets = problem.primary.copy()
            if view is not None and view.targets is None:
                targets[view.cells] = False
            elif view is not None and view.targets is not None:
                targets &= view.targets
            for cell in np.flatnonzero(targets).tolist():
                low, high = int(tables[:, cell].min()), int(tables[:, cell].max())
                value = int(problem.values[cell])
                reached = low <= value - problem.lower[cell] and high >= value + problem.upper[cell]
                if not (reached and high - low >= problem.sliding[cell]):
                    # One who knows published cells alone is an outsider, who is held against the same levels.
                    if view is None or bool(suppressed[view.cells].any()):
                        short.add((cell, attacker))
                if view is None:
                    place = found.cells.cells.tolist().index(cell)
                    assert (found.cells.low[place], found.cells.high[place]) == (low, high)
                    assert found.cells.sharp[place]
        assert set(found.short) == short
        assert len(found.short) == len(short)
        hidden = bool(((problem.primary | problem.never) & ~suppressed).any())
        assert found.safe == (not short and not hidden)
        assert found.cells.attackers == len(problem.views)
        outcomes.add((found.safe, hidden, bool(short)))
    assert len(outcomes) > 1


@pytest.mark.parametrize("seed", range(3))
def test_deviations_prove_a_level_only_with_tables_that_nobody_can_rule_out(seed: int) -> None:
    """A deviation of each target; it holds where it is a table that every attacker has to reckon with."""
    rng = np.random.default_rng(seed)
    outcomes = set()
    for _ in range(120):
        problem, suppressed = made(rng, True)
        others = tuple(replace(v, targets=None) for v in problem.views)
        problem = replace(problem, views=others, sliding=0 * problem.sliding)
        targets = np.flatnonzero(problem.primary)
        ends = []
        for sign in (1, -1):
            reached = []
            for cell in targets.tolist():
                # Mostly a table that an outsider has to reckon with, sometimes any.
                open_ = left(problem, suppressed, None) if rng.random() < 0.9 else TABLES
                moved = open_[rng.integers(len(open_), size=60)] - problem.values
                reached.append(moved[np.argmax(sign * moved[:, cell])])
            ends.append(np.array(reached))
        up, down = ends
        count = targets.size
        shown = Deviations(
            target=targets,
            first=np.arange(0, 9 * count + 1, 9),
            cells=np.tile(np.arange(9), count),
            amounts=up.ravel(),
            lower=down.ravel(),
        )
        found = audit_deviations(problem, suppressed, shown)
        assert not found.cells.sharp.any()
        short = set()
        for k, cell in enumerate(targets.tolist()):
            good = True
            for moved in (up[k], down[k]):
                table = problem.values + moved
                good &= bool((moved[~suppressed] == 0).all())
                ends_ = np.where(suppressed, table, problem.values)
                good &= bool(((ends_ >= problem.low) & (ends_ <= problem.high)).all())
                for view in problem.views:
                    for own, low, high in zip(view.cells, view.low, view.high, strict=True):
                        if own != cell and suppressed[own]:
                            good &= bool(low <= table[own] <= high)
            above = int(up[k][cell]) if good else 0
            below = -int(down[k][cell]) if good else 0
            if above < problem.upper[cell] or below < problem.lower[cell]:
                short.add((cell, -1))
            value = int(problem.values[cell])
            assert found.cells.low[k] == value - max(below, 0)
            assert found.cells.high[k] == value + max(above, 0)
        assert set(found.short) == short
        hidden = bool(((problem.primary | problem.never) & ~suppressed).any())
        assert found.safe == (not short and not hidden)
        outcomes.add(found.safe)
    assert outcomes == {False, True}


class Told:
    """A rule that the sums of some sets of cells break; it remembers what it was asked."""

    def __init__(self, *broken: list[int]) -> None:
        self.broken = broken
        self.asked: list[list[int]] = []
        self.table, self.gains = SimpleNamespace(values=np.zeros(9)), ()
        self.few = np.zeros(9, np.bool_)

    def reveals(self, cells: np.ndarray) -> bool:
        self.asked.append(sorted(cells.tolist()))
        return sorted(cells.tolist()) in self.broken


def public_unions(problem: SuppressionProblem, hidden: np.ndarray) -> tuple[PublishedUnion, ...]:
    return revealing_unions(problem.relations, hidden, problem.unions)


def test_a_line_whose_suppressed_parts_break_the_rule_together_is_not_safe() -> None:
    values = [2, 3, 5, 4, 1, 5, 6, 4, 10]
    square = np.isin(np.arange(9), INNER)
    told = Told([3, 4], [1, 4])
    problem = SuppressionProblem.of(values, SUMS, [0], [1], whole=True, unions=told)
    assert [union.rows for union in public_unions(problem, square)] == [(1,), (4,)]
    assert sorted(told.asked) == [[0, 1], [0, 3], [1, 4], [3, 4]]
    for found in (
        audit_pattern(problem, square, workers=1),
        audit_deviations(problem, square, _turned()),
    ):
        assert [union.rows for union in found.unions] == [(1,), (4,)]
        assert found.short == ()
        assert not found.safe
    harmless = replace(problem, unions=Told())
    assert audit_pattern(harmless, square, workers=1).safe
    assert audit_deviations(harmless, square, _turned()).safe
    assert public_unions(replace(problem, unions=None), square) == ()
    # Beside a suppressed total nobody can work the sum out, and a single cell is judged by itself.
    told.asked.clear()
    assert public_unions(problem, np.isin(np.arange(9), [3, 4, 5])) == ()
    assert told.asked == []
    assert [u.rows for u in public_unions(problem, np.isin(np.arange(9), [3, 4]))] == [(1,)]
    assert told.asked == [[3, 4]]


def _turned() -> Deviations:
    turn = np.array([1, -1, -1, 1])
    return Deviations(
        target=np.array([0]),
        first=np.array([0, 4]),
        cells=np.array(INNER),
        amounts=turn,
        lower=-turn,
    )


def range_of(
    problem: SuppressionProblem, suppressed: np.ndarray, view: ContributorView | None, cell: int
) -> tuple[float, float]:
    """The range of a cell for an attacker, by a linear program of scipy."""
    low, high = problem.low.copy(), problem.high.copy()
    if view is not None:
        low[view.cells] = np.maximum(low[view.cells], view.low)
        high[view.cells] = np.minimum(high[view.cells], view.high)
    ends = np.where(suppressed, low, problem.values), np.where(suppressed, high, problem.values)
    matrix = problem.relations.toarray()
    out = []
    for sign in (1, -1):
        weight = np.zeros(len(problem))
        weight[cell] = sign
        found = linprog(
            weight, A_eq=matrix, b_eq=np.zeros(matrix.shape[0]), bounds=np.column_stack(ends)
        )
        out.append(float(sign * found.fun))
    return out[0], out[1]


def with_attackers(seed: int) -> tuple[SuppressionProblem, np.ndarray]:
    """A table of three variables, levels near its ranges, attackers, and a pattern that may be safe."""
    rng = np.random.default_rng(seed)
    problem = table((FLAT, FLAT, FLAT), seed)
    suppressed = problem.fixed | (rng.random(len(problem)) < rng.choice([0.4, 0.7, 0.9]))
    targets = np.flatnonzero(problem.primary)
    views = []
    for number in range(2):
        cells = np.sort(rng.choice(len(problem), 3, replace=False))
        value = problem.values[cells]
        # Some know less than everybody does.
        low, high = value - rng.integers(0, 60, 3), value + rng.integers(0, 400, 3)
        known = rng.random(3) < 0.3
        levels = None if rng.random() < 0.5 else rng.integers(0, 9, (3, 3))
        asked = None if rng.random() < 0.5 else rng.random(len(problem)) < 0.7
        ends = np.where(known, value, low), np.where(known, value, high)
        views.append(ContributorView(f"v{number}", cells, *ends, asked, levels))
    levels = np.zeros((3, len(problem)), dtype=np.int64)
    for cell in targets.tolist():
        least, most = range_of(problem, suppressed, None, cell)
        above, below = int(most) - problem.values[cell], problem.values[cell] - int(least)
        levels[:, cell] = np.array([above, below, above + below]) + rng.integers(-1, 2, 3)
    lower, upper, sliding = np.maximum(levels, 0) * problem.primary
    return replace(
        problem, lower=upper, upper=lower, sliding=sliding, views=tuple(views)
    ), suppressed


@settings(max_examples=examples(8, 80), deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_an_audit_agrees_with_plain_linear_programs(seed: int, share: bool) -> None:
    """Deviations that stand for many cells change no verdict and lie within the ranges."""
    problem, suppressed = with_attackers(seed)
    with pytest.MonkeyPatch.context() as patch:
        if share:
            patch.setattr(check, "_MUCH", 0)
        found = audit_pattern(problem, suppressed, workers=1)
    short = set()
    for number, view in enumerate((None, *problem.views), start=-1):
        if view is not None and not suppressed[view.cells].any():
            continue
        targets, lower, upper, sliding = problem.levels_against(view)
        for cell in np.flatnonzero(targets).tolist():
            low, high = range_of(problem, suppressed, view, cell)
            value = problem.values[cell]
            kept = low <= value - lower[cell] + 1e-5 and high >= value + upper[cell] - 1e-5
            if not kept or high - low < sliding[cell] - 1e-5:
                short.add((cell, number))
            if view is None:
                place = found.cells.cells.tolist().index(cell)
                ends = found.cells.low[place], found.cells.high[place]
                # Ends that are sharp are those of the programs; what is shown is reached, so within them.
                assert found.cells.sharp[place] != found.cells.shown[place]
                assert low - 1e-5 <= ends[0]
                assert ends[1] <= high + 1e-5
                if found.cells.sharp[place]:
                    assert ends == (np.ceil(low - 1e-5), np.floor(high + 1e-5))
    assert set(found.short) == short
    assert found.safe == (not short)


@pytest.mark.parametrize("whole", [False, True])
def test_counts_are_audited_in_whole_numbers(whole: bool) -> None:
    """5 a + 3 b is 15: a may be anything up to 2 in real numbers, and only 0 in whole ones."""
    problem = SuppressionProblem.of(
        [0, 5, 15],
        sparse.csr_array(np.array([[5, 3, -1]])),
        [0],
        [1],
        [0],
        high=[2, 9, 20],
        whole=whole,
    )
    assert audit_pattern(problem, np.array([True, True, False])).safe == (not whole)


def test_bounds_that_are_not_sharp_or_contradict_themselves_prove_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = table((FLAT, FLAT), 1)
    suppressed = np.asarray(suppress(problem, algorithm="quick").suppressed)
    every = {(int(cell), -1) for cell in np.flatnonzero(problem.primary)}
    assert audit_pattern(problem, suppressed).safe

    def wider(*words: Any, **options: Any) -> Bounds:
        found = bounds(*words, **options)
        return replace(found, sharp=np.zeros(len(found), dtype=np.bool_))

    def torn(*_: Any, **__: Any) -> Bounds:
        raise ContradictionError("no table")

    for broken in (wider, torn):
        monkeypatch.setattr(check, "bounds", broken)
        audit = audit_pattern(problem, suppressed)
        assert set(audit.short) == every
        assert not (audit.cells.sharp | audit.cells.shown).any()


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


def test_a_certificate_covers_the_primary_cells_that_are_suppressed() -> None:
    values = [10, 20, 30, 30, 40, 70, 40, 60, 100]
    problem = SuppressionProblem.of(values, SUMS, [0, 8], [3, 3], whole=True)
    square = np.isin(np.arange(9), INNER)
    (claim,) = certificate_of(problem, square).claims
    assert (claim.cell, claim.low.value, claim.high.value) == (0, 0, 30)
    hidden = square | (np.arange(9) == 8)
    assert [claim.cell for claim in certificate_of(problem, hidden).claims] == [0, 4]
