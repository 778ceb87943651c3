"""From a problem to directions and a real solution: which heuristics run, in which order.

All steps are counted, not timed, so that the same problem has the same answer. If the steps run out, the
search ends early, and the answer says so. The least sum of weighted absolute changes is that of linear
programs (:mod:`~lustrum.protect.adjustment.l1`). The least sum of weighted squares for given directions is a
convex quadratic program without choices: Castro (2006) adjusts tables this way, and spreads the change over
many cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import sparse

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Indices, Ints
from lustrum.numeric.solve import Outcome
from lustrum.numeric.solve.products import cholesky, cleared, dot, sparse_product
from lustrum.numeric.solve.quadratic import QuadraticProblem, minimise_quadratic
from lustrum.protect.adjustment.l1 import Directed, DirectedMovement, MixedProgram, improve
from lustrum.protect.adjustment.problem import NO_ADJUSTMENT, AdjustmentProblem, as_floats
from lustrum.protect.adjustment.work import Work
from lustrum.runtime.stop import check_stop

# Which sensitive cells go up and which go down, before anything is optimised.
#
# Good directions cancel: within a relation, rises make up for falls. A quadratic form of the directions
# measures how well they cancel: the least squared change of the whole table that brings every sensitive cell
# near its level, ignoring bounds.

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


Norm = Literal["l1", "l2"]
DirectionWord = Literal["heuristic", "exact", "balanced", "relaxed", "random"]

_CHEAPER = 1e-9  # a cost that is lower by a smaller share is the same
_STARTS = 10
_TRIED = 3
_BLOCK = 8
_BLOCK_NODES = 50
_TRIES = 100  # this many flips are tried
_SMALL = 200  # up to this many groups of cells, blocks of directions are searched too
_TOLERANCE = 1e-8
_BITS = 20  # of a movement, in steps of the table, and of a pressure
_CHEAPER_SQUARES = (
    1e-6  # a cost that is lower by a smaller share is the same, for all that a solver tells
)
_SQUARES_STEPS = 1000  # the work of a quadratic program, in steps of linear ones


@dataclass(frozen=True, eq=False)
class Solution:
    """Directions, the real movement of all groups, its distance, and a lower bound of all distances."""

    directions: Ints
    moved: Floats
    cost: float
    bound: float
    cut_short: bool


def search(
    problem: AdjustmentProblem,
    norm: Norm,
    word: DirectionWord,
    work: Work,
    rng: np.random.Generator | None,
) -> Solution:
    """Directions by the named search, and the best real solution for them."""
    if word == "exact" and norm != "l1":
        raise InputError(
            "Exact directions are for the norm 'l1'; with 'l2' use 'heuristic' or another way."
        )
    if word == "random" and rng is None:
        raise InputError("Random directions need chance; give a random generator ('rng').")
    form = imbalance(problem)
    candidates = _candidates(problem, form, word, rng, work)
    directed = Directed(problem)
    best = _best(directed, candidates, work)
    if not best.feasible:
        best = _repaired(directed, best, work)
    if norm == "l2":
        return _squares(problem, best, word, work, candidates)
    return _absolutes(problem, form, directed, best, word, work)


def _candidates(
    problem: AdjustmentProblem,
    form: Floats,
    word: DirectionWord,
    rng: np.random.Generator | None,
    work: Work,
) -> list[Ints]:
    count = problem.places.size
    chance = np.random.default_rng(0) if rng is None else rng  # a fixed order without a generator
    draws = [_signs(chance, count) for _ in range(1 if word == "random" else _STARTS - 1)]
    if word == "random":
        return draws
    if word == "relaxed":
        start = DirectedMovement(
            draws[0], np.zeros(problem.low.size), np.inf, np.inf, np.zeros(count)
        )
        return [MixedProgram(problem, _far(problem), relaxed=True).rounded(start, work)]
    return balanced(form, problem, [alternating(problem), *draws])[:_TRIED]


def _signs(rng: np.random.Generator, count: int) -> Ints:
    return rng.integers(0, 2, count, dtype=np.int64) * 2 - 1


def _best(directed: Directed, candidates: list[Ints], work: Work) -> DirectedMovement:
    best: DirectedMovement | None = None
    for directions in candidates:
        if best is not None and work.late:
            break
        candidate = directed.solve(directions, work if best is not None else None)
        if candidate is not None and (
            best is None or candidate.cost < best.cost * (1.0 - _CHEAPER)
        ):
            best = candidate
    if best is None:
        raise InputError(NO_ADJUSTMENT)
    return best


def _repaired(directed: Directed, movement: DirectedMovement, work: Work) -> DirectedMovement:
    """Flip directions that fall short, guided by prices; then search for any feasible directions."""
    movement = improve(directed, movement, work, passes=2, until_feasible=True)
    if movement.feasible:
        return movement
    problem = directed.problem
    mixed = MixedProgram(problem, _far(problem))
    directions, _, outcome = mixed.solve(movement, np.arange(problem.places.size), work)
    again = None if outcome is Outcome.INFEASIBLE else directed.solve(directions, None)
    if again is None or not again.feasible:
        raise InputError(NO_ADJUSTMENT)
    return again


def _far(problem: AdjustmentProblem) -> float:
    """A cost above any solution's: every cell moves by the sum of all levels."""
    levels = float((problem.up + problem.down).sum())
    forced = np.maximum(problem.low, -problem.high).astype(np.float64)
    return (levels + float(np.maximum(forced, 0.0).sum()) + 1.0) * float(
        problem.weights.max(initial=0.0)
    )


