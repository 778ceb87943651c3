"""The one structural object: which inner cells of a hidden cube make up each published cell.

A table that is published shows sums of a cube that nobody sees. The cube crosses all variables of
all tables, each cut into atoms; its cells are the *inner cells*. A published cell takes a category
of each of its variables, hence a set of inner cells. Everything else (relations, rank, bounds,
suppression, audits) is read off this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import lcm
from string import ascii_uppercase
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import (
    Dataset,
    InputError,
    StructuralZero,
    Table,
    TableAxis,
    TableQuery,
    Variable,
)
from lustrum.model.arrays import Ints, Mask, Sparse
from lustrum.model.errors import check_known, choices
from lustrum.numeric.later import sparse
from lustrum.numeric.structure.build import incidence_matrix, published_values
from lustrum.numeric.structure.families import Family
from lustrum.numeric.structure.layout import StructureFields, TableLayout, cut
from lustrum.numeric.structure.ragged import Lists, pointers
from lustrum.numeric.structure.rank import chain_rank, check_size, distinct_rows, rank_of, reduced
from lustrum.numeric.structure.relations import (
    Relations,
    across_table,
    relations_of,
    stacked,
    sums_along,
)


@dataclass(frozen=True, eq=False, repr=False)
class Structure(StructureFields):
    """Published tables over one population, and the hidden cube they are sums of.

    Rows are the published cells, table after table, each in the order of its array; columns are the
    inner cells in the order of the cube's array, or those of them that ``columns`` keeps.

    >>> sex = TableAxis.plain("sex", ["m", "f"])
    >>> area = TableAxis.plain("area", ["n", "s", "w"])
    >>> both = Structure.of_tables([[area, sex], [area], [sex]])
    >>> both
    Structure(3 tables, 11 published cells, 6 inner cells)
    >>> both.matrix[both.cell(1, ["s"])].toarray().tolist()
    [0, 0, 1, 1, 0, 0]
    >>> both.describe(0), both.rank
    ('area=n, sex=m', 6)
    """

    def __repr__(self) -> str:
        tables = "1 table" if len(self.tables) == 1 else f"{len(self.tables)} tables"
        return f"Structure({tables}, {self.rows} published cells, {self.inner} inner cells)"

    @classmethod
    def of_tables(
        cls,
        tables: Iterable[TableLayout | Table | Sequence[TableAxis]],
        *,
        hidden: Sequence[TableAxis] = (),
        variables: Iterable[Variable] = (),
    ) -> Structure:
        """The structure of tables over the same population.

        ``hidden`` axes cut the cube though no table need show them. ``variables`` tell how many
        codes there are; without them a code list ends at the last code that any category holds.
        """
        layouts = tuple(TableLayout.of(table) for table in tables)
        if not layouts:
            raise InputError("A structure needs at least one table.")
        return cls(layouts, cut(layouts, hidden, {v.name: v for v in variables}))

    @classmethod
    def of_queries(cls, queries: TableQuery | Iterable[TableQuery], dataset: Dataset) -> Structure:
        """The structure of one or several questions to a dataset, filters included."""
        asked = [queries] if isinstance(queries, TableQuery) else list(queries)
        layouts = [TableLayout.of_query(query, dataset) for query in asked]
        return cls.of_tables(layouts, variables=dataset.variables)

    @classmethod
    def margins(
        cls,
        cube: Mapping[str, int] | Sequence[int] | Sequence[TableAxis],
        margins: Iterable[Sequence[str]],
    ) -> Structure:
        """Margins of a hidden cube, given by its axes, or sizes by name, or sizes of A, B, C ...

        >>> Structure.margins((4, 4, 3), ["AB", "AC", "BC"]).rank
        30
        """
        axes = {axis.name: axis for axis in _cube_axes(cube)}
        tables = []
        for margin in margins:
            check_known(margin, axes, "The cube has no variable")
            tables.append(tuple(axes[name] for name in margin))
        return cls.of_tables(tables, hidden=tuple(axes.values()))

    @cached_property
    def matrix(self) -> Sparse:
        """The 0/1 matrix of published by inner cells, as 8-bit integers in sparse rows.

        Multiply it with arrays of at least 64 bits: the product takes the larger of both types.
        """
        return incidence_matrix(self)

    def published(self, inner_values: npt.ArrayLike) -> list[npt.NDArray[Any]]:
        """What every table shows when the inner cells hold these values, each in its own shape.

        Equal to ``matrix @ inner_values``, but summed axis by axis. Whole numbers stay exact, and
        unsigned 64-bit ones wrap around as record keys do.
        """
        return published_values(self, np.asarray(inner_values))

    def cell(self, table: int, codes: Mapping[str, str] | Sequence[str]) -> int:
        """The row of the cell with these codes, by variable or in the order of the axes."""
        layout = self._layout(table)
        names = [axis.name for axis in layout.axes]
        if isinstance(codes, Mapping):
            check_known(codes, names, f"Table {table} has no variable")
            given = [codes.get(name) for name in names]
        else:
            given = list(codes)
        if len(given) != len(names) or None in given:
            raise InputError(
                f"A cell of table {table} needs one code for each of: {', '.join(names)}."
            )
        position = 0
        for axis, code in zip(layout.axes, given, strict=True):
            if code not in axis.codes:
                raise InputError(
                    f"Variable {axis.name!r} of table {table} has no category {code!r}; "
                    f"{choices(str(code), axis.codes)}."
                )
            position = position * len(axis) + axis.codes.index(str(code))
        return int(self.offsets[table]) + position

    def describe(self, row: int) -> str:
        """The cell of a row in words, such as ``area=North, sex=Total``."""
        table, position = self.locate(row)
        layout = self.tables[table]
        labels = [f"{a.name}={a.labels[i]}" for a, i in zip(layout.axes, position, strict=True)]
        limits = [f"{axis.name}={axis.labels[0]}" for axis in layout.filters]
        text = ", ".join(labels) or "everybody"
        return f"{text} where {' and '.join(limits)}" if limits else text

    def locate(self, row: int) -> tuple[int, tuple[int, ...]]:
        """The table of a row and its position in that table."""
        if not 0 <= row < self.rows:
            raise InputError(f"There is no published cell {row}; there are {self.rows}.")
        table = int(np.searchsorted(self.offsets, row, side="right")) - 1
        position = np.unravel_index(row - int(self.offsets[table]), self.tables[table].shape)
        return table, tuple(int(i) for i in position)

    def restrict(self, columns: npt.ArrayLike) -> Structure:
        """The same tables over fewer inner cells, given by position or as a mask; rows stay."""
        picks = np.asarray(columns)
        if picks.dtype == np.bool_:
            if picks.size != self.inner:
                raise InputError(
                    f"The mask has {picks.size} entries, but there are {self.inner} inner cells."
                )
            picks = np.flatnonzero(picks)
        picks = np.unique(picks.astype(np.int64))
        if picks.size and (picks[0] < 0 or picks[-1] >= self.inner):
            raise InputError(
                f"A position to keep lies outside the {self.inner} inner cells; they start at 0."
            )
        return replace(self, columns=picks if self.columns is None else self.columns[picks])

    def possible(self, zeros: Iterable[StructuralZero]) -> Mask:
        """Which inner cells can hold anybody: those that no structural zero covers entirely."""
        mask = np.ones(self.inner, dtype=np.bool_)
        where = {v.name: i for i, v in enumerate(self.variables)}
        for zero in zeros:
            if not set(zero.where) <= set(where):
                continue
            hit = np.ones(self.inner, dtype=np.bool_)
            for name, codes in zero.where.items():
                variable = self.variables[where[name]]
                covered = np.isin(np.arange(variable.atom_of.size), list(codes))
                leaves = np.bincount(
                    variable.atom_of[~covered & (variable.atom_of >= 0)], minlength=variable.count
                )
                hit &= (leaves == 0)[self.coordinates[where[name]]]
            mask &= ~hit
        return mask

    @cached_property
    def relations(self) -> Relations:
        return relations_of(self)

    @cached_property
    def rank(self) -> int:
        return rank_of(self)

    def _layout(self, table: int) -> TableLayout:
        if not 0 <= table < len(self.tables):
            raise InputError(f"There is no table {table}; there are {len(self.tables)}, from 0 on.")
        return self.tables[table]


def _cube_axes(cube: Mapping[str, int] | Sequence[int] | Sequence[TableAxis]) -> list[TableAxis]:
    if isinstance(cube, Mapping):
        sizes = dict(cube)
        return [TableAxis.plain(n, [str(i + 1) for i in range(s)]) for n, s in sizes.items()]
    axes = [item for item in cube if isinstance(item, TableAxis)]
    if len(axes) == len(cube):
        return axes
    plain = [item for item in cube if isinstance(item, (int, np.integer))]
    if axes or len(plain) < len(cube) or len(plain) > len(ascii_uppercase):
        raise InputError(
            "A cube is given by its axes, or by sizes with names, or by at most 26 sizes alone."
        )
    return _cube_axes(dict(zip(ascii_uppercase, map(int, plain), strict=False)))


# All linear relations between published cells, by exact elimination.
#
# The relations that the shape of the tables gives are complete wherever categories nest. Groups that
# overlap in odd ways can obey more: {1, 2}, {2, 3} and {1, 3} add up to twice the total of 1, 2 and 3.
# Only elimination finds all of these.


_PRIME = 2**31 - 1
_MOST_DENOMINATOR = 64
_MOST_NUMERATOR = 2**20
_MOST_FRACTIONS = 40_000


def complete_relations(structure: Structure) -> Relations:
    """Relations from which every linear relation between the published cells follows.

    The relations of the structure come first; those that elimination adds come after them, with
    whole coefficients that need not be 1. One table is completed axis by axis, at any size. Several
    tables with overlapping groups are completed together, which needs a moderate number of cells.

    >>> from lustrum.model import Category, TableAxis
    >>> from lustrum.numeric.structure import Structure
    >>> sets = {"a": (0,), "b": (1,), "c": (2,), "ab": (0, 1), "bc": (1, 2), "ca": (0, 2)}
    >>> axis = TableAxis("x", "", tuple(Category(c, c, m) for c, m in sets.items()))
    >>> complete_relations(Structure.of_tables([[axis]])).count
    3
    """
    if structure.columns is None:
        nested = all(
            family.nested for table_families in structure.families for family in table_families
        )
        if nested and (len(structure.tables) == 1 or chain_rank(structure) is not None):
            return structure.relations
        if len(structure.tables) == 1:
            return _complete_table(structure)
    known = structure.relations
    rows = Lists(known.indptr, known.cells, known.coefficients)
    more = _missing(structure.matrix, rows)
    return Relations.of(stacked([rows, more]), structure.rows)


def _complete_table(structure: Structure) -> Relations:
    """One table: relations along an axis cross with all the rest, so each is completed alone."""
    relations = []
    for axis, family in enumerate(structure.families[0]):
        sums = sums_along(family)
        relations.append(across_table(structure, 0, axis, sums))
        if not family.nested:
            more = _missing(_membership(family), sums)
            relations.append(across_table(structure, 0, axis, more))
    return Relations.of(stacked(relations), structure.rows)


def _membership(family: Family) -> Sparse:
    lists = family.lists
    ones = np.ones(lists.items.size, dtype=np.int8)
    return sparse.csr_array((ones, lists.items, lists.indptr), shape=(lists.count, family.atoms))


def _missing(matrix: Sparse, known: Lists) -> Lists:
    """Relations between the rows of a matrix that do not follow from the known ones."""
    columns = distinct_rows(matrix.T.tocsr())
    check_size(columns.shape)
    null = _null_space(columns.toarray())
    candidates = np.vstack([_dense(known, matrix.shape[0]), null])
    check_size(candidates.shape)
    # Pivot columns are the first rows that do not depend on rows before them.
    picked = reduced(candidates.T, 1)[1]
    extra = candidates[picked[picked >= known.count]]
    rows, cells = np.nonzero(extra)
    sizes = np.bincount(rows, minlength=extra.shape[0])
    return Lists(pointers(sizes), cells.astype(np.int64), extra[rows, cells])


def _dense(lists: Lists, width: int) -> Ints:
    array = np.zeros((lists.count, width), dtype=np.int64)
    assert lists.weights is not None
    array[lists.rows, lists.items] = lists.weights
    return array


def _null_space(matrix: npt.NDArray[Any]) -> Ints:
    """Whole vectors, one a row, that span all x with ``matrix @ x == 0``.

    They come from the reduced form modulo a prime, as fractions with small denominators, and are
    then checked exactly. That proves them: they are as many as the rank modulo a prime leaves, and
    the true rank is no less than that one. Where the check fails, fractions do all the work.
    """
    width = matrix.shape[1]
    form, pivots = reduced(matrix, 1, full=True)
    free = np.setdiff1d(np.arange(width), pivots)
    residues = -form[: pivots.size, free].T % _PRIME
    vectors = np.zeros((free.size, width), dtype=np.int64)
    waiting = np.ones(free.size, dtype=np.bool_)
    for denominator in range(1, _MOST_DENOMINATOR + 1):
        if not waiting.any():
            break
        scaled = residues[waiting] * denominator % _PRIME
        scaled = np.where(scaled > _PRIME // 2, scaled - _PRIME, scaled)
        good = np.abs(scaled).max(axis=1, initial=0) <= _MOST_NUMERATOR
        done = np.flatnonzero(waiting)[good]
        vectors[np.ix_(done, pivots)] = scaled[good]
        vectors[done, free[done]] = denominator
        waiting[done] = False
    exact = sparse.csr_array(matrix.astype(np.int64)) @ vectors.T
    if waiting.any() or np.any(exact):
        return _null_space_by_fractions(matrix)
    return vectors


def _null_space_by_fractions(matrix: npt.NDArray[Any]) -> Ints:
    if matrix.size > _MOST_FRACTIONS:
        raise InputError(
            "The relations between so many overlapping groups have coefficients that are too "
            "large to find; use fewer overlapping categories."
        )
    height, width = matrix.shape
    rows = [[Fraction(int(x)) for x in row] for row in matrix]
    pivots: list[int] = []
    for column in range(width):
        top = len(pivots)
        pivot_row = next((i for i in range(top, height) if rows[i][column]), None)
        if pivot_row is None:
            continue
        rows[top], rows[pivot_row] = rows[pivot_row], rows[top]
        head = rows[top][column]
        rows[top] = [x / head for x in rows[top]]
        for i in range(height):
            factor = rows[i][column]
            if i != top and factor:
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[top], strict=True)]
        pivots.append(column)
    free = [c for c in range(width) if c not in set(pivots)]
    vectors = np.zeros((len(free), width), dtype=np.int64)
    for number, column in enumerate(free):
        values = {p: -rows[i][column] for i, p in enumerate(pivots)} | {column: Fraction(1)}
        scale = lcm(*(v.denominator for v in values.values()))
        for position, value in values.items():
            whole = int(value * scale)
            if abs(whole) >= 2**62:
                raise InputError(
                    "A relation between overlapping groups has coefficients beyond 64 bits; use "
                    "fewer overlapping categories."
                )
            vectors[number, position] = whole
    return vectors
