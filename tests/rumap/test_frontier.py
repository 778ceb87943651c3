"""The frontier: what no point dominates, against a loop that cannot be wrong."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lustrum.rumap.map import dominated_area, dominators, frontier

# A coarse grid, so that ties and equal points are frequent.
points = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12)


def dominates(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] <= b[0] and a[1] >= b[1] and a != b


@given(points)
def test_the_frontier_is_what_no_other_point_dominates(found: list[tuple[int, int]]) -> None:
    expected = [not any(dominates(a, b) for a in found) for b in found]
    assert frontier(*np.array(found).T).tolist() == expected


@given(points)
def test_every_dominated_point_names_a_point_of_the_frontier_that_dominates_it(
    found: list[tuple[int, int]],
) -> None:
    kept = frontier(*np.array(found).T)
    for point, by in zip(found, dominators(*np.array(found).T).tolist(), strict=True):
        if by >= 0:
            assert kept[by]
            assert dominates(found[by], point)


@given(points, points)
def test_more_methods_never_shrink_the_dominated_region(
    some: list[tuple[int, int]], more: list[tuple[int, int]]
) -> None:
    few, all_ = np.array(some), np.array(some + more)
    area = [dominated_area(*(p / 7).T) for p in (few, all_)]
    assert area[1] >= area[0] - 1e-12
    # What was dominated stays so.
    assert not frontier(*all_.T)[: len(some)][~frontier(*few.T)].any()


@given(points)
def test_the_area_is_the_share_of_a_fine_raster_that_is_dominated(
    found: list[tuple[int, int]],
) -> None:
    R, U = np.array(found).T / 7
    centre = (np.arange(49) + 0.5) / 49
    raster = (R[:, None, None] <= centre[:, None]) & (U[:, None, None] >= centre[None, :])
    assert abs(dominated_area(R, U) - raster.any(axis=0).mean()) < 1e-9


def test_a_point_without_figures_is_never_on_the_frontier() -> None:
    assert dominators([np.nan, 0.2, 0.1], [1.0, np.nan, 0.5]).tolist() == [-2, -2, -1]
