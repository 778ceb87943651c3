from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lustrum.numeric.structure.families import Family
from lustrum.numeric.structure.ragged import Lists
from structure.cases import QUICK

ATOMS = 5
SETS = st.lists(st.sets(st.integers(0, ATOMS - 1)).map(sorted), min_size=1, max_size=7)


def indicator(family: Family) -> np.ndarray:
    array = np.zeros((family.lists.count, family.atoms), dtype=int)
    array[family.lists.rows, family.lists.items] = 1
    return array


@QUICK
@given(SETS)
def test_forests_hold_every_set_and_no_two_that_cross(sets: list[list[int]]) -> None:
    family = Family(Lists.of(sets), ATOMS)
    for forest in family.forests:
        held = [set(sets[c]) for c in forest.sets]
        assert all(a <= b or b <= a or not a & b for a in held for b in held)
    everywhere = {c for forest in family.forests for c in forest.sets.tolist()}
    assert everywhere == set(family.distinct.tolist())
    crossing = any(
        set(a) & set(b) and not set(a) <= set(b) and not set(b) <= set(a)
        for a in sets
        for b in sets
    )
    assert family.nested == (not crossing)


@QUICK
@given(SETS)
def test_every_sum_is_true(sets: list[list[int]]) -> None:
    family = Family(Lists.of(sets), ATOMS)
    held = indicator(family)
    for total, parts in family.sums:
        assert np.array_equal(held[total], held[list(parts)].sum(axis=0))


@QUICK
@given(SETS, st.sets(st.integers(0, ATOMS - 1)))
def test_what_is_expressed_adds_up_to_the_target(sets: list[list[int]], target: set[int]) -> None:
    family = Family(Lists.of(sets), ATOMS)
    mask = np.isin(np.arange(ATOMS), list(target))
    found = family.express(mask)
    if found is not None:
        assert np.array_equal(found[1] @ indicator(family)[found[0]], mask.astype(int))
    elif family.nested and target:
        held = indicator(family)
        assert np.linalg.matrix_rank(np.vstack([held, mask])) > np.linalg.matrix_rank(held)
