"""Networks that are laid out by hand: which systems are networks, and what a flow may change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from audit.fibres import fitting
from lustrum.audit import ContradictionError, Knowledge, bounds
from lustrum.audit.bounding.network import BoundNetwork, Flows
from lustrum.audit.knowledge.reduce import Piece, pieces
from lustrum.numeric.solve import Highs
from lustrum.numeric.solve.network_kernels import push
from lustrum.numeric.structure import UNBOUNDED


def piece(rows: list[list[int]], low: list[int], high: list[int], ends: list[list[int]]) -> Piece:
    """A piece from plain lists; every cell is in it."""
    facts = np.array(ends, dtype=np.int64)
    return Piece(
        cells=np.arange(len(low)),
        matrix=sparse.csr_array(np.array(rows, dtype=np.int64)),
        fact_low=facts[:, 0],
        fact_high=facts[:, 1],
        low=np.array(low, dtype=np.int64),
        high=np.array(high, dtype=np.int64),
    )


SQUARE = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]]


def test_a_cell_in_three_ranges_is_no_network() -> None:
    rows = [[1, 1, 0], [1, 0, 1], [1, 1, 1]]
    assert BoundNetwork.of(piece(rows, [0] * 3, [9] * 3, [[2, 5], [3, 6], [1, 8]])) is None


def test_a_range_is_never_left_out_of_a_network() -> None:
    """The first fact is the sum of two others; as a range it says more than they do."""
    rows = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]]
    ends = [[5, 6], [1, 4], [1, 4], [2, 3], [2, 5]]
    assert BoundNetwork.of(piece(rows, [0] * 4, [3] * 4, ends)) is None
    facts = np.array(ends)
    known = Knowledge("abcd", [0] * 4, [3] * 4, sparse.csr_array(rows), facts[:, 0], facts[:, 1])
    tables = fitting(known)
    found = bounds(known, integer=True)
    assert found.low.tolist() == tables.min(axis=0).tolist()
    assert found.high.tolist() == tables.max(axis=0).tolist()


def test_sums_of_ends_stay_far_from_the_largest_whole_number() -> None:
    small = piece(SQUARE, [0] * 4, [0] * 4, [[0, 0]] * 3)
    assert BoundNetwork.of(small) is not None
    for name in ("low", "high", "fact_low", "fact_high"):
        for size, fits in ((2**60, False), (2**60 - 256, True), (UNBOUNDED, False)):
            ends = getattr(small, name).copy()
            ends[1] = -size if name.endswith("low") else size
            assert (BoundNetwork.of(replace(small, **{name: ends})) is not None) == fits
    many = replace(small, high=np.full(4, 2**58))
    assert BoundNetwork.of(many) is None
    assert BoundNetwork.of(replace(small, high=np.full(4, 2**58 - 256))) is not None


def crowded(seed: int, many: int) -> Iterator[Knowledge]:
    """Cells in three and more facts: a network, sums of its equations, some of them only ranges."""
    rng = np.random.default_rng(seed)
    for _ in range(many):
        cells = int(rng.integers(4, 7))
        ends = rng.integers(0, 4, (cells, 2))
        base = np.zeros((4, cells), dtype=np.int64)
        np.add.at(base, (ends[:, 0], np.arange(cells)), 1)
        np.add.at(base, (ends[:, 1], np.arange(cells)), -1)
        sums = rng.choice([0, 1], (int(rng.integers(1, 4)), 3)) @ base[:3]
        rows = rng.permutation(np.vstack([base[:3], sums]))
        rows = rows[np.abs(rows).sum(axis=1) > 0]
        if rows.shape[0] == 0:
            continue
        somewhere = rng.integers(0, 3, cells)
        total = rows @ somewhere
        slack = rng.choice([0, 0, 0, 1], (2, total.size))
        yield Knowledge(
            [f"x{i}" for i in range(cells)], [0] * cells, [2] * cells,
            sparse.csr_array(rows), total - slack[0], total + slack[1],
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_equations_are_left_out_only_where_they_follow_from_the_network(seed: int) -> None:
    for known in crowded(seed, 12):
        tables = fitting(known)
        found = bounds(known.relaxed(), workers=1)
        if found.programs == 0:
            assert found.low.tolist() == tables.min(axis=0).tolist()
            assert found.high.tolist() == tables.max(axis=0).tolist()
        assert (found.low <= tables.min(axis=0)).all()
        assert (found.high >= tables.max(axis=0)).all()


def test_equations_that_the_network_does_not_imply_are_never_left_out() -> None:
    rng = np.random.default_rng(3)
    for _ in range(25):
        rows = rng.choice([-1, 0, 1, 1], (4, 5))
        total = rows @ rng.integers(0, 3, 5)
        slack = rng.choice([0, 0, 0, 1], 4)
        names = list("abcde")
        known = Knowledge(names, [0] * 5, [2] * 5, sparse.csr_array(rows), total, total + slack)
        tables = fitting(known)
        found = bounds(known, integer=True, workers=1)
        assert found.low.tolist() == tables.min(axis=0).tolist()
        assert found.high.tolist() == tables.max(axis=0).tolist()


def test_weights_of_zero_and_entries_in_two_parts_mean_what_they_add_up_to() -> None:
    """As stored in a sparse matrix: a weight of 0 ties nothing, and 1 and 1 for one cell are 2."""
    said = np.array([1, 1, 0, 1, 1, -1, 1]), np.array([0, 1, 2, 2, 2, 3, 3]), np.array([0, 3, 7])
    stored = sparse.csr_array(said, shape=(2, 4))
    plain = sparse.csr_array(stored.toarray())
    for kind in ("whole", "real"):
        wanted, found = (
            Knowledge(list("abcd"), [0] * 4, [9] * 4, matrix, [5, 6], [5, 6])
            for matrix in (plain, stored)
        )
        if kind == "real":
            wanted, found = wanted.relaxed(), found.relaxed()
        for known in (wanted, found):
            got = bounds(known)
            assert got.low.tolist() == pytest.approx([0, 0, 3, 0])
            assert got.high.tolist() == pytest.approx([5, 5, 3, 9])
    assert stored.nnz == 7  # the caller's matrix is left alone


def flows() -> tuple[BoundNetwork, Flows]:
    """Two rows of 5 and 4 and a column of 6: the first flow fits at once, at the lower ends."""
    network = BoundNetwork.of(piece(SQUARE, [3, 2, 3, 1], [6, 6, 6, 6], [[5, 7], [4, 8], [6, 9]]))
    assert network is not None
    return network, Flows(network, 4)


def test_a_copy_goes_on_apart() -> None:
    _, one = flows()
    twin = one.copy()
    names = ("low", "high", "least", "most", "flow", "room")
    before = {name: getattr(one, name).copy() for name in names}
    assert twin.ask(np.arange(8)) > 0
    for name in names:
        assert getattr(one, name).tolist() == before[name].tolist()
    assert twin.high.tolist() == [5, 4, 6, 5]


def test_a_cut_names_every_node_and_adds_up_to_its_bound() -> None:
    network, one = flows()
    rows, ends = np.array(SQUARE), np.array([[5, 7], [4, 8], [6, 9]])
    low, high = np.array([3, 2, 3, 1]), np.full(4, 6)
    for cell in range(4):
        for upper in (False, True):
            twin = one.copy()
            twin.ask(np.array([2 * cell + upper]))
            bound = (twin.high if upper else twin.low)[cell]
            if bound == (high if upper else low)[cell]:
                continue  # the cell's own end is proof enough
            cut = twin.cut(cell, upper=upper)
            assert cut.size == network.need.size
            pairs = network.multipliers(cut)
            weights = sum(y * rows[fact] for fact, y in pairs.items())
            sign = -1 if upper else 1
            assert weights[cell] == sign
            # The cell by itself, by the facts' ends less what the other cells can be.
            shown = sum(y * ends[fact][0 if y > 0 else 1] for fact, y in pairs.items())
            others = np.delete(np.arange(4), cell)
            for other in others:
                y = weights[other]
                shown -= y * (high if y > 0 else low)[other]
            assert sign * shown == bound


def test_what_a_network_finds_is_what_programs_find_where_numbers_are_large() -> None:
    top = 2**53
    rows = sparse.csr_array(np.array(SQUARE))
    known = Knowledge(list("abcd"), [0] * 4, [top] * 4, rows, [top, 5, 7], [top, 5, 7])
    found = bounds(known)
    assert (found.programs, found.low.tolist()) == (0, [2, top - 7, 0, 0])
    assert found.high.tolist() == [7, top - 2, 5, 5]


def test_a_network_that_nothing_fits_is_refused_by_flows_too() -> None:
    rows = sparse.csr_array(np.array(SQUARE))
    known = Knowledge(list("abcd"), [0] * 4, [3] * 4, rows, [6, 6, 7], [6, 6, 7])
    asked = np.ones(4, dtype=np.bool_)
    (only,) = pieces(known, known.low, known.high, asked)
    network = BoundNetwork.of(only)
    assert network is not None
    assert not Flows(network, 4).feasible
    for solver in (None, Highs()):
        with pytest.raises(ContradictionError):
            bounds(known, solver=solver)


def test_no_more_is_sent_than_the_limit() -> None:
    """Two ways of 3 each from node 0 to node 3, one over node 1 and one over node 2."""
    tail, head = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3])
    indptr, to, mate, arc, slot = slots(tail, head, 4)
    for limit, sent in ((0, 0), (1, 1), (3, 3), (4, 4), (5, 5), (6, 6), (9, 6)):
        room = np.zeros(to.size, dtype=np.int64)
        room[slot] = 3
        flow, work = np.zeros(4, dtype=np.int64), np.zeros((4, 4), dtype=np.int64)
        graph = (indptr, to, mate, arc, room, flow, work)
        assert push(0, 3, np.int64(limit), *graph) == sent
        assert flow[0] + flow[1] == sent
        assert flow[:2].tolist() == flow[2:].tolist()
        assert (room[slot] + flow == 3).all()
        assert room[mate[slot]].tolist() == flow.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_flows_reach_the_range_of_all_tables_and_say_how_many_it_took(seed: int) -> None:
    rng = np.random.default_rng(seed)
    value = rng.integers(0, 5, 4)
    low, high = value - rng.integers(0, 4, 4), value + rng.integers(0, 4, 4)
    sums = np.array(SQUARE) @ value
    ends = np.stack([sums - rng.integers(0, 2, 3), sums + rng.integers(0, 2, 3)], axis=1)
    own = piece(SQUARE, low.tolist(), high.tolist(), ends.tolist())
    known = Knowledge("abcd", low, high, own.matrix, ends[:, 0], ends[:, 1])
    tables = fitting(known)
    network = BoundNetwork.of(own)
    assert network is not None
    for question in range(8):
        cell, upper = divmod(question, 2)
        one = Flows(network, 4)
        first = one.table.copy()
        assert one.feasible
        assert own.holds(first)
        reached = first[cell] == (high if upper else low)[cell]
        assert one.ask(np.array([question])) == (0 if reached else 1)
        assert own.holds(one.table)
        end = (tables.max(axis=0) if upper else tables.min(axis=0))[cell]
        assert (one.most if upper else one.least)[cell] == end
        assert (one.high if upper else one.low)[cell] == end
        # The first flow and the last one are all that was met.
        met = np.array([first, one.table])
        assert one.least.tolist() == met.min(axis=0).tolist()
        assert one.most.tolist() == met.max(axis=0).tolist()
        assert one.ask(np.array([question])) == 0
        if end == (high if upper else low)[cell]:
            continue
        rows, sign = np.array(SQUARE), -1 if upper else 1
        pairs = network.multipliers(one.cut(cell, upper=bool(upper)))
        weights = sum(y * rows[fact] for fact, y in pairs.items())
        shown = sum(y * ends[fact][0 if y > 0 else 1] for fact, y in pairs.items())
        for other in np.delete(np.arange(4), cell):
            shown -= weights[other] * (high if weights[other] > 0 else low)[other]
        assert sign * shown == end
    every = Flows(network, 4)
    for question in rng.permutation(8):
        every.ask(np.array([question]))
        assert own.holds(every.table)
    assert every.least.tolist() == tables.min(axis=0).tolist()
    assert every.most.tolist() == tables.max(axis=0).tolist()
    assert every.low.tolist() == tables.min(axis=0).tolist()
    assert every.high.tolist() == tables.max(axis=0).tolist()


@pytest.mark.parametrize("high", [[1, 6], [6, 1], [2, 4], [4, 2]])
def test_a_cell_at_its_own_end_has_no_room_left_for_other_flows(high: list[int]) -> None:
    network = BoundNetwork.of(piece([[1, 1]], [0, 0], high, [[5, 5]]))
    assert network is not None
    least = [5 - high[1], 5 - high[0]]
    for first, second in ((1, 2), (3, 0)):
        one = Flows(network, 2)
        # Down to the lower bound first, so that the way up is taken by a flow.
        one.ask(np.array([first - 1, first, second]))
        assert one.table.min() >= 0
        assert (one.table <= high).all()
        assert one.low[second // 2] == max(0, least[second // 2])
        assert one.high[first // 2] == min(5, high[first // 2])
