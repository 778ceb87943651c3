"""The design of perturbation matrices by maximum entropy.

For each true count the change gets the distribution of largest entropy that has mean 0, a given variance,
no change beyond a largest one, and no published value that is negative or blocked (Fraser and Wooton 2005;
Marley and Leaver 2011; Giessing 2016). The R package ptable is in wide use for this; the same parameters
give the same rows here wherever its rows have the variance asked for, which it takes as an upper limit.
Zeros always stay: no smaller value can balance a change, so mean 0 requires it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from functools import lru_cache
from math import fsum, sqrt
from typing import ClassVar, Literal

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.model.channel import MatrixChannel
from lustrum.model.parameters import DeclaredSpec, parameter
from lustrum.numeric.arithmetic import log
from lustrum.numeric.solve.products import dot

Monotone = Literal["no", "below", "both"]

_TOLERANCE = 1e-9


def design(
    largest_change: int,
    variance: float,
    blocked: Sequence[int] = (),
    stay: float | Sequence[float] | None = None,
    monotone: Monotone = "no",
    cap: int | None = None,
) -> MatrixChannel:
    """The matrix of largest entropy; see :class:`PerturbationDesign` for the parameters.

    >>> design(largest_change=2, variance=1.08, blocked=(1,)).matrix[4].round(4).tolist()
    [0.0, 0.0, 0.0739, 0.2442, 0.3637, 0.2442, 0.0739]
    """
    given = tuple(stay) if isinstance(stay, Sequence) else stay
    return PerturbationDesign(
        largest_change, variance, tuple(blocked), given, monotone, cap
    ).channel()


@dataclass(frozen=True)
class PerturbationDesign(DeclaredSpec):
    """What a perturbation matrix has to satisfy.

    - ``variance`` and ``blocked`` values are for counts above 0.
    - ``stay``: one probability for all counts above 0, or one for each from 1 up to the last row; without it,
      maximum entropy determines it. Blocked counts cannot stay.
    - ``monotone``: ``"below"`` among smaller values, ``"both"`` among larger ones too.
    - ``cap``: counts above change alike. The default is the least from which on nothing is blocked or negative.

    >>> PerturbationDesign(largest_change=1, variance=0.5).channel().matrix.tolist()
    [[1.0, 0.0, 0.0], [0.25, 0.5, 0.25]]
    """

    group: ClassVar[str] = ""
    what: ClassVar[str] = "A designed matrix"

    largest_change: int = parameter(MISSING, "No count changes by more than this.", least=1)
    variance: float = parameter(MISSING, "The variance of the change.", above=0)
    blocked: tuple[int, ...] = parameter((), "Values that are never published.", least=1)
    stay: float | tuple[float, ...] | None = parameter(
        None, "The probability that a count stays.", least=0, most=1, brief=True
    )
    monotone: Monotone = parameter("no", "Whether nearer values are at least as likely.")
    cap: int | None = parameter(None, "The last count with a row of its own.", least=1, brief=True)

    def check_together(self) -> None:
        """The rows reach to where nothing is blocked or negative."""
        if self.cap is not None and self.cap < self.least_cap:
            raise InputError(
                f"The cap must be a whole number of {self.least_cap} or more, from which on nothing is "
                f"blocked or negative, not {self.cap!r}."
            )
        if isinstance(self.stay, tuple) and len(self.stay) != self.last:
            raise InputError(
                f"'stay' needs {self.last} probabilities, for the counts from 1 to {self.last}; there "
                f"are {len(self.stay)}."
            )

    @property
    def least_cap(self) -> int:
        """The first count from which on all changes lead to values that are neither blocked nor negative."""
        return self.largest_change + (max(self.blocked) + 1 if self.blocked else 0)

    @property
    def last(self) -> int:
        return self.least_cap if self.cap is None else self.cap

    def channel(self) -> MatrixChannel:
        """Solve for every row; an error names the count for which the conditions cannot be met, and why."""
        return _solved(self)

    def _row(self, count: int) -> tuple[Ints, Floats]:
        reach = np.arange(max(count - self.largest_change, 0), count + self.largest_change + 1)
        values = reach[~np.isin(reach, self.blocked)]
        change = (values - count).astype(np.float64)
        equal = [np.ones(change.size), change]
        to = [1.0, 0.0]
        share = self.stay[count - 1] if isinstance(self.stay, tuple) else self.stay
        if share is not None and count in values:
            equal.append((change == 0).astype(np.float64))
            to.append(float(share))
        below = self._steps(change)
        without = np.array(equal), np.array(to)
        two_sided = (change < 0).any() and (change > 0).any()
        ends = least_and_most(change**2, *without, below) if two_sided else None
        if ends is None:
            raise InputError(self._why(count, change, share))
        if not ends[0] - _TOLERANCE <= self.variance <= ends[1] + _TOLERANCE:
            side, end = ("least", ends[0]) if self.variance < ends[0] else ("largest", ends[1])
            raise InputError(
                f"No distribution for the count {count} has a variance of {self.variance:g}; the {side} "
                f"variance that the other conditions allow is {end:.6g}."
            )
        variance = min(max(float(self.variance), ends[0]), ends[1])
        conditions = np.vstack((without[0], change**2)), np.append(without[1], variance)
        distribution = maximum_entropy(*conditions, below)
        if (
            distribution is None
            or (
                np.abs((conditions[0] * distribution).sum(axis=1) - conditions[1]) > _TOLERANCE
            ).any()
            or ((below * distribution).sum(axis=1) > _TOLERANCE).any()
        ):
            raise InputError(
                f"The conditions for the count {count} can only just be met; a variance a little "
                f"farther from its ends, {ends[0]:.6g} and {ends[1]:.6g}, can be solved for."
            )
        return values, distribution / distribution.sum()

    def _steps(self, change: Floats) -> Floats:
        """One row for each pair of neighbours on one side: the farther one less the nearer one."""
        pairs = []
        for farther, nearer in ((k, k + 1) for k in range(change.size - 1)):
            if self.monotone != "no" and change[nearer] <= 0:
                pairs.append((farther, nearer))
            if self.monotone == "both" and change[farther] >= 0:
                pairs.append((nearer, farther))
        rows = np.zeros((len(pairs), change.size))
        for row, (farther, nearer) in enumerate(pairs):
            rows[row, farther], rows[row, nearer] = 1.0, -1.0
        return rows

    def _why(self, count: int, change: Floats, share: float | None) -> str:
        if not (change < 0).any() or not (change > 0).any():
            return (
                f"The count {count} cannot change without bias: all values it may become lie on one side; "
                f"the largest change must be more than {self.largest_change}."
            )
        ends = least_and_most(
            (change == 0).astype(np.float64),
            np.array([np.ones(change.size), change]),
            np.array([1.0, 0.0]),
            self._steps(change),
        )
        if ends is None or share is None:
            return f"No distribution for the count {count} has mean 0 and is monotone '{self.monotone}'."
        return (
            f"The count {count} cannot stay with probability {share:g}; the other conditions allow "
            f"{ends[0]:.6g} to {ends[1]:.6g}."
        )


@lru_cache(maxsize=32)
def _solved(wanted: PerturbationDesign) -> MatrixChannel:
    matrix = np.zeros((wanted.last + 1, wanted.last + wanted.largest_change + 1))
    matrix[0, 0] = 1.0
    for count in range(1, wanted.last + 1):
        values, probability = wanted._row(count)
        matrix[count, values] = probability
    return MatrixChannel(matrix, residue_base=1)


# The distribution of largest entropy under linear conditions, for a handful of outcomes.
#
# Minimise ``sum p log p`` subject to ``A p = b`` and ``G p <= 0``. The problem is convex and has one
# solution. Newton steps start from a point inside, found by linear programming, and stay inside; an
# inequality becomes active when a step reaches it, and inactive when its multiplier has the wrong sign.
#
# Linear programs and systems are small. They are solved here, row by row in a fixed order, and not by a
# library: a matrix that is published has the same bytes on every processor.

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
