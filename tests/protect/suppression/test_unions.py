"""Every public sum of suppressed cells that breaks the rule is found, and nothing else: by all subsets."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from examples import examples
from lustrum.model import Contributions, Table, TableAxis
from lustrum.model.errors import NotJudgedError
from lustrum.protect.suppression import RuleOnUnions, SuppressionProblem, suppress, unions
from lustrum.protect.suppression.check import audit_pattern
from lustrum.protect.suppression.unions import PublishedUnion, revealing_unions
from lustrum.sensitivity import AnyOf, Dominance, PPercent, PriorPosterior, Rule, Threshold

RULES: tuple[Rule, ...] = (
    PPercent(p=15),
    PPercent(p=30, coalition=2),
    PriorPosterior(p=10, q=60),
    Dominance(n=1, k=75),
    Dominance(n=2, k=85),
    Threshold(3),
    AnyOf(Threshold(3), Dominance(n=1, k=80)),
)

RING = np.isin(np.arange(16), [0, 1, 5, 6, 10, 8])  # of three by three cells with totals


def world(
    rng: np.random.Generator, shape: tuple[int, int], firms: int, unknown: int = 0
) -> tuple[Table, SuppressionProblem]:
    """A two-way table with totals from contributions of a few firms, and its problem.

    Beside them stand cells of no table, as facts have that are no equations.
    """
    rows, columns = shape
    own = np.zeros((firms, rows + 1, columns + 1), dtype=np.int64)
    size = rng.choice([1, 3, 20, 400], size=(firms, 1, 1))
    own[:, :rows, :columns] = rng.integers(1, 9, (firms, rows, columns)) * size
    own[:, :rows, :columns] *= rng.random((firms, rows, columns)) < 0.4
    own[:, rows, :] = own[:, :rows].sum(axis=1)
    own[:, :, columns] = own[:, :, :columns].sum(axis=2)
    flat = own.reshape(firms, -1).T
    order = np.argsort(-flat, axis=1, kind="stable")
    value = np.take_along_axis(flat, order, axis=1)
    table = Table(
        axes=(TableAxis.plain("cell", [str(i) for i in range(len(flat))]),),
        values=flat.sum(axis=1),
        kind="magnitude",
        contributors=(flat > 0).sum(axis=1),
        contributions=Contributions(value, np.where(value > 0, order, -1)),
    )
    at = np.arange(len(flat)).reshape(rows + 1, columns + 1)
    sums = [(at[r, columns], at[r, :columns].tolist()) for r in range(rows + 1)]
    sums += [(at[rows, c], at[:rows, c].tolist()) for c in range(columns + 1)]
    matrix = np.zeros((len(sums), len(flat) + unknown), dtype=np.int64)
    for row, (total, parts) in enumerate(sums):
        matrix[row, parts], matrix[row, total] = 1, -1
    for number in range(unknown):
        matrix[rng.integers(len(sums)), len(flat) + number] = 1
    values = np.r_[table.values, [0] * unknown]
    problem = SuppressionProblem.of(values, sparse.csr_array(matrix), [], [])
    return table, problem


def public_unions(problem: SuppressionProblem, hidden: np.ndarray) -> tuple[PublishedUnion, ...]:
    return revealing_unions(problem.relations, hidden, problem.unions)


@settings(deadline=None, max_examples=examples(20, 1500))
@given(st.integers(0, 2**32 - 1), st.sampled_from(RULES))
def test_every_public_sum_that_breaks_the_rule_is_found(seed: int, rule: Rule) -> None:
    rng = np.random.default_rng(seed)
    unknown = int(rng.integers(0, 2))
    table, problem = world(rng, (3, int(rng.integers(3, 5))), int(rng.integers(3, 7)), unknown)
    hidden = rng.random(problem.values.size) < rng.choice([0.3, 0.45])
    hidden[table.values.size :] = True
    cells = np.flatnonzero(hidden[: table.values.size])
    assume(2 <= cells.size <= 11)
    judge = RuleOnUnions(table, rule)
    problem = SuppressionProblem.of(problem.values, problem.relations, [], [], unions=judge)
    matrix = problem.relations.toarray()[:, hidden]
    rank, width = np.linalg.matrix_rank(matrix), matrix.shape[1]

    def broken(union: tuple[int, ...]) -> bool:
        inside = np.isin(np.flatnonzero(hidden), union)[None]
        public = np.linalg.matrix_rank(np.r_[matrix, inside.reshape(1, width)]) == rank
        return bool(public and judge.reveals(np.array(union)))

    subsets = chain.from_iterable(combinations(cells.tolist(), n) for n in range(1, cells.size + 1))
    expected = [set(union) for union in subsets if broken(union)]
    found = [set(union.cells) for union in public_unions(problem, hidden)]
    assert all(union in expected for union in found)
    # A cell that is known is judged by its range, and so is a sum of such cells.
    found += [union for union in expected if len(union) == 1]
    assert all(any(one <= union for one in found) for union in expected)
    for union in public_unions(problem, hidden):
        assert np.isin(problem.relations[list(union.rows)].toarray(), (-1, 0, 1)).all()
        rows = problem.relations.toarray()[list(union.rows)][:, hidden]
        inside = np.isin(np.flatnonzero(hidden), union.cells)
        assert np.linalg.matrix_rank(np.vstack([rows, inside])) == np.linalg.matrix_rank(rows)


def test_a_sum_that_only_three_lines_show_is_found_and_mended() -> None:
    # In a ring of six cells a b c d e f, each line of which shows two: a + d = (a + b) - (b + c) + (c + d).
    own = {(0, 0): (90, 1), (0, 1): (30, 31), (1, 1): (32, 30), (1, 2): (80, 1)}
    amounts = np.full((3, 4, 4), 100, dtype=np.int64)
    amounts[:, :3, :3] = 20
    for cell, (big, small) in own.items():
        amounts[(slice(None), *cell)] = big, small, 30 if cell in ((0, 1), (1, 1)) else 0
    amounts[:, 3, :] = amounts[:, :3].sum(axis=1)
    amounts[:, :, 3] = amounts[:, :, :3].sum(axis=2)
    flat = amounts.reshape(3, -1).T
    order = np.argsort(-flat, axis=1, kind="stable")
    table = Table(
        axes=(TableAxis.plain("cell", [str(i) for i in range(16)]),),
        values=flat.sum(axis=1),
        kind="magnitude",
        contributors=(flat > 0).sum(axis=1),
        contributions=Contributions(np.take_along_axis(flat, order, axis=1), order),
    )
    at = np.arange(16).reshape(4, 4)
    sums = [(int(at[r, 3]), at[r, :3].tolist()) for r in range(4)]
    sums += [(int(at[3, c]), at[:3, c].tolist()) for c in range(4)]
    judge = RuleOnUnions(table, PPercent(p=10))
    problem = SuppressionProblem.of(table.values, sums, [0, 6], [5, 5], unions=judge)
    (union,) = public_unions(problem, RING)
    assert (union.cells, len(union.rows)) == ((0, 6), 3)
    assert not judge.reveals(np.array([0, 1]))
    assert not audit_pattern(problem, RING).safe
    pattern = suppress(problem)
    assert pattern.safe
    assert public_unions(problem, np.asarray(pattern.suppressed)) == ()


def test_what_cannot_be_looked_at_whole_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    table, problem = world(np.random.default_rng(1), (3, 3), 3)
    judge = RuleOnUnions(table, Threshold(9))
    problem = SuppressionProblem.of(problem.values, problem.relations, [], [], unions=judge)
    monkeypatch.setattr(unions, "_MOST", 1)
    with pytest.raises(NotJudgedError, match="Too many sums"):
        public_unions(problem, RING)
