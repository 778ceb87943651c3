"""All deviations of a pattern at once: an orthonormal basis of what suppressed cells can do together.

A deviation moves suppressed cells only and keeps every relation. All of them make a space, and its dimension is
what is left to an attacker's doubt. Publishing a cell takes the deviations away that move it. A cell that no
deviation moves is given away, and cells that always move in proportion are published or suppressed together.
All of this is read off a basis, without a linear program.

Moves are counted in units of each cell, about as much as it can move, so that a basis vector is long where it
uses much room. Libraries for dense matrices add up in an order that depends on the processor, and what is
published first depends on lengths, so all sums are taken here, in one order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from lustrum.audit.knowledge.reduce import echelon
from lustrum.model.arrays import Array, Floats, Ints, Mask, Sparse
from lustrum.numeric.arithmetic import normal_draws
from lustrum.numeric.compiled import compiled
from lustrum.numeric.solve.products import dot, inner_product, snapped

_PRIME = 2**31 - 1
_FILL = 5000  # entries of combined relations for each entry at first
_ROUNDED = 1e-9  # what rounding leaves where nothing should be
_IDLE = 1e-13  # a squared length below this is none
_PARALLEL = 1e-11  # squared sine of an angle that is none
_SAME = 1e-7  # ratios of random projections that differ by less are the same
TIED = 1e-8  # lengths that differ by a smaller share are the same
_REFRESH = 64  # steps between two computations of lengths from the basis itself


class DeviationSpace:
    """The deviations of some cells, given by an orthonormal basis; changes as cells are published.

    >>> space = DeviationSpace.of(sparse.csr_array([[1, 1, -1, 0], [0, 0, 1, -1]]), np.ones(4))
    >>> space.dimension
    2
    >>> space.publish(2, space.shadow(2))
    >>> space.dimension, space.idle().tolist()
    (1, [False, False, True, True])
    """

    def __init__(self, basis: Floats, unit: Floats) -> None:
        self.basis, self.unit = basis, unit
        self.lengths = (basis * basis).sum(axis=0)
        self._since = 0

    @classmethod
    def of(cls, relations: Sparse, unit: Floats) -> DeviationSpace | None:
        """The space for cells that are the columns of relations; None where elimination fills in too much."""
        plain = deviation_basis(relations)
        if plain is None:
            return None
        basis = np.ascontiguousarray((plain / unit[:, None]).T)
        _orthonormal(basis)
        return cls(basis, unit)

    @property
    def dimension(self) -> int:
        return int(self.basis.shape[0])

    def idle(self) -> Mask:
        """Which cells no deviation moves."""
        return np.asarray(self.lengths < _IDLE)

    def shadow(self, cell: int) -> Floats:
        """The products of the basis at one cell with that at every cell."""
        return np.asarray(_product(self.basis[:, cell].copy(), self.basis))

    def direction(self, cell: int, shadow: Floats) -> Floats:
        """The least deviation, in units, that moves a cell by 1."""
        return np.asarray(shadow * self.unit / (shadow[cell] * self.unit[cell]))

    def aimed(self, cells: Ints, moves: Floats) -> Floats:
        """A deviation that moves some cells about as asked for, and the others little."""
        times = moves / (self.unit[cells] * np.maximum(self.lengths[cells], _IDLE))
        shares = (self.basis[:, cells] * times).sum(axis=1)
        return np.asarray(_product(shares, self.basis)) * self.unit

    def gives_away(self, cell: int, shadow: Floats, targets: Ints) -> bool:
        """Whether publishing a cell would give one of some other cells away, whatever the bounds are."""
        cell_shadow, length = shadow[cell], self.lengths[targets]
        return bool(
            (length * cell_shadow - shadow[targets] ** 2 < _PARALLEL * length * cell_shadow).any()
        )

    def publish(self, cell: int, shadow: Floats) -> None:
        """Take away the deviations that move a cell."""
        column = self.basis[:, cell].copy()
        size = float(np.sqrt(dot(column, column)))
        turn = size if column[-1] >= 0 else -size
        mirror = column.copy()
        mirror[-1] += turn
        # The last basis vector becomes the only one that moves the cell, and goes.
        seen = shadow + turn * self.basis[-1]
        _reflect(self.basis, mirror, seen, 2.0 / dot(mirror, mirror))
        self.basis = self.basis[:-1]
        self._since += 1
        if self._since >= _REFRESH:
            self.lengths = (self.basis * self.basis).sum(axis=0)
            self._since = 0
        else:
            self.lengths = np.maximum(self.lengths - shadow**2 / (size * size), 0.0)
        self.lengths[cell] = 0.0

    def without(self, cells: Ints) -> DeviationSpace:
        """The space in which some cells, none of which follows from the others, are published."""
        if not cells.size:
            return DeviationSpace(self.basis.copy(), self.unit)
        return DeviationSpace(_turned_away(self.basis, cells), self.unit)

    def independent(self, cells: Ints) -> Ints:
        """Some of these cells, none of which follows from the others, that give all others away."""
        # Of lengths that are the same up to rounding the first is taken, so that the basis does not matter.
        part = self.basis[:, cells].copy()
        left = (part * part).sum(axis=0)
        least, picked = _PARALLEL * left.max(initial=0.0), []
        while left.max(initial=0.0) > least:
            column = int(np.argmax(left >= left.max() * (1.0 - TIED)))
            picked.append(column)
            along = part[:, column] / np.sqrt(left[column])
            part -= np.outer(along, _product(along, part))
            left = (part * part).sum(axis=0)
            left[picked] = 0.0
        return np.sort(cells[picked])

    def projected(self, rows: Floats) -> Floats:
        """The nearest deviations of the space to some others, in units."""
        deviations = [_product(_products(self.basis, row), self.basis) for row in rows / self.unit]
        return np.array(deviations).reshape(rows.shape) * self.unit

    def groups(self, cells: Ints, luck: np.random.Generator) -> Ints:
        """A number for each cell; cells that always move in proportion have the same.

        Groups are numbered by their first cells, so that the numbers do not depend on the basis.
        """
        shares = normal_draws(luck, 2 * self.dimension).reshape(2, -1)
        up, right = (_product(share, self.basis)[cells] for share in shares)
        # Grows with the angle of (right, up), and is the same for the opposite: from -1 to 1.
        size = np.abs(up) + np.abs(right)
        ratio = np.where(right < 0, -up, up) / np.where(size > 0, size, 1.0)
        order = np.argsort(ratio, kind="stable")
        new = np.diff(ratio[order]) > _SAME
        number = np.empty(cells.size, dtype=np.int64)
        number[order] = np.concatenate([[0], np.cumsum(new)])
        if cells.size and ratio[order[0]] + 2.0 - ratio[order[-1]] <= _SAME:
            number[number == number[order[-1]]] = 0  # straight down is straight up
        return np.asarray(np.unique(_first_of_its_kind(number), return_inverse=True)[1])

    def longest(self, cells: Ints) -> int:
        """The first of the cells that deviations move most, up to rounding."""
        length = self.lengths[cells]
        return int(cells[np.argmax(length >= length.max() * (1.0 - TIED))])


def _first_of_its_kind(number: Ints) -> Ints:
    """For each entry the first place where the same number stands."""
    _, first, kind = np.unique(number, return_index=True, return_inverse=True)
    return np.asarray(first[kind])


def deviation_basis(relations: Sparse) -> Floats | None:
    """Deviations as columns that make up all others; None where elimination fills in too much.

    Some cells move by themselves, one in each column, and all others follow.
    """
    rows = sparse.csr_array(relations)
    width = rows.shape[1]
    order, independent, cell_of, done = _eliminated(rows)
    if not done:
        return None
    free = np.setdiff1d(np.arange(width), cell_of)
    basis = np.zeros((width, free.size))
    basis[free, np.arange(free.size)] = 1.0
    if cell_of.size and free.size:
        from scipy.sparse.linalg import splu

        needed = rows[order[independent]].astype(np.float64)
        factors = splu(needed[:, cell_of].tocsc())
        basis[cell_of] = factors.solve(-needed[:, free].toarray())
        basis[np.abs(basis) < _ROUNDED] = 0.0
        basis = snapped(basis, _ROUNDED)
    size = np.abs(basis).max(initial=1.0)
    # any last bit: the limit lies far above rounding, and far below a wrong entry
    return None if np.abs(rows @ basis).max(initial=0.0) > _ROUNDED * size else basis


def fixed_order(relations: Sparse) -> list[int]:
    """The relations that are not empty in an order of their own, so that the given one does not matter."""
    rows = sparse.csr_array(relations)
    rows.sort_indices()
    ends, cells, weights = rows.indptr.tolist(), rows.indices.tolist(), rows.data.tolist()
    filled = np.flatnonzero(np.diff(rows.indptr)).tolist()

    def sort_key(row: int) -> tuple[list[int], list[int]]:
        span = slice(ends[row], ends[row + 1])
        return cells[span], weights[span]

    return sorted(filled, key=sort_key)


def independent_part(relations: Sparse) -> tuple[Ints, bool]:
    """The relations that do not follow from others, and whether that was found out; if not, some may."""
    order, independent, _, done = _eliminated(sparse.csr_array(relations))
    return np.sort(order[independent]), done


def _eliminated(rows: Sparse) -> tuple[Ints, Mask, Ints, bool]:
    """Relations, short ones first, which of them are kept, the cell of each, and whether all were looked at."""
    lengths = np.diff(rows.indptr)
    order = np.flatnonzero(lengths)
    order = order[np.argsort(lengths[order], kind="stable")].astype(np.int64)
    independent, cell_of, _, _, _, _, done = echelon(
        rows.indptr.astype(np.int64),
        rows.indices.astype(np.int64),
        rows.data.astype(np.int64) % _PRIME,
        np.zeros(rows.shape[0], dtype=np.int64),
        order,
        np.bincount(rows.indices, minlength=rows.shape[1]).astype(np.int64),
        _FILL * max(rows.nnz, 1),
        _PRIME,
    )
    return order, independent, cell_of, bool(done)


@compiled
def _products(basis: Array, row: Any) -> Any:  # pragma: no cover
    out = np.empty(basis.shape[0])
    for k in range(out.size):
        out[k] = inner_product(basis[k], row)
    return out


@compiled
def _orthonormal(basis: Array) -> None:  # pragma: no cover
    """Make independent rows orthonormal in place (Gram and Schmidt, twice, which is enough)."""
    for row in range(basis.shape[0]):
        vector = basis[row]
        vector /= np.sqrt(inner_product(vector, vector))
        for _ in range(2):
            for other in range(row):
                share = inner_product(basis[other], vector)
                if share != 0.0:
                    for cell in range(vector.size):
                        vector[cell] -= share * basis[other, cell]
            vector /= np.sqrt(inner_product(vector, vector))


@compiled
def _turned_away(basis: Array, cells: Array) -> Any:  # pragma: no cover
    """A basis of what does not move some cells, by reflections that make the first rows alone move them."""
    dimension, width, gone = basis.shape[0], basis.shape[1], cells.size
    part = np.empty((dimension, gone))
    for row in range(dimension):
        for k in range(gone):
            part[row, k] = basis[row, cells[k]]
    mirrors = np.zeros((gone, dimension))
    factors = np.zeros(gone)
    for k in range(gone):
        mirror = mirrors[k]
        for row in range(k, dimension):
            mirror[row] = part[row, k]
        size = np.sqrt(inner_product(mirror, mirror))
        mirror[k] += size if mirror[k] >= 0 else -size
        whole = inner_product(mirror, mirror)
        factors[k] = 2.0 / whole if whole > 0.0 else 0.0
        _mirrored(part, mirror, factors[k], k)
    out = np.empty((dimension - gone, width))
    # Some columns at a time stay near the processor while all reflections pass over them.
    for begin in range(0, width, 64):
        end = min(begin + 64, width)
        some = basis[:, begin:end].copy()
        for k in range(gone):
            _mirrored(some, mirrors[k], factors[k], k)
        out[:, begin:end] = some[gone:]
    return out


@compiled
def _mirrored(part: Array, mirror: Array, factor: float, first: int) -> None:  # pragma: no cover
    seen = np.zeros(part.shape[1])
    for row in range(first, mirror.size):
        times = mirror[row]
        if times != 0.0:
            for cell in range(seen.size):
                seen[cell] += times * part[row, cell]
    for row in range(first, mirror.size):
        times = factor * mirror[row]
        if times != 0.0:
            for cell in range(seen.size):
                part[row, cell] -= times * seen[cell]


@compiled
def _product(column: Array, basis: Array) -> Any:  # pragma: no cover
    out = np.zeros(basis.shape[1])
    for row in range(column.size):
        times = column[row]
        if times != 0.0:
            for cell in range(out.size):
                out[cell] += times * basis[row, cell]
    return out


@compiled
def _reflect(basis: Array, mirror: Array, seen: Array, factor: float) -> None:  # pragma: no cover
    for row in range(mirror.size - 1):
        times = factor * mirror[row]
        if times != 0.0:
            for cell in range(seen.size):
                basis[row, cell] -= times * seen[cell]
