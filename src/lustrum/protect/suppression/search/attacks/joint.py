"""Witnesses that stand for many tasks at once.

A deviation within all attacker bounds shows for every cell that it moves far enough that the cell is protected,
and the opposite deviation, as far as it is within the bounds, shows the other direction. So a handful of
deviations usually fulfils all tasks. When a cell is about to be published, each is bent to one that does not
move it; only what that loses is looked for by linear programs, first for all cells together, then for single
ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lustrum.model.arrays import Array, Floats, Ints, Mask, Sparse
from lustrum.numeric.compiled import compiled_if_large
from lustrum.numeric.solve.deviations import DeviationProgram
from lustrum.numeric.solve.products import cleared, power_of_two
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.attacks.attack import AttackReason
from lustrum.protect.suppression.search.attacks.cuts import Needs
from lustrum.protect.suppression.search.attacks.space import fixed_order, independent_part
from lustrum.protect.suppression.search.attacks.tasks import OUTSIDER, Tasks

_NEARLY = 1e-7  # a level counts as reached up to this share; the audit decides without it
_MORE = 1.5  # joint deviations go further than the level, so that they can be bent
_TOGETHER = 3  # programs in a row that help no lacking cell, before single ones
_IN_VAIN = 6  # cells aimed at in a row without success
_PARTNERS = 3  # witnesses that another is added to, at most
_WIDE = 1e4  # common units by which a cell may move in a program
_MANY = 8  # witnesses of one attacker from which on those without use are dropped
_SPARE = 1.2  # columns of a program for each that can move, at most
_UNEVEN = 0.8090169943749475  # sums of witnesses are uneven, so that moves hardly cancel out
_TINY = 1e-9
_TIED = 1e-9  # moves that differ by a smaller share are the same
_BITS = 26  # of the share of a level; shares that differ by less are the same
_LONGEST = 1e12  # factor of a witness that moves nothing


@dataclass(frozen=True, eq=False)
class AttackerView:
    """What one attacker knows, and what must be kept from it; all by places among the cells of a search."""

    view: int
    up: Floats
    down: Floats
    targets: Ints
    upper: Floats
    lower: Floats
    sliding: Floats


class _Asked:
    """A program with some of the places and the relations that they need."""

    def __init__(self, program: DeviationProgram, mask: Mask, held: Ints, rows: Ints) -> None:
        self.program, self.mask, self.held, self._rows = program, mask, held, rows
        self._columns: Sparse = None

    def columns(self, every: Sparse) -> Sparse:
        """The same relations with all cells, turned."""
        if self._columns is None:
            self._columns = every[self._rows].T.tocsr()
        return self._columns


Pool: TypeAlias = list[Floats]  # for each attacker its witnesses, one a row
Aim: TypeAlias = Callable[[Ints, Floats], Floats]


class JointWitnesses:
    """The attackers of one problem, the cells that may move, and the program that finds deviations of them."""

    def __init__(self, tasks: Tasks, cells: Ints, needs: Needs | None = None) -> None:
        problem = tasks.problem
        self.tasks, self.cells = tasks, cells
        self.needs = Needs(tasks) if needs is None else needs
        self.known = [_known(tasks, view, cells) for view in range(-1, len(problem.views))]
        self.known = [k for k in self.known if k.targets.size]
        levels = np.concatenate([np.maximum(k.upper, k.lower) for k in self.known] or [np.ones(1)])
        # A power of two, so that programs count without rounding errors.
        self.scale = power_of_two(float(max(np.median(levels), 1.0)))
        self._every = problem.relations[fixed_order(problem.relations[:, cells])]
        self._relations = self._every[:, cells].tocsr()
        self._task = {
            (int(v), int(c), int(s)): t
            for t, (v, c, s) in enumerate(zip(tasks.view, tasks.cell, tasks.sign, strict=True))
        }
        # Each kind of bounds has a program of its own, so that questions go on from bounds like their own.
        self._asked: dict[bool, _Asked] = {}
        self._last: dict[int, int] = {}
        self._culprit: dict[int, tuple[int, int]] = {}
        self.programs = 0

    def nothing(self) -> Pool:
        """No witness for any attacker."""
        return [np.zeros((0, self.cells.size)) for _ in self.known]

    def aimed(self, pool: Pool, aim: Aim, luck: np.random.Generator) -> Pool:
        """The pool with more witnesses where tasks lack one, as far as plain aiming finds them.

        ``aim`` gives a deviation that moves some places about as asked for. It is tried for all lacking cells
        together, then for one after the other.
        """
        out: Pool = []
        for known, rows in zip(self.known, pool, strict=True):
            high, low = self._reach(known, rows)
            lack = np.flatnonzero(_lacking(known, high, low))
            level = _MORE * np.maximum(np.maximum(known.upper, known.lower), known.sliding / 2)
            sign = np.where(luck.random(level.size) < 0.5, 1.0, -1.0)
            tries = [lack] * (lack.size > 1) + [lack[k : k + 1] for k in range(lack.size)]
            in_vain, more = 0, []
            for some in tries:
                lacks = _lacking(known, high, low, each=True)
                some = some[_lacking(known, high, low)[some]]
                if not some.size or in_vain >= _IN_VAIN:
                    continue
                row = aim(known.targets[some], sign[some] * level[some])
                rise, fall = self._reach(known, row[None])
                rise, fall = np.maximum(high, rise), np.maximum(low, fall)
                helps = _lacking(known, rise, fall, each=True).sum() < lacks.sum()
                in_vain = 0 if helps else in_vain + 1
                if helps:
                    more.append(row)
                    high, low = rise, fall
            witnesses = np.concatenate([rows, np.array(more)]) if more else rows
            if more:
                witnesses = self._few(known, witnesses)
            out.append(witnesses)
        return out

    def bent(self, pool: Pool, cell: int, direction: Floats, shut: Mask) -> Pool:
        """The same witnesses changed so that they do not move a cell, nor any that is published."""
        out = []
        for rows in pool:
            witnesses = rows - np.outer(rows[:, cell], direction)
            witnesses[:, shut] = 0.0
            out.append(witnesses)
        return out

    def completed(
        self, pool: Pool, shut: Mask, luck: np.random.Generator, cell: int = -1
    ) -> Pool | None:
        """The pool with more witnesses where tasks lack one; None where a task cannot be fulfilled.

        ``cell`` is the place that is about to be published, if it is a single one: the target that could
        not do without it before is looked at first.
        """
        out: Pool = []
        found: list[Floats] = []
        for known, rows in zip(self.known, pool, strict=True):
            witnesses = self._completed(known, rows, shut, luck, cell, found)
            if witnesses is None:
                return None
            out.append(witnesses)
        return out

    def _completed(
        self,
        known: AttackerView,
        rows: Floats,
        shut: Mask,
        luck: np.random.Generator,
        cell: int,
        found: list[Floats],
    ) -> Floats | None:
        high, low = self._reach(known, rows)
        lack = _lacking(known, high, low)
        if not lack.any():
            return rows
        limits = self._limits(known, shut)
        more: list[Floats] = []
        for row in found:
            # What programs found for attackers before this one may do for it too.
            lacks = _lacking(known, high, low, each=True)
            rise, fall = self._reach(known, row[None])
            rise, fall = np.maximum(high, rise), np.maximum(low, fall)
            if _lacking(known, rise, fall, each=True).sum() < lacks.sum():
                high, low = rise, fall
                more.append(row)
        lack = _lacking(known, high, low)

        def met(row: Floats) -> None:
            nonlocal high, low, lack
            rise, fall = self._reach(known, row[None])
            high, low = np.maximum(high, rise), np.maximum(low, fall)
            lack = _lacking(known, high, low)
            more.append(row)
            found.append(row)

        ends = int(_lacking(known, high, low, each=True).sum())
        in_vain = turn = 0
        while lack.any():
            # The cell that lacks most is the one that most likely fails, which ends the matter.
            view, target_index = self._culprit.get(cell, (known.view, -1)) if turn == 0 else (0, -1)
            if target_index < 0 or view != known.view or not lack[target_index]:
                target_index = _worst(known, lack, high, low)
            for way in (1.0, -1.0):
                if not lack[target_index] or not self._needed(known, target_index, way, high, low):
                    continue
                weight = np.zeros(self.cells.size)
                weight[known.targets[target_index]] = way
                met(self._ask(weight, *limits))
                end, level = (high, known.upper) if way > 0 else (low, known.lower)
                if end[target_index] < level[target_index] * (1 - _NEARLY):
                    self._learn(known, target_index, int(way), limits)
                    self._culprit[cell] = known.view, target_index
                    return None
            if lack[target_index]:
                return None
            if in_vain >= _TOGETHER or lack.sum() < 2:
                continue
            # A deviation that is as far within the bounds as its opposite shows both directions at once.
            both_ways = turn % 2 == 0
            sign = np.where(high < known.upper * (1 - _NEARLY), 1.0, -1.0)
            if both_ways or turn % 4 == 3:
                sign = np.where(luck.random(sign.size) < 0.5, 1.0, -1.0)
            row = self._together(known, lack, sign, limits, both_ways)
            rise, fall = self._reach(known, row[None])
            rise, fall = np.maximum(high, rise), np.maximum(low, fall)
            left = int(_lacking(known, rise, fall, each=True).sum())
            in_vain, turn = (in_vain + 1 if left == ends else 0), turn + 1
            if left < ends:
                ends = left
                met(row)
        witnesses = np.concatenate([rows, np.array(more)])
        return self._few(known, witnesses)

    def _needed(
        self, known: AttackerView, target_index: int, sign: float, high: Floats, low: Floats
    ) -> bool:
        wide = known.sliding[target_index] > 0
        if sign > 0:
            return bool(wide or high[target_index] < known.upper[target_index] * (1 - _NEARLY))
        return bool(wide or low[target_index] < known.lower[target_index] * (1 - _NEARLY))

    def _together(
        self,
        known: AttackerView,
        lack: Mask,
        sign: Floats,
        limits: tuple[Floats, Floats],
        narrow: bool,
    ) -> Floats:
        """One deviation that moves as many lacking cells as possible, none further than it needs."""
        limits = _narrow(limits) if narrow else limits
        some = known.targets[lack]
        level = np.maximum(known.upper, known.lower)[lack]
        level = np.maximum(level, known.sliding[lack] / 2) / self.scale
        low, high = limits[0].copy(), limits[1].copy()
        low[some] = np.maximum(low[some], -_MORE * level)
        high[some] = np.minimum(high[some], _MORE * level)
        weight = np.zeros(self.cells.size)
        weight[some] = sign[lack] / np.maximum(level, _TINY)
        return self._ask(weight, low, high, narrow)

    def _ask(self, weight: Floats, low: Floats, high: Floats, narrow: bool = False) -> Floats:
        """The deviation with the most weight, by a program that has hardly more columns than can move."""
        self.programs += 1
        free = low < high
        asked = self._asked.get(narrow)
        if (
            asked is None
            or bool((free & ~asked.mask).any())
            or asked.held.size > _SPARE * free.sum()
        ):
            held = np.flatnonzero(free)
            rows, certain = independent_part(self._relations[:, held])
            program = DeviationProgram(self._relations[rows][:, held], independent=certain)
            asked = self._asked[narrow] = _Asked(program, free, held, rows)
        held = asked.held
        out = np.zeros(self.cells.size)
        out[held] = asked.program.corner(weight[held], low[held], high[held]) * self.scale
        return out

    def _learn(
        self, known: AttackerView, target_index: int, sign: int, limits: tuple[Floats, Floats]
    ) -> None:
        """Keep the reason why the last program did not move a target far enough."""
        asked, target = self._asked[False], int(known.targets[target_index])
        cell = int(self.cells[target])
        column = int(np.searchsorted(asked.held, target))
        low, high = limits[0][asked.held], limits[1][asked.held]
        level = (known.upper if sign > 0 else known.lower)[target_index] / self.scale
        limit = float(min(2.0 * level, high[column] if sign > 0 else -low[column]))
        question = column, sign, low, high, limit
        _, weights = asked.program.reasons(asked.columns(self._every), cell, question)
        cells = np.flatnonzero(weights)
        task = self._task[known.view, cell, sign]
        self.needs.learn(AttackReason(task, cells, weights[cells]))

    def _limits(self, known: AttackerView, shut: Mask) -> tuple[Floats, Floats]:
        low = -np.minimum(known.down / self.scale, _WIDE)
        high = np.minimum(known.up / self.scale, _WIDE)
        low[shut], high[shut] = 0.0, 0.0
        return low, high

    def _reach(self, known: AttackerView, rows: Floats) -> tuple[Floats, Floats]:
        """How far up and down some witness moves each target, when each is stretched as far as bounds allow."""
        high, low = np.zeros(known.targets.size), np.zeros(known.targets.size)
        _furthest(np.ascontiguousarray(rows), known.up, known.down, known.targets, high, low)
        return high, low

    def _few(self, known: AttackerView, rows: Floats) -> Floats:
        """The same without witnesses that are of no use, looked at only when many have come since last time."""
        if rows.shape[0] <= max(_MANY, 2 * self._last.get(known.view, 0)):
            return rows
        witnesses = self._merged(known, self._useful(known, rows))
        self._last[known.view] = witnesses.shape[0]
        return witnesses

    def _useful(self, known: AttackerView, rows: Floats) -> Floats:
        """The witnesses that are needed, the most useful first."""
        ends = [self._reach(known, row[None]) for row in rows]
        upper, lower = known.upper * (1 - _NEARLY), known.lower * (1 - _NEARLY)
        counts = [(rise >= upper).sum() + (fall >= lower).sum() for rise, fall in ends]
        high, low = np.zeros(known.targets.size), np.zeros(known.targets.size)
        lack = int(_lacking(known, high, low, each=True).sum())
        useful = []
        for i in np.argsort(-np.array(counts), kind="stable").tolist():
            rise, fall = np.maximum(high, ends[i][0]), np.maximum(low, ends[i][1])
            left = int(_lacking(known, rise, fall, each=True).sum())
            more = (rise > high * (1 + _NEARLY)) | (fall > low * (1 + _NEARLY))
            wide = bool(((known.sliding > 0) & more).any())
            if left < lack or wide:
                useful.append(i)
                high, low, lack = rise, fall, left
        return rows[sorted(useful)]

    def _merged(self, known: AttackerView, rows: Floats) -> Floats:
        """Fewer witnesses: sums of two that show all that the two show, where there is room enough."""
        merged: list[Floats] = []
        for row in rows:
            for index, other in list(enumerate(merged))[:_PARTNERS]:
                both = np.stack([row, other])
                lack = _lacking(known, *self._reach(known, both), each=True)
                sums = [row + times * other for times in (_UNEVEN, -_UNEVEN)]
                ends = [_lacking(known, *self._reach(known, s[None]), each=True) for s in sums]
                good = [s for s, end in zip(sums, ends, strict=True) if not (end & ~lack).any()]
                if good:
                    merged[index] = good[0]
                    break
            else:
                merged.append(row)
        return np.array(merged)

    def supports(self, pool: Pool, tasks: Tasks) -> list[Ints]:
        """For each task the cells that its witness moves."""
        places = {k.view: (k, rows) for k, rows in zip(self.known, pool, strict=True)}
        out = []
        for cell, sign, view in zip(
            tasks.cell.tolist(), tasks.sign.tolist(), tasks.view.tolist(), strict=True
        ):
            known, rows = places[view]
            ahead, back = _stretches(known, rows)
            moved = rows[:, int(np.searchsorted(self.cells, cell))]
            rise = np.maximum(moved * ahead, -moved * back)
            fall = np.maximum(-moved * ahead, moved * back)
            picks = {_furthest_of(end) for end, s in ((rise, 1), (fall, -1)) if sign in (s, 0)}
            used = (np.abs(rows[sorted(picks)]) > _TINY).any(axis=0)
            out.append(self.cells[used])
        return out


def _furthest_of(ends: Floats) -> int:
    """The first of the witnesses that move a cell furthest, up to rounding."""
    return int(np.argmax(ends >= ends.max() * (1.0 - _TIED)))


def _narrow(limits: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The limits between which the opposite of a deviation is allowed too."""
    room = np.minimum(-limits[0], limits[1])
    return -room, room


