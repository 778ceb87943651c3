"""Checks that a method has to pass to be trusted, for the built-in ones and for those of third parties.

    from lustrum.testing import check_method

    def test_my_method_keeps_the_contracts():
        check_method(MyMethod(strength=2))

A method that protects a whole population at once is held to its own contracts by ``check_population``. Every
promise that is broken is an ``AssertionError`` with one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np

from lustrum.model import Category, Dataset, InputError, Release, Table, TableAxis
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.model.parameters import parameter_names, spec_from_words
from lustrum.model.plugins import load, names
from lustrum.numeric.structure import Structure
from lustrum.protect.abilities import abilities_of
from lustrum.protect.entropy_left import MOST, left_by_row

__all__ = ["check_method", "check_population", "example_populations", "example_tables"]

_SMALL_CELLS = 2000


def check_method(method: Any, *, tables: int = 6, seed: int = 1, keyed: bool = True) -> None:
    """Hold a method for tables of counts to what every release promises.

    It must be a frozen spec that its own words make again; give the same bytes for the same chance; leave the
    table as it is; publish a release of the table's shape whose bounds hold the truth; show known
    empty cells as empty; let nothing of the table out by ``repr``; and keep the promises that it declares
    (:class:`~lustrum.protect.abilities.Abilities`), also the share of ones and twos that change.
    """
    _is_a_spec(method)
    promised = abilities_of(method)
    used = 0
    for table in example_tables(tables, seed):
        before = table.values.copy()
        try:
            release = method.apply(table, None if keyed else np.random.default_rng(seed))
        except InputError as error:
            _says_nothing(str(error), table)
            continue
        used += 1
        again = method.apply(table, None if keyed else np.random.default_rng(seed))
        assert np.array_equal(release.numbers, again.numbers), (
            "the same table and the same chance gave other numbers"
        )
        assert np.array_equal(table.values, before), "the method has written into the table"
        _is_a_release(release, table, method)
        _says_nothing(repr(release) + repr(method) + " ".join(release.notes), table)
        if keyed and promised.keyed_per_cell:
            _is_keyed_per_cell(method, table, release)
        if keyed and promised.one_number:
            _shows_one_number(method, table, release)
    assert used, "the method refused every table that was tried"
    if promised.changed:
        _changes_what_it_states(method, promised.changed, seed, keyed)
    if promised.entropy:
        _leaves_what_it_states(method, promised.entropy, seed, keyed)
    if keyed and promised.one_number:
        for table in example_tables(tables, seed + 1):
            _shows_one_number_elsewhere(method, table, seed)


def check_population(method: Any, *, populations: int = 3, seed: int = 1) -> None:
    """Hold a method that protects finest cells once to what a public bundle promises.

    It must be a frozen spec that its own words make again, work on populations, and declare that it is
    repeatable and shows one number. The same cells and key give the same bytes, and another key gives other
    numbers. The cells that may leave have no keys, hold nobody who cannot exist, and the support that the
    public report states holds the truth of every cell, listed or not. The report says how it was made, can be
    written and read again, and tells no true count. A second release of the same records shows the same.
    """
    _is_a_spec(method)
    assert "population" in method.stages, "a method for populations has the stage 'population'"
    promised = abilities_of(method)
    assert promised.repeatable, "a protected population must be the same after every start"
    assert promised.one_number, "all tables are counts of one population: declare one number"
    differs = False
    for cells in example_populations(populations, seed):
        before = cells.counts.copy()
        key, other = bytes([seed % 256]) * 32, bytes([(seed + 1) % 256]) * 32
        result = method.protect(cells, key)
        again = method.protect(cells, key)
        assert _same_cells(result.cells, again.cells), "the same cells and key gave other numbers"
        assert result.public == again.public, "the same cells and key gave another public report"
        assert np.array_equal(cells.counts, before), "the method has written into the cells"
        assert not _same_cells(cells, result.cells), "the true cells came out as they went in"
        differs = differs or not _same_cells(result.cells, method.protect(cells, other).cells)
        _may_leave(result, cells, method)
        later = method.protect(cells, key, previous=result.memory)
        assert _same_cells(result.cells, later.cells), "unchanged records show other numbers later"
    assert differs, "another key gave the same numbers: the numbers follow from the counts alone"


def example_populations(count: int, seed: int) -> Iterator[FinestCells]:
    """Finest cells with keys: sparse and dense ones, with combinations that cannot exist."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        sizes = [(5, 4, 3), (8, 6, 2, 2), (3, 3)][number % 3]
        dataset = Dataset.from_mapping(
            {
                "dataset": {"name": "example"},
                "variables": [
                    {"name": f"v{i}", "codes": [f"{i}.{c}" for c in range(size)]}
                    for i, size in enumerate(sizes)
                ],
                "structural_zeros": [
                    {"reason": "Nobody is both.", "where": {"v0": ["0.0"], "v1": ["1.0"]}}
                ],
            }
        )
        counts = rng.choice([0, 0, 0, 1, 1, 2, 3, 4, 5, 8, 7013, 90017], sizes)
        counts[0, 0] = 0
        places = np.nonzero(counts)
        keys = rng.integers(1, 2**63, counts.shape).astype(np.uint64)
        yield FinestCells(dataset, np.stack(places), counts[places], keys[places])


