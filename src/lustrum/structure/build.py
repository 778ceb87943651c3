"""Building the incidence matrix and rolling up values, without a loop over cells."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.structure.ragged import Lists, outer, pointers

if TYPE_CHECKING:
    from lustrum.structure.incidence import Structure

__all__ = ["full_matrix", "kept_matrix", "rolled_up"]

Ints = npt.NDArray[np.int64]
# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any


def full_matrix(structure: Structure) -> Sparse:
    """The incidence matrix over the whole cube, row by row."""
    tables = range(len(structure.tables))
    counts = [_entries(structure, table) for table in tables]
    wide = max(structure.inner, sum(counts)) > np.iinfo(np.int32).max
    kind: type[Any] = np.int64 if wide else np.int32
    items = np.empty(sum(counts), dtype=kind)
    indptr = np.zeros(structure.rows + 1, dtype=kind)
    done = 0
    for table, count in enumerate(counts):
        block = _rows(structure, table, items[done : done + count])
        first, last = structure.offsets[table], structure.offsets[table + 1]
        indptr[first + 1 : last + 1] = block.indptr[1:] + done
        done += count
    ones = np.ones(items.size, dtype=np.int8)
    return sparse.csr_array((ones, items, indptr), shape=(structure.rows, structure.inner))


def kept_matrix(structure: Structure) -> Sparse:
    """The incidence matrix over the kept inner cells, column by column, then turned."""
    tables = range(len(structure.tables))
    blocks = [_columns(structure, table).tocsr() for table in tables]
    return sparse.vstack(blocks, format="csr")


def rolled_up(structure: Structure, values: npt.NDArray[Any], table: int) -> npt.NDArray[Any]:
    """One table from values of the inner cells, summed axis by axis."""
    layout = structure.tables[table]
    own = {axis.name for axis in layout.parts}
    kept = [i for i, v in enumerate(structure.variables) if v.name in own]
    if structure.columns is None:
        absent = tuple(i for i in range(len(structure.variables)) if i not in kept)
        array = values.sum(axis=absent) if absent else values
    else:
        array = np.zeros([structure.shape[i] for i in kept], dtype=values.dtype)
        atoms = structure.coordinates
        np.add.at(array, tuple(atoms[i] for i in kept), values if kept else values.sum())
    for axis, i in enumerate(kept):
        array = _sum_along(array, axis, structure.memberships(table)[i])
    names = [structure.variables[i].name for i in kept]
    turned = np.transpose(array, [names.index(axis.name) for axis in layout.parts])
    return np.ascontiguousarray(turned).reshape(layout.shape)


def _entries(structure: Structure, table: int) -> int:
    return int(np.prod([m.items.size for m in structure.memberships(table)], dtype=object))


def _rows(structure: Structure, table: int, out: npt.NDArray[Any]) -> Lists:
    """The rows of one table as lists of inner cells, written into ``out``."""
    steps = np.cumprod((1, *structure.shape[::-1]), dtype=np.int64)[-2::-1]
    members = structure.memberships(table)
    factors = [m.scaled(int(s)) for m, s in zip(members, steps, strict=True)]
    start = Lists.of([[0]])
    crossed = reduce(outer, factors[:-1], start)
    last = factors[-1] if factors else start
    order = _row_order(structure, table)
    if order is None:
        return outer(crossed, last, out)
    turned = outer(crossed, last).take(order)
    out[:] = turned.items
    return Lists(turned.indptr, out)


def _row_order(structure: Structure, table: int) -> Ints | None:
    """Where the table's rows stand among rows in the order of the cube; None if in order."""
    sizes = {axis.name: len(axis) for axis in structure.tables[table].axes}
    cube = [v.name for v in structure.variables if v.name in sizes]
    if cube == list(sizes):
        return None
    size = int(np.prod(list(sizes.values())))
    grid = np.arange(size, dtype=np.int64).reshape([sizes[name] for name in cube])
    return np.ascontiguousarray(grid.transpose([cube.index(name) for name in sizes])).ravel()


def _columns(structure: Structure, table: int) -> Sparse:
    """One table over the kept inner cells: for each of them, the cells that hold it."""
    places = np.zeros(structure.inner, dtype=np.int64)
    column = np.arange(structure.inner, dtype=np.int64)
    parts = zip(
        structure.memberships(table),
        structure.strides(table),
        structure.coordinates,
        structure.shape,
        strict=True,
    )
    for members, stride, atoms, count in parts:
        holders = members.transposed(count).scaled(stride).take(atoms[column])
        repeats = holders.lengths
        places = np.repeat(places, repeats) + holders.items
        column = np.repeat(column, repeats)
    size = int(structure.offsets[table + 1] - structure.offsets[table])
    ones = np.ones(places.size, dtype=np.int8)
    indptr = pointers(np.bincount(column, minlength=structure.inner))
    return sparse.csc_array((ones, places, indptr), shape=(size, structure.inner))


def _sum_along(array: npt.NDArray[Any], axis: int, members: Lists) -> npt.NDArray[Any]:
    size = array.shape[axis]
    if members.is_singles(size):
        return array
    # The matrix takes the type of the values: scipy would turn unsigned sums into floats.
    ones = np.ones(members.items.size, dtype=array.dtype)
    adder = sparse.csr_array((ones, members.items, members.indptr), shape=(members.count, size))
    moved = np.moveaxis(array, axis, 0)
    others = int(np.prod(moved.shape[1:], dtype=np.int64))
    summed = adder @ moved.reshape(size, others)
    return np.moveaxis(summed.reshape(members.count, *moved.shape[1:]), 0, axis)
