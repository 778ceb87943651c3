"""Exact disclosure by elimination: what the equations give away, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from audit.fibres import QUICK
from audit.test_bounds_sweep import CASES, suppressed
from lustrum.audit import Knowledge, bounds
from lustrum.audit.bounding.elimination import exactly_disclosed
from lustrum.model import InputError


@st.composite
def equations(draw: st.DrawFn) -> Knowledge:
    """A few cells far from any bound, tied by sparse equations."""
    count = draw(st.integers(1, 7))
    names = [f"x{i}" for i in range(count)]
    known = Knowledge.of(names, low=-1000)
    for _ in range(draw(st.integers(0, 7))):
        weights = {n: draw(st.sampled_from([-2, -1, 0, 0, 0, 1, 1, 3])) for n in names}
        known = known.fact(weights, sum(weights.values()), sum(weights.values()))
    return known


@QUICK
@given(equations())
def test_a_cell_is_determined_if_it_lies_in_the_space_of_the_rows(known):
    rows = known.matrix.toarray().astype(float)
    rank = np.linalg.matrix_rank(rows) if rows.size else 0
    units = np.eye(len(known))
    expected = [bool(np.linalg.matrix_rank(np.vstack([rows, u])) == rank) for u in units]
    assert exactly_disclosed(known).tolist() == expected
    # Where no bound is near, equations and optimisation agree.
    found = bounds(known.relaxed())
    assert found.sharp.all()
    assert (found.high - found.low < 1e-5).tolist() == expected


@pytest.mark.parametrize("case", CASES)
def test_what_equations_give_away_the_bounds_give_away_too(case):
    known = CASES[case]
    assert bounds(known).exact[exactly_disclosed(known)].all()


@pytest.mark.parametrize("seed", range(6))
def test_knots_are_solved_as_their_null_space_says(seed):
    known = suppressed((4, 4, 4), 0.35 + 0.1 * seed, seed)
    open_cells = np.flatnonzero(known.low < known.high)
    _, size, turned = np.linalg.svd(known.matrix[:, open_cells].toarray().astype(float))
    free = turned[int((size > 1e-9).sum()) :]
    determined = np.abs(free).max(axis=0, initial=0) < 1e-9
    assert exactly_disclosed(known)[open_cells].tolist() == determined.tolist()


@pytest.mark.parametrize("seed", range(4))
def test_a_sparse_table_is_peeled(seed):
    known = suppressed((9, 8, 7), 0.2, seed)
    found = exactly_disclosed(known)
    relaxed = bounds(known.within(-(10**6), 10**6).relaxed())
    assert relaxed.exact[found].all()
    assert found[known.low < known.high].any()


def test_bounds_can_give_away_what_no_equation_says():
    known = Knowledge.of(["x", "y"]).fact({"x": 1, "y": 1}, 0, 0)
    assert not exactly_disclosed(known).any()
    assert bounds(known).exact.all()


def test_intervals_are_no_equations():
    known = Knowledge.of(["x", "y"]).fact({"x": 1}, 2, 3).bound("y", 4, 4)
    assert exactly_disclosed(known).tolist() == [False, True]


def test_a_million_cells_take_no_time():
    count = 10**6
    # A chain: each cell plus the next is known, and the first one is.
    pairs = sparse.diags_array([np.ones(count - 1)] * 2, offsets=[0, 1], shape=(count - 1, count))
    ones = np.full(count - 1, 2, dtype=np.int64)
    known = Knowledge(
        names=range(count),  # type: ignore[arg-type]
        low=np.zeros(count, dtype=np.int64),
        high=np.full(count, 9, dtype=np.int64),
        matrix=sparse.csr_array(pairs).astype(np.int64),
        fact_low=ones,
        fact_high=ones,
    )
    assert not exactly_disclosed(known).any()
    assert exactly_disclosed(known.bound(0, 1, 1)).all()


def test_a_knot_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("lustrum.audit.bounding.elimination._MOST_WORK", 10)
    monkeypatch.setattr("lustrum.audit.bounding.elimination._MOST_STEPS", 0)
    with pytest.raises(InputError, match="bounds"):
        exactly_disclosed(suppressed((6, 6, 6), 0.5, 1))


@pytest.mark.parametrize("seed", range(5))
def test_few_entries_and_all_of_them_give_the_same(seed, monkeypatch):
    known = suppressed((6, 6, 6), 0.4 + 0.1 * seed, seed)
    few = exactly_disclosed(known)
    monkeypatch.setattr("lustrum.audit.bounding.elimination._MOST_STEPS", -1)
    assert exactly_disclosed(known).tolist() == few.tolist()
