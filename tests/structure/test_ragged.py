from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lustrum.numeric.structure import ragged
from lustrum.numeric.structure.ragged import Lists, connected_parts, outer
from structure.cases import QUICK

ROWS = st.lists(st.lists(st.integers(0, 5), max_size=3), max_size=4)


def plain(lists: Lists) -> list[list[int]]:
    return [lists.row(i).tolist() for i in range(lists.count)]


@QUICK
@given(ROWS, ROWS, st.sampled_from([1, 4, 1 << 18]))
def test_the_outer_product_adds_every_pair(
    left: list[list[int]], right: list[list[int]], chunk: int
) -> None:
    with mock.patch.object(ragged, "_CHUNK", chunk):
        crossed = outer(Lists.of(left), Lists.of(right).scaled(10))
    assert plain(crossed) == [[a + 10 * b for a in x for b in y] for x in left for y in right]


@QUICK
@given(ROWS, ROWS)
def test_weights_multiply(left: list[list[int]], right: list[list[int]]) -> None:
    crossed = outer(Lists.of(left, [[i + 1 for i in x] for x in left]), Lists.of(right))
    assert crossed.weights.tolist() == [a + 1 for x in left for y in right for a in x for _ in y]


@QUICK
@given(ROWS)
def test_transposing_tells_which_lists_hold_an_item(rows: list[list[int]]) -> None:
    found = Lists.of(rows).transposed(6)
    assert plain(found) == [[i for i, r in enumerate(rows) for x in r if x == k] for k in range(6)]


@QUICK
@given(ROWS, st.data())
def test_taking_and_joining_keep_the_lists(rows: list[list[int]], data: st.DataObject) -> None:
    places = st.lists(st.integers(0, max(0, len(rows) - 1)), max_size=5 if rows else 0)
    picks = data.draw(places)
    taken = Lists.of(rows).take(np.array(picks, dtype=np.int64))
    assert plain(taken) == [rows[i] for i in picks]
    assert plain(Lists.of(rows).beside(Lists.of(rows))) == [r + r for r in rows]


def test_single_lists_are_known_as_such() -> None:
    assert Lists.singles(3).is_singles(3)
    assert not Lists.singles(3).is_singles(4)
    assert not Lists.of([[1], [0]]).is_singles(2)
    assert not Lists.of([[0, 1], []]).is_singles(2)


@given(st.integers(1, 40), st.integers(0, 60), st.integers(0, 2**32 - 1))
def test_parts_and_their_numbers_are_those_of_scipy(nodes: int, edges: int, seed: int) -> None:
    one, other = np.random.default_rng(seed).integers(0, nodes, (2, edges))
    graph = sparse.coo_array((np.ones(edges), (one, other)), shape=(nodes, nodes)).tocsr()
    assert (
        connected_parts(nodes, one, other).tolist()
        == connected_components(graph, directed=False)[1].tolist()
    )


def test_a_long_path_is_one_part_in_few_rounds() -> None:
    order = np.random.default_rng(1).permutation(100_000)
    assert not connected_parts(order.size, order[:-1], order[1:]).any()
    assert connected_parts(0, order[:0], order[:0]).size == 0
