"""Bounds by flows: those of linear programs and of every table there is, with cuts as proofs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow

from audit.fibres import QUICK, axis, fitting
from audit.test_bounds_sweep import suppressed
from lustrum.audit import ContradictionError, Knowledge, PublishedTable, bounds, from_tables
from lustrum.numeric.solve import Highs
from lustrum.numeric.solve.network_kernels import push
from lustrum.numeric.structure import UNBOUNDED
from solve.scipy_highs import ScipyHighs


def made(rows, low, high, ends) -> Knowledge:
    """Knowledge from plain lists."""
    matrix = np.array(rows, dtype=np.int64)
    ends = np.array(ends, dtype=np.int64).reshape(-1, 2)
    names = [f"x{i}" for i in range(matrix.shape[1])]
    return Knowledge(names, low, high, sparse.csr_array(matrix), ends[:, 0], ends[:, 1])


@st.composite
def networks(draw: st.DrawFn, nodes: int = 4, cells: int = 6, reach: int = 3) -> Knowledge:
    """Arcs between some nodes and the outside, equations turned round at will, some of them ranges."""
    count = draw(st.integers(1, nodes))
    rows, low, high = [], [], []
    for _ in range(draw(st.integers(1, cells))):
        tail, head = (draw(st.integers(0, count)) for _ in range(2))
        column = np.zeros(count + 1, dtype=np.int64)
        column[tail] -= 1
        column[head] += 1
        rows.append(column[:-1])
        low.append(draw(st.integers(-1, 2)))
        high.append(low[-1] + draw(st.integers(0, reach)))
    turned = np.array([draw(st.sampled_from([-1, 1])) for _ in range(count)])
    matrix = np.array(rows).T * turned[:, None]
    # Most systems fit some table, as published ones do.
    table = np.array([draw(st.integers(a, b)) for a, b in zip(low, high, strict=True)])
    sums = matrix @ table + np.array([draw(st.sampled_from([0] * 9 + [1])) for _ in range(count)])
    slack = np.array([draw(st.sampled_from([0, 0, 1, 2])) for _ in range(count)])
    return made(matrix, low, high, np.stack([sums - slack, sums + slack], axis=1))


@QUICK
@given(networks())
def test_flows_give_the_range_of_all_tables(known):
    points = fitting(known)
    if len(points) == 0:
        with pytest.raises(ContradictionError):
            bounds(known)
        return
    for kind in (known, known.relaxed()):
        found = bounds(kind)
        assert found.programs == 0
        assert found.low.tolist() == points.min(axis=0).tolist()
        assert found.high.tolist() == points.max(axis=0).tolist()
        assert found.sharp.all()


@QUICK
@given(networks(), st.data())
def test_sums_of_equations_are_left_out_only_where_they_say_nothing_more(known, data):
    """Cells in three and more facts: a network and sums of its rows, exact or ranges, right or not."""
    rows = known.matrix.toarray()
    tables = fitting(known)
    for _ in range(data.draw(st.integers(1, 2))):
        times = np.array([data.draw(st.sampled_from([-1, 0, 1, 1])) for _ in rows])
        middle = tables[0] if len(tables) else known.low
        total = int(times @ rows @ middle) + data.draw(st.sampled_from([0, 0, 0, 1]))
        slack = data.draw(st.sampled_from([0, 0, 1]))
        more = sparse.vstack([known.matrix, sparse.csr_array((times @ rows)[None, :])])
        ends = np.append(known.fact_low, total - slack), np.append(known.fact_high, total + slack)
        known = Knowledge(known.names, known.low, known.high, more, *ends)
    points = fitting(known)
    if len(points) == 0:
        with pytest.raises(ContradictionError):
            bounds(known, integer=True)
        return
    found = bounds(known, integer=True)
    assert found.low.tolist() == points.min(axis=0).tolist()
    assert found.high.tolist() == points.max(axis=0).tolist()
    assert found.sharp.all()


@QUICK
@given(networks(), st.sampled_from([10**6 + 3, 2**46 - 1]))
def test_large_numbers_have_bounds_in_proportion(known, times):
    large = Knowledge(known.names, *(times * a for a in (known.low, known.high)), known.matrix,
                      *(times * a for a in (known.fact_low, known.fact_high)))  # fmt: skip
    assume(len(fitting(known)))
    found, wanted = bounds(large), bounds(known)
    assert found.low.tolist() == (times * wanted.low).tolist()
    assert found.high.tolist() == (times * wanted.high).tolist()
    some = bounds(large, [0])
    assert (some.low[0], some.high[0]) == (found.low[0], found.high[0])


@QUICK
@given(networks(nodes=12, cells=40, reach=30), st.integers(0, 3))
def test_flows_and_linear_programs_agree(known, open_ended):
    high = known.high.copy()
    high[::5][:open_ended] = UNBOUNDED
    known = Knowledge(
        known.names, known.low, high, known.matrix, known.fact_low, known.fact_high
    ).relaxed()
    try:
        wanted = bounds(known, solver=ScipyHighs())
    except ContradictionError:
        with pytest.raises(ContradictionError):
            bounds(known)
        return
    found = bounds(known)
    assert found.programs == 0 or open_ended
    np.testing.assert_allclose(found.low, wanted.low, atol=1e-6)
    np.testing.assert_allclose(found.high, wanted.high, atol=1e-6)


HIERARCHIES = {
    "one level": [[0, 1, 2, 3, 4, 5, 6, 7]],
    "two levels": [[0, 1, 2], [3, 4, 5, 6, 7], list(range(8))],
    "three levels": [[0, 1], [2, 3], [0, 1, 2, 3], [4, 5], [6, 7], [4, 5, 6, 7], list(range(8))],
}


@pytest.mark.parametrize("share", [0.3, 0.7])
@pytest.mark.parametrize("kind", HIERARCHIES)
def test_a_two_way_table_with_one_hierarchy_is_a_network(kind, share):
    sets = [[i] for i in range(8)] + HIERARCHIES[kind]
    columns = [[i] for i in range(5)] + [list(range(5))]
    rng = np.random.default_rng(len(sets))
    inner = rng.integers(0, 30, (8, 5))
    values = np.array([[inner[np.ix_(r, c)].sum() for c in columns] for r in sets])
    mask = rng.random(values.shape) < share
    mask[-1, -1] = False
    axes = [axis("r", *sets), axis("c", *columns)]
    known = from_tables([PublishedTable.exact(axes, np.where(mask, 0, values), mask)])
    found = bounds(known)
    assert found.programs == 0
    assert found.flows > 0
    assert found.sharp.all()
    wanted = bounds(known, solver=Highs(), integer=True)
    assert found.low.tolist() == wanted.low.tolist()
    assert found.high.tolist() == wanted.high.tolist()


def test_three_way_tables_and_other_weights_are_left_to_programs():
    known = suppressed((5, 5, 5), 0.7, 2)
    assert bounds(known).flows == 0
    known = made([[2, 1, 0], [0, 1, 1]], [0] * 3, [9] * 3, [[7, 7], [5, 5]])
    assert bounds(known).flows == 0
    odd = made([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [0] * 3, [9] * 3, [[7, 7], [5, 5], [4, 4]])
    assert bounds(odd).flows == 0


@pytest.mark.parametrize("seed", [10, 11, 35, 40, 43, 63])
def test_cells_without_an_end_have_the_bounds_of_linear_programs(seed):
    """A flow that can grow for ever must not carry other bounds away with it."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, 6, (14, 2))
    matrix = np.zeros((6, 14), dtype=np.int64)
    np.add.at(matrix, (ends[:, 0], range(14)), -1)
    np.add.at(matrix, (ends[:, 1], range(14)), 1)
    value = rng.integers(0, 6, 14)
    sums = matrix[:-1] @ value
    low = np.where(rng.random(14) < 0.2, -UNBOUNDED, value - rng.integers(0, 4, 14))
    high = np.where(rng.random(14) < 0.5, UNBOUNDED, value + rng.integers(0, 4, 14))
    known = made(matrix[:-1], low, high, np.stack([sums, sums], axis=1))
    found, wanted = bounds(known), bounds(known, solver=Highs())
    assert found.low.tolist() == wanted.low.tolist()
    assert found.high.tolist() == wanted.high.tolist()
    assert (found.low <= value).all()
    assert (found.high >= value).all()


