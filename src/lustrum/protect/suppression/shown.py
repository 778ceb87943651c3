"""Ranges that a few deviations show: each stands for many cells, where a program for every cell takes too long.

A deviation that keeps all relations, moves suppressed cells only and stays within the bounds is a table that an
attacker cannot rule out. So what it reaches is possible. The deviations come from a search that is not trusted:
they are checked here against the relations and bounds of the problem.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.solve.products import sparse_product
from lustrum.numeric.structure.ragged import connected_parts
from lustrum.protect.suppression.problem import ContributorView, SuppressionProblem
from lustrum.protect.suppression.search.attacks.joint import JointWitnesses
from lustrum.protect.suppression.search.attacks.tasks import Tasks

_MUCH = 1_000_000  # targets times cells tied to them from which on deviations are shared
_EVEN = 1e-9  # by how much of its largest move a deviation may miss a relation


def shown_ends(
    problem: SuppressionProblem, suppressed: Mask, targets: Ints, view: ContributorView | None
) -> tuple[Floats, Floats] | None:
    """How far up and down some deviations move each target; None where programs for single cells are quicker.

    Deviations show what real numbers can be, so there are none for counts.
    """
    if problem.whole or _ties(problem, suppressed, targets) < _MUCH:
        return None
    known = as_known(problem, view)
    moved = deviations(known, suppressed, targets)
    return None if moved is None else CheckedMoves(known, suppressed, moved).ends(targets)


def as_known(problem: SuppressionProblem, view: ContributorView | None) -> SuppressionProblem:
    """The problem with what one attacker knows as its bounds."""
    if view is None:
        return replace(problem, views=(), unions=None)
    low, high = problem.low.copy(), problem.high.copy()
    low[view.cells] = np.maximum(low[view.cells], view.low)
    high[view.cells] = np.minimum(high[view.cells], view.high)
    return replace(problem, low=low, high=high, views=(), unions=None)


def deviations(problem: SuppressionProblem, suppressed: Mask, targets: Ints) -> Floats | None:
    """Deviations, one a row, that move the targets as far as their levels; None where some cannot be moved."""
    mine = np.zeros(problem.values.size, dtype=np.bool_)
    mine[targets] = suppressed[targets]
    asked = replace(
        problem,
        primary=mine,
        upper=np.where(mine, problem.upper, 0),
        lower=np.where(mine, problem.lower, 0),
        sliding=np.where(mine, problem.sliding, 0),
        never=problem.never & ~mine,
        views=(),
        unions=None,
    )
    cells = np.flatnonzero(suppressed)
    joint = JointWitnesses(Tasks.of(asked), cells)
    witnesses = joint.completed(
        joint.nothing(), np.zeros(cells.size, dtype=np.bool_), np.random.default_rng(0)
    )
    if not witnesses:
        return None
    moved = np.zeros((witnesses[0].shape[0], problem.values.size))
    moved[:, cells] = witnesses[0]
    return moved


class CheckedMoves:
    """Deviations, one a row, that keep all relations and move suppressed cells only; others are dropped.

    Each is taken both ways, as far as an outsider's bounds allow. A contributor's bounds shorten it further.
    """

    def __init__(self, problem: SuppressionProblem, suppressed: Mask, moved: Floats) -> None:
        self._problem = problem
        self._rows = np.array(
            [row for row in moved if _is_true(problem, suppressed, row)], dtype=np.float64
        ).reshape(-1, problem.values.size)
        rise, fall = problem.room_up.astype(np.float64), problem.room_down.astype(np.float64)
        self._times = np.array(
            [[_times(way, rise, fall) for way in (row, -row)] for row in self._rows]
        ).reshape(-1, 2)

    def ends(self, targets: Ints, view: ContributorView | None = None) -> tuple[Floats, Floats]:
        """How far the deviations move targets up and down within the bounds of an attacker."""
        times = self._times
        if view is not None and view.cells.size:
            value = self._problem.values[view.cells]
            high = np.minimum(self._problem.high[view.cells], view.high)
            low = np.maximum(self._problem.low[view.cells], view.low)
            rise, fall = (high - value).astype(np.float64), (value - low).astype(np.float64)
            view_rows = self._rows[:, view.cells]
            closer = [_times(way, rise, fall) for way in (view_rows, -view_rows)]
            times = np.minimum(times, np.stack(closer, axis=-1))
        ahead = times[:, :1] * self._rows[:, targets]
        back = -times[:, 1:] * self._rows[:, targets]
        reached = np.concatenate([ahead, back])
        return reached.max(axis=0, initial=0.0), (-reached).max(axis=0, initial=0.0)


def _times(way: Floats, rise: Floats, fall: Floats) -> Floats:
    """How often moves, along the last axis, fit into the room above and below."""
    room = np.where(way > 0, rise, fall)
    times = np.full(way.shape, np.inf)
    np.divide(room, np.abs(way), out=times, where=way != 0)
    return np.asarray(times.min(axis=-1, initial=np.inf))


def _is_true(problem: SuppressionProblem, suppressed: Mask, row: Floats) -> bool:
    """Whether a deviation moves something, suppressed cells only, and keeps all relations."""
    size = float(np.abs(row).max(initial=0.0))
    if size == 0.0 or bool((row[~suppressed] != 0.0).any()):
        return False
    return float(np.abs(sparse_product(problem.relations, row)).max(initial=0.0)) <= _EVEN * size


def _ties(problem: SuppressionProblem, suppressed: Mask, targets: Ints) -> int:
    """The sum over targets of the suppressed cells that relations tie to them."""
    cells = np.flatnonzero(suppressed)
    part = sparse.csr_array(problem.relations[:, cells])
    rows = part.shape[0]
    links = part.tocoo()
    label = connected_parts(rows + cells.size, links.row, rows + links.col)
    component = label[rows:]
    sizes = np.bincount(component, minlength=int(label.max(initial=0)) + 1)
    places = np.searchsorted(cells, targets[suppressed[targets]])
    return int(sizes[component[places]].sum())
