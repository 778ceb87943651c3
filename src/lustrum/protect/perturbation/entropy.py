"""The distribution of largest entropy under linear conditions, for a handful of outcomes.

Minimise ``sum p log p`` subject to ``A p = b`` and ``G p <= 0``. The problem is convex and has one
solution. Newton steps start from a point inside, found by linear programming, and stay inside; an
inequality becomes active when a step reaches it, and inactive when its multiplier has the wrong sign.

Linear programs and systems are small. They are solved here, row by row in a fixed order, and not by a library:
a matrix that is published has the same bytes on every processor.
"""

from __future__ import annotations

from math import fsum, sqrt

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.arithmetic import log
from lustrum.numeric.solve.products import dot

_STEPS = 500
_FORCED = 1e-11  # a probability that cannot exceed this is forced to 0
_EXACT = 1e-13
_MET = 1e-9  # what is nearer to 0 counts as 0 in a linear program
_PIVOTS = 20_000
_DEPENDENT = 1e-11  # a row of which less than this share is new depends on the others


def least_and_most(
    weights: Floats, equal: Floats, to: Floats, below: Floats
) -> tuple[float, float] | None:
    """The least and the greatest ``weights @ p``, or ``None`` if nothing meets the conditions."""
    ends = []
    for sign in (1.0, -1.0):
        solution = _program(sign * weights, equal, to, below)
        if solution is None:
            return None
        ends.append(dot(weights, solution))
    return ends[0], ends[1]


def maximum_entropy(equal: Floats, to: Floats, below: Floats) -> Floats | None:
    """The distribution of largest entropy, or ``None`` where nothing meets the conditions."""
    outcomes = equal.shape[1]
    start = _inside(equal, to, below)
    if start is None:
        return None
    possible = start > _FORCED
    distribution = np.zeros(outcomes)
    slopes = below[:, possible]
    distribution[possible] = _descend(
        start[possible], equal[:, possible], to, slopes[np.abs(slopes).any(axis=1)]
    )
    return distribution


def _inside(equal: Floats, to: Floats, below: Floats) -> Floats | None:
    """A point at which every probability that can be above 0 is."""
    outcomes = equal.shape[1]
    # Make the least probability as large as it can be; above 0, nothing is forced to be 0.
    goal = np.append(np.zeros(outcomes), -1.0)
    floor = np.hstack((-np.eye(outcomes), np.ones((outcomes, 1))))
    point = _program(
        goal,
        np.hstack((equal, np.zeros((len(equal), 1)))),
        to,
        np.vstack((floor, np.hstack((below, np.zeros((len(below), 1)))))),
    )
    if point is None or point[-1] > 1e-9:
        return None if point is None else point[:-1]
    mean = np.zeros(outcomes)
    for outcome in range(outcomes):
        goal = np.zeros(outcomes)
        goal[outcome] = -1.0
        point = _program(goal, equal, to, below)
        if point is None:
            return None
        # The mean of the points that maximise each probability is above 0 wherever one of them is.
        mean += np.where(point > _FORCED, point, 0.0) / outcomes
    return mean


def _program(goal: Floats, equal: Floats, to: Floats, below: Floats) -> Floats | None:
    """The least ``goal @ p`` of numbers from 0 up; ``None`` where nothing meets the conditions.

    ``to`` is not negative, and the conditions bound every number. The simplex method with a column for each
    inequality and one for each equality; the entering and the leaving column are the first that qualify
    (Bland 1977), so that it ends.
    """
    rows, given, outcomes = len(equal) + len(below), len(equal), equal.shape[1]
    table = np.zeros((rows, outcomes + rows + 1))
    table[:, :outcomes] = np.vstack((below, equal))
    table[:, outcomes : outcomes + rows] = np.eye(rows)
    table[rows - given :, -1] = to
    scale = np.abs(table[:, :outcomes]).max(axis=1, initial=0.0)
    table[:, :outcomes] /= np.where(scale > 0, scale, 1.0)[:, None]
    table[:, -1] /= np.where(scale > 0, scale, 1.0)
    basis = np.arange(outcomes, outcomes + rows)
    # First the columns of the equalities are driven to 0, then the goal is minimised without them.
    real = outcomes + rows - given
    missing = np.zeros(table.shape[1])
    missing[real:-1] = 1.0
    _pivoted(table, basis, missing, real)
    if float(table[basis >= real, -1].sum()) > _MET:
        return None
    for row in np.flatnonzero(basis >= real).tolist():
        free = np.flatnonzero(np.abs(table[row, :real]) > _MET)
        if free.size:
            _exchange(table, basis, row, int(free[0]))
    cost = np.zeros(table.shape[1])
    cost[:outcomes] = goal / max(float(np.abs(goal).max()), 1e-300)
    _pivoted(table, basis, cost, real)
    solution = np.zeros(outcomes)
    inside = basis < outcomes
    solution[basis[inside]] = np.maximum(table[inside, -1], 0.0)
    return solution


def _pivoted(table: Floats, basis: Ints, cost: Floats, real: int) -> None:
    """Exchange columns in place until none of the first ``real`` lowers the cost."""
    for _ in range(_PIVOTS):
        reduced = cost[:real] - (cost[basis][:, None] * table[:, :real]).sum(axis=0)
        falling = np.flatnonzero(reduced < -_MET)
        if not falling.size:
            return
        column = int(falling[0])
        up = np.flatnonzero(table[:, column] > _MET)
        if not up.size:
            return
        ratio = table[up, -1] / table[up, column]
        tied = up[ratio <= ratio.min() + 1e-12]
        _exchange(table, basis, int(tied[basis[tied].argmin()]), column)


