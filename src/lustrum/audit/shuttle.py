"""Bounds by the shuttle algorithm, which alternates between lower and upper bounds along sums.

=========================  ========================================================================
:func:`shuttle`            along the released sums alone (Buzzigoli and Giusti 1999)
:func:`generalised`        along the sums of all collapsed tables (Dobra 2002)
:func:`sharp_bounds`       the same, then linear and integer programs; sharp for whole numbers
=========================  ========================================================================

A cell of a collapsed table is a set of categories for each variable. Joining two sets of one
variable adds up two cells; the generalised shuttle passes bounds along all these sums.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.audit.bounding.compute import Bounds, bounds
from lustrum.audit.closed.choose import reducible
from lustrum.audit.closed.margins import Margins
from lustrum.audit.knowledge.facts import ContradictionError, Knowledge
from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.numeric.solve import Solver
from lustrum.numeric.structure import Relations, propagate
from lustrum.numeric.structure.ragged import Lists, pointers

__all__ = ["Detail", "generalised", "sharp_bounds", "shuttle"]

CONTRADICTION = "The margins contradict each other: no table of whole numbers has all of them."

Box = tuple[npt.ArrayLike, npt.ArrayLike]

_SMALL = 5  # a variable with more categories is never collapsed in all possible ways
_ROOM = 400_000  # the most cells in all sums together
_ROUNDS = 10**9  # a bound can move by one unit a round for very long


class Detail(IntEnum):
    """Which sets of categories of a variable are used."""

    SINGLES = 0  # each category, and all
    OTHERS = 1  # also all but one
    ALL = 2  # every set


@dataclass(frozen=True, eq=False)
class Sets:
    """Sets of categories of one variable, the full set last, and which are unions of others.

    ``holds`` has a row for each set and a column for each category; ``single`` holds the places of the sets
    with one category; each sum names the union first.
    """

    holds: Ints
    single: Ints
    sums: tuple[tuple[int, ...], ...]

    @property
    def count(self) -> int:
        """How many sets there are."""
        return int(self.holds.shape[0])


def collapses(size: int, detail: Detail) -> Sets:
    """The sets of categories of a variable.

    >>> collapses(3, Detail.ALL).count, collapses(3, Detail.SINGLES).sums
    (7, ((3, 0, 1, 2),))
    """
    categories = np.eye(size, dtype=np.int64)
    if size == 1:
        return Sets(categories, np.zeros(1, dtype=np.int64), ())
    if size == 2 or (detail is Detail.SINGLES):
        holds = np.vstack([categories, np.ones((1, size), dtype=np.int64)])
        return Sets(holds, np.arange(size), ((size, *range(size)),))
    if detail is Detail.OTHERS:
        holds = np.vstack([categories, 1 - categories, np.ones((1, size), dtype=np.int64)])
        sums = [(2 * size, *range(size))]
        sums += [(2 * size, i, size + i) for i in range(size)]
        sums += [(size + i, *(j for j in range(size) if j != i)) for i in range(size)]
        return Sets(holds, np.arange(size), tuple(sums))
    codes = range(1, 2**size)
    holds = np.array([[code >> i & 1 for i in range(size)] for code in codes], dtype=np.int64)
    sums = []
    for code in codes:
        part = (code - 1) & code
        while part:
            if part > code - part:
                sums.append((code - 1, part - 1, code - part - 1))
            part = (part - 1) & code
    return Sets(holds, (1 << np.arange(size, dtype=np.int64)) - 1, tuple(sums))


@dataclass(frozen=True, eq=False)
class Lattice:
    """Collapsed cells, those of them that are cells of the cube, their sums, and bounds that hold.

    >>> cube = np.ones((2, 2, 2))
    >>> Lattice.of(Margins.of_table(cube, [[0, 1], [0, 2], [1, 2]]), None, Detail.ALL)
    Lattice(27 cells, 27 sums)
    """

    inner: Ints
    sums: Relations
    low: Ints
    high: Ints

    def __repr__(self) -> str:
        return f"Lattice({self.low.size} cells, {self.sums.indptr.size - 1} sums)"

    @classmethod
    def of(cls, margins: Margins, box: tuple[Ints, Ints] | None, detail: Detail) -> Lattice:
        """The lattice of a cube, with narrowed bounds; ``box`` gives bounds of its cells in advance.

        If there are too many sets, variables with the most categories are collapsed in less detail.
        """
        sets = _detailed(margins.shape, detail)
        grid = tuple(s.count for s in sets)
        cells = np.arange(int(np.prod(grid, dtype=np.int64)), dtype=np.int64).reshape(grid)
        low = np.zeros(grid, dtype=np.int64)
        high = np.full(grid, margins.total, dtype=np.int64)
        for generator in margins.generators:
            known = margins.margin(generator)
            for axis in sorted(generator):
                known = np.moveaxis(np.tensordot(sets[axis].holds, known, axes=(1, axis)), 0, axis)
            where = tuple(
                slice(None) if a in generator else slice(-1, None) for a in range(len(grid))
            )
            low[where] = high[where] = known
        single = np.ix_(*(s.single for s in sets))
        if box is not None:
            low[single], high[single] = (
                np.maximum(low[single], box[0]),
                np.minimum(high[single], box[1]),
            )
        sums = _all_sums(sets, cells)
        narrowed = propagate(sums, low.ravel(), high.ravel(), rounds=_ROUNDS)
        if not narrowed.consistent:
            raise ContradictionError(CONTRADICTION)
        return cls(cells[single].ravel(), sums, narrowed.low, narrowed.high)


def shuttle(margins: Margins, *, rounds: int = 1000) -> Bounds:
    """Bounds of every cell by the shuttle algorithm along the released margins.

    Buzzigoli and Giusti (1999) gave it for three variables and all two-way margins. A cell is at least its
    sum minus the upper bounds of the others in the sum, and at most the sum minus their lower bounds. This
    is repeated for all sums until nothing changes::

        L' = max(L, n_C - (sum of U along the sum - U))
        U' = min(U, n_C - (sum of L along the sum - L))

    Any margins are allowed. The bounds hold, are quick and often wide: only cells with one feasible value
    are called sharp. After this many ``rounds`` the bounds reached by then are returned.

    >>> table = [[[1, 2], [3, 0]], [[2, 2], [0, 4]]]
    >>> found = shuttle(Margins.of_table(table, [[0, 1], [0, 2], [1, 2]]))
    >>> found.low.astype(int).tolist(), found.high.astype(int).tolist()
    ([1, 0, 1, 0, 0, 2, 0, 2], [3, 2, 3, 2, 2, 4, 2, 4])
    """
    low: Ints = np.zeros(margins.shape, dtype=np.int64)
    high: Ints = np.full(margins.shape, margins.total, dtype=np.int64)
    sums = [
        (margins.margin(g), tuple(a for a in range(len(margins.names)) if a not in g))
        for g in margins.generators
    ]
    for _ in range(rounds):
        before = low, high
        for total, along in sums:
            least, most = (a.sum(axis=along, keepdims=True) for a in (low, high))
            low, high = np.maximum(low, total - most + high), np.minimum(high, total - least + low)
        if bool((low > high).any()):
            raise ContradictionError(CONTRADICTION)
        if np.array_equal(low, before[0]) and np.array_equal(high, before[1]):
            break
    return margins.bounds(low, high, low == high)


def generalised(
    margins: Margins, within: Box | None = None, *, detail: Detail = Detail.ALL
) -> Bounds:
    """Bounds by the generalised shuttle (Dobra 2002), without search.

    Bounds of all collapsed cells are propagated along all sums of two of them until nothing changes. They
    hold; they are known to be sharp for decomposable margins and for dichotomous tables with all margins of
    one variable less, but are marked so only where one value is left. ``within`` gives bounds of cells in
    advance, for example structural zeros.

    >>> table = [[[1, 2], [3, 0]], [[2, 2], [0, 4]]]
    >>> found = generalised(Margins.of_table(table, [[0, 1], [0, 2], [1, 2]]))
    >>> found.low.astype(int).tolist(), found.high.astype(int).tolist()
    ([1, 0, 1, 0, 0, 2, 0, 2], [3, 2, 3, 2, 2, 4, 2, 4])
    """
    low, high = _shuttled(margins, _box(margins, within), detail)
    return margins.bounds(low, high, low == high)


def sharp_bounds(
    margins: Margins,
    within: Box | None = None,
    *,
    seconds: float | None = None,
    solver: Solver | None = None,
) -> Bounds:
    """Sharp bounds of whole cells for any margins: the generalised shuttle, then programs.

    A bound is sharp once a table is found that reaches it; that table settles every other cell whose bound
    it reaches too. What the shuttle leaves open goes to linear and integer programs
    (:func:`~lustrum.audit.bounding.compute.bounds`), which take as long as the search of Dobra (2002).
    Parts that margins separate are bounded apart, and those with a closed form need neither. When the
    ``seconds`` are over, the bounds still hold but are not marked sharp.

    >>> table = np.arange(12).reshape(2, 3, 2) % 5
    >>> found = sharp_bounds(Margins.of_table(table, [[0, 1], [0, 2], [1, 2]]))
    >>> found
    Bounds(12 cells, 12 sharp, 0 exact)
    >>> found.low.astype(int).tolist()
    [0, 0, 1, 2, 3, 0, 0, 2, 2, 3, 0, 0]
    """
    if not margins.whole:
        raise InputError("The shuttle searches whole numbers; bound real cells by linear programs.")
    end = None if seconds is None else time.monotonic() + seconds

    def solve(part: Margins, box: tuple[Ints, Ints] | None = None) -> Bounds:
        left = None if end is None else max(end - time.monotonic(), 0.0)
        known = _knowledge(part, *_shuttled(part, box))
        return bounds(known, integer=True, seconds=left, solver=solver)

    box = _box(margins, within)
    return reducible(margins, solve) if box is None else solve(margins, box)


def _shuttled(
    margins: Margins, box: tuple[Ints, Ints] | None, detail: Detail = Detail.ALL
) -> tuple[Ints, Ints]:
    lattice = Lattice.of(margins, box, detail)
    low, high = (end[lattice.inner].reshape(margins.shape) for end in (lattice.low, lattice.high))
    return low, high


def _knowledge(margins: Margins, low: Ints, high: Ints) -> Knowledge:
    """The cells of the cube within bounds, with one fact for each released sum."""
    rows, ends = [], []
    for generator in margins.generators:
        known = margins.margin(generator)
        row = np.broadcast_to(np.arange(known.size).reshape(known.shape), margins.shape).ravel()
        data = np.ones(row.size, dtype=np.int64), (row, np.arange(row.size))
        rows.append(sparse.csr_array(data, shape=(known.size, row.size)))
        ends.append(known.ravel())
    names = [f"cell {number}" for number in range(margins.size)]
    sums = np.concatenate(ends)
    matrix = sparse.vstack(rows)
    return Knowledge(names, low.ravel(), high.ravel(), matrix, sums, sums, margins.decimals)


def _box(margins: Margins, within: Box | None) -> tuple[Ints, Ints] | None:
    if within is None:
        return None
    ends = []
    for end, cut, limit in zip(within, (np.maximum, np.minimum), (0, margins.total), strict=True):
        array = np.asarray(end)
        if array.size == margins.size:
            array = array.reshape(margins.shape)
        elif array.size != 1:
            raise InputError(f"Bounds of cells must have the shape {margins.shape} of the cube.")
        ends.append(np.broadcast_to(cut(array, limit), margins.shape))
    return ends[0].astype(np.int64), ends[1].astype(np.int64)


def _detailed(shape: Sequence[int], detail: Detail) -> list[Sets]:
    levels = [Detail(min(detail, Detail.OTHERS if n > _SMALL else Detail.ALL)) for n in shape]
    sets = [collapses(size, level) for size, level in zip(shape, levels, strict=True)]
    while _room(sets) > _ROOM and any(levels):
        worst = max((a for a, level in enumerate(levels) if level), key=lambda a: sets[a].count)
        levels[worst] = Detail(levels[worst] - 1)
        sets[worst] = collapses(shape[worst], levels[worst])
    return sets


def _room(sets: Sequence[Sets]) -> float:
    """How many cells all sums have together."""
    cells = float(np.prod([float(s.count) for s in sets]))
    return sum(cells / s.count * sum(len(line) for line in s.sums) for s in sets)


def _all_sums(sets: Sequence[Sets], cells: Ints) -> Relations:
    """The sums along each variable, crossed with all sets of the others."""
    lengths, items = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for axis, axis_sets in enumerate(sets):
        for width in sorted({len(line) for line in axis_sets.sums}):
            lines = np.array(
                [line for line in axis_sets.sums if len(line) == width], dtype=np.int64
            )
            crossed = np.moveaxis(np.moveaxis(cells, axis, 0)[lines], 1, -1).reshape(-1, width)
            lengths.append(np.full(crossed.shape[0], width, dtype=np.int64))
            items.append(crossed.ravel())
    indptr, listed = pointers(np.concatenate(lengths)), np.concatenate(items)
    weights = np.ones(listed.size, dtype=np.int64)
    weights[indptr[:-1]] = -1
    return Relations.of(Lists(indptr, listed, weights), cells.size)
