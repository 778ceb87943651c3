"""Every collapsed table of a cube, and the sums between their cells.

A cell of a collapsed table is a set of categories for each variable. Joining two sets of one
variable adds up two cells; the generalised shuttle passes bounds along all these sums (Dobra 2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from lustrum.audit.closed.margins import Margins
from lustrum.audit.knowledge.facts import ContradictionError
from lustrum.audit.shuttle.kernels import drain
from lustrum.model.arrays import Ints
from lustrum.numeric.structure.ragged import Lists, pointers

CONTRADICTION = "The margins contradict each other: no table of whole numbers has all of them."

_SMALL = 5  # a variable with more categories is never collapsed in all possible ways
_ROOM = 400_000  # the most cells in all sums together


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
    """Collapsed cells, their sums as ragged rows (the total first), and bounds that hold.

    >>> Lattice.of(Margins.of_table(np.ones((2, 2, 2)), [[0, 1], [0, 2], [1, 2]]))
    Lattice(27 cells, 27 sums)
    """

    inner: Ints
    indptr: Ints
    items: Ints
    user_ptr: Ints
    users: Ints
    low: Ints
    high: Ints

    def __repr__(self) -> str:
        return f"Lattice({self.low.size} cells, {self.indptr.size - 1} sums)"

    @property
    def sums(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The sums as the kernels take them."""
        return self.indptr, self.items, self.user_ptr, self.users

    @classmethod
    def of(
        cls,
        margins: Margins,
        within: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        *,
        detail: Detail = Detail.ALL,
        visits: int = 2**60,
    ) -> Lattice:
        """The lattice of a cube, with narrowed bounds; ``within`` gives bounds of its cells in advance.

        If there are too many sets, variables with the most categories are collapsed in less detail.
        """
        sets = _detailed(margins.shape, detail)
        grid = tuple(s.count for s in sets)
        cells = np.arange(int(np.prod(grid, dtype=np.int64)), dtype=np.int64).reshape(grid)
        lists = _all_sums(sets, cells)
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
        if within is not None:
            low[single] = np.maximum(low[single], np.asarray(within[0], dtype=np.int64))
            high[single] = np.minimum(high[single], np.asarray(within[1], dtype=np.int64))
        if bool((low > high).any()):
            raise ContradictionError(CONTRADICTION)
        users = lists.transposed(cells.size)
        lattice = cls(
            cells[single].ravel(),
            lists.indptr.astype(np.int64),
            lists.items.astype(np.int64),
            users.indptr.astype(np.int64),
            users.items.astype(np.int64),
            low.ravel(),
            high.ravel(),
        )
        rows = lists.count
        queue, queued = np.arange(rows, dtype=np.int64), np.ones(rows, dtype=np.bool_)
        if not drain(lattice.sums, lattice.low, lattice.high, queue, queued, rows, visits):
            raise ContradictionError(CONTRADICTION)
        return lattice


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


def _all_sums(sets: Sequence[Sets], cells: Ints) -> Lists:
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
    return Lists(pointers(np.concatenate(lengths)), np.concatenate(items))
