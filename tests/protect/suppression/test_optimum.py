"""Every way to a pattern beside the optimum of a plain integer program that holds all attacks at once."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from examples import examples
from lustrum.protect.suppression import SuppressionProblem, suppress
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.search import exact
from lustrum.protect.suppression.search.attacks.attack import ProgramAttacks, attacks_on
from lustrum.protect.suppression.search.attacks.tasks import Tasks
from lustrum.protect.suppression.search.exact import BranchAndCut
from lustrum.protect.suppression.search.greedy import Publisher
from lustrum.protect.suppression.search.heuristic import (
    WitnessedPattern,
    clean_up,
    improve,
    protect_all,
)
from lustrum.protect.suppression.search.start import published_pattern

Sums = tuple[tuple[int, tuple[int, ...]], ...]
FLAT2: Sums = ((2, (0, 1)),)
FLAT3: Sums = ((3, (0, 1, 2)),)
NESTED: Sums = ((3, (0, 1)), (4, (2, 3)))  # two leaves in a group, the group beside a third leaf
OVERLAP: Sums = ((3, (0, 1)), (4, (1, 2)), (5, (0, 1, 2)))  # groups that do not nest
TABLES: tuple[tuple[Sums, ...], ...] = (
    (FLAT2, FLAT2, FLAT2),
    (NESTED, NESTED),
    (OVERLAP, FLAT3),
    (NESTED, FLAT2, FLAT2),
)


def small(axes: tuple[Sums, ...], seed: int) -> SuppressionProblem:
    """A table with one or two primary cells, levels up to what it holds, and some cells frozen."""
    rng = np.random.default_rng(seed)
    leaves = [min(total for total, _ in sums) for sums in axes]
    full = rng.integers(0, 15, leaves)
    for place, sums in enumerate(axes):
        lines = [*np.moveaxis(full, place, 0)]
        for _, parts in sums:
            lines.append(sum(lines[p] for p in parts))
        full = np.moveaxis(np.array(lines), 0, place)
    number = np.arange(full.size).reshape(full.shape)
    relations = []
    for place, sums in enumerate(axes):
        lines = np.moveaxis(number, place, -1).reshape(-1, full.shape[place])
        relations += [(int(r[t]), r[list(parts)].tolist()) for r in lines for t, parts in sums]
    values = full.ravel()
    filled = np.flatnonzero(values > 0)
    primary = rng.choice(filled, int(rng.integers(1, 3)), replace=False)
    level = np.minimum(rng.integers(1, 6, primary.size), values[primary])
    others = np.setdiff1d(np.arange(values.size), primary)
    frozen = rng.choice(others, int(rng.integers(0, 3)), replace=False)
    return SuppressionProblem.of(
        values,
        relations,
        primary,
        level,
        frozen=frozen,
        cost=rng.integers(1, 20, values.size) if seed % 2 else None,
    )


def optimum(problem: SuppressionProblem) -> float:
    """The least cost of a safe pattern: one integer program with a table for every attack."""
    cells, fixed = len(problem), problem.fixed
    up, down = problem.room_up.astype(float), problem.room_down.astype(float)
    asked = [
        (int(c), sign, float(level[c]))
        for c in np.flatnonzero(problem.primary)
        for sign, level in ((1.0, problem.upper), (-1.0, problem.lower))
    ]
    count = len(asked)
    flows = sparse.block_diag([problem.relations.astype(float)] * count)
    stay = sparse.hstack([sparse.csr_array((flows.shape[0], cells)), flows])
    same = sparse.vstack([sparse.diags(up)] * count), sparse.vstack([sparse.diags(down)] * count)
    every = sparse.identity(cells * count)
    low = np.concatenate([fixed.astype(float), *[-down] * count])
    high = np.concatenate([(~problem.frozen).astype(float), *[up] * count])
    for k, (cell, sign, level) in enumerate(asked):
        place = cells * (1 + k) + cell
        if sign > 0:
            low[place] = level
        else:
            high[place] = -level
        if low[place] > high[place]:
            return np.inf
    cost = np.concatenate([np.where(fixed, 0.0, problem.cost), np.zeros(cells * count)])
    found = milp(
        cost,
        integrality=np.concatenate([np.ones(cells), np.zeros(cells * count)]),
        bounds=Bounds(low, high),
        constraints=[
            LinearConstraint(stay, 0, 0),
            LinearConstraint(sparse.hstack([same[0], -every]), 0, np.inf),
            LinearConstraint(sparse.hstack([same[1], every]), 0, np.inf),
        ],
        options={"mip_rel_gap": 0.0},
    )
    return float(np.inf) if found.x is None else float(found.fun)


def test_the_integer_program_is_the_minimum_over_all_patterns() -> None:
    # The oracle itself, beside an enumeration of all patterns of a table in which few cells are free.
    plain = small((FLAT2, FLAT2, FLAT2), 3)
    cells = np.arange(27).reshape(3, 3, 3)
    inner = cells[:2, :2, :2].ravel()
    cell = int(inner[plain.values[inner] > 0][0])
    for margins in ([], [cells[2, 0, 0]]):
        frozen = np.setdiff1d(np.arange(27), [*inner, *margins])
        problem = SuppressionProblem.of(
            plain.values, plain.relations, [cell], [1], frozen=frozen, cost=1 + cells.ravel() % 5
        )
        free = np.flatnonzero(problem.choice)
        least = np.inf
        for some in product((False, True), repeat=free.size):
            mask = problem.fixed.copy()
            mask[free[list(some)]] = True
            cost = problem.total_cost(mask)
            if cost < least and _protects(problem, mask):
                least = cost
        assert optimum(problem) == pytest.approx(least)


def _protects(problem: SuppressionProblem, mask: np.ndarray) -> bool:
    ends = np.where(mask, problem.low, problem.values), np.where(mask, problem.high, problem.values)
    for cell, sign in product(np.flatnonzero(problem.primary), (1.0, -1.0)):
        weight = np.zeros(len(problem))
        weight[cell] = -sign
        found = linprog(
            weight,
            A_eq=problem.relations.toarray(),
            b_eq=np.zeros(problem.relations.shape[0]),
            bounds=np.column_stack(ends),
        )
        if -found.fun - sign * problem.values[cell] < problem.upper[cell] - 1e-6:
            return False
    return True


@settings(max_examples=examples(8, 60), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(TABLES))
def test_the_exact_answer_is_the_optimum_in_any_table(seed: int, axes: tuple[Sums, ...]) -> None:
    problem = small(axes, seed)
    least = optimum(problem)
    pattern = suppress(problem, algorithm="exact")
    if np.isinf(least):
        assert not pattern.safe
        assert pattern.unprotectable
        return
    assert pattern.safe
    assert pattern.cost == pytest.approx(least)
    assert pattern.optimal


@settings(max_examples=examples(5, 32), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(TABLES))
def test_no_way_to_a_pattern_goes_below_the_optimum(seed: int, axes: tuple[Sums, ...]) -> None:
    problem = small(axes, seed)
    least = optimum(problem)
    assume(not np.isinf(least))
    tasks = Tasks.of(problem)
    attacks = ProgramAttacks(tasks)
    every = np.arange(len(tasks))
    patterns = {}
    paths = WitnessedPattern(attacks, problem.fixed)
    protect_all(paths, problem.cost, every)
    patterns["paths"] = paths.suppressed.copy()
    clean_up(paths, problem.cost)
    patterns["clean"] = paths.suppressed.copy()
    patterns["improved"] = improve(paths, problem.cost, 300).suppressed
    cells = np.flatnonzero(~problem.frozen)
    publisher = Publisher.of(tasks, cells, 500)
    first = publisher.first()
    assert first is not None
    patterns["published"] = publisher.pattern(first)
    patterns["again"] = publisher.pattern(publisher.again(first))
    state, start = published_pattern(attacks, 100, lambda what, cost, bound: None)
    patterns["start"] = state.suppressed
    near = start.near(0.5 * patterns["paths"])
    patterns["near"] = near.suppressed
    wide = WitnessedPattern(attacks, ~problem.frozen)
    assert not wide.look(every).size
    search = BranchAndCut(attacks, wide, 10_000, lambda what, cost, bound: None)
    search.run()
    patterns["cut"] = search.best.suppressed
    for way, pattern in patterns.items():
        assert problem.total_cost(pattern) >= least - 1e-6, way
        assert audit_pattern(problem, pattern).safe, way
    # What was learnt on the way holds for the best pattern there is.
    best = np.asarray(suppress(problem, algorithm="exact").suppressed)[search.choice].astype(float)
    for cut in search.needs:
        assert cut.lacks(best) < 1e-6


def test_flows_and_programs_prove_the_same_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    # However wide the gap after a short root, since nothing else would look for a cheaper pattern.
    monkeypatch.setattr(BranchAndCut, "_is_wide", lambda *args, **options: True)
    for name in ("_STALLED", "_SMALL"):
        monkeypatch.setattr(exact, name, 0)
    problem = small((FLAT3, FLAT3), 8)
    tasks = Tasks.of(problem)
    assert not isinstance(attacks_on(tasks), ProgramAttacks)
    costs = []
    for attacks in (attacks_on(tasks), ProgramAttacks(tasks)):
        state = WitnessedPattern(attacks, ~problem.frozen)
        state.look(np.arange(len(tasks)))
        found = BranchAndCut(attacks, state, 10_000, lambda what, cost, bound: None).run()
        assert found.finished
        costs.append(found.cost)
    assert costs == pytest.approx([optimum(problem)] * 2)


def test_no_cheaper_pattern_of_a_worked_example_protects_its_sensitive_cell() -> None:
    # Investment by activity and region; the cell of 22 is sensitive, with levels of 5 below and 8 above. The
    # range of each cheaper pattern is worked out by a plain linear program.
    values = [20, 50, 10, 80, 8, 19, 22, 49, 17, 32, 12, 61, 45, 101, 44, 190]
    number = np.arange(16).reshape(4, 4)
    lines = [*number, *number.T]
    relations = [(int(line[3]), line[:3].tolist()) for line in lines]
    problem = SuppressionProblem.of(values, relations, [6], [8], [5])
    pattern = suppress(problem)
    assert np.flatnonzero(pattern.suppressed).tolist() == [4, 6, 8, 10]
    assert pattern.optimal
    assert pattern.safe
    assert (pattern.audited.low.tolist(), pattern.audited.high.tolist()) == ([5], [30])
    assert ranges_of_22(values, lines, {4, 6, 8, 10}) == pytest.approx((5, 30))
    cheaper = [
        {6, *others}
        for size in range(16)
        for others in combinations(set(range(16)) - {6}, size)
        if sum(values[c] for c in others) < pattern.cost
    ]
    assert len(cheaper) > 20
    for hidden in cheaper:
        low, high = ranges_of_22(values, lines, hidden)
        assert low > 22 - 5 or high < 22 + 8


def ranges_of_22(
    values: list[int], lines: list[np.ndarray], hidden: set[int]
) -> tuple[float, float]:
    """What a reader can say about cell 6 from the cells that are not hidden, all of which are 0 at least."""
    matrix = np.zeros((len(lines), len(values)))
    for row, line in zip(matrix, lines, strict=True):
        row[line] = [1, 1, 1, -1]
    ends = [(0, None) if c in hidden else (v, v) for c, v in enumerate(values)]
    aim = np.zeros(len(values))
    aim[6] = 1
    low, high = (
        linprog(sign * aim, A_eq=matrix, b_eq=np.zeros(len(lines)), bounds=ends) for sign in (1, -1)
    )
    return low.x[6], high.x[6]
