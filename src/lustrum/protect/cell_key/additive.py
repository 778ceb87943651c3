"""Restore additivity of perturbed tables with the least change.

Independently perturbed totals do not add up. This finds an additive table of whole numbers that minimises
the sum of all changes::

    minimise   sum_c |z_c - y_c|
    subject to every total z_t is the sum of its parts, z >= 0, |z - y| <= the largest shift allowed

For a table of two dimensions the relations are those of a network, so that the linear program has a whole
solution. Branch and bound solves others within a number of steps. Large tables, and those for which it
finds nothing, are solved by moving single units as long as that helps. If no additive table lies within the
largest shift, the totals are the sums of the perturbed inner cells.

The price: the same cell may differ between tables, and readers know less about each cell, because they must
allow for the shift. The widened bounds state that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from lustrum.model import InputError, TableAxis
from lustrum.model.arrays import Array, Floats, Ints, Mask
from lustrum.model.channel import MatrixChannel
from lustrum.model.table import inner_cells
from lustrum.numeric.compiled import compiled
from lustrum.numeric.later import sparse
from lustrum.numeric.solve import Highs, LinearProblem, Outcome
from lustrum.numeric.solve.highs import single_optimum
from lustrum.numeric.structure import Relations, Structure, complete_relations
from lustrum.protect.cell_key.channel import LookupChannel, support_of
from lustrum.protect.totals.summed import AxisParts, PublishedSums, Totals, added_totals
from lustrum.runtime.stop import check_stop, stop_asked

# The search for an additive table near a perturbed one, by single units, where no program is solved.


def is_partition(axes: Sequence[TableAxis]) -> bool:
    """Whether every category is a union of inner ones, so that inner cells determine the whole table."""
    return all(p.disjoint and bool(p.whole.all()) for p in map(AxisParts.of, axes))


def inner_places(axes: Sequence[TableAxis], structure: Structure) -> Ints:
    """The published place of each inner cell, in the order of the structure's columns."""
    matrix = structure.matrix
    places = np.flatnonzero(inner_cells(axes).ravel())
    columns = matrix[places].indices
    out = np.empty(structure.inner, dtype=np.int64)
    out[columns] = places
    return out


@compiled
def descend(  # pragma: no cover
    indptr: Array,
    rows: Array,
    inner: Array,
    y: Array,
    fixed: Array,
    shift: int,
    heavy: float,
    z: Array,
) -> None:
    """Change inner cells one unit at a time while that helps; ends where no single step does."""
    changed = True
    while changed:
        changed = False
        for j in range(inner.size):
            cell = inner[j]
            if fixed[cell]:
                continue
            for step in (1, -1):
                while True:
                    after = z[cell] + step
                    if after < 0 or abs(after - y[cell]) > shift:
                        break
                    gain = 0.0
                    for k in range(indptr[j], indptr[j + 1]):
                        r = rows[k]
                        old, new = abs(z[r] - y[r]), abs(z[r] + step - y[r])
                        gain += new - old
                        gain += heavy * (max(new - shift, 0) - max(old - shift, 0))
                    if gain >= -1e-9:
                        break
                    for k in range(indptr[j], indptr[j + 1]):
                        z[rows[k]] += step
                    changed = True


_LARGE = 60_000  # no program is set up for tables with more published cells
_WHOLE = 1e-6


@dataclass(frozen=True)
class Restored:
    """An additive table near a perturbed one.

    ``way`` says how it was found: ``linear`` and ``integer`` give the least change, ``search`` need not,
    and ``sums`` means that totals are sums of the perturbed inner cells. ``bound`` is proven: no additive
    table within the shift changes less.
    """

    values: Ints
    cost: float
    bound: float
    way: Literal["linear", "integer", "search", "sums"]
    moved: float

    def __repr__(self) -> str:
        return f"Restored(by {self.way})"

    @property
    def optimal(self) -> bool:
        return self.cost <= self.bound + _WHOLE * max(1.0, abs(self.bound))


def restore(
    axes: Sequence[TableAxis],
    perturbed: Ints,
    *,
    max_shift: int,
    structural: Mask | None = None,
    steps: int = 500,
    large: int = _LARGE,
) -> Restored:
    """The additive table of whole numbers that is nearest to a perturbed one; structural zeros stay 0."""
    if type(max_shift) is not int or max_shift < 0:
        raise InputError(f"The largest shift must be a whole number from 0 up, not {max_shift!r}.")
    fixed = np.zeros(perturbed.shape, np.bool_) if structural is None else structural
    y = np.where(fixed, 0, perturbed)
    problem = _Problem(tuple(axes), y.ravel(), fixed.ravel(), max_shift)
    return problem.solved(steps, large)


def widened(
    published: Ints, channel: MatrixChannel | LookupChannel, max_shift: int
) -> tuple[Ints, Ints]:
    """Bounds of the true value of each number, if it may have been shifted after it was perturbed."""
    support = support_of(channel).support
    low = np.full(published.shape, np.iinfo(np.int64).max)
    high = np.full(published.shape, -1, dtype=np.int64)
    for shift in range(-max_shift, max_shift + 1):
        before = published + shift
        if isinstance(channel, MatrixChannel) and channel.residue_base is None:
            possible = (before >= 0) & (before < channel.matrix.shape[1])
        else:
            possible = before >= 0
        least, most = support(np.where(possible, before, 0))
        possible &= least <= most
        low = np.where(possible, np.minimum(low, least), low)
        high = np.where(possible, np.maximum(high, most), high)
    return low, high


