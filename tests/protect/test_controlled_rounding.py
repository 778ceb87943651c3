"""Controlled rounding as a method: every kind of table goes the right way and adds up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.audit import bounds, from_release
from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.numeric.structure import Structure
from lustrum.protect import RoundingChannel
from lustrum.protect.rounding.controlled.method import ControlledRounding
from small import with_total

TREE = {"N": (0, 1, 2), "S": (3, 4), "NW": (0, 1), "_T": (0, 1, 2, 3, 4)}


def plain(name: str, size: int) -> TableAxis:
    return TableAxis.plain(name, [f"{name}{i}" for i in range(size)])


def with_tree(name: str) -> TableAxis:
    groups = tuple(Category(code, code, members) for code, members in TREE.items())
    return TableAxis(name, name, (*plain(name, 5).categories, *groups))


KINDS = {
    "one way": lambda: (with_total("a", 5),),
    "one way, tree": lambda: (with_tree("a"),),
    "two way": lambda: (with_total("a", 3), with_total("b", 4)),
    "two way, no totals": lambda: (plain("a", 3), plain("b", 4)),
    "two way, one total": lambda: (plain("a", 3), with_total("b", 4)),
    "two way, tree of rows": lambda: (with_tree("a"), with_total("b", 3)),
    "two way, tree of columns": lambda: (with_total("b", 3), with_tree("a")),
    "two trees": lambda: (with_tree("a"), with_tree("b")),
    "three way": lambda: (with_total("a", 3), with_total("b", 3), with_total("c", 2)),
}
NETWORKS = [kind for kind in KINDS if kind not in ("two trees", "three way")]


def made(axes: tuple[TableAxis, ...], seed: int, largest: int = 9) -> Table:
    rng = np.random.default_rng(seed)
    structure = Structure.of_tables([axes])
    inner = rng.integers(0, largest + 1, structure.inner)
    (values,) = structure.published(inner)
    return Table(axes=axes, values=values.astype(np.int64))


def check(table: Table, published: np.ndarray[Any, Any], base: int, steps: int = 0) -> None:
    relations = Structure.of_tables([table.axes]).relations
    assert not (relations.matrix @ published.ravel()).any()
    assert not (published % base).any()
    assert np.abs(published - table.values).max() < base * (steps + 1)
    multiples = table.values % base == 0
    if steps == 0:
        assert np.array_equal(published[multiples], table.values[multiples])


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("base", [3, 5])
def test_every_kind_of_table_adds_up_in_adjacent_multiples(kind: str, base: int) -> None:
    for seed in range(6):
        table = made(KINDS[kind](), seed)
        release = ControlledRounding(base=base).apply(table, rng=np.random.default_rng(seed))
        check(table, release.published, base)
        assert ((release.least <= table.values) & (table.values <= release.most)).all()


@pytest.mark.parametrize("kind", NETWORKS)
def test_unbiased_rounding_has_the_channel_of_random_rounding(kind: str) -> None:
    """Mean of 600 draws; z below 5.5 for each of at most 60 numbers: a false alarm in 400,000."""
    table = made(KINDS[kind](), 3)
    method = ControlledRounding(base=3, unbiased=True)
    rng = np.random.default_rng(11)
    draws = np.array([method.apply(table, rng=rng).published for _ in range(600)])
    for one in draws[:50]:
        check(table, one, 3)
    residue = table.values % 3
    sd = np.sqrt(residue * (3 - residue) / len(draws))
    error = np.abs(draws.mean(axis=0) - table.values)
    assert (error <= 5.5 * sd + 1e-12).all()
    assert method.apply(table, rng=rng).channel == RoundingChannel(3)


@pytest.mark.parametrize("kind", ["two trees", "three way"])
def test_what_is_no_network_cannot_be_unbiased(kind: str) -> None:
    with pytest.raises(InputError, match="one or two variables"):
        ControlledRounding(unbiased=True).apply(
            made(KINDS[kind](), 1), rng=np.random.default_rng(1)
        )


def test_the_printed_rounding_of_the_example_is_not_nearer_than_ours() -> None:
    """Duncan and others (2001), Table 2."""
    true = np.array([[3, 87, 68, 72], [5, 8, 80, 4], [3, 4, 7, 107], [64, 6, 56, 7]])
    printed = np.array([[3, 87, 69, 72], [6, 9, 81, 3], [3, 3, 6, 108], [63, 6, 57, 6]])

    def whole(cells: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        wide = np.hstack([cells, cells.sum(axis=1, keepdims=True)])
        return np.vstack([wide, wide.sum(axis=0, keepdims=True)])

    table = Table(axes=(with_total("i", 4), with_total("j", 4)), values=whole(true))
    check(table, whole(printed), 3)
    for distance in ("l1", "l2"):
        release = ControlledRounding(distance=distance).apply(  # type: ignore[arg-type]
            table, rng=np.random.default_rng(1)
        )
        ours, theirs = (np.abs(p - table.values) for p in (release.published, whole(printed)))
        power = 1 if distance == "l1" else 2
        assert (ours**power).sum() <= (theirs**power).sum()


def test_a_table_without_an_adjacent_rounding_goes_further_and_says_so() -> None:
    """A 2x2x2 table to base 2 that has none: every two-way margin is even, every cell and the total odd."""
    axes = tuple(with_total(name, 2) for name in "abc")
    # Two opposite corners of the cube of ones and zeros: cells 1 or 0, lines of three axes all 1.
    inner = np.array([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    found = []
    for base in (2, 10):
        for shift in range(40):
            rng = np.random.default_rng(shift)
            counts = inner if shift == 0 else rng.integers(0, base, (2, 2, 2))
            (values,) = Structure.of_tables([axes]).published(counts.ravel())
            table = Table(axes=axes, values=values.astype(np.int64))
            release = ControlledRounding(base=base).apply(table, rng=rng)
            far = int(np.abs(release.published - table.values).max())
            check(table, release.published, base, far // base)
            assert ((release.least <= table.values) & (table.values <= release.most)).all()
            if far >= base:
                found.append(release.notes[0])
    assert found
    assert all("no table of nearer numbers was found" in note for note in found)


def test_small_counts_alone_are_rounded_where_that_is_wanted() -> None:
    table = made(KINDS["three way"](), 5, largest=6)
    release = ControlledRounding(small_only=True).apply(table, rng=np.random.default_rng(2))
    inner = table.inner
    large = inner & (table.values >= 3)
    assert np.array_equal(release.published[large], table.values[large])
    small = release.published[inner & (table.values < 3)]
    assert set(np.unique(small)) <= {0, 3}
    relations = Structure.of_tables([table.axes]).relations
    assert not (relations.matrix @ release.published.ravel()).any()
    assert ((release.least <= table.values) & (table.values <= release.most)).all()


def cube(seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 8, (3, 4, 2))


def margin(counts: np.ndarray[Any, Any], names: str) -> Table:
    axes = tuple(with_total(n, counts.shape["abc".index(n)]) for n in names)
    gone = tuple(i for i, n in enumerate("abc") if n not in names)
    values = counts.sum(axis=gone)
    for place in range(values.ndim):
        values = np.concatenate([values, values.sum(axis=place, keepdims=True)], axis=place)
    return Table(axes=axes, values=values.astype(np.int64))


@pytest.mark.parametrize("names", [["ab", "bc"], ["ab", "bc", "ac"], ["abc", "ab", "c"]])
def test_linked_tables_are_rounded_together_and_agree_where_they_overlap(names: list[str]) -> None:
    for seed in range(4):
        tables = [margin(cube(seed), n) for n in names]
        rng = np.random.default_rng(seed)
        releases = ControlledRounding(base=3).apply_all(tables, rng=rng)
        for table, release in zip(tables, releases, strict=True):
            check(table, release.published, 3)
        shared: dict[tuple[tuple[str, str], ...], set[int]] = {}
        for release in releases:
            for at in np.ndindex(release.shape):
                codes = [
                    (axis.name, axis.codes[i])
                    for axis, i in zip(release.axes, at, strict=True)
                    if axis.codes[i] != "_T"
                ]
                shared.setdefault(tuple(sorted(codes)), set()).add(int(release.published[at]))
        assert all(len(values) == 1 for values in shared.values())


@given(seed=st.integers(0, 2**20), kind=st.sampled_from(sorted(NETWORKS)), base=st.integers(2, 7))
@settings(max_examples=examples(20, 160))
def test_keys_give_the_same_table_again_however_it_is_turned(
    seed: int, kind: str, base: int
) -> None:
    table = made(KINDS[kind](), seed)
    keys = np.random.default_rng(seed).integers(0, 2**64, table.shape, dtype=np.uint64)
    keyed = Table(axes=table.axes, values=table.values, keys=keys)
    for unbiased in (False, True):
        method = ControlledRounding(base=base, unbiased=unbiased)
        first = method.apply(keyed)
        assert np.array_equal(method.apply(keyed).published, first.published)
        if len(table.axes) == 2:
            turned = Table(axes=table.axes[::-1], values=table.values.T, keys=keys.T)
            assert np.array_equal(method.apply(turned).published.T, first.published)


def test_no_inner_cell_can_be_worked_out_from_the_whole_table() -> None:
    """Bounds from all published numbers and their relations leave every rounded cell open."""
    for seed in range(8):
        table = made(KINDS["two way"](), seed, largest=4)
        release = ControlledRounding(base=3).apply(table, rng=np.random.default_rng(seed))
        found = bounds(from_release(release), integer=True)
        inner = table.inner.ravel()
        assert (found.high[: inner.size][inner] > found.low[: inner.size][inner]).all()


def test_a_total_whose_parts_are_missing_is_refused() -> None:
    whole = Category("_T", "Total", (0, 1, 2))
    axis = TableAxis("a", "a", (*plain("a", 2).categories, whole))
    table = Table(axes=(axis,), values=np.array([1, 2, 9]))
    with pytest.raises(InputError, match="'a'"):
        ControlledRounding().apply(table, rng=np.random.default_rng(1))


def test_totals_that_do_not_add_up_are_refused_without_a_number() -> None:
    table = Table(axes=(with_total("a", 2),), values=np.array([4711, 2, 9]))
    for ask in (
        lambda: ControlledRounding().apply(table, rng=np.random.default_rng(1)),
        lambda: ControlledRounding().apply_all([table], rng=np.random.default_rng(1)),
    ):
        with pytest.raises(InputError, match="sums of their parts") as caught:
            ask()
        assert "4711" not in str(caught.value)


def test_margins_of_one_population_that_contradict_each_other_are_refused() -> None:
    tables = [margin(cube(1), "ab"), margin(cube(2), "bc")]
    with pytest.raises(InputError):
        ControlledRounding().apply_all(tables, rng=np.random.default_rng(1))