def _absolutes(
    problem: AdjustmentProblem,
    form: Floats,
    directed: Directed,
    best: DirectedMovement,
    word: DirectionWord,
    work: Work,
) -> Solution:
    bound = 0.0
    if word in ("heuristic", "exact") and problem.places.size:
        share = work.part(0.4 if word == "exact" else 1.0)
        best = improve(directed, best, share, tries=_TRIES if word == "heuristic" else None)
        mixed = MixedProgram(problem, best.cost)
        if word == "exact" or problem.low.size <= _SMALL:
            for block in neighbours(form, problem, _BLOCK):
                if share.late:
                    break
                directions, _, _ = mixed.solve(best, block, share, _BLOCK_NODES)
                best = _kept(directed, best, directions)
        if word == "exact":
            every = np.arange(problem.places.size)
            directions, bound, _ = mixed.solve(best, every, work)
            best = _kept(directed, best, directions)
    if problem.places.size == 0:
        bound = best.cost
    bound = max(bound, _floor(problem))
    return Solution(best.directions, best.moved, best.cost, min(bound, best.cost), work.late)


def _kept(directed: Directed, best: DirectedMovement, directions: Ints) -> DirectedMovement:
    if np.array_equal(directions, best.directions):
        return best
    candidate = directed.solve(directions, None)
    better = (
        candidate is not None
        and candidate.feasible
        and candidate.cost < best.cost * (1.0 - _CHEAPER)
    )
    return candidate if better and candidate is not None else best


def _floor(problem: AdjustmentProblem) -> float:
    """The least cost of the sensitive cells alone."""
    levels = np.minimum(problem.up, problem.down).astype(np.float64)
    forced = np.maximum(np.maximum(problem.low, -problem.high), 0).astype(np.float64)
    forced[problem.places] = np.maximum(forced[problem.places], levels)
    return problem.distance(forced, "l1")


def _squares(
    problem: AdjustmentProblem,
    start: DirectedMovement,
    word: DirectionWord,
    work: Work,
    candidates: list[Ints],
) -> Solution:
    best = least_squares(problem, start.directions)
    for directions in candidates if word == "heuristic" else []:
        if work.late or np.array_equal(directions, start.directions):
            continue
        other = least_squares(problem, directions, work)
        if best is None or (other and other.cost < best.cost * (1.0 - _CHEAPER_SQUARES)):
            best = other
    if best is None:
        raise InputError(NO_ADJUSTMENT)
    if word == "heuristic":
        best = improve_squares(problem, best, work)
    levels = np.minimum(problem.up, problem.down).astype(np.float64)
    forced = np.maximum(np.maximum(problem.low, -problem.high), 0).astype(np.float64)
    forced[problem.places] = np.maximum(forced[problem.places], levels)
    bound = best.cost if problem.places.size == 0 else problem.distance(forced, "l2")
    return Solution(best.directions, best.moved, best.cost, min(bound, best.cost), work.late)


@dataclass(frozen=True, eq=False)
class SquaredMovement:
    """Directions, the real movement of all groups, its weighted squares, and the pressure on each direction."""

    directions: Ints
    moved: Floats
    cost: float
    pull: Floats
    residual: float


def least_squares(
    problem: AdjustmentProblem, directions: Ints, work: Work | None = None
) -> SquaredMovement | None:
    """The optimum for these directions, or None if they cannot be kept or the work ran out."""
    low, high = problem.bounds(directions)
    if bool((low > high).any()):
        return None
    check_stop()
    if work is not None:
        work.spend(_SQUARES_STEPS)
    scale = 1.0 / max(float(problem.weights.max(initial=0.0)), 1e-300)
    # Solve the smaller system: that of the free movements, or that of the relations between groups.
    by_relations = problem.span.shape[1] > problem.relations.shape[0]
    matrix = problem.relations if by_relations else problem.rest
    optimum = minimise_quadratic(
        QuadraticProblem(
            2.0 * problem.weights * scale,
            np.zeros(low.size),
            matrix,
            np.zeros(matrix.shape[0]),
            as_floats(low),
            as_floats(high),
            span=None if by_relations else problem.floats,
        ),
        tolerance=_TOLERANCE,
    )
    if optimum.outcome is not Outcome.OPTIMAL or optimum.point is None or optimum.pressure is None:
        return None
    pull = optimum.pressure[problem.places] / scale
    # The optimum is the same everywhere, the last digits of what approaches it need not be.
    moved = cleared(optimum.point, _BITS)
    pull = cleared(pull, _BITS, max(float(np.abs(pull).max(initial=0.0)), 1e-300))
    return SquaredMovement(
        directions.copy(), moved, problem.distance(moved, "l2"), pull, optimum.residual
    )


def improve_squares(
    problem: AdjustmentProblem, start: SquaredMovement, work: Work, tries: int = 12
) -> SquaredMovement:
    """Flip the direction under the most pressure, and keep the flip if it lowers the cost."""
    way = (problem.up + problem.down).astype(np.float64)
    best, failed = start, set[int]()
    for _ in range(tries):
        hope = best.pull * best.directions * way
        order = [c for c in np.argsort(-hope, kind="stable").tolist() if c not in failed]
        if not order or hope[order[0]] <= 1e-9 * best.cost or work.late:
            break
        turned = best.directions.copy()
        turned[order[0]] = -turned[order[0]]
        candidate = least_squares(problem, turned, work)
        failed.add(order[0])
        if candidate is not None and candidate.cost < best.cost * (1.0 - _CHEAPER_SQUARES):
            best = candidate
    return best