def _same_cells(one: FinestCells, two: FinestCells) -> bool:
    return np.array_equal(one.codes, two.codes) and np.array_equal(one.counts, two.counts)


def _may_leave(result: Any, cells: FinestCells, method: Any) -> None:
    """What is packed into a bundle: protected cells and the public report."""
    shown, public = result.cells, result.public
    assert shown.keys is None, "cells that are published have keys of records"
    assert shown.possible.all(), "a combination that cannot exist shows somebody"
    sizes = tuple(len(v.codes) for v in cells.dataset.variables)
    true, numbers = (np.zeros(sizes, dtype=np.int64) for _ in range(2))
    true[tuple(cells.codes.astype(np.intp))] = cells.counts
    numbers[tuple(shown.codes.astype(np.intp))] = shown.counts
    low, high = public.support.bounds(numbers)
    possible = possible_cells(cells.dataset, np.indices(sizes).reshape(len(sizes), -1)).reshape(
        sizes
    )
    held = (low <= true) & (true <= high)
    assert held[possible].all(), "the published support does not hold the truth"
    assert (true[possible & (numbers == 0)] <= public.support.most_unlisted).all(), (
        "a cell that is not listed holds more than the published support says"
    )
    assert ((high > low) | (numbers > public.support.base))[possible].all(), (
        "a small number leaves one count only"
    )
    report = public.to_mapping()
    assert report["method"]["method"] == method.name, "the report does not say how it was made"
    assert type(public).from_mapping(report) == public, "the report cannot be read again"
    total = str(int(cells.counts.sum()))
    for text in (str(report), repr(result), repr(result.agency), repr(shown)):
        for value in ("7013", "90017", total):
            assert value not in text, "a true count got out in words"
        assert cells.keys is not None
        assert not any(str(key) in text for key in cells.keys), "a key got out"


