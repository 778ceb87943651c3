"""The inner cells of a table, their kept margins, and the bounds that kept margins imply.

Methods that move people between inner cells work on a plain array without totals. Its axes are sorted by
name, and categories by code, so that the order of axes and categories in the table does not matter. All
other cells of the table are sums of inner ones and are added up again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.audit.fibre.margins import junction_tree
from lustrum.model import InputError, Table, TableAxis
from lustrum.model.arrays import Indices, Ints, Mask, Sparse
from lustrum.model.errors import choices
from lustrum.model.keys import cell_words
from lustrum.model.parameters import parameter
from lustrum.numeric.later import sparse
from lustrum.protect.totals.summed import AxisParts

Axes = tuple[int, ...]
Keep = tuple[tuple[str, ...], ...]
"""Margins to keep, each by the names of its variables."""


def margin_names(given: object) -> object:
    """Margins from the words of a policy file: each a list of names, or names parted by commas.

    >>> margin_names(["area, age", ["age", "sex"]])
    (('area', 'age'), ['age', 'sex'])
    """
    if not isinstance(given, (list, tuple)):
        return given
    return tuple(
        tuple(n.strip() for n in one.split(",") if n.strip()) if isinstance(one, str) else one
        for one in given
    )


def margin_words(margins: Keep) -> list[str]:
    return [",".join(margin) for margin in margins]


def margins_parameter(meaning: str) -> Any:
    """A parameter that lists margins, each by the names of its variables."""
    return parameter((), meaning, brief=True, read=margin_names, write=margin_words)


@dataclass(frozen=True, eq=False)
class InnerTable:
    """Inner cells in the order of names and codes, and how every cell of the table adds up from them.

    ``order[k]`` is the axis of the table that comes ``k``-th here; ``below[k]`` has a 1 where a
    category of the table holds an inner one; ``places[k]`` holds the places of the inner ones in the table.
    """

    axes: tuple[TableAxis, ...]
    order: tuple[int, ...]
    places: tuple[Indices, ...]
    below: tuple[Sparse, ...]

    @classmethod
    def of(cls, axes: Sequence[TableAxis], method: str, *, partial: bool = False) -> InnerTable:
        """The inner cells of a table whose other cells are sums of them.

        With ``partial`` a total may hold more than its inner cells; the rest of it is ignored.
        """
        order = tuple(sorted(range(len(axes)), key=lambda a: axes[a].name))
        places, below = [], []
        for position in order:
            axis = axes[position]
            inner = sorted(np.flatnonzero(axis.inner).tolist(), key=axis.codes.__getitem__)
            parts = AxisParts.of(axis, inner)
            below.append(_holds(axis, parts, method, partial))
            places.append(parts.inner)
        return cls(tuple(axes), order, tuple(places), tuple(below))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(p.size for p in self.places)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.axes[a].name for a in self.order)

    def take(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """The inner cells of an array that has the shape of the table."""
        return np.ascontiguousarray(values.transpose(self.order)[np.ix_(*self.places)])

    @cached_property
    def whole(self) -> tuple[Mask, ...]:
        """Which categories along each axis hold all inner ones."""
        return tuple(np.asarray(np.diff(m.indptr) == m.shape[1]) for m in self.below)

    def counts(self, table: Table) -> Ints:
        return self.take(table.values).astype(np.int64)

    def possible(self, table: Table) -> Mask | None:
        """Which inner cells can hold somebody, or None where all can."""
        if table.structural is None:
            return None
        open_cells = ~self.take(table.structural).astype(np.bool_)
        return None if bool(open_cells.all()) else open_cells

    def added_up(self, inner: npt.NDArray[np.generic]) -> Ints:
        """All cells of the table as the sums of the inner ones that they hold."""
        return self._spread(inner.astype(np.int64), tuple(range(len(self.order))))

    def cliques(self, keep: Keep) -> tuple[Axes, ...]:
        """Margins to keep as axes; without any, all totals that the table shows.

        A table that shows none keeps the sums over each of its axes.
        """
        count = len(self.order)
        if keep:
            sets = [tuple(sorted({self._axis(n) for n in margin})) for margin in keep]
        else:
            shown = [k for k, all_of in enumerate(self.whole) if self.shape[k] > 1 and all_of.any()]
            over = shown or list(range(count))
            sets = [tuple(a for a in range(count) if a != k) for k in over]
        margins = sorted(set(sets), key=lambda s: (-len(s), s))
        return tuple(
            a for i, a in enumerate(margins) if not any(set(a) <= set(b) for b in margins[:i])
        )

    def holders(self, cells: Mask) -> Ints:
        """How many of the marked cells of the table hold each inner cell."""
        out = cells.transpose(self.order).astype(np.int64)
        for k, matrix in enumerate(self.below):
            out = _along(matrix.T.tocsr(), out, k)
        return out

    def classes(self) -> tuple[tuple[Axes, Mask], ...]:
        """The cells of the table by the axes along which they are not the total of everything."""
        number = np.zeros((), dtype=np.int64)
        for k, complete in enumerate(self.whole):
            total = complete if complete.size > 1 else np.zeros_like(complete)
            number = np.asarray(number[..., None] + np.where(total, 0, 1 << k))
        number = number.transpose(np.argsort(self.order, kind="stable"))
        cell_classes = []
        for value in sorted(np.unique(number).tolist(), reverse=True):
            axes = tuple(k for k in range(len(self.order)) if value >> k & 1)
            cell_classes.append((axes, np.asarray(number == value)))
        return tuple(cell_classes)

    def exact(self, cliques: Sequence[Axes]) -> Mask:
        """Which cells of the table are sums of kept margins, so that they do not change."""
        out = np.zeros(tuple(w.size for w in self.whole), dtype=np.bool_)
        for clique in cliques:
            unchanged = np.ones((), dtype=np.bool_)
            for k, complete in enumerate(self.whole):
                unchanged = unchanged[..., None] & (complete | (k in clique))
            out |= unchanged
        return out.transpose(np.argsort(self.order, kind="stable"))

    def ends(self, inner: Ints, cliques: Sequence[Axes]) -> tuple[Ints, Ints]:
        """The bounds of every cell of the table that follow from the kept margins.

        The upper bound is the least of the cell's margins. The lower bound is the Fréchet bound of pairs of
        margins that cover all axes and, for decomposable margins, the sum of the cliques minus the
        separators (Dobra and Fienberg 2000), which is sharp. Other bounds may not be sharp.
        """
        count = len(self.order)
        sums = {c: self._margin(inner, c) for c in cliques}
        high = np.stack(list(sums.values())).min(axis=0)
        low = np.zeros_like(high)
        for a, b in combinations(cliques, 2):
            if len(set(a) | set(b)) == count:
                shared = self._margin(inner, tuple(sorted(set(a) & set(b))))
                low = np.maximum(low, sums[a] + sums[b] - shared)
        tree = junction_tree(cliques, count)
        if tree is not None:
            twice = sum((self._margin(inner, e.separator) for e in tree), np.zeros_like(high))
            low = np.maximum(low, np.stack(list(sums.values())).sum(axis=0) - twice)
        exact, totals = self.exact(cliques), self.added_up(inner)
        return np.where(exact, totals, low), np.where(exact, totals, high)

    def generator(
        self, table: Table, rng: np.random.Generator | None, purpose: str
    ) -> np.random.Generator:
        """The caller's generator, or one that follows from the keys of all records in the table.

        The same records with the same categories give the same generator, whether or not totals are shown
        and in whatever order of axes.
        """
        if rng is not None:
            return rng
        if table.keys is None:
            raise InputError("The table has no record keys; give a random generator ('rng').")
        total = self.take(table.keys).astype(np.uint64).sum(dtype=np.uint64)
        codes = [
            [self.axes[a].name, *map(self.axes[a].codes.__getitem__, places.tolist())]
            for a, places in zip(self.order, self.places, strict=True)
        ]
        philox_key = cell_words(
            np.array([total, ~total], dtype=np.uint64), purpose + json.dumps(codes)
        )
        return np.random.Generator(np.random.Philox(key=philox_key))

    def _axis(self, name: str) -> int:
        if name not in self.names:
            raise InputError(
                f"The margins to keep name {name!r}, which the table does not have; "
                f"{choices(name, self.names)}."
            )
        return self.names.index(name)

    def _margin(self, inner: Ints, axes: Axes) -> Ints:
        rest = tuple(a for a in range(inner.ndim) if a not in axes)
        return self._spread(inner.sum(axis=rest, keepdims=True), axes)

    def _spread(self, values: Ints, axes: Axes) -> Ints:
        """Add inner categories up along some axes, and repeat along the others."""
        out = values
        for k, matrix in enumerate(self.below):
            if k in axes:
                out = _along(matrix, out, k)
        whole = np.broadcast_to(out, tuple(w.size for w in self.whole))
        return np.ascontiguousarray(whole.transpose(np.argsort(self.order, kind="stable")))


def _along(matrix: Sparse, values: Ints, axis: int) -> Ints:
    """A matrix times an array along one of its axes."""
    moved = np.moveaxis(values, axis, 0)
    flat = matrix @ np.ascontiguousarray(moved.reshape(moved.shape[0], -1))
    return np.moveaxis(np.asarray(flat).reshape(matrix.shape[0], *moved.shape[1:]), 0, axis)


def _holds(axis: TableAxis, parts: AxisParts, method: str, partial: bool) -> Sparse:
    """A row for each category, with a 1 for each inner one that it holds."""
    if not parts.disjoint:
        raise InputError(
            f"{method} needs categories that do not overlap; those of {axis.name!r} do."
        )
    if not partial and not parts.whole.all():
        code = axis.codes[int(np.argmin(parts.whole))]
        raise InputError(
            f"{method} needs totals that are sums of inner categories; {code!r} of {axis.name!r} is not."
        )
    indptr = np.concatenate(([0], np.cumsum([len(h) for h in parts.held]))).astype(np.int64)
    items = np.array([p for h in parts.held for p in h], dtype=np.int64)
    ones = np.ones(items.size, dtype=np.int64)
    return sparse.csr_array((ones, items, indptr), shape=(len(axis), parts.inner.size))
