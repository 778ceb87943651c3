"""The dispatcher: a formula where one is sharp, and the same bounds as programs everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.audit import best_bounds, bounds, from_margins

CUBE = {"A": 2, "B": 3, "C": 2}


@settings(deadline=None, max_examples=examples(10, 80))
@given(
    st.lists(st.integers(0, 3), min_size=12, max_size=12),
    st.sampled_from([["A", "B", "C"], ["AB", "C"], ["AB", "BC"], ["AB", "BC", "AC"]]),
)
def test_the_cheapest_method_gives_the_bounds_of_the_dearest(
    values: list[int], shown: list[str]
) -> None:
    cube = np.array(values).reshape(2, 3, 2)
    axes = {name: tuple(i for i, v in enumerate(CUBE) if v not in name) for name in shown}
    known = from_margins(CUBE, {name: cube.sum(axis=axes[name]).tolist() for name in shown})
    cheap, dear = best_bounds(known), bounds(known, integer=True)
    assert np.array_equal(cheap.low, dear.low)
    assert np.array_equal(cheap.high, dear.high)
    assert cheap.sharp.all()


def test_decomposable_margins_need_no_program() -> None:
    known = from_margins(CUBE, {"AB": [[3, 1, 2], [0, 4, 5]], "BC": [[2, 1], [3, 2], [4, 3]]})
    assert best_bounds(known).programs == 0


@pytest.mark.parametrize("cells", [None, [0, 3], slice(2, 6)])
def test_some_cells_are_those_of_all(cells: object) -> None:
    known = from_margins(CUBE, {"AB": [[3, 1, 2], [0, 4, 5]], "BC": [[2, 1], [3, 2], [4, 3]]})
    every = best_bounds(known)
    some = best_bounds(known, cells)  # type: ignore[arg-type]
    assert np.array_equal(some.low, every.low[some.cells])
    assert np.array_equal(some.high, every.high[some.cells])
