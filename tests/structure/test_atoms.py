from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Category
from lustrum.numeric.structure import Atoms
from lustrum.numeric.structure.atoms import along_axes, over_members
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


@pytest.mark.parametrize("seed", range(8))
def test_many_codes_in_many_sets_are_told_apart_by_the_sets_that_hold_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, many = 80, int(rng.integers(2, 14))
    sets = [np.flatnonzero(rng.random(codes - 5) < rng.random()).tolist() for _ in range(many)]
    found = Atoms.of_sets(codes, sets).of_code.tolist()
    names: dict[tuple[int, ...], int] = {}
    for code in range(codes):
        held = tuple(k for k, own in enumerate(sets) if code in own)
        wanted = names.setdefault(held, len(names) - (() in names)) if held else -1
        assert found[code] == wanted
        if not held:
            names.setdefault((), -1)


def test_other_categories_and_some_of_them_are_put_together_from_the_same_atoms() -> None:
    atoms = Atoms.of_sets(6, [(0, 1), (2,), (3, 4), (5,)])
    values = np.array([1, 10, 100, 1000])
    wide = atoms.regrouped(
        [Category("a", "", (5, 0, 1)), Category("b", "", (3, 4)), Category("c", "", ())]
    )
    assert wide.roll_up(values, 0).tolist() == [1001, 100, 0]
    assert wide.part(slice(1, 3)).roll_up(values, 0).tolist() == [100, 0]
    assert atoms.part(slice(1, 3)).roll_up(values, 0).tolist() == [10, 100]
    # All atoms in their order, in another one, one twice, and one left out.
    for order in (
        [0, 1, 2, 3],
        [1, 0, 3, 2],
        [1, 0, 2, 3],
        [0, 1, 3, 2],
        [0, 1, 2, 2],
        [0, 1, 2],
        [3],
    ):
        sets = [((0, 1), (2,), (3, 4), (5,))[k] for k in order]
        own = atoms.regrouped([Category(str(k), "", s) for k, s in enumerate(sets)])
        assert own.roll_up(values, 0).tolist() == [int(values[k]) for k in order]
    both = atoms.regrouped([Category("a", "", (0, 1, 2)), Category("b", "", (3, 4, 5))])
    assert both.roll_up(values, 0).tolist() == [11, 1100]
    three = [Category("a", "", (0, 1)), Category("b", "", (2, 3, 4)), Category("c", "", (5,))]
    assert atoms.regrouped(three).roll_up(values, 0).tolist() == [1, 110, 1000]


def test_a_code_in_one_set_alone_is_told_from_those_that_others_hold_too() -> None:
    sets = [tuple(range(10)), *((code,) for code in range(9))]
    assert Atoms.of_sets(10, sets).of_code.tolist() == list(range(10))


@pytest.mark.parametrize("gather", [np.add, np.logical_or])
@pytest.mark.parametrize("order", [("x", "y"), ("y", "x"), ("y", "other", "x"), ("x",), ()])
@pytest.mark.parametrize("filtered", [(), ("x",), ("y", "x")])
def test_codes_are_put_together_along_the_axes_of_a_table_and_by_filters(
    gather: np.ufunc, order: tuple[str, ...], filtered: tuple[str, ...]
) -> None:
    """A cell holds what the codes of its categories that pass the filters give together."""
    names, sizes = ("z", "x", "y"), {"z": 2, "x": 3, "y": 4}
    array = np.random.default_rng(3).integers(0, 3, [sizes[name] for name in names])
    groups = {"x": [(0, 2), (1,)], "y": [(3,), (), (0, 1, 2)], "other": [(0,), (1,)]}
    axes = [(name, [Category(str(g), "", g) for g in groups[name]]) for name in order]
    every = {"z": {1}, "x": {0, 1}, "y": {0, 1, 3}}
    passing = {name: frozenset(every[name]) for name in ("z", *filtered)}
    # A variable that stands on no axis is selected by.
    passing |= {name: frozenset(every[name]) for name in names if name not in order}
    result = along_axes(gather, array, names, axes, passing)
    shape = [1 if name == "other" else len(groups[name]) for name in order]
    assert list(result.shape) == shape
    for cell in np.ndindex(*shape):
        held = {name: set(range(sizes[name])) for name in names}
        for name, i in zip(order, cell, strict=True):
            if name != "other":
                held[name] &= set(groups[name][i])
        for name, codes in passing.items():
            held[name] &= codes
        total = array[np.ix_(*(sorted(held[name]) for name in names))].sum()
        assert result[cell] == (total if gather is np.add else total > 0)
