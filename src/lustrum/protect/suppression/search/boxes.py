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

from lustrum.model.arrays import Array, Floats, Ints, Mask
from lustrum.numeric.compiled import compiled
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


@compiled
def best_box(  # pragma: no cover
    cell: int,
    coords: Array,
    strides: Array,
    amount_up: float,
    amount_down: float,
    cost: Array,
    count: Array,
    up: Array,
    down: Array,
    axis_first: Array,
    move_first: Array,
    entry_first: Array,
    entry_place: Array,
    entry_sign: Array,
    most: int,
    cells: Array,
    signs: Array,
    best_cells: Array,
    best_signs: Array,
) -> int:
    """The cheapest product of moves along the axes that can carry both amounts; gives its size, or 0.

    Moves of category ``c`` of axis ``k`` are those from ``move_first[axis_first[k] + c]`` on; the entries of
    a move are its categories and signs, the category itself first. A partial product is given up when it
    costs as much as the best whole one. At most ``most`` partial products are looked at.
    """
    axes = coords.size
    widest = cells.shape[1]
    size = np.zeros(axes + 1, np.int64)
    price = np.zeros(axes + 1, np.float64)
    turn = np.zeros(axes + 1, np.int64)
    cells[0, 0], signs[0, 0], size[0] = cell, 1, 1
    best, best_size, looked = np.inf, 0, 0
    # Moves that are cheap for the cell itself come first; those that its own line rules out do not come.
    longest = 0
    for k in range(axes):
        slot = axis_first[k] + coords[k]
        longest = max(longest, move_first[slot + 1] - move_first[slot])
    ranked = np.zeros((axes, longest), np.int64)
    usable = np.zeros(axes, np.int64)
    for k in range(axes):
        slot = axis_first[k] + coords[k]
        keys = np.full(move_first[slot + 1] - move_first[slot], np.inf)
        for i in range(keys.size):
            move = move_first[slot] + i
            key = 0.0
            for e in range(entry_first[move] + 1, entry_first[move + 1]):
                other = cell + (entry_place[e] - coords[k]) * strides[k]
                rise, fall = (
                    (up[other], down[other]) if entry_sign[e] > 0 else (down[other], up[other])
                )
                if rise < amount_up or fall < amount_down:
                    key = np.inf
                    break
                key += cost[other] if count[other] == 0 else 0.0
            keys[i] = key
            usable[k] += key < np.inf
        order = np.argsort(keys, kind="mergesort")
        for i in range(keys.size):
            ranked[k, i] = move_first[slot] + order[i]
    depth = 0
    while depth >= 0:
        if turn[depth] >= usable[depth] or looked >= most:
            depth -= 1
            continue
        move = ranked[depth, turn[depth]]
        turn[depth] += 1
        looked += 1
        first, last = entry_first[move], entry_first[move + 1]
        n = size[depth]
        if n * (last - first) > widest:
            continue
        total = price[depth]
        fits = True
        m = n
        for k in range(n):
            cells[depth + 1, k], signs[depth + 1, k] = cells[depth, k], signs[depth, k]
        for e in range(first + 1, last):
            shift = (entry_place[e] - coords[depth]) * strides[depth]
            for k in range(n):
                other = cells[depth, k] + shift
                sign = signs[depth, k] * entry_sign[e]
                if sign > 0:
                    fits = up[other] >= amount_up and down[other] >= amount_down
                else:
                    fits = down[other] >= amount_up and up[other] >= amount_down
                if not fits:
                    break
                if count[other] == 0:
                    total += cost[other]
                    if total >= best:
                        fits = False
                        break
                cells[depth + 1, m], signs[depth + 1, m] = other, sign
                m += 1
            if not fits:
                break
        if not fits:
            continue
        if depth + 1 == axes:
            best, best_size = total, m
            for k in range(m):
                best_cells[k], best_signs[k] = cells[axes, k], signs[axes, k]
            if best <= 0.0:
                return int(best_size)
            continue
        size[depth + 1], price[depth + 1] = m, total
        depth += 1
        turn[depth] = 0
    return int(best_size)
