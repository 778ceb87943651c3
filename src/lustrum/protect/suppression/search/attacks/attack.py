"""Attacks on patterns: what each attacker can still not rule out, and why not more.

Two ways stand behind one set of questions: flows, for tables that are networks (two-way tables, also where
one variable has a hierarchy), and linear programs for all others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import sparse

from lustrum.audit.bounding.network import BoundNetwork
from lustrum.audit.knowledge.reduce import Piece, independent_rows
from lustrum.model.arrays import Floats, Ints, Mask, Sparse
from lustrum.numeric.solve.deviations import DeviationProgram
from lustrum.numeric.solve.network import adjacency
from lustrum.numeric.solve.products import power_of_two
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.attacks.space import independent_part
from lustrum.protect.suppression.search.attacks.tasks import SLIDING, Tasks

_A_LITTLE = 1.0 + 2.0**-23  # a cell is moved by hardly more than its level
_WIDE = 1e6  # levels by which a cell may move beside the one attacked
_SOME = 64.0  # the same on a cheap path
_NEARLY = 1e-6  # a level counts as reached up to this share; the audit decides without it
_NESTED = 4
_AT_ONCE = 2048  # attacks whose moves are noted at once
_LOCAL = 20_000  # cells of a table from which on attacks look at parts of a pattern
_CHEAP = 1000  # cells beside the suppressed ones that a path may use, if they suffice


@dataclass(frozen=True, eq=False)
class AttackReason:
    """Why a task fails: the move of its cell is ``weights`` times the moves of other cells.

    Where both ends of an interval matter, ``other`` is the reason for its lower end. An end that reaches
    the attacker bound of the cell itself moves by ``bound_move``, whatever is suppressed.
    """

    task: int
    cells: Ints
    weights: Floats
    other: AttackReason | None = None
    bound_move: float = 0.0


def attacks_on(tasks: Tasks) -> Attacks:
    """The quickest way to attack: flows where the table is a network."""
    problem = tasks.problem
    network = _network(problem)
    return ProgramAttacks(tasks) if network is None else FlowAttacks(tasks, network)


def is_network(problem: SuppressionProblem) -> bool:
    """Whether cells are arcs between relations, as in two-way tables, also with one hierarchy."""
    return _network(problem) is not None


def _network(problem: SuppressionProblem) -> tuple[Ints, Ints, int] | None:
    cells = problem.values.size
    network = BoundNetwork.of(_moves(np.arange(cells), problem.relations))
    if network is None:
        return None
    return network.tail[:cells], network.head[:cells], network.need.size


def _moves(cells: Ints, matrix: Sparse) -> Piece:
    """Moves by one unit at most that keep all relations."""
    facts = np.zeros(matrix.shape[0], dtype=np.int64)
    one = np.ones(cells.size, dtype=np.int64)
    return Piece(cells, matrix, facts, facts, -one, one)


class FlowAttacks:
    """Attacks by flows; see :mod:`lustrum.protect.suppression.search.attacks.network_kernels`."""

    def __init__(self, tasks: Tasks, network: tuple[Ints, Ints, int]) -> None:
        self.tasks = tasks
        self.tail, self.head, self.nodes = network
        self.steps, self.weight = 0, 1
        self.moves: list[tuple[Ints, Floats]] = []
        self._graph = adjacency(self.tail, self.head, np.arange(self.tail.size), self.nodes)
        # The network of the last pattern that was asked about; several questions follow each other.
        self._few = np.zeros(0, np.int64), np.zeros(0, np.bool_), self._graph

    def forget_prices(self) -> None:
        """Nothing is kept between questions."""

    def reach(self, picks: Ints, suppressed: Mask) -> tuple[Floats, list[Ints]]:
        """What share of its level each task reaches, and the cells that move when it does."""
        from lustrum.protect.suppression.search.attacks.network_kernels import UNIT, flows_back

        share = np.zeros(picks.size)
        moved: list[Ints] = [np.zeros(0, np.int64)] * picks.size
        # Cells that are published carry nothing, so that only the others are arcs here.
        asked = np.zeros(self.tail.size, dtype=np.bool_)
        asked[self.tasks.cell[picks]] = True
        arcs = np.flatnonzero(suppressed | asked)
        tail, head, open_arcs = self.tail[arcs], self.head[arcs], suppressed[arcs]
        if not (np.array_equal(arcs, self._few[0]) and np.array_equal(open_arcs, self._few[1])):
            graph = adjacency(tail, head, np.flatnonzero(open_arcs), self.nodes)
            self._few = arcs, open_arcs, graph
        graph = self._few[2]
        x = open_arcs.astype(np.float64)
        pick_index = {int(t): i for i, t in enumerate(picks)}
        for view, every in self.tasks.by_view(picks):
            up, down = self.tasks.rooms(view)
            up, down = up[arcs], down[arcs]
            for batch in np.split(every, np.arange(_AT_ONCE, every.size, _AT_ONCE)):
                for sign in (1, -1):
                    some = batch[
                        (self.tasks.sign[batch] == sign) | (self.tasks.sign[batch] == SLIDING)
                    ]
                    witness = np.zeros((some.size, arcs.size), dtype=np.bool_)
                    flows = flows_back(
                        np.searchsorted(arcs, self.tasks.cell[some]),
                        np.full(some.size, sign, dtype=np.int64),
                        self.tasks.level[some].astype(np.float64),
                        x,
                        up,
                        down,
                        tail,
                        head,
                        *graph,
                        witness,
                    )
                    self.steps += some.size
                    for t, task in enumerate(some.tolist()):
                        i = pick_index[task]
                        share[i] += flows[t] / UNIT
                        cells = np.append(arcs[witness[t]], self.tasks.cell[task])
                        moved[i] = cells if moved[i].size == 0 else np.union1d(moved[i], cells)
        return share, moved

    def reasons(self, picks: Ints, x: Floats) -> tuple[Floats, list[AttackReason]]:
        """The shares at a fractional point, and reasons for tasks that fail."""
        from lustrum.protect.suppression.search.attacks.network_kernels import (
            UNIT,
            separating_sides,
        )

        share = np.zeros(self.tasks.cell.size)
        reasons: list[AttackReason] = []
        arcs = np.flatnonzero(x > 1e-9)
        graph = adjacency(self.tail, self.head, arcs, self.nodes)
        for view, view_tasks in self.tasks.by_view(picks):
            up, down = self.tasks.rooms(view)
            ends: dict[int, dict[int, AttackReason]] = {}
            for sign in (1, -1):
                some = view_tasks[
                    (self.tasks.sign[view_tasks] == sign) | (self.tasks.sign[view_tasks] == SLIDING)
                ]
                reach, which, sides = separating_sides(
                    self.tasks.cell[some],
                    np.full(some.size, sign, dtype=np.int64),
                    self.tasks.level[some].astype(np.float64),
                    x,
                    up,
                    down,
                    self.tail,
                    self.head,
                    *graph,
                    _NESTED,
                    int(1e-4 * UNIT),
                )
                self.steps += some.size
                np.add.at(share, some, reach / UNIT)
                for cut, side in zip(which.tolist(), sides, strict=True):
                    task = int(some[cut])
                    cells, weights = self._across(task, side)
                    if self.tasks.sign[task] == SLIDING:
                        ends.setdefault(task, {}).setdefault(
                            sign, AttackReason(task, cells, weights)
                        )
                    else:
                        reasons.append(AttackReason(task, cells, weights))
            for task, known in ends.items():
                if share[task] < 1.0 - _NEARLY:
                    cell = self.tasks.cell[task]
                    reasons.append(_both(task, known, float(up[cell]), float(down[cell])))
        return share[picks], reasons

    def _across(self, task: int, side: Mask) -> tuple[Ints, Floats]:
        """The cells across a cut, and with which sign what they carry comes back to the cell attacked."""
        near, far = side[self.tail], side[self.head]
        cells = np.flatnonzero(near != far)
        cells = cells[cells != self.tasks.cell[task]]
        return cells, np.where(near[cells], 1.0, -1.0)

    def cheapest(self, task: int, cost: Floats, allowed: Mask) -> Ints | None:
        """Cells that are cheap to suppress and let a task succeed, or None where nothing does."""
        from lustrum.protect.suppression.search.attacks.network_kernels import cheapest_return

        up, down = self.tasks.rooms(int(self.tasks.view[task]))
        used = np.zeros(self.tail.size, dtype=np.bool_)
        self.steps += 1
        done = cheapest_return(
            int(self.tasks.cell[task]),
            int(self.tasks.sign[task]) or 1,
            float(self.tasks.level[task]),
            cost,
            allowed,
            up,
            down,
            self.tail,
            self.head,
            *self._graph,
            used,
        )
        return np.flatnonzero(used) if done else None


class ProgramAttacks:
    """Attacks by linear programs that go on from each other's basis."""

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        problem = tasks.problem
        self.cells = np.flatnonzero(~problem.frozen)
        matrix = problem.relations[:, self.cells].tocsr()
        used = np.flatnonzero(np.diff(matrix.indptr))
        matrix = matrix[used]
        piece = _moves(self.cells, matrix)
        self.rows = problem.relations[used[independent_rows(piece)]]
        self._local = LocalPrograms(self.rows) if len(problem) > _LOCAL else None
        self._few: FewCells | None = None
        self._cheap: FewCells | None = None
        self._cheap_is_all = False
        self.steps = 0
        # The deviations of the last question about reach: which cells move, and by how much.
        self.moves: list[tuple[Ints, Floats]] = []
        # A program is dearer the more cells there are; so that work means about the same everywhere.
        self.weight = program_weight(self.cells.size)

    def reach(self, picks: Ints, suppressed: Mask) -> tuple[Floats, list[Ints]]:
        """What share of its level each task reaches, and the cells that move when it does."""
        share, moved = np.zeros(picks.size), []
        self.moves = []
        for i, task in enumerate(picks.tolist()):
            cells: Ints = np.zeros(0, np.int64)
            every, program, weight = self._tied(int(self.tasks.cell[task]), suppressed)
            open_cells = suppressed[every].astype(np.float64)
            column = int(np.searchsorted(every, self.tasks.cell[task]))
            for sign in self._signs(task):
                low, high = self._ends(task, every, open_cells, _WIDE)
                level, unit = float(self.tasks.level[task]), self._unit(task)
                room = self._own(task)[0 if sign > 0 else 1]
                limit = min(_A_LITTLE * level, room) / unit
                furthest = program.furthest(column, sign, low, high, limit)
                self.steps += weight
                share[i] += furthest.reach * (unit / level)
                used = np.abs(furthest.deviation) > 1e-7
                cells = np.union1d(cells, every[used])
                self.moves.append((every[used], furthest.deviation[used] * unit))
            moved.append(cells)
        return share, moved

    def _tied(self, cell: int, suppressed: Mask) -> tuple[Ints, DeviationProgram, int]:
        """The cells that can move with a cell, their program, and how many steps a question counts for."""
        if self._local is not None:
            cells = self._local.tied(cell, suppressed)
            if cells is not None:
                return cells, self._local.program(cells), 1
        few = self._few_cells(suppressed)
        return few.cells, few.program, few.weight

    def _few_cells(self, suppressed: Mask) -> FewCells:
        """A program with the suppressed cells and hardly any others, kept as long as it serves."""
        few = self._few
        if (
            few is None
            or bool((suppressed & ~few.mask).any())
            or few.cells.size > 2 * suppressed.sum()
        ):
            few = self._few = FewCells(self.rows, suppressed.copy())
        return few

    def reasons(self, picks: Ints, x: Floats) -> tuple[Floats, list[AttackReason]]:
        """The shares at a fractional point, and reasons for tasks that fail."""
        # Cells that the point does not suppress cannot move, so they need not be in the program.
        few = self._few_cells(x > 1e-9)
        open_cells = x[few.cells]
        share, out = np.zeros(picks.size), []
        for i, task in enumerate(picks.tolist()):
            both: dict[int, AttackReason] = {}
            low, high = self._ends(task, few.cells, open_cells, 1.0)
            column = int(np.searchsorted(few.cells, self.tasks.cell[task]))
            up, down = self._own(task)
            level, unit = float(self.tasks.level[task]), self._unit(task)
            for sign in self._signs(task):
                limit = min(_A_LITTLE * level, up if sign > 0 else down) / unit
                question = column, sign, low, high, limit
                self.steps += few.weight
                if few.program.reaches(question):
                    share[i] += limit * (unit / level)
                    continue
                reach, weights = few.program.reasons(
                    few.every, int(self.tasks.cell[task]), question
                )
                share[i] += reach * (unit / level)
                if reach < limit - _NEARLY:
                    cells = np.flatnonzero(weights)
                    both[sign] = AttackReason(task, cells, weights[cells])
            if share[i] < 1.0 - _NEARLY and both:
                sliding = self.tasks.sign[task] == SLIDING
                out.append(_both(task, both, up, down) if sliding else next(iter(both.values())))
        return share, out

    def cheapest(self, task: int, cost: Floats, allowed: Mask) -> Ints | None:
        """Cells that are cheap to suppress and let a task succeed, or None where nothing does."""
        sign = int(self.tasks.sign[task]) or 1
        if self._own(task)[0 if sign > 0 else 1] < self.tasks.level[task]:
            return None
        if self._local is not None:
            near = self._local.near(int(self.tasks.cell[task]), allowed)
            program = self._local.program(near)
            cells = self._cheapest_among(near, program, 1, task, cost, allowed)
            if cells is not None:
                return cells
        few = self._cheap_cells(cost, allowed)
        cells = self._cheapest_among(few.cells, few.program, self.weight, task, cost, allowed)
        if cells is None and not self._cheap_is_all:
            every = FewCells(self.rows, ~self.tasks.problem.frozen)
            cells = self._cheapest_among(
                every.cells, every.program, self.weight, task, cost, allowed
            )
        return cells

    def forget_prices(self) -> None:
        """The cheapest cells are looked for again."""
        self._cheap = None

    def _cheap_cells(self, cost: Floats, allowed: Mask) -> FewCells:
        """A program with the cells that cost nothing and the cheapest others."""
        free = allowed & (cost <= 0)
        cheap = self._cheap
        if cheap is not None and not bool((free & ~cheap.mask).any()):
            return cheap
        mask = free | self.tasks.problem.fixed
        others = np.flatnonzero(allowed & ~mask)
        self._cheap_is_all = others.size <= _CHEAP
        mask[others[np.argsort(cost[others], kind="stable")[:_CHEAP]]] = True
        self._cheap = FewCells(self.rows, mask)
        return self._cheap

    def _cheapest_among(
        self,
        cells: Ints,
        program: DeviationProgram,
        steps: int,
        task: int,
        cost: Floats,
        allowed: Mask,
    ) -> Ints | None:
        sign = int(self.tasks.sign[task]) or 1
        open_cells = allowed[cells].astype(np.float64)
        low, high = self._ends(task, cells, open_cells, _SOME)
        column = int(np.searchsorted(cells, self.tasks.cell[task]))
        amount = sign * float(self.tasks.level[task]) / self._unit(task)
        price = cost[cells].astype(np.float64)
        weight = price
        best: Ints | None = None
        least = np.inf
        for _ in range(2):
            self.steps += steps
            deviation = program.lightest(column, amount, low, high, weight)
            if deviation is None:
                return best
            moved = np.abs(deviation) > 1e-7
            total = float(price[moved].sum())
            if total < least:
                best, least = cells[moved], total
            # What is used is charged as a whole, what is used little dearly.
            size = np.where(moved, np.maximum(np.abs(deviation), 1e-3), 1.0)
            again = np.where(moved, price / size, price)
            if least == 0.0 or np.allclose(again, weight):
                break
            weight = again
        return best

    def _own(self, task: int) -> tuple[float, float]:
        """How far the cell attacked can itself be higher, and lower."""
        up, down = self.tasks.rooms(int(self.tasks.view[task]))
        cell = self.tasks.cell[task]
        return float(up[cell]), float(down[cell])

    def _signs(self, task: int) -> tuple[int, ...]:
        sign = int(self.tasks.sign[task])
        return (1, -1) if sign == SLIDING else (sign,)

    def _ends(
        self, task: int, cells: Ints, open_cells: Floats, most: float
    ) -> tuple[Floats, Floats]:
        """Between which moves each cell can be, in units of about the level of the cell attacked."""
        up, down = self.tasks.rooms(int(self.tasks.view[task]))
        unit = self._unit(task)
        return (
            -np.minimum(down[cells] / unit, most) * open_cells,
            np.minimum(up[cells] / unit, most) * open_cells,
        )

    def _unit(self, task: int) -> float:
        """What moves are counted in: about the level, and a power of two, so that no end is rounded."""
        return power_of_two(float(self.tasks.level[task]))


