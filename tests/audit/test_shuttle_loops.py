"""The loops of the shuttle: bounds along sums as plain Python passes them, and dives beside all tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.fibres import QUICK
from audit.test_closed import PAIRS, truth
from lustrum.audit.closed import Margins
from lustrum.audit.shuttle import Detail, Effort
from lustrum.audit.shuttle.kernels import CUT, FOUND, NO_TABLE, dive, drain, narrow
from lustrum.audit.shuttle.lattice import Lattice
from lustrum.audit.shuttle.search import Clock, _CubeSearch, _fitted

PURE = Effort(solver=None)


def settled(sums, low, high):
    """Every sum in turn until nothing changes; None if a cell has no value left."""
    low, high = list(low), list(high)
    changed = True
    while changed:
        changed = False
        for total, *parts in sums:
            for cell in (total, *parts):
                others = [p for p in parts if p != cell]
                if cell == total:
                    ends = sum(low[p] for p in parts), sum(high[p] for p in parts)
                else:
                    ends = (
                        low[total] - sum(high[p] for p in others),
                        high[total] - sum(low[p] for p in others),
                    )
                new = max(low[cell], ends[0]), min(high[cell], ends[1])
                changed |= new != (low[cell], high[cell])
                low[cell], high[cell] = new
                if new[0] > new[1]:
                    return None
    return low, high


def arrays(sums, cells):
    """Sums as the loops take them, and an empty queue."""
    indptr = np.cumsum([0, *map(len, sums)])
    items = np.array([c for s in sums for c in s], dtype=np.int64)
    users = [[r for r, s in enumerate(sums) if c in s] for c in range(cells)]
    user_ptr = np.cumsum([0, *map(len, users)])
    flat = np.array([r for rows in users for r in rows], dtype=np.int64)
    return indptr, items, user_ptr, flat


@QUICK
@given(st.data())
def test_bounds_pass_along_sums_until_nothing_changes(data):
    cells = data.draw(st.integers(4, 7))
    parts = st.lists(st.integers(0, cells - 1), min_size=3, max_size=4, unique=True)
    sums = data.draw(st.lists(parts, min_size=1, max_size=4))
    low = np.array([data.draw(st.integers(0, 2)) for _ in range(cells)])
    high = low + np.array([data.draw(st.integers(0, 7)) for _ in range(cells)])
    lists, rows = arrays(sums, cells), len(sums)
    wanted = settled(sums, low, high)
    for visits in (10**6, data.draw(st.integers(0, 5))):
        queue, queued = np.arange(rows), np.ones(rows, bool)
        least, most = low.copy(), high.copy()
        fine = drain(lists, least, most, queue, queued, rows, visits)
        assert not queued.any()
        if wanted is None:
            assert visits < 10 or not fine
            continue
        # After too few visits bounds are wider, and never wrong.
        assert fine
        assert (low <= least).all()
        assert (least <= wanted[0]).all()
        assert (most >= wanted[1]).all()
        if visits == 10**6:
            assert (least.tolist(), most.tolist()) == wanted
            settled_low, settled_high = least, most
    if wanted is None:
        return
    # The same from one cell that is narrowed.
    cell = data.draw(st.integers(0, cells - 1))
    ends = data.draw(st.integers(0, 5)), data.draw(st.integers(3, 9))
    least, most = settled_low.copy(), settled_high.copy()
    start = least.copy(), most.copy()
    start[0][cell], start[1][cell] = max(least[cell], ends[0]), min(most[cell], ends[1])
    wanted = settled(sums, *start) if start[0][cell] <= start[1][cell] else None
    queue, queued = np.zeros(rows, np.int64), np.zeros(rows, bool)
    assert narrow(lists, least, most, queue, queued, 10**6, cell, *ends) == (wanted is not None)
    assert not queued.any()
    if wanted is not None:
        assert (least.tolist(), most.tolist()) == wanted


def dived(margins, low, high, *, visits, nodes=10**6, depth=40, guide=None, lean=1):
    """The outcome of a dive between bounds of the inner cells, with hardly any narrowing on the way.

    The sums to which the guide is fitted are ``lean`` times too large, which misleads it.
    """
    lattice = Lattice.of(margins, detail=Detail.SINGLES, visits=0)
    least, most = lattice.low.copy(), lattice.high.copy()
    least[lattice.inner] = np.maximum(least[lattice.inner], low)
    most[lattice.inner] = np.minimum(most[lattice.inner], high)
    inside = _CubeSearch(margins, None, PURE, Clock.start(PURE))
    fitted_to = inside.released[2] * lean
    fitted_to.setflags(write=False)  # as in a search, so that nothing is compiled again
    rows, width = lattice.indptr.size - 1, least.size
    outcome, used = dive(
        lattice.sums,
        least,
        most,
        np.zeros(rows, np.int64),
        np.zeros(rows, bool),
        visits,
        (*inside.released[:2], fitted_to),
        lattice.inner,
        _fitted(margins, np.ones(low.size, int)) if guide is None else guide.astype(float),
        nodes,
        np.full((depth + 2, width), -99),
        np.full((depth + 2, width), -99),
        np.full((depth, 3), -99),
    )
    return outcome, used, least[lattice.inner], most[lattice.inner]


DIVES = [((2, 3), [(0,), (1,)], 5), ((2, 2, 2), PAIRS, 6), ((2, 2, 2), [(0, 1), (2,)], 4)]


@pytest.mark.parametrize("case", range(len(DIVES)))
@pytest.mark.parametrize("visits", [0, 1, 1000])
def test_a_dive_finds_a_table_exactly_where_there_is_one(case, visits):
    shape, generators, people = DIVES[case]
    rng = np.random.default_rng(case)
    outcomes, most_used = [], 0
    for _ in range(12):
        cells = int(np.prod(shape))
        table = rng.multinomial(people, rng.dirichlet(np.full(cells, 0.6))).reshape(shape)
        margins = Margins.of_table(table, generators)
        every = truth(table, generators)[2].reshape(-1, table.size)
        one = every[rng.integers(len(every))]
        low = np.maximum(one - rng.integers(0, 2, table.size), 0)
        high = low + rng.integers(0, 3, table.size)
        inside = every[((low <= every) & (every <= high)).all(axis=1)]
        guide = rng.integers(-1, 4, table.size)
        outcome, used, least, most = dived(margins, low, high, visits=visits, guide=guide)
        outcomes.append(outcome)
        assert outcome == (FOUND if len(inside) else NO_TABLE)
        if outcome == FOUND:
            assert least.tolist() == most.tolist()
            assert least.tolist() in inside.tolist()
        # A guide that is always too low, or too high, leads astray and changes no outcome.
        for lean in (0, 50):
            astray, _, *ends = dived(margins, low, high, visits=visits, guide=guide, lean=lean)
            assert astray == outcome
            assert astray == NO_TABLE or ends[0].tolist() in inside.tolist()
        if used:
            again = dived(margins, low, high, visits=visits, guide=guide, nodes=used)
            assert again[:2] == (outcome, used)
            short = dived(margins, low, high, visits=visits, guide=guide, nodes=used - 1)
            assert short[:2] == (CUT, used - 1)
        most_used = max(used, most_used)
    assert {FOUND, NO_TABLE} == set(outcomes)
    if visits < 2:
        assert most_used >= 3


def test_a_dive_that_is_too_deep_is_cut_short():
    table = np.array([[3, 1, 2], [0, 2, 4]])
    margins = Margins.of_table(table, [(0,), (1,)])
    low, high = np.zeros(6, int), np.full(6, 6)
    depths = [dived(margins, low, high, visits=0, depth=d)[:2] for d in range(12)]
    found = [d for d, (outcome, _) in enumerate(depths) if outcome == FOUND]
    assert found == list(range(found[0], 12))
    assert found[0] == 6
    assert [o for o, _ in depths[: found[0]]] == [CUT] * 6
    assert [used for _, used in depths[:4]] == [0, 1, 2, 3]