def test_an_equation_left_out_must_come_out_all_the_same():
    # The last equation is the sum of the others, and the middle cell is in all three.
    rows = [[1, 1, 0, 0, 1], [0, -1, 1, 1, 0], [1, 0, 1, 1, 1]]
    fits = made(rows, [0] * 5, [9] * 5, [[6, 6], [2, 2], [8, 8]])
    clash = made(rows, [0] * 5, [9] * 5, [[6, 6], [2, 2], [9, 9]])
    wanted = bounds(fits, solver=Highs())
    found = bounds(fits)
    assert [found.low.tolist(), found.high.tolist()] == [wanted.low.tolist(), wanted.high.tolist()]
    with pytest.raises(ContradictionError):
        bounds(clash)


@pytest.mark.parametrize("seed", range(6))
def test_the_compiled_push_sends_what_a_second_method_sends(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(3, 15))
    capacity = np.where(rng.random((nodes, nodes)) < 0.4, rng.integers(1, 50, (nodes, nodes)), 0)
    np.fill_diagonal(capacity, 0)
    tail, head = (a.astype(np.int64) for a in np.nonzero(capacity))
    from lustrum.numeric.solve.network import slots

    indptr, to, mate, arc, slot = slots(tail, head, nodes)
    room = np.zeros(to.size, dtype=np.int64)
    room[slot] = capacity[tail, head]
    flow, work = np.zeros(tail.size, dtype=np.int64), np.zeros((4, nodes), dtype=np.int64)
    graph = (indptr, to, mate, arc, room, flow, work)
    sent = push(0, nodes - 1, np.int64(2**40), *graph)
    wanted = maximum_flow(sparse.csr_array(capacity.astype(np.int32)), 0, nodes - 1).flow_value
    assert sent == wanted
    assert ((flow >= 0) & (flow <= capacity[tail, head])).all()
    balance = np.bincount(head, flow, nodes) - np.bincount(tail, flow, nodes)
    assert balance[1:-1].any() == 0
    assert balance[-1] == wanted


def test_an_audit_by_flows_can_be_stopped_and_says_how_far_it_came():
    known = suppressed((12, 14), 0.5, 1)
    told = []
    full = bounds(known, progress=told.append, workers=1)
    assert told[-1].settled == told[-1].asked
    assert told[-1].programs == full.flows
    cut = bounds(known, stop=lambda: len(told) > 0)
    assert cut.flows == 0
    assert not cut.sharp.all()
    assert (cut.low <= full.low).all()
    assert (cut.high >= full.high).all()
