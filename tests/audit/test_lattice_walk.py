"""Wandering among whole tables: what is called reached is, and sharp bounds are those of other methods."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from audit.test_bounds_sweep import suppressed, two_way_margins
from lustrum.audit import bounds
from lustrum.audit.bounding.lattice import integer_kernel, integer_solution, reduced
from lustrum.audit.bounding.lattice_walk import LatticeWalker, apart, central_table, stream
from lustrum.audit.bounding.sweep import BoundSweep
from lustrum.audit.knowledge.reduce import narrowed, pieces


def largest(known):
    low, high = narrowed(known)
    found = pieces(known, low, high, np.ones(len(known), dtype=np.bool_))
    return max(found, key=lambda piece: piece.cells.size)


def spans(small: np.ndarray, large: np.ndarray) -> bool:
    """Whether all vectors of one lattice are whole sums of those of another, by a basis."""
    times, *_ = np.linalg.lstsq(large.T.astype(float), small.T.astype(float), rcond=None)
    return bool((np.rint(times).T.astype(np.int64) @ large == small).all())


@pytest.mark.parametrize("seed", range(4))
def test_few_vectors_are_set_apart_and_the_lattice_stays(seed):
    piece = largest(suppressed((7, 7, 7), 0.4, seed))
    basis = reduced(integer_kernel(piece.matrix))
    tied = np.random.default_rng(seed).choice(piece.cells.size, 5, replace=False).astype(np.int64)
    vectors = basis.copy()
    few = apart(vectors, tied)
    assert few == np.linalg.matrix_rank(basis[:, tied])
    assert not vectors[few:, tied].any()
    assert not (piece.matrix @ vectors.T).any()
    assert spans(basis, vectors)
    assert spans(vectors, basis)


@pytest.mark.parametrize("seed", range(3))
def test_every_table_on_the_way_fits_and_what_was_reached_was_met(seed):
    piece = largest(suppressed((7, 7, 7), 0.4, seed))
    basis = reduced(integer_kernel(piece.matrix))
    table = central_table(piece, basis)
    assert piece.holds(table)
    walker = LatticeWalker(piece, basis, table.copy(), piece.low, piece.high)
    met, luck = [], stream(seed)
    for question in range(0, 2 * piece.cells.size, 7):
        walker.seek(question, luck, 1)
        assert piece.holds(walker.table)
        met.append(walker.table.copy())
    assert (np.min([table, *met], axis=0) >= walker.least).all()
    again = LatticeWalker(piece, basis, table.copy(), piece.low, piece.high)
    every, luck = [table], stream(seed)
    for question in range(0, 2 * piece.cells.size, 7):
        again.seek(question, luck, 1)
        every.append(again.table.copy())
    # One step at a time, so that every table met is in the list.
    assert again.least.tolist() == np.min(every, axis=0).tolist()
    assert again.most.tolist() == np.max(every, axis=0).tolist()


@pytest.mark.parametrize("known", [suppressed((6, 6, 6), 0.5, 2), two_way_margins((4, 4, 4), 3)])
def test_bounds_are_the_same_with_and_without_the_walk(known, monkeypatch):
    cells = np.flatnonzero(known.low < known.high)[:60]
    wanted = bounds(known, cells, integer=True)
    monkeypatch.setattr("lustrum.audit.bounding.lattice_walk.LEAST", 10)
    monkeypatch.setattr("lustrum.audit.bounding.sweep._FEW", 1)
    found = [bounds(known, cells, integer=True, workers=w) for w in (1, 2)]
    for one in found:
        assert one.sharp.all()
        assert one.low.tolist() == wanted.low.tolist()
        assert one.high.tolist() == wanted.high.tolist()
    assert found[0].searches == found[1].searches


def test_the_walk_makes_bounds_sharp_that_linear_programs_leave_open(monkeypatch):
    monkeypatch.setattr("lustrum.audit.bounding.sweep.BoundSweep.answer", _no_searches)
    known = suppressed((9, 9, 9), 0.35, 4)
    cells = np.flatnonzero(known.low < known.high)
    plain, walked = bounds(known, cells), bounds(known, cells, integer=True)
    assert walked.searches == 0
    assert plain.sharp.sum() < 0.8 * len(plain)
    assert walked.sharp.sum() > 0.95 * len(walked)
    assert (walked.low == plain.low).all()


ANSWER = BoundSweep.answer


def _no_searches(self, block, *, hard):
    return self._copy() if hard else ANSWER(self, block, hard=hard)


def test_a_whole_solution_is_found_where_there_is_one():
    rng = np.random.default_rng(1)
    for _ in range(20):
        matrix = sparse.csr_array(rng.integers(-3, 4, (4, 6)))
        x = rng.integers(-5, 6, 6)
        found = integer_solution(matrix, matrix @ x)
        assert found is not None
        assert (matrix @ np.array(found) == matrix @ x).all()
    even = sparse.csr_array(np.array([[2, 4, 0], [0, 0, 1]]))
    assert integer_solution(even, np.array([3, 1])) is None
