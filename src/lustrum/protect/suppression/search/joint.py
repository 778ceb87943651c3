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

from lustrum.arrays import Floats, Ints, Mask
from lustrum.compiled import compiled
from lustrum.protect.suppression.problem import SuppressionProblem
from lustrum.protect.suppression.search.space import in_fixed_order, independent_part
from lustrum.protect.suppression.search.tasks import OUTSIDER, Tasks
from lustrum.solve.deviations import DeviationProgram

__all__ = ["JointWitnesses", "Known"]


_NEARLY = 1e-7  # a level counts as reached up to this share; the audit decides without it
_MORE = 1.5  # joint deviations go further than the level, so that they can be bent
_TOGETHER = 3  # programs in a row that help no lacking cell, before single ones
_IN_VAIN = 6  # cells aimed at in a row without success
_PARTNERS = 3  # witnesses that another is added to, at most
_WIDE = 1e4  # common units by which a cell may move in a program
_MANY = 8  # witnesses of one attacker from which on those without use are dropped
_SPARE = 1.5  # columns of a program for each that can move, at most
_UNEVEN = 0.8090169943749475  # sums of witnesses are uneven, so that moves hardly cancel out
_TINY = 1e-9
_LONGEST = 1e12  # factor of a witness that moves nothing


@dataclass(frozen=True, eq=False)
class Known:
    """What one attacker knows, and what must be kept from it; all by places among the cells of a search."""

    view: int
    up: Floats
    down: Floats
    targets: Ints
    upper: Floats
    lower: Floats
    sliding: Floats


Pool: TypeAlias = list[Floats]  # for each attacker its witnesses, one a row
Aim: TypeAlias = Callable[[Ints, Floats], Floats]