def example_tables(count: int, seed: int) -> Iterator[Table]:
    """Tables of counts with keys: one, two and three variables, with and without totals and empty cells."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        sizes = [(5,), (4, 3), (3, 2, 2)][number % 3]
        totals = number % 2 == 0
        axes = tuple(_axis(f"v{i}", size, totals) for i, size in enumerate(sizes))
        structure = Structure.of_tables([axes])
        # Large odd numbers among them, so that one that gets out is seen.
        inner = rng.choice([0, 1, 2, 3, 5, 8, 13, 40, 7013, 90017], structure.inner)
        impossible = (inner == 0) & (rng.random(structure.inner) < 0.5)
        keys = np.where(inner > 0, rng.integers(0, 2**63, structure.inner), 0).astype(np.uint64)
        matrix = structure.matrix.astype(np.int64)
        shape = tuple(len(axis) for axis in axes)
        (values,) = structure.published(inner)
        yield Table(
            axes=axes,
            values=values.astype(np.int64).reshape(shape),
            contributors=values.astype(np.int64).reshape(shape),
            keys=(matrix.astype(np.uint64) @ keys).astype(np.uint64).reshape(shape),
            structural=(matrix @ (~impossible).astype(np.int64) == 0).reshape(shape),
        )


def _axis(name: str, size: int, total: bool) -> TableAxis:
    parts = tuple(Category(f"{name}{i}", f"{name}{i}", (i,)) for i in range(size))
    whole = (Category("_T", "Total", tuple(range(size))),) if total else ()
    return TableAxis(name, name, (*parts, *whole))


def _shows_one_number_elsewhere(method: Any, table: Table, seed: int) -> None:
    """The same cells in other surroundings: each shows the number that it shows in the whole, or none."""
    rng = np.random.default_rng(seed)
    others = [_bare(table), _padded(table)]
    order = [rng.permutation(len(axis)) for axis in table.axes]
    others.append(table.take(order))
    for position, axis in enumerate(table.axes):
        whole = [i for i, c in enumerate(axis.categories) if c.code == "_T"]
        if whole and len(table.axes) > 1:
            margin = table.take(
                [whole if i == position else np.arange(len(a)) for i, a in enumerate(table.axes)]
            )
            others.append(margin)
    seen: dict[tuple[str, ...], int] = {}
    for other in (table, *others):
        try:
            release = method.apply(other)
        except InputError:
            continue
        for index in np.argwhere(release.shown):
            cell = tuple(a.codes[i] for a, i in zip(release.axes, index, strict=True))
            number = int(release.numbers[tuple(index)])
            assert seen.setdefault(cell, number) == number, (
                "the same records show two numbers in two tables"
            )


def _bare(table: Table) -> Table:
    """The inner cells alone."""
    return table.take([np.flatnonzero(axis.inner) for axis in table.axes])


def _padded(table: Table) -> Table:
    """The inner cells, and one more category without anybody along the first axis."""
    bare = _bare(table)
    first = bare.axes[0]
    empty = Category("none", "none", (1 + max(m for c in first.categories for m in c.members),))
    axes = (replace(first, categories=(*first.categories, empty)), *bare.axes[1:])

    def longer(array: Any) -> Any:
        if array is None:
            return None
        return np.concatenate([array, np.zeros_like(array[:1])])

    return replace(
        bare,
        axes=axes,
        values=longer(bare.values),
        contributors=longer(bare.contributors),
        keys=longer(bare.keys),
        structural=longer(bare.structural),
    )


def _is_a_spec(method: Any) -> None:
    kind: Any = type(method)
    assert is_dataclass(kind), "a method is a dataclass that stores its parameters"
    assert vars(kind)["__dataclass_params__"].frozen, "a method must be frozen"
    mapping = method.to_mapping()
    assert mapping.get("method") == method.name, "the words of a method begin with its name"
    extra = set(mapping) - set(parameter_names(kind)) - {"method"}
    assert not extra, f"the method's words name {sorted(extra)}, which are no parameters"
    if method.name in names("lustrum.methods"):
        given = {k: v for k, v in mapping.items() if k != "method"}
        again = spec_from_words(load("lustrum.methods", method.name), given, "The method")
        assert again.to_mapping() == mapping, "the method's words do not make it again"


def _is_a_release(release: Release, table: Table, method: Any) -> None:
    assert release.axes == table.axes, "the release has other axes than its table"
    assert release.numbers.shape == table.shape, "the release has another shape than its table"
    # A release may leave parameters out, where they would help an attacker, but tells no other ones.
    assert release.method.get("method") == method.name, "the release does not say how it was made"
    assert dict(release.method).items() <= method.to_mapping().items(), (
        "the release says that it was made otherwise"
    )
    shown = release.shown
    assert not release.numbers[~release.known].any(), (
        "a number stands behind a cell that is not shown"
    )
    if release.least is not None and release.most is not None:
        held = (release.least <= table.values) & (table.values <= release.most)
        assert held[shown].all(), "published bounds do not hold the true value"
    else:
        assert release.channel is not None or np.array_equal(release.numbers, table.values), (
            "without bounds and channel a reader takes the numbers for true"
        )
    if table.structural is not None:
        empty = table.structural & shown
        assert not release.numbers[empty].any(), "a cell that cannot hold anybody shows somebody"
    if release.channel is not None:
        rows = release.channel.transitions(np.arange(12, dtype=np.int64))
        sums = np.bincount(rows.origin, rows.probability, minlength=12)
        assert np.allclose(sums, 1.0, atol=1e-6), "a row of the channel does not add up to 1"


def _is_keyed_per_cell(method: Any, table: Table, release: Release) -> None:
    """The inner cells of a part of the table, without its totals, show what they show in the whole."""
    inner = [np.flatnonzero(axis.inner) for axis in table.axes]
    for picks in (inner, [places[1:] for places in inner], [places[::-1] for places in inner]):
        part = method.apply(table.take(picks))
        whole = release.take(picks)
        both = part.shown & whole.shown
        assert np.array_equal(part.numbers[both], whole.numbers[both]), (
            "a cell's number depends on other cells, though the method declares that it does not"
        )


def _shows_one_number(method: Any, table: Table, release: Release) -> None:
    """Every category by itself, a total too, shows the numbers that it shows in the table."""
    for position, axis in enumerate(table.axes):
        for category in range(len(axis)):
            picks = [np.arange(len(a)) for a in table.axes]
            picks[position] = np.array([category])
            part = method.apply(table.take(picks))
            whole = release.take(picks)
            both = part.shown & whole.shown
            assert np.array_equal(part.numbers[both], whole.numbers[both]), (
                "one population shows two numbers, though the method declares that it does not"
            )


def _changes_what_it_states(method: Any, stated: float, seed: int, keyed: bool) -> None:
    """Of many ones and twos, as many of each, at least the stated share shows another number.

    Five standard errors are allowed: a right statement fails less than once in a million runs.
    """
    counts = np.tile([1, 2], _SMALL_CELLS // 2)
    rng = np.random.default_rng(seed)
    keys = rng.integers(1, 2**63, counts.size, dtype=np.uint64)
    table = Table.from_counts(counts.tolist(), keys=keys.tolist())
    try:
        release = method.apply(table, None if keyed else rng)
    except InputError as error:
        _says_nothing(str(error), table)
        return
    share = float((~release.shown | (release.numbers != counts)).mean())
    assert share >= stated - 2.5 / np.sqrt(counts.size), (
        f"the method states that {stated:.1%} of ones and twos change, and {share:.1%} did"
    )


def _leaves_what_it_states(method: Any, stated: float, seed: int, keyed: bool) -> None:
    """Of many small counts, as many of each, the numbers shown leave about a 1 and a 2 what is stated.

    What is seen of few cells errs by less than a fifth of a bit.
    """
    each = _SMALL_CELLS // 20
    counts = np.repeat(np.arange(MOST + 1), each)
    rng = np.random.default_rng(seed)
    keys = np.where(counts > 0, rng.integers(1, 2**63, counts.size, dtype=np.uint64), 0)
    table = Table.from_counts(counts.tolist(), keys=keys.tolist())
    try:
        release = method.apply(table, None if keyed else rng)
    except InputError as error:
        _says_nothing(str(error), table)
        return
    shown = np.where(release.shown, release.numbers, np.iinfo(np.int64).min)
    numbers, inverse = np.unique(shown, return_inverse=True)
    seen = np.zeros((MOST + 1, numbers.size))
    np.add.at(seen, (counts, inverse), 1.0 / each)
    left = float(left_by_row(seen)[1:3].min())
    assert left >= stated - 0.2, (
        f"the method states that {stated:.2f} bits are left about ones and twos, and {left:.2f} were"
    )


def _says_nothing(text: str, table: Table) -> None:
    for value in ("7013", "90017"):
        assert value not in text, "a true count got out in words"
    if table.keys is not None:
        assert not any(str(key) in text for key in table.keys.ravel() if key), "a key got out"