def additive_release(
    axes: Sequence[TableAxis],
    perturbed: Ints,
    channel: MatrixChannel | LookupChannel,
    *,
    max_shift: int,
    structural: Mask | None,
    steps: int,
) -> tuple[Restored, PublishedSums]:
    """The restored table, with bounds that hold for every way in which it may have been found."""
    restored = restore(axes, perturbed, max_shift=max_shift, structural=structural, steps=steps)
    low, high = widened(restored.values, channel, max_shift)
    if structural is not None:
        low, high = np.where(structural, 0, low), np.where(structural, 0, high)
    # A total may also be the sum of unshifted inner cells; a reader must allow for both.
    alone = support_of(channel).support(restored.values)
    if structural is not None:
        alone = np.where(structural, 0, alone[0]), np.where(structural, 0, alone[1])
    summed = added_totals(axes, restored.values, *alone)
    total = ~inner_cells(axes)
    return restored, PublishedSums(
        restored.values,
        np.where(total, np.minimum(low, summed.low), low),
        np.where(total, np.maximum(high, summed.high), high),
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    axes: tuple[TableAxis, ...]
    y: Ints
    fixed: Mask
    shift: int

    @cached_property
    def structure(self) -> Structure:
        return Structure.of_tables([self.axes])

    @cached_property
    def relations(self) -> Relations:
        return complete_relations(self.structure)

    def solved(self, steps: int, large: int) -> Restored:
        relations = self.relations
        if self._adds_up(self.y):
            return self._result(self.y, 0.0, "linear")
        if self.y.size > large:
            return self._searched(0.0)
        matrix = relations.matrix.astype(np.float64)
        up = np.where(self.fixed, 0, self.shift).astype(np.float64)
        down = np.where(self.fixed, 0, np.minimum(self.y, self.shift)).astype(np.float64)
        # Changes are split: z = y + up - down, each from 0 to the shift.
        gap = -(relations.matrix.astype(np.int64) @ self.y).astype(np.float64)
        problem = LinearProblem(
            sparse.csr_array(sparse.hstack([matrix, -matrix])),
            gap,
            gap,
            np.zeros(2 * self.y.size),
            np.concatenate((up, down)),
        )
        # Small irregular costs choose among the nearest tables; bounds come from the costs themselves.
        loaded, one = Highs().load(problem), Highs(fine=True).load(problem)
        cost = np.ones(2 * self.y.size)
        single = single_optimum(cost)
        check_stop()
        relaxed = loaded.minimise(cost)
        if relaxed.outcome is Outcome.INFEASIBLE:
            return self._summed()
        bound = max(relaxed.bound, 0.0)
        whole = self._whole(one.minimise(single).point)
        if whole is not None:
            return self._result(whole, bound, "linear")
        best = loaded.minimise(cost, whole=True, steps=steps, stop=stop_asked())
        check_stop()
        if best.outcome is Outcome.INFEASIBLE:
            return self._summed()
        # A program that ran out of steps need not have found the nearest table; the unit search is quicker
        # then.
        if best.outcome is Outcome.OPTIMAL:
            chosen = one.minimise(single, whole=True, stop=stop_asked())
            check_stop()
            whole = self._whole(chosen.point)
        if whole is not None:
            return self._result(whole, max(bound, best.bound), "integer")
        return self._searched(bound)

    def _whole(self, point: Floats | None) -> Ints | None:
        """The table at a point of the solver, if it is whole and all relations hold exactly."""
        if point is None:
            return None
        change = point[: self.y.size] - point[self.y.size :]
        if np.abs(change - np.rint(change)).max(initial=0.0) > _WHOLE:
            return None
        z = self.y + np.rint(change).astype(np.int64)
        return z if self._allowed(z) and self._adds_up(z) else None

    def _adds_up(self, z: Ints) -> bool:
        return not (self.relations.matrix.astype(np.int64) @ z).any()

    def _allowed(self, z: Ints) -> bool:
        inside = (z >= 0) & (np.abs(z - self.y) <= self.shift) & (~self.fixed | (z == 0))
        return bool(inside.all())

    def _summed(self, bound: float = 0.0) -> Restored:
        z = self._sums()
        if not self._adds_up(z):
            raise InputError(
                f"No table that adds up lies within {self.shift} of the perturbed one, and its totals are "
                "not sums of its inner cells; allow a larger shift ('max_shift')."
            )
        return self._result(z, bound, "sums")

    def _sums(self) -> Ints:
        shape = tuple(len(axis) for axis in self.axes)
        return Totals.of(self.axes).added_up(self.y.reshape(shape)).ravel()

    def _searched(self, bound: float) -> Restored:
        """Move single units of inner cells while that helps; totals are added up."""
        if not is_partition(self.axes):
            return self._summed(bound)
        incidence = self.structure.matrix.tocsc()
        z = self._sums()
        inner = inner_places(self.axes, self.structure)
        # The limits of the program become heavy costs, so that the search first finds what is allowed.
        heavy = float(self.y.size) + 1.0
        descend(
            incidence.indptr.astype(np.int64),
            incidence.indices.astype(np.int64),
            inner,
            self.y,
            self.fixed,
            self.shift,
            heavy,
            z,
        )
        return self._result(z, bound, "search") if self._allowed(z) else self._summed(bound)

    def _result(self, z: Ints, bound: float, way: Any) -> Restored:
        shape = tuple(len(axis) for axis in self.axes)
        change = np.abs(z - self.y)
        return Restored(
            z.reshape(shape),
            float(change.sum()),
            float(bound),
            way,
            float((change > 0).mean()) if z.size else 0.0,
        )