Attacks: TypeAlias = FlowAttacks | ProgramAttacks


def program_weight(cells: int) -> int:
    """How many steps a program with this many cells counts for."""
    return 1 + (cells // 1000) ** 2


def _both(task: int, known: dict[int, AttackReason], up: float, down: float) -> AttackReason:
    """The reasons for both ends of an interval; an end without one is at the cell's own bound."""
    nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    upper = known.get(1) or AttackReason(task, *nothing, bound_move=up)
    lower = known.get(-1) or AttackReason(task, *nothing, bound_move=down)
    return AttackReason(task, upper.cells, upper.weights, lower, upper.bound_move)


# Of a large table with hierarchies, a pattern falls into parts of a few dozen cells: only what relations tie
# to a cell can move with it. A program of one part is solved at once, one of all suppressed cells takes long.

_SMALL = 300  # cells of a program that counts as one step
_MOST = 600  # cells of a part that is looked at by itself
_AROUND = 400  # cells from which on no further ones are looked for
_KEPT = 512  # programs that are kept for later questions


class LocalPrograms:
    """Programs for the parts of patterns; ``matrix`` holds independent relations between all cells."""

    def __init__(self, matrix: Sparse) -> None:
        self.rows = sparse.csr_array(matrix)
        self.columns = sparse.csc_array(matrix)
        self._known: dict[bytes, DeviationProgram] = {}

    def tied(self, cell: int, suppressed: Mask) -> Ints | None:
        """The suppressed cells that relations tie to a cell, with itself; None where they are many."""
        seen, rows = {cell}, set[int]()
        waiting = [cell]
        while waiting:
            waiting.extend(self._beside(waiting.pop(), suppressed, seen, rows))
            if len(seen) > _MOST:
                return None
        return np.array(sorted(seen), dtype=np.int64)

    def near(self, cell: int, allowed: Mask) -> Ints:
        """The allowed cells around a cell, ring by ring until they are some hundred."""
        seen, rows = {cell}, set[int]()
        ring = [cell]
        while ring and len(seen) < _AROUND:
            ring = [c for one in ring for c in self._beside(one, allowed, seen, rows)]
        return np.array(sorted(seen), dtype=np.int64)

    def _beside(self, cell: int, mask: Mask, seen: set[int], rows: set[int]) -> list[int]:
        """The cells of a mask in the relations of a cell, without those seen; both sets take what is new."""
        fresh: list[int] = []
        span = slice(self.columns.indptr[cell], self.columns.indptr[cell + 1])
        for row in self.columns.indices[span].tolist():
            if row in rows:
                continue
            rows.add(row)
            others = self.rows.indices[self.rows.indptr[row] : self.rows.indptr[row + 1]]
            more = [c for c in others[mask[others]].tolist() if c not in seen]
            seen.update(more)
            fresh.extend(more)
        return fresh

    def program(self, cells: Ints) -> DeviationProgram:
        key = cells.tobytes()
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            part = self.columns[:, cells].tocsr()
            known = DeviationProgram(part[np.flatnonzero(np.diff(part.indptr))])
            self._known[key] = known
        return known


class FewCells:
    """A program of few columns: the cells of a mask, in the relations that they have part in."""

    def __init__(self, matrix: Sparse, mask: Mask) -> None:
        self.mask = mask
        self.cells = np.flatnonzero(mask)
        # A question that goes on from the last one takes time in proportion to the cells.
        self.weight = 1 + self.cells.size // _SMALL
        part = matrix[:, self.cells].tocsr()
        rows, certain = independent_part(part)
        self.program = DeviationProgram(part[rows], independent=certain)
        self.every = matrix[rows].T.tocsr()
