"""All linear relations between published cells, by exact elimination.

The relations that the shape of the tables gives are complete wherever categories nest. Groups that
overlap in odd ways can obey more: {1, 2}, {2, 3} and {1, 3} add up to twice the total of 1, 2 and 3.
Only elimination finds all of these.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.numeric.structure.families import Family
from lustrum.numeric.structure.incidence import Structure
from lustrum.numeric.structure.ragged import Lists, pointers
from lustrum.numeric.structure.rank import chain_rank, check_size, distinct_rows, reduced
from lustrum.numeric.structure.relations import Relations, across_table, stacked, sums_along

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any

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
