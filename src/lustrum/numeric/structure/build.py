"""Building the incidence matrix and rolling up values, without a loop over cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Sparse
from lustrum.numeric.later import sparse
from lustrum.numeric.structure.layout import StructureFields
from lustrum.numeric.structure.ragged import Lists, outer, pointers

# A block of its own is worth the call from this many entries on.
_BLOCK_COST = 1000
_MOST_NARROW = np.iinfo(np.int32).max
_MOST_ENTRIES = 2**31


@dataclass(frozen=True)
class _Run:
    """So many neighbouring lists of one length, from this item on."""

    length: int
    count: int
    start: int


def entries(structure: StructureFields) -> list[int]:
    """How many entries the matrix over the whole cube has for each table."""
    return [
        int(np.prod([m.items.size for m in structure.memberships(table)], dtype=object))
        for table in range(len(structure.tables))
    ]


def full_matrix(structure: StructureFields) -> Sparse:
    """The incidence matrix over the whole cube, row by row."""
    counts = entries(structure)
    if sum(counts) > _MOST_ENTRIES:
        raise InputError(
            f"The incidence matrix would have {sum(counts)} entries; keep fewer inner cells with "
            "'restrict', or use roll-ups and relations, which need no matrix."
        )
    wide = max(structure.inner, sum(counts)) > _MOST_NARROW
    kind: type[Any] = np.int64 if wide else np.int32
    items = np.empty(sum(counts), dtype=kind)
    indptr = np.zeros(structure.rows + 1, dtype=kind)
    done = 0
    for table, count in enumerate(counts):
        starts = _rows(structure, table, items[done : done + count])
        first, last = structure.offsets[table], structure.offsets[table + 1]
        indptr[first + 1 : last + 1] = starts[1:] + done
        done += count
    ones = np.ones(items.size, dtype=np.int8)
    return sparse.csr_array((ones, items, indptr), shape=(structure.rows, structure.inner))


def kept_matrix(structure: StructureFields) -> Sparse:
    """The incidence matrix over the kept inner cells, column by column, then turned."""
    tables = range(len(structure.tables))
    blocks = [_columns(structure, table).tocsr() for table in tables]
    return sparse.vstack(blocks, format="csr")


def incidence_matrix(structure: StructureFields) -> Sparse:
    """The 0/1 matrix of published by inner cells, as 8-bit integers in sparse rows."""
    return full_matrix(structure) if structure.columns is None else kept_matrix(structure)


def published_values(
    structure: StructureFields, values: npt.NDArray[Any]
) -> list[npt.NDArray[Any]]:
    """What every table shows when the inner cells hold these values, summed axis by axis."""
    if values.size != structure.inner:
        raise InputError(
            f"There are {structure.inner} inner cells, but {values.size} values were given."
        )
    if values.dtype.kind in "bi" or (values.dtype.kind == "u" and values.dtype.itemsize < 8):
        values = values.astype(np.int64)
    values = values.reshape(-1 if structure.columns is not None else structure.shape)
    return [_rolled_up(structure, values, table) for table in range(len(structure.tables))]


def _rolled_up(
    structure: StructureFields, values: npt.NDArray[Any], table: int
) -> npt.NDArray[Any]:
    """One table from values of the inner cells, summed axis by axis."""
    layout = structure.tables[table]
    axis_names = {axis.name for axis in layout.parts}
    present = [i for i, v in enumerate(structure.variables) if v.name in axis_names]
    if structure.columns is None:
        absent = tuple(i for i in range(len(structure.variables)) if i not in present)
        array = values.sum(axis=absent) if absent else values
    else:
        array = np.zeros([structure.shape[i] for i in present], dtype=values.dtype)
        atoms = structure.coordinates
        np.add.at(array, tuple(atoms[i] for i in present), values if present else values.sum())
    for axis, i in enumerate(present):
        array = _sum_along(array, axis, structure.memberships(table)[i])
    names = [structure.variables[i].name for i in present]
    turned = np.transpose(array, [names.index(axis.name) for axis in layout.parts])
    return np.ascontiguousarray(turned).reshape(layout.shape)


def _rows(structure: StructureFields, table: int, out: npt.NDArray[Any]) -> Ints:
    """Write the inner cells of each row of one table into ``out``; where each row begins."""
    steps = np.cumprod((1, *structure.shape[::-1]), dtype=np.int64)[-2::-1]
    members = structure.memberships(table)
    axes = [m.scaled(int(s)) for m, s in zip(members, steps, strict=True)]
    order = _axis_order(structure, table)
    lengths = reduce(np.multiply.outer, (axes[k].lengths for k in order), np.ones((), np.int64))
    runs = [_runs(axis.lengths) for axis in axes]
    blocks = int(np.prod([len(r) for r in runs], dtype=object))
    if axes and blocks * _BLOCK_COST <= out.size:
        for block in product(*runs):
            _write_block(out, axes, order, block)
    else:
        crossed = reduce(outer, axes, Lists.of([[0]]))
        shape = [axis.count for axis in axes]
        rows = np.arange(crossed.count, dtype=np.int64).reshape(shape).transpose(order)
        out[:] = crossed.take(np.ascontiguousarray(rows).ravel()).items
    return pointers(lengths.ravel())


def _axis_order(structure: StructureFields, table: int) -> list[int]:
    """The variables of the cube in the order of the table's axes, then those not shown."""
    places = {variable.name: i for i, variable in enumerate(structure.variables)}
    shown = [places[axis.name] for axis in structure.tables[table].axes]
    return shown + [i for i in places.values() if i not in set(shown)]


def _runs(lengths: Ints) -> list[_Run]:
    """Neighbouring lists of equal length, taken together; empty lists are left out."""
    cuts = np.flatnonzero(np.diff(lengths, prepend=-1, append=-1))
    starts = pointers(lengths)
    return [
        _Run(int(lengths[a]), int(b - a), int(starts[a]))
        for a, b in pairwise(cuts.tolist())
        if lengths[a]
    ]


def _write_block(
    out: npt.NDArray[Any], axes: Sequence[Lists], order: Sequence[int], block: Sequence[_Run]
) -> None:
    """Write all rows of one run of categories on each axis.

    Rows of equal lengths stand at equal distances, so the block is one array with a dimension for
    the categories and one for the items of every axis, whose entries are sums along the axes.
    """
    depth = len(axes)
    stride, start = [0] * (2 * depth), 0
    before, after = 1, int(np.prod([axis.items.size for axis in axes], dtype=object))
    for k in order:
        after //= axes[k].items.size
        stride[k] = before * block[k].length * after
        start += before * block[k].start * after
        before *= block[k].length
    for k in range(depth):
        before //= block[k].length
        stride[depth + k] = before
    shape = [run.count for run in block] + [run.length for run in block]
    view = np.lib.stride_tricks.as_strided(
        out[start:], shape, [s * out.itemsize for s in stride], writeable=True
    )
    total = np.zeros((1,) * (2 * depth), dtype=out.dtype)
    for k, (axis, run) in enumerate(zip(axes, block, strict=True)):
        run_items = axis.items[run.start : run.start + run.count * run.length].astype(out.dtype)
        spread = [1] * (2 * depth)
        spread[k], spread[depth + k] = run.count, run.length
        last = k == depth - 1
        total = np.add(total, run_items.reshape(spread), out=view if last else None)


def _columns(structure: StructureFields, table: int) -> Sparse:
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