class JointWitnesses:
    """The attackers of one problem, the cells that may move, and the program that finds deviations of them."""

    def __init__(self, tasks: Tasks, cells: Ints) -> None:
        problem = tasks.problem
        self.cells = cells
        self.known = [_known(tasks, view, cells) for view in range(-1, len(problem.views))]
        self.known = [k for k in self.known if k.targets.size]
        levels = np.concatenate([np.maximum(k.upper, k.lower) for k in self.known] or [np.ones(1)])
        self.scale = float(max(np.median(levels), 1.0))
        self._relations = in_fixed_order(problem.relations[:, cells])
        self._held = np.zeros(0, dtype=np.int64)
        self._mask = np.zeros(cells.size, dtype=np.bool_)
        self._program: DeviationProgram | None = None
        self._last: dict[int, int] = {}
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
            made = np.concatenate([rows, np.array(more)]) if more else rows
            if more:
                made = self._few(known, made)
            out.append(made)
        return out

    def bent(self, pool: Pool, cell: int, direction: Floats, shut: Mask) -> Pool:
        """The same witnesses changed so that they do not move a cell, nor any that is published."""
        out = []
        for rows in pool:
            made = rows - np.outer(rows[:, cell], direction)
            made[:, shut] = 0.0
            out.append(made)
        return out

    def completed(self, pool: Pool, shut: Mask, luck: np.random.Generator) -> Pool | None:
        """The pool with more witnesses where tasks lack one; None where a task cannot be fulfilled."""
        out: Pool = []
        for known, rows in zip(self.known, pool, strict=True):
            made = self._completed(known, rows, shut, luck)
            if made is None:
                return None
            out.append(made)
        return out

    def _completed(
        self, known: Known, rows: Floats, shut: Mask, luck: np.random.Generator
    ) -> Floats | None:
        high, low = self._reach(known, rows)
        lack = _lacking(known, high, low)
        if not lack.any():
            return rows
        limits = self._limits(known, shut)
        more: list[Floats] = []

        def met(row: Floats) -> None:
            nonlocal high, low, lack
            rise, fall = self._reach(known, row[None])
            high, low = np.maximum(high, rise), np.maximum(low, fall)
            lack = _lacking(known, high, low)
            more.append(row)

        ends = int(_lacking(known, high, low, each=True).sum())
        in_vain = turn = 0
        while in_vain < _TOGETHER and lack.sum() > 1:
            # A deviation that is as far within the bounds as its opposite shows both directions at once.
            both_ways = turn % 2 == 0
            sign = np.where(high < known.upper * (1 - _NEARLY), 1.0, -1.0)
            if both_ways or turn % 4 == 3:
                sign = np.where(luck.random(sign.size) < 0.5, 1.0, -1.0)
            row = self._together(known, lack, sign, _narrow(limits) if both_ways else limits)
            rise, fall = self._reach(known, row[None])
            rise, fall = np.maximum(high, rise), np.maximum(low, fall)
            left = int(_lacking(known, rise, fall, each=True).sum())
            in_vain, turn = (in_vain + 1 if left == ends else 0), turn + 1
            if left < ends:
                ends = left
                met(row)
        for place in np.flatnonzero(lack).tolist():
            for way in (1.0, -1.0):
                if not lack[place]:
                    break
                if not self._needed(known, place, way, high, low):
                    continue
                weight = np.zeros(self.cells.size)
                weight[known.targets[place]] = way
                met(self._ask(weight, *limits))
            if lack[place]:
                return None
        made = np.concatenate([rows, np.array(more)])
        return self._few(known, made)

    def _needed(self, known: Known, place: int, sign: float, high: Floats, low: Floats) -> bool:
        wide = known.sliding[place] > 0
        if sign > 0:
            return bool(wide or high[place] < known.upper[place] * (1 - _NEARLY))
        return bool(wide or low[place] < known.lower[place] * (1 - _NEARLY))

    def _together(
        self, known: Known, lack: Mask, sign: Floats, limits: tuple[Floats, Floats]
    ) -> Floats:
        """One deviation that moves as many lacking cells as possible, none further than it needs."""
        some = known.targets[lack]
        level = np.maximum(known.upper, known.lower)[lack]
        level = np.maximum(level, known.sliding[lack] / 2) / self.scale
        low, high = limits[0].copy(), limits[1].copy()
        low[some] = np.maximum(low[some], -_MORE * level)
        high[some] = np.minimum(high[some], _MORE * level)
        weight = np.zeros(self.cells.size)
        weight[some] = sign[lack] / np.maximum(level, _TINY)
        return self._ask(weight, low, high)

    def _ask(self, weight: Floats, low: Floats, high: Floats) -> Floats:
        """The deviation with the most weight, by a program that has hardly more columns than can move."""
        self.programs += 1
        free = low < high
        if (
            self._program is None
            or bool((free & ~self._mask).any())
            or self._held.size > _SPARE * free.sum()
        ):
            self._mask, self._held = free, np.flatnonzero(free)
            part = self._relations[:, self._held].tocsr()
            self._program = DeviationProgram(independent_part(part))
        held = self._held
        out = np.zeros(self.cells.size)
        out[held] = self._program.most(weight[held], low[held], high[held]) * self.scale
        return out

    def _limits(self, known: Known, shut: Mask) -> tuple[Floats, Floats]:
        low = -np.minimum(known.down / self.scale, _WIDE)
        high = np.minimum(known.up / self.scale, _WIDE)
        low[shut], high[shut] = 0.0, 0.0
        return low, high

    def _reach(self, known: Known, rows: Floats) -> tuple[Floats, Floats]:
        """How far up and down some witness moves each target, when each is stretched as far as bounds allow."""
        if not rows.shape[0]:
            nothing = np.zeros(known.targets.size)
            return nothing, nothing.copy()
        ahead, back = _stretches(known, rows)
        moved = rows[:, known.targets]
        forward, backward = moved * ahead[:, None], moved * back[:, None]
        return (
            np.maximum(forward, -backward).max(axis=0),
            np.maximum(-forward, backward).max(axis=0),
        )

    def _few(self, known: Known, rows: Floats) -> Floats:
        """The same without witnesses that are of no use, looked at only when many have come since last time."""
        if rows.shape[0] <= max(_MANY, 2 * self._last.get(known.view, 0)):
            return rows
        made = self._merged(known, self._useful(known, rows))
        self._last[known.view] = made.shape[0]
        return made

    def _useful(self, known: Known, rows: Floats) -> Floats:
        """The witnesses that are needed, the most useful first."""
        ends = [self._reach(known, row[None]) for row in rows]
        upper, lower = known.upper * (1 - _NEARLY), known.lower * (1 - _NEARLY)
        counts = [(rise >= upper).sum() + (fall >= lower).sum() for rise, fall in ends]
        high, low = np.zeros(known.targets.size), np.zeros(known.targets.size)
        lack = int(_lacking(known, high, low, each=True).sum())
        kept = []
        for i in np.argsort(-np.array(counts), kind="stable").tolist():
            rise, fall = np.maximum(high, ends[i][0]), np.maximum(low, ends[i][1])
            left = int(_lacking(known, rise, fall, each=True).sum())
            more = (rise > high * (1 + _NEARLY)) | (fall > low * (1 + _NEARLY))
            wide = bool(((known.sliding > 0) & more).any())
            if left < lack or wide:
                kept.append(i)
                high, low, lack = rise, fall, left
        return rows[sorted(kept)]

    def _merged(self, known: Known, rows: Floats) -> Floats:
        """Fewer witnesses: sums of two that show all that the two show, where there is room enough."""
        made: list[Floats] = []
        for row in rows:
            for place, other in list(enumerate(made))[:_PARTNERS]:
                both = np.stack([row, other])
                lack = _lacking(known, *self._reach(known, both), each=True)
                sums = [row + times * other for times in (_UNEVEN, -_UNEVEN)]
                ends = [_lacking(known, *self._reach(known, s[None]), each=True) for s in sums]
                good = [s for s, end in zip(sums, ends, strict=True) if not (end & ~lack).any()]
                if good:
                    made[place] = good[0]
                    break
            else:
                made.append(row)
        return np.array(made)

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
            picks = {int(np.argmax(end)) for end, s in ((rise, 1), (fall, -1)) if sign in (s, 0)}
            used = (np.abs(rows[sorted(picks)]) > _TINY).any(axis=0)
            out.append(self.cells[used])
        return out


