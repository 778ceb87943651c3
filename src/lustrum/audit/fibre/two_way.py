"""Two-way tables with given row and column sums, exactly: by formula or by dynamic programming."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, prod

import numpy as np
import numpy.typing as npt

from lustrum.audit.fibre.margins import FibreMargins, check_limit
from lustrum.audit.fibre.system import FibreBlock, FibreSystem
from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.distributions import hypergeometric

State = tuple[tuple[int, ...], int]

STEPS = 2_000_000
"""Values tried before dynamic programming gives up: a few seconds."""


@dataclass(frozen=True, eq=False)
class CellMarginals:
    """The distribution of each cell: values starting at ``low``, with their probabilities.

    ``total`` is the number of tables, or None where they were not counted.
    """

    low: Ints
    probabilities: tuple[Floats, ...]
    total: int | None


@dataclass(frozen=True, eq=False)
class TwoWay:
    """A block that is a two-way table, some of whose cells may be missing or bounded.

    ``positions[k]`` is the row and the column of cell ``k`` of the block.
    """

    rows: Ints
    columns: Ints
    positions: Ints
    low: Ints
    high: Ints

    def __repr__(self) -> str:
        return f"TwoWay({self.rows.size} x {self.columns.size}, {len(self.positions)} cells)"

    @classmethod
    def of(cls, block: FibreBlock) -> TwoWay | None:
        """The block as a two-way table, if every cell is in one row and one column."""
        matrix = block.matrix.tocsc()
        both = bool((np.diff(matrix.indptr) == 2).all()) and bool((matrix.data == 1).all())
        if not both or len(block) != block.cells.size:
            return None
        matrix.sort_indices()
        ends = matrix.indices.reshape(-1, 2).astype(np.int64)
        side = _sides(ends, matrix.shape[0])
        if side is None:
            return None
        flipped = side[ends[:, 0]] == 1
        ends[flipped] = ends[flipped][:, ::-1]
        number = np.zeros(side.size, dtype=np.int64)
        for which in (0, 1):
            number[side == which] = np.arange(int((side == which).sum()))
        positions = number[ends]
        if np.unique(positions, axis=0).shape[0] < len(positions):
            return None
        rows, columns = block.totals[side == 0], block.totals[side == 1]
        return cls(rows, columns, positions, block.low, block.high)

    @property
    def free(self) -> bool:
        """Whether no cell is missing and no bound is narrower than the margins imply."""
        if len(self.positions) < self.rows.size * self.columns.size:
            return False
        r, c = self.rows[self.positions[:, 0]], self.columns[self.positions[:, 1]]
        least = np.maximum(0, r + c - int(self.rows.sum()))
        return bool(((self.low <= least) & (self.high >= np.minimum(r, c))).all())

    def hypergeometric(self) -> CellMarginals:
        """The distribution of each cell if all ways to pair rows and columns of people are equally probable.

        ``P(x) = C(c, x) C(N - c, r - x) / C(N, r)``, the exact distribution behind Fisher's test; it holds
        for tables of any size, but only where no cell is missing or bounded.
        """
        if not self.free:
            raise InputError("The formula needs a full two-way table without bounds of its own.")
        people = int(self.rows.sum())
        lows, chances = [], []
        for i, j in self.positions:
            r, c = int(self.rows[i]), int(self.columns[j])
            x = np.arange(max(0, r + c - people), min(r, c) + 1)
            weights = hypergeometric(x, people, c, r)
            lows.append(int(x[0]))
            chances.append(weights / weights.sum())
        return CellMarginals(np.array(lows, dtype=np.int64), tuple(chances), None)

    def exact(self, *, hypergeometric: bool = False, steps: int = STEPS) -> CellMarginals | None:
        """The distribution of each cell by counting, or None where that takes too many steps.

        Dynamic programming, cell by cell: the state is what each column and the present row still need.
        Weights are exact whole numbers: 1 for a table, or the number ``prod_i r_i! / prod_j x_ij!`` of ways
        to fill it.
        """
        return _Columns.of(self).exact(hypergeometric, steps)


def count_tables(
    rows: npt.ArrayLike,
    columns: npt.ArrayLike,
    possible: npt.ArrayLike | None = None,
    *,
    steps: int = STEPS,
) -> int:
    """How many two-way tables have these sums, exactly.

    >>> count_tables([3, 3, 3], [3, 3, 3])
    55
    """
    check_limit("steps", steps)
    system = FibreSystem.of(FibreMargins.two_way(rows, columns, possible))
    total = 1
    for block in system.blocks:
        table = TwoWay.of(block)
        solution = None if table is None else table.exact(steps=steps)
        if solution is None or solution.total is None:
            raise InputError("There are too many states to count these tables; allow more steps.")
        total *= solution.total
    return total


@dataclass(frozen=True, eq=False)
class _Columns:
    """A two-way table laid out row by row, its few columns being the state."""

    rows: list[int]
    columns: tuple[int, ...]
    low: list[list[int]]
    high: list[list[int]]
    cell: dict[tuple[int, int], int]

    @classmethod
    def of(cls, table: TwoWay) -> _Columns:
        rows, columns, positions = table.rows, table.columns, table.positions
        # The side with fewer states is the state; whole numbers have no ties that a last bit decides.
        if prod((rows + 1).tolist()) < prod((columns + 1).tolist()):
            rows, columns, positions = columns, rows, positions[:, ::-1]
        low = np.zeros((rows.size, columns.size), dtype=np.int64)
        high = low.copy()
        low[positions[:, 0], positions[:, 1]], high[positions[:, 0], positions[:, 1]] = (
            table.low,
            table.high,
        )
        cell = {(int(i), int(j)): k for k, (i, j) in enumerate(positions)}
        return cls(rows.tolist(), tuple(columns.tolist()), low.tolist(), high.tolist(), cell)

    def exact(self, hypergeometric: bool, steps: int) -> CellMarginals | None:
        spots = [(i, j) for i in range(len(self.rows)) for j in range(len(self.columns))]
        layers: list[dict[State, int]] = [{(self.columns, self.rows[0]): 1}]
        for i, j in spots:
            after: dict[State, int] = {}
            for state, ways in layers[-1].items():
                for x in self._values(i, j, state):
                    following = self._after(i, j, state, x)
                    times = ways * comb(state[1], x) if hypergeometric else ways
                    after[following] = after.get(following, 0) + times
                    steps -= 1
                if steps < 0:
                    return None
            layers.append(after)
        done: State = (tuple(0 for _ in self.columns), 0)
        total = layers[-1].get(done, 0)
        if total == 0:
            return CellMarginals(np.zeros(len(self.cell), dtype=np.int64), (), 0)
        sums = self._backward(spots, layers, {done: 1}, hypergeometric)
        lows = np.array([min(s) for s in sums], dtype=np.int64)
        chances = tuple(
            np.array([s.get(v, 0) / total for v in range(min(s), max(s) + 1)]) for s in sums
        )
        return CellMarginals(lows, chances, None if hypergeometric else total)

    def _backward(
        self,
        spots: list[tuple[int, int]],
        layers: list[dict[State, int]],
        ahead: dict[State, int],
        hypergeometric: bool,
    ) -> list[dict[int, int]]:
        """For each cell, the summed weight of the tables with each of its values."""
        sums: list[dict[int, int]] = [{} for _ in self.cell]
        for k in range(len(spots) - 1, -1, -1):
            i, j = spots[k]
            here: dict[State, int] = {}
            cell_sums = sums[self.cell[i, j]] if (i, j) in self.cell else {}
            for state, ways in layers[k].items():
                rest = 0
                for x in self._values(i, j, state):
                    onward = ahead.get(self._after(i, j, state, x), 0)
                    if onward:
                        onward *= comb(state[1], x) if hypergeometric else 1
                        rest += onward
                        cell_sums[x] = cell_sums.get(x, 0) + ways * onward
                if rest:
                    here[state] = rest
            ahead = here
        return sums

    def _values(self, i: int, j: int, state: State) -> range:
        """The values that leave the row and the column feasible remainders."""
        needs, row = state
        least, most = self.low[i][j], min(self.high[i][j], needs[j], row)
        # The remainders must not exceed what later cells of the row and the column can hold.
        later = range(j + 1, len(needs))
        least = max(least, row - sum(min(self.high[i][k], needs[k]) for k in later))
        below = range(i + 1, len(self.rows))
        least = max(least, needs[j] - sum(min(self.high[k][j], self.rows[k]) for k in below))
        most = min(most, row - sum(self.low[i][k] for k in later))
        most = min(most, needs[j] - sum(self.low[k][j] for k in below))
        return range(least, most + 1)

    def _after(self, i: int, j: int, state: State, x: int) -> State:
        needs, row = state
        needs = (*needs[:j], needs[j] - x, *needs[j + 1 :])
        if j + 1 < len(needs):
            return needs, row - x
        return needs, self.rows[i + 1] if i + 1 < len(self.rows) else 0


def _sides(ends: Ints, count: int) -> Ints | None:
    """A two-colouring of the equations such that every cell is in one of each colour, or None."""
    side = np.full(count, -1, dtype=np.int64)
    near: list[list[int]] = [[] for _ in range(count)]
    for a, b in ends.tolist():
        near[a].append(b)
        near[b].append(a)
    for first in range(count):
        if side[first] >= 0:
            continue
        side[first], waiting = 0, [first]
        while waiting:
            line = waiting.pop()
            for other in near[line]:
                if side[other] < 0:
                    side[other] = 1 - side[line]
                    waiting.append(other)
                elif side[other] == side[line]:
                    return None
    return side