def _stretches(known: AttackerView, rows: Floats) -> tuple[Floats, Floats]:
    """By which factor each witness, and its opposite, can be multiplied within the bounds."""
    pairs = [_factors(row, known.up, known.down) for row in np.ascontiguousarray(rows)]
    ends = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


@compiled_if_large
def _factors(row: Array, up: Array, down: Array) -> Any:  # pragma: no cover
    ahead = back = _LONGEST
    for cell in range(row.size):
        move = row[cell]
        if move > 1e-9:
            ahead = min(ahead, up[cell] / move)
            back = min(back, down[cell] / move)
        elif move < -1e-9:
            ahead = min(ahead, down[cell] / -move)
            back = min(back, up[cell] / -move)
    return ahead, back


@compiled_if_large
def _furthest(
    rows: Array, up: Array, down: Array, targets: Array, high: Array, low: Array
) -> None:  # pragma: no cover
    for i in range(rows.shape[0]):
        ahead, back = _factors(rows[i], up, down)
        for target_index in range(targets.size):
            move = rows[i, targets[target_index]]
            high[target_index] = max(high[target_index], move * ahead, -move * back)
            low[target_index] = max(low[target_index], -move * ahead, move * back)


def _lacking(known: AttackerView, high: Floats, low: Floats, *, each: bool = False) -> Mask:
    """Which targets lack something; with ``each`` the two directions and the width count apart."""
    enough = 1.0 - _NEARLY
    ends = (
        high < known.upper * enough,
        low < known.lower * enough,
        high + low < known.sliding * enough,
    )
    return np.concatenate(ends) if each else ends[0] | ends[1] | ends[2]


def _worst(known: AttackerView, lack: Mask, high: Floats, low: Floats) -> int:
    """The lacking target that reaches the least share of what it needs."""
    share = np.full(lack.size, np.inf)
    for end, level in ((high, known.upper), (low, known.lower), (high + low, known.sliding)):
        share = np.where(level > 0, np.minimum(share, end / np.maximum(level, _TINY)), share)
    return int(np.argmin(np.where(lack, cleared(share, _BITS), np.inf)))


def _known(tasks: Tasks, view: int, cells: Ints) -> AttackerView:
    problem: SuppressionProblem = tasks.problem
    up, down = tasks.rooms(view)
    mine = tasks.view == view
    targets = np.unique(tasks.cell[mine])
    positions = np.searchsorted(cells, targets)
    assert view >= OUTSIDER
    # A contributor to a cell needs to be kept from what others contribute to it, which may be less.
    _, lower, upper, sliding = problem.levels_against(
        None if view == OUTSIDER else problem.views[view]
    )
    return AttackerView(
        view,
        up[cells],
        down[cells],
        positions,
        upper[targets].astype(np.float64),
        lower[targets].astype(np.float64),
        sliding[targets].astype(np.float64),
    )
