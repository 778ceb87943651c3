"""Which sensitive cells go up and which go down, before anything is optimised.

Good directions cancel: within a relation, rises make up for falls. A quadratic form of the directions
measures how well they cancel: the least squared change of the whole table that brings every sensitive cell
near its level, ignoring bounds.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy import sparse

from lustrum.model.arrays import Floats, Indices, Ints
from lustrum.numeric.solve.products import cholesky, dot, sparse_product
from lustrum.protect.adjustment.problem import AdjustmentProblem

_FIRMNESS = 10.0  # the weight of a sensitive cell's level against that of its movement
_DENSE_UP_TO = 1500


def alternating(problem: AdjustmentProblem) -> Ints:
    """Up and down in turn, the largest levels first: a fixed start."""
    order = np.argsort(-(problem.up + problem.down), kind="stable")
    signs = np.ones(problem.places.size, dtype=np.int64)
    signs[order[1::2]] = -1
    return signs


def imbalance(problem: AdjustmentProblem) -> Floats:
    """The matrix Q of ``s Q s``: the least squared cost of movements s of the sensitive cells.

    For large problems, Q only measures the imbalance of the relations themselves.
    """
    places, weights = problem.places, problem.weights
    small = max(places.size, problem.span.shape[1]) <= _DENSE_UP_TO and not problem.rest.shape[0]
    form = _least_squares(problem) if small else None
    if form is not None:
        return form
    sensitive_cols = sparse.csr_array(problem.relations.astype(np.int64))[:, places]
    around = float(np.median(weights)) if weights.size else 1.0
    return np.asarray(
        (sensitive_cols.T @ sensitive_cols).toarray() * around + np.diag(weights[places])
    )


def _least_squares(problem: AdjustmentProblem) -> Floats | None:
    """The form by factors of dense matrices; None where rounding errors are too large for that."""
    places, weights = problem.places, problem.weights
    span = problem.floats
    # any last bit: entries of the span are nearly always 1 or -1, whose products are exact
    spread = (span.T @ (sparse.diags_array(weights) @ span)).toarray()
    touched = span[places].toarray()
    factor = cholesky(spread)
    if factor is None:
        return None
    solved = factor.solve(touched.T)
    sensitive_rows = span[places]
    give = np.array([sparse_product(sensitive_rows, column) for column in solved.T])
    give = give.reshape(places.size, places.size)
    give = 0.5 * (give + give.T)
    give[np.diag_indices_from(give)] += 1.0 / (_FIRMNESS * weights[places])
    turned = cholesky(give)
    return None if turned is None else turned.inverse()


def settled(form: Floats, problem: AdjustmentProblem, directions: Ints) -> tuple[Ints, float]:
    """Flip directions, and pairs of opposite ones, while the form falls; also returns its final value."""
    up, down = problem.up.astype(np.float64), problem.down.astype(np.float64)
    signs = directions.astype(np.int64).copy()
    moves = np.where(signs > 0, up, -down)
    slope = (form * moves).sum(axis=1)
    diagonal = np.diag(form).copy()
    for _ in range(50 * max(signs.size, 1)):
        change = np.where(signs > 0, -(up + down), up + down)
        gain = -(2.0 * change * slope + change**2 * diagonal)
        best = int(np.argmax(gain)) if gain.size else -1
        if best < 0 or gain[best] <= 1e-9 * (1.0 + abs(dot(moves, slope))):
            turned = _pair(form, gain, change)
        else:
            turned = (best,)
        if not turned:
            break
        for index in turned:
            slope = slope + form[:, index] * change[index]
            moves[index] += change[index]
            signs[index] = -signs[index]
    return signs, dot(moves, slope)


def _pair(form: Floats, gain: Floats, change: Floats) -> tuple[int, ...]:
    """The pair whose flip gains most; None if no pair gains."""
    if gain.size < 2 or gain.size > _DENSE_UP_TO:
        return ()
    both = gain[:, None] + gain - 2.0 * form * np.outer(change, change)
    np.fill_diagonal(both, -np.inf)
    flat_index = int(np.argmax(both))
    one, other = divmod(flat_index, gain.size)
    return (one, other) if both[one, other] > 1e-9 * (1.0 + np.abs(gain).max()) else ()


def balanced(form: Floats, problem: AdjustmentProblem, starts: Iterable[Ints]) -> list[Ints]:
    """Each start after local search, the best first, without duplicates."""
    ends = [settled(form, problem, start) for start in starts]
    ends.sort(key=lambda end: end[1])  # stable: of equals the earlier start
    seen: dict[bytes, Ints] = {}
    for signs, _ in ends:
        seen.setdefault(signs.tobytes(), signs)
    return list(seen.values())


def neighbours(form: Floats, problem: AdjustmentProblem, size: int) -> list[Indices]:
    """Blocks of strongly dependent directions that together hold every direction."""
    way = (problem.up + problem.down).astype(np.float64)
    strength = np.abs(form * np.outer(way, way))
    covered = np.zeros(way.size, dtype=np.bool_)
    blocks = []
    for seed in np.argsort(-np.diag(strength), kind="stable").tolist():
        if covered[seed]:
            continue
        order = np.argsort(-strength[seed], kind="stable")
        near = order[order != seed][: size - 1]
        block = np.concatenate([[seed], near]).astype(np.intp)
        covered[block] = True
        blocks.append(block)
    return blocks