def _narrow(limits: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The limits between which the opposite of a deviation is allowed too."""
    room = np.minimum(-limits[0], limits[1])
    return -room, room


def _stretches(known: Known, rows: Floats) -> tuple[Floats, Floats]:
    """By which factor each witness, and its opposite, can be multiplied within the bounds."""
    ahead, back = np.full(rows.shape[0], _LONGEST), np.full(rows.shape[0], _LONGEST)
    _stretch(np.ascontiguousarray(rows), known.up, known.down, ahead, back)
    return ahead, back


@compiled
def _stretch(rows: Any, up: Any, down: Any, ahead: Any, back: Any) -> None:  # pragma: no cover
    for i in range(rows.shape[0]):
        for cell in range(rows.shape[1]):
            move = rows[i, cell]
            if move > 1e-9:
                ahead[i] = min(ahead[i], up[cell] / move)
                back[i] = min(back[i], down[cell] / move)
            elif move < -1e-9:
                ahead[i] = min(ahead[i], down[cell] / -move)
                back[i] = min(back[i], up[cell] / -move)


def _lacking(known: Known, high: Floats, low: Floats, *, each: bool = False) -> Mask:
    """Which targets lack something; with ``each`` the two directions and the width count apart."""
    enough = 1.0 - _NEARLY
    ends = (
        high < known.upper * enough,
        low < known.lower * enough,
        high + low < known.sliding * enough,
    )
    return np.concatenate(ends) if each else ends[0] | ends[1] | ends[2]


def _known(tasks: Tasks, view: int, cells: Ints) -> Known:
    problem: SuppressionProblem = tasks.problem
    up, down = tasks.rooms(view)
    mine = tasks.view == view
    targets = np.unique(tasks.cell[mine])
    place = np.searchsorted(cells, targets)
    assert view >= OUTSIDER
    return Known(
        view,
        up[cells],
        down[cells],
        place,
        problem.upper[targets].astype(np.float64),
        problem.lower[targets].astype(np.float64),
        problem.sliding[targets].astype(np.float64),
    )
