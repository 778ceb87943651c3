"""The distribution of largest entropy under linear conditions, for a handful of outcomes.

Minimise ``sum p log p`` subject to ``A p = b`` and ``G p <= 0``. The problem is convex and has one
solution. Newton steps start from a point inside, found by linear programming, and stay inside; an
inequality becomes active when a step reaches it, and inactive when its multiplier has the wrong sign.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from lustrum.arrays import Floats

__all__ = ["least_and_most", "maximum_entropy"]


_STEPS = 500
_FORCED = 1e-11  # a probability that cannot exceed this is forced to 0
_EXACT = 1e-13


def least_and_most(
    weights: Floats, equal: Floats, to: Floats, below: Floats
) -> tuple[float, float] | None:
    """The least and the greatest ``weights @ p``, or ``None`` if nothing meets the conditions."""
    ends = []
    for sign in (1.0, -1.0):
        found = _program(sign * weights, equal, to, below)
        if found is None:
            return None
        ends.append(float(weights @ found))
    return ends[0], ends[1]


def maximum_entropy(equal: Floats, to: Floats, below: Floats) -> Floats | None:
    """The distribution of largest entropy, or ``None`` where nothing meets the conditions."""
    outcomes = equal.shape[1]
    start = _inside(equal, to, below)
    if start is None:
        return None
    possible = start > _FORCED
    found = np.zeros(outcomes)
    slopes = below[:, possible]
    found[possible] = _descend(
        start[possible], equal[:, possible], to, slopes[np.abs(slopes).any(axis=1)]
    )
    return found


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
    limits = {"A_ub": below, "b_ub": np.zeros(len(below))} if len(below) else {}
    answer = linprog(goal, A_eq=equal, b_eq=to, bounds=(0.0, 1.0), method="highs-ds", **limits)
    return None if answer.x is None else np.asarray(answer.x, dtype=np.float64)


def _descend(p: Floats, equal: Floats, to: Floats, below: Floats) -> Floats:
    p = _restored(p, equal, to)
    bound = below @ p > -1e-12
    for _ in range(_STEPS):
        matrix = np.vstack((equal, below[bound]))
        gradient = np.log(p) + 1.0
        # Scaled by sqrt(p) the system keeps its digits where probabilities are tiny.
        root = np.sqrt(p)
        scaled = matrix * root
        multipliers = np.linalg.lstsq(scaled.T, -gradient * root, rcond=1e-12)[0]
        step = -p * (gradient + matrix.T @ multipliers)
        if float(np.abs(step / root).max()) < _EXACT * 10:
            own = multipliers[len(equal) :]
            if not own.size or own.min() >= -1e-9:
                break
            bound[np.flatnonzero(bound)[int(own.argmin())]] = False
            continue
        length, hit = _free_length(p, step, below, bound)
        length = _decreasing(p, step, gradient, length) if hit is None else length
        p = p + length * step
        if hit is not None:
            bound[hit] = True
    return _restored(p, np.vstack((equal, below[bound])), np.append(to, np.zeros(bound.sum())))


def _free_length(
    p: Floats, step: Floats, below: Floats, bound: npt.NDArray[np.bool_]
) -> tuple[float, int | None]:
    """The length of a step, up to 1, and the inequality that it reaches, if any."""
    length = 1.0
    shrinking = step < 0
    if shrinking.any():
        length = min(length, 0.9 * float((p[shrinking] / -step[shrinking]).min()))
    hit: int | None = None
    for k in np.flatnonzero(~bound).tolist():
        rise = float(below[k] @ step)
        if rise <= 0:
            continue
        room = max(-float(below[k] @ p), 0.0) / rise
        if room < length:
            length, hit = room, k
    return length, hit


def _decreasing(p: Floats, step: Floats, gradient: Floats, length: float) -> float:
    """Halve a step until the entropy grows enough, or until rounding error prevents it."""
    start = float((p * np.log(p)).sum())
    slope = float(gradient @ step)
    for _ in range(40):
        moved = p + length * step
        if float((moved * np.log(moved)).sum()) <= start + 1e-4 * length * slope + 1e-15:
            break
        length /= 2
    return length


def _restored(p: Floats, equal: Floats, to: Floats) -> Floats:
    """The point corrected so that the conditions hold exactly, each probability by a small share of itself."""
    for _ in range(3):
        missing = to - equal @ p
        scaled = equal * p
        p = p + p * (equal.T @ np.linalg.lstsq(scaled @ equal.T, missing, rcond=1e-14)[0])
    return p
