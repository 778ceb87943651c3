"""Every table of a small fibre, one by one."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from lustrum.audit.fibre.margins import FibreMargins, check_limit
from lustrum.audit.fibre.system import FibreBlock, FibreSystem
from lustrum.audit.knowledge.facts import Knowledge
from lustrum.model.arrays import Floats, Indices, Ints
from lustrum.numeric.arithmetic import log

NODES = 20_000_000
"""Values tried before an enumeration gives up, unless more are asked for: about a second."""

LISTED = 100_000
"""Tables that are listed unless more are asked for; room for more is taken only when they have been counted."""

_TABLE = 1 << 20  # factorials in the list; larger ones are computed when needed


@dataclass(frozen=True, eq=False)
class Tally:
    """For each column of a block, the total weight of the tables with each value, starting at ``low``.

    ``count`` is the number of tables. If the search was given up, ``complete`` is False and the sums mean
    nothing.
    """

    count: int
    sums: tuple[Floats, ...]
    complete: bool


@dataclass(frozen=True, eq=False)
class Fibre:
    """Tables that fit the knowledge, one a row; all of them if ``complete``."""

    tables: Ints
    complete: bool

    def __repr__(self) -> str:
        more = "" if self.complete else ", and there are more"
        return f"Fibre({len(self)} tables of {self.tables.shape[1]} cells{more})"

    def __len__(self) -> int:
        return int(self.tables.shape[0])


def enumerate_fibre(
    given: Knowledge | FibreMargins, *, most: int = LISTED, nodes: int = NODES
) -> Fibre:
    """All tables that fit, up to ``most``; ``complete`` says whether there are more.

    >>> enumerate_fibre(FibreMargins.two_way([1, 2], [1, 2])).tables.tolist()
    [[0, 1, 1, 1], [1, 0, 0, 2]]
    """
    check_limit("most", most)
    check_limit("nodes", nodes)
    system = FibreSystem.of(given)
    parts, complete = [], True
    for block in system.blocks:
        ordered = _Ordered.of(block)
        room = most if most <= LISTED else min(most, ordered.run(nodes).count)
        tables = np.empty((room, len(block)), dtype=np.int64)
        search = ordered.run(nodes, tables=tables)
        complete &= search.complete and search.count <= most
        parts.append(tables[: min(search.count, most), : block.cells.size])
    total = math.prod(len(p) for p in parts)
    size = min(total, most)
    out = np.repeat(system.settled[None, :], size, axis=0)
    picks = itertools.islice(itertools.product(*(range(len(p)) for p in parts)), size)
    index = np.array(list(picks), dtype=np.int64).reshape(size, len(parts))
    for k, (block, rows) in enumerate(zip(system.blocks, parts, strict=True)):
        out[:, block.cells] = rows[index[:, k]]
    return Fibre(out[np.lexsort(out.T[::-1])], complete and total <= most)


def tally(block: FibreBlock, *, hypergeometric: bool = False, nodes: int = NODES) -> Tally:
    """The total weights of the tables of a block: 1 each, or one over the product of its factorials.

    The largest weight is found first, and the others are relative to it, so none overflows.
    """
    ordered = _Ordered.of(block)
    if not hypergeometric:
        return ordered.run(nodes)
    first = ordered.run(nodes, hypergeometric=True)
    if not first.complete or first.count == 0:
        return first
    return ordered.run(nodes, hypergeometric=True, reference=first.top)


def log_factorials(block: FibreBlock) -> Floats:
    """``log n!`` for every count that a block can need, up to a limit."""
    size = int(min(max(int(block.high.max(initial=0)), 1) + 2, _TABLE))
    logs: Floats = np.concatenate([[0.0], np.cumsum(log(np.arange(1, size)))])
    return logs


@dataclass(frozen=True, eq=False)
class _EnumeratedTables(Tally):
    top: float


@dataclass(frozen=True, eq=False)
class _Ordered:
    """A block with its columns in the order in which they are tried."""

    block: FibreBlock
    order: Indices

    @classmethod
    def of(cls, block: FibreBlock) -> _Ordered:
        """The next column is one of the equation with the fewest columns left, so dead ends come early."""
        columns = block.matrix.tocsc()
        by_row = block.matrix.tocsr()
        left = np.diff(by_row.indptr).astype(np.int64)
        width = block.high - block.low
        # What a column costs: the columns that its shortest equation still has, then its width.
        short = np.full(len(block), np.iinfo(np.int64).max)
        for k in range(len(block)):
            rows = columns.indices[columns.indptr[k] : columns.indptr[k + 1]]
            short[k] = left[rows].min() if rows.size else 1
        waiting = np.ones(len(block), dtype=np.bool_)
        order = []
        for _ in range(len(block)):
            open_columns = np.flatnonzero(waiting)
            best = open_columns[np.lexsort((width[open_columns], short[open_columns]))[0]]
            order.append(best)
            waiting[best] = False
            for row in columns.indices[columns.indptr[best] : columns.indptr[best + 1]]:
                left[row] -= 1
                users = by_row.indices[by_row.indptr[row] : by_row.indptr[row + 1]]
                short[users] = np.minimum(short[users], left[row])
        return cls(block, np.array(order, dtype=np.intp))

    def run(
        self,
        nodes: int,
        *,
        hypergeometric: bool = False,
        reference: float = np.nan,
        tables: Ints | None = None,
    ) -> _EnumeratedTables:
        """Search through the block, and restore the order of its columns."""
        from lustrum.audit.fibre.kernels import walk  # imported here because it loads the compiler

        block, order = self.block, self.order
        matrix = block.matrix.tocsc()[:, order]
        low, high = block.low[order], block.high[order]
        widths = high - low + 1
        if sum(widths.tolist()) > 1 << 27:  # of any size, where 64 bits may not be enough
            return _EnumeratedTables(0, (), False, -np.inf)
        rest_low, rest_high = _rests(matrix, low, high)
        begin = np.concatenate(([0], np.cumsum(widths))).astype(np.int64)
        sums = np.zeros(int(begin[-1]))
        room = np.empty((0 if tables is None else len(tables), len(block)), dtype=np.int64)
        none = np.zeros(len(block), dtype=np.bool_)
        points, tried, top = walk(
            low,
            high,
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int64),
            matrix.data.astype(np.int64),
            rest_low,
            rest_high,
            block.totals.astype(np.int64).copy(),
            block.counted[order] if hypergeometric else none,
            log_factorials(block) if hypergeometric else np.zeros(1),
            reference,
            begin,
            sums,
            room,
            nodes,
        )
        if tables is not None:
            tables[:points, order] = room[:points]
        back = np.argsort(order, kind="stable")
        parts = tuple(sums[begin[k] : begin[k + 1]] for k in back)
        return _EnumeratedTables(int(points), parts, bool(tried <= nodes), float(top))


def _rests(matrix: object, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """For each entry, the bounds of the sum of the later entries in its row."""
    indptr, rows, data = (getattr(matrix, n) for n in ("indptr", "indices", "data"))
    count = int(rows.max(initial=-1)) + 1
    least, most = np.zeros(count, np.int64), np.zeros(count, np.int64)
    rest_low, rest_high = np.zeros(rows.size, np.int64), np.zeros(rows.size, np.int64)
    for column in range(low.size - 1, -1, -1):
        for k in range(indptr[column], indptr[column + 1]):
            row, c = rows[k], data[k]
            rest_low[k], rest_high[k] = least[row], most[row]
            ends = sorted((int(c * low[column]), int(c * high[column])))
            least[row] += ends[0]
            most[row] += ends[1]
    return rest_low, rest_high
