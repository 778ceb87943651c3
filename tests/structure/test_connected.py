"""Connected parts against scipy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from lustrum.numeric.structure.ragged import connected_parts


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
