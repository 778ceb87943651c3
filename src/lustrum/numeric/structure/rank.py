"""The number of independent constraints that tables put on the hidden cube: an exact rank.

Where the categories of every variable come from one hierarchy, however many tables and levels there
are, there is a closed form. Elsewhere the rank comes from elimination modulo primes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Array, Ints, Sparse
from lustrum.numeric.compiled import compiled
from lustrum.numeric.later import sparse
from lustrum.numeric.structure.build import entries, incidence_matrix
from lustrum.numeric.structure.families import Family
from lustrum.numeric.structure.layout import StructureFields
from lustrum.numeric.structure.ragged import Lists, pointers

EXCESSES = (1, 19)
"""The primes in use are 2**31 - 1 and 2**31 - 19: a product of two residues fits 64 bits."""

MOST_WORK = 5 * 10**9
MOST_ENTRIES = 4 * 10**7
_MOST_LEVELS = 10**7
_MOST_NONZEROS = 10**8


def rank_of(structure: StructureFields) -> int:
    """The rank of the incidence matrix: in closed form where there is one, otherwise by elimination.

    >>> from lustrum.numeric.structure import Structure
    >>> rank_of(Structure.margins((4, 4, 3), ["AB", "AC", "BC"]))  # 4 * 4 * 3 - 3 * 3 * 2
    30
    """
    closed = chain_rank(structure)
    return elimination_rank(structure) if closed is None else closed


def chain_rank(structure: StructureFields) -> int | None:
    """The rank in closed form, or None where there is no closed form.

    Each table shows, of each variable, a space of functions of its atoms; a variable that is absent
    shows the constants. Where these spaces form a chain for every variable, choose a basis that
    grows along the chain. A combination of basis functions lies in the tables' span if and only if
    some table reaches the level of each of its factors; so the rank is the sum, over all level
    combinations below that of some table, of the product of the growths of dimension.
    """
    if structure.columns is not None:
        return None
    reached = np.empty((len(structure.tables), len(structure.variables)), dtype=np.int64)
    growths: list[list[int]] = []
    for index in range(len(structure.variables)):
        chain = _chain([table_families[index] for table_families in structure.families])
        if chain is None:
            return None
        reached[:, index], growth = chain
        growths.append(growth)
    if not growths:
        return 1  # one inner cell, everybody, and every table shows it
    shape = [len(growth) for growth in growths]
    boxes = np.prod(reached + 1, axis=1, dtype=object)
    if sum(boxes) > _MOST_LEVELS or np.prod(shape, dtype=object) > np.iinfo(np.int64).max:
        return None
    flat = np.unique(np.concatenate([_below(levels, shape) for levels in reached.tolist()]))
    total = np.ones(flat.size, dtype=object)
    for growth, level in zip(growths, np.unravel_index(flat, shape), strict=True):
        total = total * np.array(growth, dtype=object)[level]
    return int(total.sum())


def _below(levels: list[int], shape: list[int]) -> Ints:
    """All level combinations no higher than these, as flat positions."""
    flat = np.zeros(1, dtype=np.int64)
    for level, size in zip(levels, shape, strict=True):
        flat = np.add.outer(flat * size, np.arange(level + 1, dtype=np.int64)).ravel()
    return flat


def _chain(families: list[Family]) -> tuple[list[int], list[int]] | None:
    """The level of each family in a chain of spaces, and the growth at each level."""
    distinct = {id(f): f for f in families}
    ranks = {key: family_rank(f) for key, f in distinct.items()}
    ordered = sorted(distinct, key=lambda key: ranks[key])
    level = {ordered[0]: 0}
    growth = [ranks[ordered[0]]]
    for small, large in pairwise(ordered):
        if family_rank(_joined(distinct[small], distinct[large])) != ranks[large]:
            return None
        if ranks[large] > ranks[small]:
            growth.append(ranks[large] - ranks[small])
        level[large] = len(growth) - 1
    return [level[id(f)] for f in families], growth


def _joined(one: Family, other: Family) -> Family:
    sizes = np.concatenate([one.lists.lengths, other.lists.lengths])
    items = np.concatenate([one.lists.items, other.lists.items])
    return Family(Lists(pointers(sizes), items), one.atoms)


def family_rank(family: Family) -> int:
    """How many categories of one axis are linearly independent as sets of atoms."""
    if family.nested:
        return family.forests[0].rank
    lists = family.lists.take(_irreducible(family))
    ones = np.ones(lists.items.size, dtype=np.int8)
    return matrix_rank(
        sparse.csr_array((ones, lists.items, lists.indptr), shape=(lists.count, family.atoms))
    )


def _irreducible(family: Family) -> Ints:
    """The categories that are no sum of smaller or earlier ones; they span what all of them do."""
    sums = [total for total, _ in family.sums]
    return np.setdiff1d(np.arange(family.lists.count, dtype=np.int64), sums)


def elimination_rank(structure: StructureFields) -> int:
    """The rank by elimination, whatever the shape of the tables; see :func:`matrix_rank`."""
    if structure.columns is None and sum(entries(structure)) > _MOST_NONZEROS:
        raise _too_long(structure.rows, structure.inner)
    rows = [np.zeros(0, dtype=np.int64)]
    for table, table_families in enumerate(structure.families):
        places = np.zeros(1, dtype=np.int64)
        for family, stride in zip(table_families, structure.strides(table), strict=True):
            irreducible = _irreducible(family)
            places = np.add.outer(places, irreducible * stride).ravel()
        rows.append(np.sort(places) + structure.offsets[table])
    return matrix_rank(incidence_matrix(structure)[np.concatenate(rows)])


def matrix_rank(matrix: Sparse) -> int:
    """The rank of a sparse integer matrix, by elimination modulo two primes.

    The rank modulo a prime never exceeds the true rank, and equals it unless the prime divides
    every minor of that size; so the larger of two such ranks is taken. Equal rows and columns, and
    rows and columns of one entry, go before the elimination. What is left must be of moderate size.
    """
    rest, peeled = _peeled(sparse.csr_array(matrix))
    if 0 in rest.shape:
        return peeled
    check_size(rest.shape)
    rank = 0
    for excess in EXCESSES:
        if rank < min(rest.shape):
            rank = max(rank, reduced(rest.toarray(), excess)[1].size)
    return peeled + rank


def check_size(shape: tuple[int, ...]) -> None:
    """Refuse what would run for minutes."""
    height, width = shape
    if height * width > MOST_ENTRIES or height * width * min(height, width) > MOST_WORK:
        raise _too_long(height, width)


def _too_long(height: int, width: int) -> InputError:
    return InputError(
        f"Elimination on {height} by {width} cells that do not come from one hierarchy would take "
        "too long; use fewer tables or fewer overlapping categories."
    )


def reduced(matrix: npt.NDArray[Any], excess: int, full: bool = False) -> tuple[Ints, Ints]:
    """The echelon form modulo the prime ``2**31 - excess``, and its pivot columns."""
    residues = np.ascontiguousarray(matrix.astype(np.int64) % (2**31 - excess))
    pivots: Ints = reduce_modulo(residues, excess, full)
    return residues, pivots


def _peeled(matrix: Sparse) -> tuple[Sparse, int]:
    """Without repeats and lone entries; and how much rank went with the lone entries."""
    rank = 0
    while True:
        before = matrix.shape
        matrix = distinct_rows(distinct_rows(matrix).T.tocsr()).T.tocsr()
        for _ in range(2):  # rows with one entry, then columns with one entry
            lengths = np.diff(matrix.indptr)
            lone = np.flatnonzero(lengths == 1)
            columns = np.unique(matrix.indices[matrix.indptr[lone]])
            rank += columns.size
            # Each such column is cleared by one of its lone rows; all the lone rows are then empty.
            keep = np.setdiff1d(np.arange(matrix.shape[1]), columns)
            matrix = matrix[np.flatnonzero(lengths > 1)][:, keep].T.tocsr()
        if matrix.shape == before or 0 in matrix.shape:
            return matrix, rank


def distinct_rows(matrix: Sparse) -> Sparse:
    """The rows of a sparse matrix that are not empty and not seen before."""
    csr = sparse.csr_array(matrix)
    csr.eliminate_zeros()
    csr.sort_indices()
    cuts = csr.indptr.tolist()
    seen: dict[bytes, int] = {}
    for row, (a, b) in enumerate(pairwise(cuts)):
        if b > a:
            seen.setdefault(csr.indices[a:b].tobytes() + csr.data[a:b].tobytes(), row)
    return csr[np.fromiter(seen.values(), dtype=np.int64, count=len(seen))]


@compiled
def _fold(value: int, excess: int) -> int:  # pragma: no cover
    """A product of two residues modulo ``2**31 - excess``, without dividing."""
    mask = 2**31 - 1
    value = (value & mask) + (value >> 31) * excess
    value = (value & mask) + (value >> 31) * excess
    prime = 2**31 - excess
    return value - prime * (value >= prime)


@compiled
def _inverse(value: int, excess: int) -> int:  # pragma: no cover
    power, result, left = value, 1, 2**31 - excess - 2
    while left:
        if left & 1:
            result = _fold(result * power, excess)
        power = _fold(power * power, excess)
        left >>= 1
    return result


@compiled
def reduce_modulo(matrix: Array, excess: int, full: bool) -> Any:  # pragma: no cover
    """Eliminate in place modulo the prime ``2**31 - excess``; the pivot columns, in order.

    Row ``i`` ends with a 1 in pivot column ``i``. With ``full``, pivot columns are cleared above
    the pivot too, which gives the one reduced form that the row space has.
    """
    height, width = matrix.shape
    prime = 2**31 - excess
    pivots = np.empty(min(height, width), dtype=np.int64)
    rank = 0
    for column in range(width):
        if rank == height:
            break
        row = rank
        while row < height and matrix[row, column] == 0:
            row += 1
        if row == height:
            continue
        if row != rank:
            for k in range(column, width):
                matrix[rank, k], matrix[row, k] = matrix[row, k], matrix[rank, k]
        if matrix[rank, column] != 1:
            factor = _inverse(matrix[rank, column], excess)
            for k in range(column, width):
                matrix[rank, k] = _fold(matrix[rank, k] * factor, excess)
        for other in range(0 if full else rank + 1, height):
            if other == rank or matrix[other, column] == 0:
                continue
            factor = prime - matrix[other, column]
            source, target = matrix[rank, column:], matrix[other, column:]
            for k in range(target.size):
                target[k] = _fold(target[k] + factor * source[k], excess)
        pivots[rank] = column
        rank += 1
    return pivots[:rank]
