"""The nearest controlled rounding of a one-way or two-way table, by network flow.

Rounding is zero-restricted: every published number becomes one of its two adjacent multiples of the base,
and a multiple stays. The cells that are published of a two-way table, its totals and its subtotals over a
hierarchy of rows are sums over two families of sets, each of which nests: parts of one column, and whole
rows. Such a table is a circulation: every published number is the flow on one arc (Cox and Ernst 1982;
with subtotals Cox and George 1989). A circulation can be rounded arc by arc to a whole one, so that a
rounding always exists, and the nearest is the cheapest of them.

An arc with residue ``r`` to the base ``b`` deviates by ``r`` or by ``b - r``. Going up costs ``b - 2r`` more in
absolute deviations and ``(b - r)² - r² = b (b - 2r)`` more in squared ones: whatever is nearest in the one
is nearest in the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Ints
from lustrum.model.errors import InputError, InternalError
from lustrum.numeric.solve.network import Network, cheapest_flow

Norm = Literal["l1", "l2"]

_LARGEST = 2**61  # sums of published numbers stay below
_NOISE = 24  # random bits for each cell, to break ties


@dataclass(frozen=True, eq=False)
class CirculationLayout:
    """Which numbers of a table with this many rows and columns are published, as the arcs of a circulation.

    ``groups`` are lists of rows; any two are disjoint or nested. Each has a subtotal in
    every column and, where ``rows`` have totals, a total. The published numbers are, in this order: inner
    cells, row by row; the subtotals, group by group; totals of rows; totals of groups; totals of columns;
    the grand total.

    >>> layout = CirculationLayout(3, 2, groups=[[0, 1]])
    >>> layout.published(np.array([[1, 2], [3, 4], [5, 6]])).tolist()
    [1, 2, 3, 4, 5, 6, 4, 6, 3, 7, 11, 10, 9, 12, 21]
    """

    height: int
    width: int
    groups: Sequence[Sequence[int]] = ()
    rows: bool = True
    columns: bool = True
    grand: bool = True
    nodes: int = field(init=False, repr=False)
    tail: Ints = field(init=False, repr=False)
    head: Ints = field(init=False, repr=False)

    def __post_init__(self) -> None:
        groups = _checked_groups(self.groups, self.height)
        object.__setattr__(self, "groups", groups)
        above_row, above_group = _nesting(groups, self.height)
        count = len(groups)
        # Flow goes from the top down each column and its groups, over a cell, and by its row and the
        # groups of rows to the bottom. A sum that is not published is no arc: its two ends are one.
        top, bottom = 0, int(self.grand)
        used = bottom + 1
        column, used = _numbered(used, self.width, self.columns, top)
        parts, used = _numbered(used, count * self.width, True, top)
        row, used = _numbered(used, self.height, self.rows, bottom)
        group, used = _numbered(used, count, self.rows, bottom)
        # Index -1, for what lies in no group, is the last entry.
        column_side = np.vstack((parts.reshape(count, self.width), column))
        row_side = np.append(group, bottom)
        tails = [column_side[above_row], column_side[above_group]]
        heads = [np.repeat(row, self.width), parts]
        if self.rows:
            tails += [row, group]
            heads += [row_side[above_row], row_side[above_group]]
        if self.columns:
            tails.append(np.full(self.width, top))
            heads.append(column)
        if self.grand:
            tails.append(np.array([bottom]))
            heads.append(np.array([top]))
        object.__setattr__(self, "nodes", used)
        object.__setattr__(self, "tail", np.concatenate([a.ravel() for a in tails]))
        object.__setattr__(self, "head", np.concatenate([a.ravel() for a in heads]))

    def published(self, values: Ints) -> Ints:
        """All published numbers of a table of inner cells, as one vector."""
        values = values.reshape(self.height, self.width)
        rows = values.sum(axis=1)
        parts = [values.ravel()] + [values[list(rows_of)].sum(axis=0) for rows_of in self.groups]
        if self.rows:
            parts += [rows, np.array([rows[list(g)].sum() for g in self.groups], dtype=np.int64)]
        if self.columns:
            parts.append(values.sum(axis=0))
        if self.grand:
            parts.append(rows.sum(keepdims=True))
        return np.concatenate(parts).astype(np.int64)

    def inner(self, published: Ints) -> Ints:
        return published[: self.height * self.width].reshape(self.height, self.width)


@dataclass(frozen=True, eq=False)
class Nearest:
    """Rounded inner cells, and how far all published numbers lie from the true ones: the sum of their
    absolute (``l1``) or squared (``l2``) deviations. The distance is confidential."""

    cells: Ints
    distance: int = field(repr=False)


def nearest_rounding(
    values: npt.ArrayLike,
    base: int,
    *,
    norm: Norm = "l1",
    groups: Sequence[Sequence[int]] = (),
    rows: bool = True,
    columns: bool = True,
    grand: bool = True,
    weights: npt.ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Nearest:
    """The additive table of adjacent multiples of the base that is nearest in all that is published.

    The totals of the rounded table are the sums of its cells. ``groups`` of rows have subtotals; a table
    with one axis has a grand total and groups only. ``weights`` are whole numbers, one for each published
    number in the order of :class:`CirculationLayout`. Among equally near tables the choice is always the same,
    or random with a generator.

    >>> nearest_rounding([[1, 5], [7, 0]], 3).cells.tolist()
    [[0, 6], [6, 0]]
    """
    cells = checked_counts(values, base)
    if norm not in ("l1", "l2"):
        raise InputError(f"The norm of a nearest rounding is 'l1' or 'l2', not {norm!r}.")
    layout = layout_of(cells, groups, rows, columns, grand)
    true = layout.published(cells)
    weight = _checked_weights(weights, true.size)
    residue = true % base
    moving = np.flatnonzero(residue)
    cost = weight[moving] * (base - 2 * residue[moving])
    steepest = int(np.abs(cost).max(initial=0))
    cost = _with_ties(cost, steepest, layout.nodes, rng)

    down = true // base
    supply = np.zeros(layout.nodes, dtype=np.int64)
    np.subtract.at(supply, layout.tail, down)
    np.add.at(supply, layout.head, down)
    tail, head = layout.tail[moving], layout.head[moving]
    solution = cheapest_flow(Network(tail, head, np.ones(moving.size, np.int64), cost, supply))
    if solution.flow is None:
        raise InternalError(
            "A table was found to have no controlled rounding, which every table has."
        )
    rounded = true - residue
    rounded[moving] += base * solution.flow
    distance = _distance(rounded - true, weight, base, 1 if norm == "l1" else 2)
    return Nearest(layout.inner(rounded).reshape(cells.shape), distance)


def layout_of(
    cells: Ints, groups: Sequence[Sequence[int]], rows: bool, columns: bool, grand: bool
) -> CirculationLayout:
    """The layout of a table; with one axis it is a single column without totals of rows."""
    if cells.ndim == 1:
        return CirculationLayout(cells.size, 1, groups, rows=False, columns=False, grand=grand)
    return CirculationLayout(cells.shape[0], cells.shape[1], groups, rows, columns, grand)


def checked_counts(values: npt.ArrayLike, base: int) -> Ints:
    """Inner cells as whole numbers of 0 or more, with a base that fits them."""
    if type(base) is not int or base < 2:
        raise InputError(f"Controlled rounding needs a whole base of 2 or more, not {base!r}.")
    cells = np.asarray(values)
    if cells.ndim not in (1, 2):
        raise InputError(
            f"This rounding is for tables with one or two axes, not with {cells.ndim}."
        )
    if cells.size and cells.dtype.kind not in "iu":
        raise InputError("Controlled rounding needs whole numbers; these are of another kind.")
    if cells.size and int(cells.min()) < 0:
        raise InputError("Controlled rounding needs numbers of 0 or more; one is negative.")
    if cells.astype(np.float64).sum() + float(base) * (cells.size + 1) >= _LARGEST:
        raise InputError("The numbers of the table are too large to be added up in 64 bits.")
    return cells.astype(np.int64)


def _checked_groups(groups: Sequence[Sequence[int]], height: int) -> tuple[tuple[int, ...], ...]:
    row_groups = []
    for index, group in enumerate(groups):
        rows = tuple(int(row) for row in group)
        if not rows or len(set(rows)) < len(rows) or min(rows) < 0 or max(rows) >= height:
            raise InputError(
                f"Group {index} of the rows must name some rows from 0 to {height - 1}, each once."
            )
        row_groups.append(rows)
    return tuple(row_groups)


def _nesting(groups: tuple[tuple[int, ...], ...], height: int) -> tuple[Ints, Ints]:
    """The smallest group around each row and around each group, -1 where there is none."""
    above_row = np.full(height, -1, dtype=np.int64)
    above_group = np.full(len(groups), -1, dtype=np.int64)
    outermost = np.full(height, -1, dtype=np.int64)
    for group in sorted(range(len(groups)), key=lambda g: len(groups[g])):
        rows = np.array(groups[group])
        parts, sizes = np.unique(outermost[rows], return_counts=True)
        for part, size in zip(parts.tolist(), sizes.tolist(), strict=True):
            if part >= 0 and size < len(groups[part]):
                raise InputError(
                    f"Groups {min(part, group)} and {max(part, group)} of the rows overlap in part; "
                    "two groups must be disjoint, or one must lie in the other."
                )
            if part >= 0:
                above_group[part] = group
        above_row[rows] = np.where(above_row[rows] < 0, group, above_row[rows])
        outermost[rows] = group
    return above_row, above_group


def _numbered(used: int, count: int, published: bool, else_at: int) -> tuple[Ints, int]:
    """New nodes for published sums; a sum that is not published shares the node of another."""
    if not published:
        return np.full(count, else_at, dtype=np.int64), used
    return np.arange(used, used + count, dtype=np.int64), used + count


def _checked_weights(weights: npt.ArrayLike | None, count: int) -> Ints:
    if weights is None:
        return np.ones(count, dtype=np.int64)
    weight_array = np.asarray(weights)
    if (
        weight_array.shape != (count,)
        or weight_array.dtype.kind not in "iu"
        or int(weight_array.min(initial=0)) < 0
    ):
        raise InputError(
            f"The weights must be {count} whole numbers of 0 or more, one for each published number."
        )
    return weight_array.astype(np.int64)


def _with_ties(cost: Ints, steepest: int, nodes: int, rng: np.random.Generator | None) -> Ints:
    """Costs with random tie-breaking; all random terms together are less than one unit of cost."""
    room = 2**57 // (nodes + 2)
    if steepest > room:
        raise InputError(
            "The weights times the base are too large for exact sums; use smaller weights."
        )
    if rng is None or not cost.size:
        return cost
    bits = min(_NOISE, (room // (steepest * cost.size + 1)).bit_length() - 1)
    if bits < 1:
        raise InputError(
            "The weights times the base leave no room to break ties; use smaller weights."
        )
    noise = rng.integers(0, 1 << bits, size=cost.size, dtype=np.int64) - (1 << (bits - 1))
    return cost * (cost.size << bits) + noise


def _distance(deviation: Ints, weight: Ints, base: int, power: int) -> int:
    """The weighted sum of deviations, in 64 bits where they suffice."""
    if int(weight.max(initial=0)) * base**power * max(deviation.size, 1) < 2**63:
        return int(weight @ np.abs(deviation) ** power)
    pairs = zip(weight.tolist(), deviation.tolist(), strict=True)
    return sum(w * abs(d) ** power for w, d in pairs)
