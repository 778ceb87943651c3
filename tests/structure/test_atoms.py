from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Category
from lustrum.structure import Atoms
from lustrum.structure.members import over_members
from structure.cases import QUICK


@QUICK
@given(st.integers(1, 6), st.data())
def test_codes_share_an_atom_when_no_set_tells_them_apart(codes: int, data: st.DataObject) -> None:
    subsets = st.lists(st.integers(0, codes - 1))
    sets = data.draw(st.lists(subsets, max_size=5))
    atoms = Atoms.of_sets(codes, sets)
    held = [tuple(code in s for s in sets) for code in range(codes)]
    for one in range(codes):
        assert (atoms.of_code[one] < 0) == (not any(held[one]))
        for other in range(codes):
            same = atoms.of_code[one] == atoms.of_code[other]
            assert same == (held[one] == held[other])
    assert atoms.held.count == len(sets)
    for place, members in enumerate(sets):
        assert atoms.held.row(place).tolist() == sorted({int(atoms.of_code[m]) for m in members})
        assert np.flatnonzero(atoms.mask(place)).tolist() == atoms.held.row(place).tolist()


def test_atoms_are_numbered_by_where_they_are_first_met() -> None:
    assert Atoms.of_sets(5, [(3, 4), (1,), (1, 2)]).of_code.tolist() == [-1, 0, 1, 2, 2]


def test_a_long_code_list_is_cut_without_a_table_of_codes_by_sets() -> None:
    count = 20_000
    groups = [range(i, i + 10) for i in range(0, count, 10)]
    assert Atoms.of_sets(count, [*groups, range(count)]).count == count // 10


@QUICK
@given(st.integers(0, 2**32))
def test_rolling_up_adds_the_atoms_of_each_category(seed: int) -> None:
    atoms = Atoms.of_sets(4, [(0, 1), (1, 2), (0, 1, 2, 3)])
    values = np.random.default_rng(seed).integers(-9, 9, (2, atoms.count, 3))
    held = np.array([atoms.mask(c) for c in range(3)], dtype=np.int64)
    truth = np.einsum("ca,xay->xcy", held, values)
    assert np.array_equal(atoms.roll_up(values, 1), truth)


def test_rolling_up_a_single_axis_works_like_any_other() -> None:
    atoms = Atoms.of_sets(3, [(0,), (1, 2), (0, 1, 2), ()])
    values = np.array([5, 7], dtype=np.int64)
    assert atoms.roll_up(values, 0).tolist() == [5, 7, 12, 0]
    keys = np.array([2**63, 2**63 + 1], dtype=np.uint64)
    assert atoms.roll_up(keys, 0).tolist() == [2**63, 2**63 + 1, 1, 0]


@QUICK
@given(
    st.lists(st.lists(st.integers(0, 3), max_size=3, unique=True), max_size=5), st.integers(0, 2)
)
def test_members_are_gathered_also_where_a_category_has_none(
    groups: list[list[int]], axis: int
) -> None:
    values = np.moveaxis(np.arange(4 * 6).reshape(4, 2, 3), 0, axis)
    categories = [Category(str(i), "", tuple(sorted(g))) for i, g in enumerate(groups)]
    found = over_members(np.add, values, axis, categories)
    truth = [values.take(g, axis=axis).sum(axis=axis) for g in groups]
    assert found.shape[axis] == len(groups)
    for place, wanted in enumerate(truth):
        assert np.array_equal(found.take(place, axis=axis), wanted)