def _exchange(table: Floats, basis: Ints, row: int, column: int) -> None:
    table[row] /= table[row, column]
    others = np.arange(len(table)) != row
    table[others] -= table[others, column][:, None] * table[row]
    basis[row] = column


def _descend(p: Floats, equal: Floats, to: Floats, below: Floats) -> Floats:
    p = _restored(p, equal, to)
    bound = _times(below, p) > -1e-12
    for _ in range(_STEPS):
        matrix = np.vstack((equal, below[bound]))
        gradient = log(p) + 1.0
        # Scaled by sqrt(p) the system keeps its digits where probabilities are tiny.
        root = np.sqrt(p)
        multipliers = _OrthogonalRows(matrix * root, 1e-12).nearest(-gradient * root)
        step = -p * (gradient + _combined(multipliers, matrix))
        if float(np.abs(step / root).max()) < _EXACT * 10:
            prices = multipliers[len(equal) :]
            if not prices.size or prices.min() >= -1e-9:
                break
            bound[np.flatnonzero(bound)[int(prices.argmin())]] = False
            continue
        length, hit = _free_length(p, step, below, bound)
        length = _decreasing(p, step, gradient, length) if hit is None else length
        p = p + length * step
        if hit is not None:
            bound[hit] = True
    return _restored(p, np.vstack((equal, below[bound])), np.append(to, np.zeros(bound.sum())))


def _free_length(p: Floats, step: Floats, below: Floats, bound: Mask) -> tuple[float, int | None]:
    """The length of a step, up to 1, and the inequality that it reaches, if any."""
    length = 1.0
    shrinking = step < 0
    if shrinking.any():
        length = min(length, 0.9 * float((p[shrinking] / -step[shrinking]).min()))
    hit: int | None = None
    for k in np.flatnonzero(~bound).tolist():
        rise = dot(below[k], step)
        if rise <= 0:
            continue
        room = max(-dot(below[k], p), 0.0) / rise
        if room < length:
            length, hit = room, k
    return length, hit


def _decreasing(p: Floats, step: Floats, gradient: Floats, length: float) -> float:
    """Halve a step until the entropy grows enough, or until rounding error prevents it."""
    start = dot(p, log(p))
    slope = dot(gradient, step)
    for _ in range(40):
        moved = p + length * step
        if dot(moved, log(moved)) <= start + 1e-4 * length * slope + 1e-15:
            break
        length /= 2
    return length


def _restored(p: Floats, equal: Floats, to: Floats) -> Floats:
    """The point corrected so that the conditions hold exactly, each probability by a small share of itself."""
    for _ in range(3):
        missing = to - _times(equal, p)
        p = p + p * _combined(_OrthogonalRows(equal * np.sqrt(p), 1e-7).solved(missing), equal)
    return p


class _OrthogonalRows:
    """Rows of a matrix as combinations of orthogonal ones.

    Rows that depend on those before are left out, and those smaller than the share ``least`` of the largest.
    """

    def __init__(self, rows: Floats, least: float) -> None:
        floor = least * sqrt(float((rows * rows).sum(axis=1).max(initial=0.0)))
        self.count = len(rows)
        self.independent: list[int] = []
        self.orthogonal = np.zeros((0, rows.shape[1]))
        self.parts: list[Floats] = []
        for number, row in enumerate(rows):
            rest, parts = row, np.zeros(len(self.independent) + 1)
            for _ in range(
                2 if self.independent else 0
            ):  # the second time takes away what rounding left
                part = _times(self.orthogonal, rest)
                parts[:-1] += part
                rest = rest - _combined(part, self.orthogonal)
            size = sqrt(dot(rest, rest))
            if size > max(_DEPENDENT * sqrt(dot(row, row)), floor):
                parts[-1] = size
                self.independent.append(number)
                self.orthogonal = np.vstack((self.orthogonal, rest / size))
                self.parts.append(parts)

    def nearest(self, target: Floats) -> Floats:
        """Multipliers of the rows whose sum is nearest to the target."""
        return self._back(_times(self.orthogonal, target).tolist())

    def solved(self, target: Floats) -> Floats:
        """Multipliers whose sum of rows has these products with the rows."""
        forward: list[float] = []
        for number, parts in zip(self.independent, self.parts, strict=True):
            known = dot(parts[:-1], np.array(forward))
            forward.append((float(target[number]) - known) / float(parts[-1]))
        return self._back(forward)

    def _back(self, right: list[float]) -> Floats:
        solution = np.zeros(self.count)
        for index in range(len(self.independent) - 1, -1, -1):
            later = range(index + 1, len(self.independent))
            known = fsum(
                float(self.parts[k][index]) * float(solution[self.independent[k]]) for k in later
            )
            solution[self.independent[index]] = (right[index] - known) / float(
                self.parts[index][-1]
            )
        return solution


def _times(matrix: Floats, p: Floats) -> Floats:
    return np.asarray((matrix * p).sum(axis=1))


def _combined(multipliers: Floats, rows: Floats) -> Floats:
    return np.asarray((multipliers[:, None] * rows).sum(axis=0))
