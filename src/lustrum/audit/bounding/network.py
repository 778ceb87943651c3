"""Sharp bounds of cells by maximum flow, for two-way tables and other networks.

Where every open cell occurs in at most two equations, with opposite signs once some equations are
multiplied by -1, the equations are the nodes of a network and the cells its arcs: feasible tables are
feasible flows. From any flow, a cell can rise by as much as the rest of the network can carry from its head
to its tail, and fall by as much as it can carry the other way (Gusfield 1988; Cox 1995). All numbers are
whole, so the bounds of whole and of real cells are the same, and sharp. A two-way table is such a network,
also where one of its variables has a hierarchy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.audit.knowledge.reduce import Piece
from lustrum.model.arrays import Indices, Ints, Mask, Sparse
from lustrum.numeric.later import sparse
from lustrum.numeric.solve.network import slots

_LARGEST = 2**60  # the sum of all bounds stays below this, so that no flow can overflow
_DROPS = 4096  # the most equations that may be left out to make a network


@dataclass(frozen=True, eq=False)
class BoundNetwork:
    """A piece as a network: arcs from ``tail`` to ``head`` with bounds, nodes that ``need`` some inflow.

    The first arcs are the cells of the piece; further ones take up the slack of facts that are ranges.
    Nodes are equations; the last one is the outside, for cells that occur in one equation only.
    """

    tail: Ints
    head: Ints
    low: Ints
    high: Ints
    need: Ints

    @classmethod
    def of(cls, piece: Piece) -> BoundNetwork | None:
        """The network of a piece, or None where it is no network or its bounds are too large or infinite.

        Along a cycle of arcs without bounds a flow can grow without limit, and all other numbers with it.
        """
        matrix = sparse.csr_array(piece.matrix)
        if bool((np.abs(matrix.data) != 1).any()) or not _small(piece):
            return None
        equation = piece.fact_low == piece.fact_high
        facts = _kept(matrix, equation)
        if facts is None:
            return None
        turned = _turned(matrix[facts])
        if turned is None:
            return None
        network = cls._laid_out(piece, matrix[facts], facts, turned)
        left_out = np.setdiff1d(np.arange(matrix.shape[0]), facts)
        if left_out.size and not network._implies(matrix[left_out]):
            return None
        return network

    @classmethod
    def _laid_out(cls, piece: Piece, matrix: Sparse, facts: Indices, turned: Ints) -> BoundNetwork:
        nodes, cells = matrix.shape
        links = matrix.tocoo()
        enters = links.data * turned[links.row] > 0
        tail, head = np.full(cells, nodes, dtype=np.int64), np.full(cells, nodes, dtype=np.int64)
        head[links.col[enters]] = links.row[enters]
        tail[links.col[~enters]] = links.row[~enters]
        ends = piece.fact_low[facts], piece.fact_high[facts]
        ranges = np.flatnonzero(ends[0] < ends[1])
        outward = turned[ranges] > 0
        need = np.where(ends[0] == ends[1], turned * ends[0], 0)
        return cls(
            tail=np.concatenate([tail, np.where(outward, ranges, nodes)]),
            head=np.concatenate([head, np.where(outward, nodes, ranges)]),
            low=np.concatenate([piece.low, ends[0][ranges]]),
            high=np.concatenate([piece.high, ends[1][ranges]]),
            need=np.append(need, -need.sum()),
        )

    def _implies(self, rows: Sparse) -> bool:
        """Whether equations follow from those of the nodes: each is a difference of potentials."""
        steps = np.zeros((self.tail.size, rows.shape[0]), dtype=np.int64)
        steps[: rows.shape[1]] = rows.toarray().T
        nodes = self.need.size
        potential = np.zeros((nodes, rows.shape[0]), dtype=np.int64)
        for node, before, arc, forth in _tree(self.tail, self.head, nodes):
            potential[node] = potential[before] + (steps[arc] if forth else -steps[arc])
        return bool((potential[self.head] - potential[self.tail] == steps).all())


class Flows:
    """A feasible flow, and the bounds that are found by changing it.

    For the first ``cells`` arcs, ``low`` and ``high`` are proven, and ``least`` and ``most`` were reached.
    """

    def __init__(self, network: BoundNetwork, cells: int) -> None:
        nodes, arcs = network.need.size, network.tail.size
        # One extra arc for each node balances it at first. All are full once a flow fits, so nothing passes
        # through their two ends afterwards.
        every = np.arange(nodes, dtype=np.int64)
        start = np.minimum(np.maximum(network.low, 0), network.high)
        missing = network.need.copy()
        np.subtract.at(missing, network.head, start)
        np.add.at(missing, network.tail, start)
        lacks, surplus = missing > 0, np.abs(missing)
        self.tail = np.concatenate([network.tail, np.where(lacks, every, nodes)])
        self.head = np.concatenate([network.head, np.where(lacks, nodes + 1, every)])
        self.flow = np.concatenate([start, np.zeros(nodes, dtype=np.int64)])
        self.indptr, self.to, self.mate, self.arc, self.slot = slots(
            self.tail, self.head, nodes + 2
        )
        self.room = np.zeros(self.to.size, dtype=np.int64)
        self.room[self.slot] = np.concatenate([network.high - start, surplus])
        self.room[self.mate[self.slot[:arcs]]] = start - network.low
        self._work = np.zeros((4, nodes + 2), dtype=np.int64)
        wanted = int(surplus.sum()) // 2
        self.feasible = self._push(nodes, nodes + 1, wanted) == wanted
        self.low, self.high = network.low[:cells].copy(), network.high[:cells].copy()
        self.least = self.flow[:cells].copy()
        self.most = self.flow[:cells].copy()

    def copy(self) -> Flows:
        twin = Flows.__new__(Flows)
        twin.__dict__.update(self.__dict__)
        for name in ("low", "high", "flow", "room", "least", "most", "_work"):
            setattr(twin, name, getattr(self, name).copy())
        return twin

    @property
    def table(self) -> Ints:
        return self.flow[: self.low.size]

    def ask(self, questions: npt.NDArray[np.integer]) -> int:
        """Settle bounds (``2 * cell``, plus 1 for an upper bound); returns the number of flows."""
        from lustrum.numeric.solve.network_kernels import settle

        graph = (self.tail, self.head, self.slot, self.indptr, self.to, self.mate, self.arc)
        ends = (self.low, self.high, self.least, self.most)
        asked = np.asarray(questions, dtype=np.int64)
        return int(settle(asked, *graph, self.room, self.flow, *ends, self._work))

    def _push(self, source: int, sink: int, limit: int) -> int:
        from lustrum.numeric.solve.network_kernels import push

        graph = (self.indptr, self.to, self.mate, self.arc)
        return int(push(source, sink, limit, *graph, self.room, self.flow, self._work))


def _small(piece: Piece) -> bool:
    """Whether every bound is finite and every sum of bounds fits into a whole number of 64 bits."""
    ends = np.concatenate([piece.low, piece.high, piece.fact_low, piece.fact_high])
    return float(np.abs(ends.astype(np.float64)).sum()) < _LARGEST


def _kept(matrix: Sparse, equation: Mask) -> Indices | None:
    """The facts without equations that give a cell a third entry, or None if there are too many of them."""
    keep_fact = np.ones(matrix.shape[0], dtype=np.bool_)
    length = np.diff(matrix.indptr)
    uses = np.bincount(matrix.indices, minlength=matrix.shape[1])
    row = np.repeat(np.arange(matrix.shape[0]), length)
    for _ in range(_DROPS):
        over = uses > 2
        if not over.any():
            return np.flatnonzero(keep_fact)
        crowded = np.bincount(row, weights=over[matrix.indices], minlength=keep_fact.size)
        score = np.where(
            keep_fact & equation, crowded / np.maximum(length, 1) + 1e-6 * crowded, -1.0
        )
        worst = int(np.argmax(score))
        if score[worst] <= 0.5:  # most of its cells have no third entry: a network needs it
            return None
        keep_fact[worst] = False
        uses[matrix.indices[matrix.indptr[worst] : matrix.indptr[worst + 1]]] -= 1
    return None


def _turned(matrix: Sparse) -> Ints | None:
    """Signs of the rows that give the two entries of every column opposite signs, if there are any."""
    columns = matrix.tocsc()
    two = np.flatnonzero(np.diff(columns.indptr) == 2)
    first = columns.indptr[two]
    one, other = (columns.indices[k].astype(np.int64) for k in (first, first + 1))
    flips = -(columns.data[first] * columns.data[first + 1])
    turned = np.ones(matrix.shape[0], dtype=np.int64)
    for node, before, arc, _ in _tree(one, other, matrix.shape[0]):
        turned[node] = turned[before] * flips[arc]
    if bool((turned[one] * turned[other] != flips).any()):
        return None
    return turned


def _tree(tail: Ints, head: Ints, nodes: int) -> Iterator[tuple[int, int, int, bool]]:
    """Nodes in search order: node, parent, the arc between, and whether the node is the arc's head."""
    from lustrum.numeric.solve.network_kernels import spanning

    indptr, to, mate, arc, _ = slots(tail, head, nodes)
    order, by = spanning(indptr, to)
    for node, slot in zip(order.tolist(), by.tolist(), strict=True):
        if slot >= 0:
            forth = bool(arc[slot] >= 0)
            yield node, int(to[mate[slot]]), int(arc[slot] if forth else ~arc[slot]), forth
