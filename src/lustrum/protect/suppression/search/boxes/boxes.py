"""Very large tables: every primary cell gets a box of cells that can move together.

Along one axis a category can rise while another falls, with their subtotals up to where the two meet; or it can
rise with all its totals. One such move for each axis, multiplied, is a deviation of the whole table: a box of
cells that rise and fall by the same amount, whatever else is in the table. The cheapest box is found by search,
cells that are suppressed already cost nothing, and every box is chosen anew a few times after the others are
there. Then one secondary cell after the other is forbidden, and all boxes that use it are chosen anew; the
cheaper pattern is kept. The boxes are witnesses in whole numbers, so the audit is plain arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.protect.suppression.problem import AxisSums, SuppressionProblem

_MOVES = 40  # moves tried for each category
_WIDEST = 4096  # cells of one box
_LOOKS = 20_000  # partial boxes looked at for one cell
_PASSES = 4
_EACH = 40  # boxes looked for after the passes, for each primary cell
_TURNS = 3
_USERS = 24  # boxes that are chosen anew together
_PARTS = 8  # boxes that may share the level of one cell


@dataclass(frozen=True, eq=False)
class Deviations:
    """Deviations of the table in whole numbers: number i moves ``cells`` by ``amounts`` from ``first[i]`` on.

    These show how much higher the cell ``target[i]`` can be; moved by ``lower`` instead, how much lower.
    """

    target: Ints
    first: Ints
    cells: Ints
    amounts: Ints
    lower: Ints


@dataclass(frozen=True, eq=False)
class Boxed:
    """The pattern of all boxes, the deviations that prove it, and the primary cells without one."""

    suppressed: Mask
    deviations: Deviations
    without: Ints
    steps: int


def axis_moves(axis: AxisSums, weight: Floats) -> list[list[list[tuple[int, int]]]] | None:
    """For each category its moves, cheap ones first; None where the categories do not nest.

    >>> axis_moves(AxisSums(3, ((2, (0, 1)),)), np.ones(3))[0]
    [[(0, 1), (1, -1)], [(0, 1), (2, 1)]]
    """
    parent = np.full(axis.size, -1, dtype=np.int64)
    children: dict[int, tuple[int, ...]] = {}
    for total, parts in axis.sums:
        if not parts or total in children:
            return None
        children[total] = parts
        for part in parts:
            if parent[part] >= 0:
                return None
            parent[part] = total
    above = [_above(parent, c) for c in range(axis.size)]
    leaves = [c for c in range(axis.size) if c not in children]
    moves: list[list[list[tuple[int, int]]]] = []
    for category in range(axis.size):
        inside_leaves = [leaf for leaf in leaves if category in above[leaf]]
        inside_leaves.sort(key=lambda leaf: (len(above[leaf]), weight[leaf], leaf))
        category_moves = []
        for leaf in inside_leaves[:3]:
            mine = above[leaf]
            category_moves.append([(c, 1) for c in mine])
            for other in leaves:
                theirs = above[other]
                if category in theirs or other == leaf:
                    continue
                met = set(mine) & set(theirs)
                if not met:
                    continue  # no total holds the two together
                category_moves.append(
                    [(c, 1) for c in mine if c not in met]
                    + [(c, -1) for c in theirs if c not in met]
                )
        category_moves = [
            sorted(move, key=lambda e: (e[0] != category, e[0])) for move in category_moves
        ]
        category_moves.sort(
            key=lambda move: (len(move), math.fsum(weight[c] for c, _ in move), move)
        )
        if not children:
            # Nothing adds up along this axis, so a category moves alone.
            category_moves = [[(category, 1)]]
        moves.append(category_moves[:_MOVES])
    return moves


def _above(parent: Ints, category: int) -> list[int]:
    chain = [category]
    while parent[chain[-1]] >= 0:
        chain.append(int(parent[chain[-1]]))
    return chain


def protect_by_boxes(
    problem: SuppressionProblem, tell: Callable[[str, float, float], object]
) -> Boxed | None:
    """Boxes for all primary cells, or None where the problem is no table whose categories nest."""
    if problem.axes is None:
        return None
    shape = tuple(axis.size for axis in problem.axes)
    cost = problem.cost.reshape(shape)
    every = []
    for axis_index, axis in enumerate(problem.axes):
        rest = tuple(k for k in range(len(shape)) if k != axis_index)
        moves = axis_moves(axis, np.asarray(cost.sum(axis=rest)))
        if moves is None:
            return None
        every.append(moves)
    return _BoxSearch(problem, shape, every).run(tell)


class _BoxSearch:
    def __init__(
        self,
        problem: SuppressionProblem,
        shape: tuple[int, ...],
        moves: list[list[list[list[tuple[int, int]]]]],
    ) -> None:
        self.problem, self.shape = problem, shape
        strides = np.append(np.cumprod(np.array(shape[::-1], dtype=np.int64))[:-1][::-1], 1)
        self.strides = strides.astype(np.int64)
        self.axis_first = _from_lengths([len(m) for m in moves])[:-1]
        by_category = [m for axis in moves for m in axis]
        self.move_first = _from_lengths([len(m) for m in by_category])
        flat = [move for category in by_category for move in category]
        self.entry_first = _from_lengths([len(move) for move in flat])
        self.entry_place = np.array([c for move in flat for c, _ in move], dtype=np.int64)
        self.entry_sign = np.array([s for move in flat for _, s in move], dtype=np.int64)
        up, down = problem.room_up.copy(), problem.room_down.copy()
        for view in problem.views:
            # A cell protects others no further than every contributor finds possible.
            values = problem.values[view.cells]
            up[view.cells] = np.minimum(up[view.cells], view.high - values)
            down[view.cells] = np.minimum(down[view.cells], values - view.low)
        shut = problem.frozen | ((up <= 0) & (down <= 0))
        self.up = np.where(shut, -1, up).astype(np.float64)
        self.down = np.where(shut, -1, down).astype(np.float64)
        self.count = np.where(problem.fixed, 1, 0).astype(np.int64)
        # A hair on every cell prefers small boxes among equals.
        self.cost = problem.cost + 1e-6 * (1.0 + float(problem.cost.max(initial=0.0)))
        depth = len(shape) + 1
        self.work = np.zeros((depth, _WIDEST), np.int64), np.zeros((depth, _WIDEST), np.int64)
        self.out = np.zeros(_WIDEST, np.int64), np.zeros(_WIDEST, np.int64)
        self.boxes: dict[int, tuple[Ints, Ints, Ints]] = {}
        self.steps = 0

    def run(self, tell: Callable[[str, float, float], object]) -> Boxed:
        cells = np.flatnonzero(self.problem.primary)
        level = np.maximum(self.problem.upper, self.problem.lower)[cells]
        order = cells[np.argsort(-level, kind="stable")]
        for turn in range(1 + _PASSES):
            for cell in order.tolist():
                self._place(cell)
            tell(f"boxes {turn + 1}", self.problem.total_cost(self.count > 0), 0.0)
        self._improve(tell)
        return self._result(order)

    def _improve(self, tell: Callable[[str, float, float], object]) -> None:
        """Do without one secondary cell after the other: choose its boxes anew, and keep what is cheaper."""
        users: dict[int, set[int]] = {}
        for target, (cells, _, _) in self.boxes.items():
            for cell in cells.tolist():
                users.setdefault(cell, set()).add(target)
        end = self.steps + _EACH * len(self.boxes)
        for turn in range(_TURNS):
            secondary = np.flatnonzero((self.count > 0) & ~self.problem.fixed)
            share = self.problem.cost[secondary] / self.count[secondary]
            gained = 0.0
            for cell in secondary[np.argsort(-share, kind="stable")].tolist():
                if self.steps >= end:
                    break
                if self.count[cell]:
                    gained += self._without(cell, users)
            tell(f"boxes anew {turn + 1}", self.problem.total_cost(self.count > 0), 0.0)
            if gained <= 0.0 or self.steps >= end:
                return

    def _without(self, cell: int, users: dict[int, set[int]]) -> float:
        """Choose the boxes that use a cell anew without it; gives what that saves, 0 where nothing changes."""
        targets = sorted(users[cell])
        if len(targets) > _USERS:
            return 0.0
        old = {target: self.boxes[target] for target in targets}
        saved = math.fsum(self._take_away(box[0]) for box in old.values())
        room = self.up[cell], self.down[cell]
        self.up[cell] = self.down[cell] = -1.0
        fresh: dict[int, tuple[Ints, Ints, Ints]] = {}
        prices: list[float] = []
        spent = 0.0
        for target in targets:
            new_box = self._boxes(target)
            if new_box is None:
                spent = np.inf
                break
            fresh[target] = new_box
            prices.append(self._put(new_box[0]))
            spent = math.fsum(prices)
            if spent >= saved:
                break
        self.up[cell], self.down[cell] = room
        if spent < saved:
            for target in targets:
                for other in old[target][0].tolist():
                    users[other].discard(target)
                for other in fresh[target][0].tolist():
                    users.setdefault(other, set()).add(target)
            self.boxes.update(fresh)
            return saved - spent
        for box in fresh.values():
            self._take_away(box[0])
        for box in old.values():
            self._put(box[0])
        return 0.0

    def _take_away(self, cells: Ints) -> float:
        """Count a box less; gives the cost of the cells that no other box needs."""
        self.count[cells] -= 1
        return float(self.problem.cost[cells[self.count[cells] == 0]].sum())

    def _put(self, cells: Ints) -> float:
        """Count a box more; gives the cost of the cells that no other box needs."""
        fresh = cells[self.count[cells] == 0]
        self.count[cells] += 1
        return float(self.problem.cost[fresh].sum())

    def _place(self, cell: int) -> None:
        """Choose the boxes of one cell, after its old ones are taken away."""
        old = self.boxes.pop(cell, None)
        if old is not None:
            self.count[old[0]] -= 1
        box = self._boxes(cell)
        if box is None:
            box = old
        if box is not None:
            self.boxes[cell] = box
            self.count[box[0]] += 1

    def _boxes(self, cell: int) -> tuple[Ints, Ints, Ints] | None:
        """Cells and their moves up and down; several boxes share the level where one cannot carry it."""
        problem = self.problem
        upper, lower = self._levels(cell)
        if problem.room_up[cell] < upper or problem.room_down[cell] < lower:
            return None
        left = (upper, lower)
        moved: dict[int, tuple[int, int]] = {}
        part = 1
        touched: list[tuple[int, int, int]] = []
        while left != (0, 0) and part <= _PARTS:
            amount = (-(-upper // part), -(-lower // part))
            amount = (min(amount[0], left[0]), min(amount[1], left[1]))
            size = self._box(cell, *amount)
            if size == 0:
                part *= 2
                continue
            for other, sign in zip(
                self.out[0][:size].tolist(), self.out[1][:size].tolist(), strict=True
            ):
                high, low = moved.get(other, (0, 0))
                moved[other] = (high + sign * amount[0], low - sign * amount[1])
                rise, fall = amount if sign > 0 else amount[::-1]
                touched.append((other, rise, fall))
                self.up[other] -= rise
                self.down[other] -= fall
            left = (left[0] - amount[0], left[1] - amount[1])
        for other, rise, fall in touched:
            self.up[other] += rise
            self.down[other] += fall
        if left != (0, 0):
            return None
        where = np.array(sorted(moved), dtype=np.int64)
        amounts = np.array([moved[int(c)] for c in where], dtype=np.int64).reshape(-1, 2)
        return where, amounts[:, 0], amounts[:, 1]

    def _levels(self, cell: int) -> tuple[int, int]:
        """What to reach above and below; a sliding level is met above as far as bounds allow."""
        problem = self.problem
        upper, lower = int(problem.upper[cell]), int(problem.lower[cell])
        lack = int(problem.sliding[cell]) - upper - lower
        if lack > 0:
            more = min(lack, max(int(problem.room_up[cell]) - upper, 0))
            upper, lower = upper + more, lower + lack - more
        return upper, lower

    def _box(self, cell: int, upper: int, lower: int) -> int:
        from lustrum.protect.suppression.search.boxes.kernels import best_box

        coords = np.array(np.unravel_index(cell, self.shape), dtype=np.int64)
        self.steps += 1
        return int(
            best_box(
                cell,
                coords,
                self.strides,
                float(upper),
                float(lower),
                self.cost,
                self.count,
                self.up,
                self.down,
                self.axis_first,
                self.move_first,
                self.entry_first,
                self.entry_place,
                self.entry_sign,
                _LOOKS,
                *self.work,
                *self.out,
            )
        )

    def _result(self, order: Ints) -> Boxed:
        target = [c for c in order.tolist() if c in self.boxes]
        boxes = [self.boxes[c] for c in target]
        nothing = [np.zeros(0, dtype=np.int64)]
        deviations = Deviations(
            target=np.array(target, dtype=np.int64),
            first=_from_lengths([b[0].size for b in boxes]),
            cells=np.concatenate([b[0] for b in boxes] or nothing),
            amounts=np.concatenate([b[1] for b in boxes] or nothing),
            lower=np.concatenate([b[2] for b in boxes] or nothing),
        )
        without = np.array([c for c in order.tolist() if c not in self.boxes], dtype=np.int64)
        return Boxed(self.count > 0, deviations, without, self.steps)


def _from_lengths(lengths: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def simple_bound(problem: SuppressionProblem) -> float:
    """A lower bound without any attack: in each relation others must carry what a primary cell needs.

    What the cells suppressed in any case carry is taken off the level. Different relations may be met by the
    same cell, so what a relation takes of a cell's cost is no longer there for the next (dual ascent). A
    secondary cell needs a companion itself in relations without a primary cell; in a second ascent it takes
    over what the cheapest companion costs.
    """
    rows = [_needs(problem, row) for row in _rows_of(problem, problem.primary)]
    needs = [need for row_needs in rows for need in row_needs]
    plain = _ascent(needs, problem.cost.copy())
    if problem.unions is not None:
        return plain
    return max(plain, _ascent(needs, _with_companions(problem, needs)))


def _rows_of(problem: SuppressionProblem, cells: Mask) -> Ints:
    return np.flatnonzero(abs(problem.relations) @ cells.astype(np.int64))


def _needs(problem: SuppressionProblem, row: int) -> list[tuple[Ints, Floats]]:
    """For the primary cells of one relation: cells of which enough must be suppressed, and their weights."""
    matrix = problem.relations
    span = slice(matrix.indptr[row], matrix.indptr[row + 1])
    cells, weights = matrix.indices[span], matrix.data[span]
    out = []
    for index in np.flatnonzero(problem.primary[cells]).tolist():
        cell = cells[index]
        times = -weights / weights[index]
        best: tuple[float, Ints, Floats] | None = None
        for sign, level in ((1, int(problem.upper[cell])), (-1, int(problem.lower[cell]))):
            rises = sign * times > 0
            room = np.where(rises, problem.room_up[cells], problem.room_down[cells])
            carried = np.abs(times) * room
            carried[index] = 0.0
            side = level - float(carried[problem.fixed[cells]].sum())
            useful = problem.choice[cells] & (carried > 0)
            if side <= 0 or not bool(useful.any()):
                continue
            if best is None or side > best[0]:
                best = side, cells[useful], np.minimum(carried[useful] / side, 1.0)
        if best is not None:
            out.append((best[1], best[2]))
    return out


def _ascent(needs: list[tuple[Ints, Floats]], left: Floats) -> float:
    total = 0.0
    for cells, weights in needs:
        least = float((left[cells] / weights).min())
        if least > 0:
            left[cells] -= least * weights
            total += least
    # What rounding may have added is taken off.
    return max(total * (1.0 - 1e-9), 0.0)


def _with_companions(problem: SuppressionProblem, needs: list[tuple[Ints, Floats]]) -> Floats:
    """Costs in which useful cells carry the cost of a companion in each relation without a primary cell."""
    matrix, left = problem.relations, problem.cost.copy()
    useful = np.zeros(left.size, dtype=np.bool_)
    for cells, _ in needs:
        useful[cells] = True
    free = (abs(matrix) @ problem.fixed.astype(np.int64) == 0) & (
        abs(matrix) @ useful.astype(np.int64) == 1
    )
    for row in np.flatnonzero(free).tolist():
        cells = matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]
        cells = cells[problem.choice[cells]]
        others = cells[~useful[cells]]
        if others.size:
            least = float(left[others].min())
            left[others] -= least
            left[cells[useful[cells]]] += least
    return left
