"""A second release keeps what did not change, refines by new variables, and says what both tell."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model.finest import FinestCells
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.population.support import Support
from lustrum.protect.population.together import together
from protect.population.worlds import KEY, cells_of, dense, town

METHOD = ProtectedPopulation(sweeps=2, empty_share=0.2)


def refined(counts: np.ndarray, seed: int, codes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """The same people with one more variable: parts of each count, and keys of parts that add up."""
    rng = np.random.default_rng(seed)
    parts = rng.multinomial(counts.ravel(), [1 / codes] * codes).reshape(*counts.shape, codes)
    return parts, rng.integers(1, 2**62, parts.shape).astype(np.uint64) * (parts > 0)


def with_keys(dataset, counts: np.ndarray, keys: np.ndarray) -> FinestCells:  # type: ignore[no-untyped-def]
    at = np.nonzero(counts)
    return FinestCells(dataset, np.stack(at), counts[at], keys[at])


def test_the_same_records_show_the_same_numbers_again() -> None:
    rng = np.random.default_rng(2)
    cells = cells_of(town((6, 5, 4)), rng.poisson(1.0, (6, 5, 4)))
    first = METHOD.protect(cells, KEY)
    again = METHOD.protect(cells, KEY, previous=first.memory)
    assert np.array_equal(dense(again.cells), dense(first.cells))
    assert again.agency.changed == 0


def test_cells_that_differ_are_not_the_ones_that_changed() -> None:
    rng = np.random.default_rng(3)
    dataset = town((20, 10, 6), zeros=False)
    counts = rng.poisson(1.0, (20, 10, 6))
    keys = rng.integers(1, 2**62, counts.shape).astype(np.uint64)
    first = METHOD.protect(with_keys(dataset, counts, keys), KEY)
    later, later_keys = counts.copy(), keys.copy()
    changed = rng.random(counts.shape) < 0.1
    later[changed] = rng.poisson(1.0, int(changed.sum()))
    later_keys[changed] += np.uint64(17)
    second = METHOD.protect(with_keys(dataset, later, later_keys), KEY, previous=first.memory)
    one, two = dense(first.cells), dense(second.cells)
    moved = changed & ((counts > 0) | (later > 0))
    differs = one != two
    assert (differs & ~moved).sum() > (differs & moved).sum() > 0
    assert second.agency.changed == int(moved.sum())
    apart = second.agency.differences
    assert (apart.cells, apart.changed) == (differs.sum(), (differs & moved).sum())
    assert sum(step.cells for step in apart.steps) == apart.cells
    low, high = second.public.support.bounds(two)
    assert second.public.support == Support(3, wide=True)
    assert ((low <= later) & (later <= high)).all()
    both = together(
        first.cells, second.cells, second.public.support, METHOD.support.finest(first.cells)
    )
    assert both.differing == int(differs.sum())
    assert both.changed == apart.certain == int((np.abs(one - two) > 3).sum())


@settings(max_examples=examples(8, 60), deadline=None)
@given(
    st.lists(st.sampled_from([0, 0, 1, 2, 3, 4, 5, 8, 13]), min_size=12, max_size=12),
    st.integers(0, 10**6),
)
def test_parts_at_a_new_variable_add_up_to_the_old_number(values: list[int], seed: int) -> None:
    counts = np.array(values).reshape(4, 3)
    parts, part_keys = refined(counts, seed)
    first = METHOD.protect(with_keys(town((4, 3), zeros=False), counts, part_keys.sum(axis=2)), KEY)
    second = METHOD.protect(
        with_keys(town((4, 3, 3), zeros=False), parts, part_keys), KEY, previous=first.memory
    )
    shown = dense(second.cells)
    assert np.array_equal(shown.sum(axis=2), dense(first.cells))
    low, high = METHOD.support.bounds(shown)
    assert ((low <= parts) & (parts <= high)).all()
    both = together(first.cells, second.cells, METHOD.support)
    assert both.changed == 0
    listed = parts[tuple(second.cells.codes.astype(np.intp))]
    assert ((both.low <= listed) & (listed <= both.high)).all()


def test_what_both_releases_tell_is_what_enumeration_leaves() -> None:
    support = Support(3)
    earlier, later = np.array([3, 0]), np.array([[3, 0], [0, 0]])
    one = FinestCells(town((2,), zeros=False), [[0]], [3])
    two = FinestCells(town((2, 2), zeros=False), [[0], [0]], [3])
    both = together(one, two, support)
    p_low, p_high = support.bounds(earlier)
    low, high = support.bounds(later)
    kept = np.array(
        [
            x
            for x in product(
                *(range(a, b + 1) for a, b in zip(low.ravel(), high.ravel(), strict=True))
            )
            if p_low[0] <= x[0] + x[1] <= p_high[0] and p_low[1] <= x[2] + x[3] <= p_high[1]
        ]
    )
    assert (both.low[0], both.high[0]) == (kept[:, 0].min(), kept[:, 0].max())
    assert both.left() == {6: 1}
    assert both.to_mapping()["pinned"] == 0
