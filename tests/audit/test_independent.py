"""Equations that follow from others go, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from audit.fibres import QUICK
from audit.test_bounds_sweep import suppressed
from lustrum.audit import ContradictionError, Knowledge, bounds
from lustrum.audit.knowledge.reduce import (
    Piece,
    independent_rows,
    narrowed,
    pieces,
    without_repeats,
)
from lustrum.numeric.solve import Highs


def piece(matrix: np.ndarray, low: np.ndarray, high: np.ndarray) -> Piece:
    cells = matrix.shape[1]
    ends = np.zeros(cells, dtype=np.int64), np.full(cells, 9, dtype=np.int64)
    return Piece(np.arange(cells), sparse.csr_array(matrix), low, high, *ends)


@QUICK
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 7))
def test_what_is_kept_has_the_rank_of_all(seed, height, width):
    rng = np.random.default_rng(seed)
    base = rng.integers(-2, 3, (height, width))
    matrix = np.concatenate([base, rng.integers(-2, 3, (5, height)) @ base])
    totals = matrix @ rng.integers(0, 9, width)
    rows = independent_rows(piece(matrix, totals, totals))
    assert rows.size == np.linalg.matrix_rank(matrix) == np.linalg.matrix_rank(matrix[rows])


def test_ranges_and_contradictions_are_kept():
    matrix = np.array([[1, 1, 0], [0, 1, 1], [1, 2, 1], [1, 2, 1], [1, 1, 0]])
    low, high = np.array([3, 4, 7, 8, 0]), np.array([3, 4, 7, 8, 9])
    assert independent_rows(piece(matrix, low, high)).tolist() == [0, 1, 3, 4]
    known = Knowledge(
        list("abc"), [0] * 3, [9] * 3, sparse.csr_array(matrix[:4]), low[:4], high[:4]
    )
    with pytest.raises(ContradictionError):
        bounds(known)


def test_bounds_stay_what_they_are(monkeypatch):
    known = suppressed((6, 6, 6), 0.5, 3)
    found = max(
        pieces(known, *narrowed(known), np.ones(len(known), bool)), key=lambda p: len(p.cells)
    )
    assert without_repeats(found).matrix.shape[0] < found.matrix.shape[0]
    less = bounds(known.relaxed(), solver=Highs())
    monkeypatch.setattr("lustrum.audit.bounding.sweep.without_repeats", lambda piece: piece)
    all_of_them = bounds(known.relaxed(), solver=Highs())
    np.testing.assert_allclose(less.low, all_of_them.low, atol=1e-6)
    np.testing.assert_allclose(less.high, all_of_them.high, atol=1e-6)


def test_an_equation_left_out_wrongly_is_noticed(monkeypatch):
    known = suppressed((5, 5, 5), 0.6, 3).relaxed()
    wanted = bounds(known)

    def careless(piece: Piece) -> Piece:
        rows = np.arange(piece.matrix.shape[0])[3:]
        return Piece(
            piece.cells,
            piece.matrix[rows],
            piece.fact_low[rows],
            piece.fact_high[rows],
            piece.low,
            piece.high,
        )

    monkeypatch.setattr("lustrum.audit.bounding.sweep.without_repeats", careless)
    found = bounds(known)
    assert (found.low <= wanted.low + 1e-6).all()
    assert (found.high >= wanted.high - 1e-6).all()
