"""Controlled rounding of three-way, hierarchical and linked tables: exact if small, otherwise by search.

Every published cell becomes a neighbouring multiple of the base, multiples stay, and every relation between
published cells holds: zero-restricted controlled rounding (Cox 1987). For three-way tables it need not
exist (Causey, Cox and Ernst 1985; Ernst 1989). Then some cells must move further, by as few steps of the
base as possible; zeros stay zeros, and no cell becomes negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.arrays import Floats, Ints
from lustrum.model import InputError
from lustrum.model.stop import Stopped, stop_asked
from lustrum.protect.rounding.controlled.local import Scope, round_inner, sums_of, whole_base
from lustrum.protect.rounding.controlled.program import Distance, Program
from lustrum.solve import Highs, Outcome, Solver
from lustrum.solve.products import dot
from lustrum.structure import Relations, Structure, complete_relations

__all__ = ["EXACT_CELLS", "Rounded", "round_published", "round_system"]

How = Literal["auto", "exact", "search"]
# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any

EXACT_CELLS = 1500  # by default, tables with up to this many published cells are rounded exactly
_MOST_STEPS = 1000


@dataclass(frozen=True, eq=False)
class Rounded:
    """A rounding of all published cells of a system of tables.

    ``steps`` is, for each cell, the number of steps of the base beyond its neighbouring multiples; all are
    0 in a zero-restricted rounding. ``proven`` means that no rounding is better: first in the largest
    number of steps, then in their total, then in distance. ``inner`` holds the rounded inner cells where
    the rounding was made on them. Steps and errors follow from true counts and are not for the public.
    """

    published: Ints
    steps: Ints
    largest_error: int
    proven: bool
    message: str
    inner: Ints | None = None

    def __repr__(self) -> str:
        state = "proven best" if self.proven else "not proven best"
        return f"Rounded({self.published.size} published cells, {state})"


def round_published(
    values: npt.ArrayLike,
    relations: Relations | Sparse,
    base: int,
    *,
    weights: npt.ArrayLike | None = None,
    distance: Distance = "absolute",
    steps: int | None = 1000,
    incumbent: npt.ArrayLike | None = None,
    solver: Solver | None = None,
    stop: Callable[[], bool] | None = None,
) -> Rounded:
    """The nearest controlled rounding of published cells under ``relations @ published == 0``.

    The ``distance`` is the weighted sum of absolute errors, or of their squares. An ``incumbent`` is any
    rounding that keeps the relations; it is returned if this many ``steps`` of the solver find nothing
    better. ``stop`` is called regularly; a search that it stops returns nothing.

    >>> sums = sparse.csr_array([[1, 1, 1, -1]])
    >>> round_published([1, 1, 2, 4], sums, 3).published.tolist()
    [0, 0, 3, 3]
    """
    whole_base(base)
    matrix = sparse.csr_array(relations.matrix if isinstance(relations, Relations) else relations)
    true = _checked(values, matrix)
    cost = _weights(weights, true.size)
    search = _Stages(true, matrix, base, cost, distance, solver or Highs(), steps, stop)
    if incumbent is not None:
        given = np.asarray(incumbent, dtype=np.int64).ravel()
        if given.size != true.size or not search.allowed(given):
            raise InputError(
                f"The incumbent must be a rounding of all {true.size} cells to multiples of the "
                "base that keeps all relations, keeps zeros and has nothing below zero."
            )
        search.offer(given)
    proven = search.run()
    if search.best is None:
        raise InputError(
            "No rounding was found within the steps; allow more 'steps', or give an incumbent."
        )
    return _rounded(true, search.best, base, proven)


def round_system(
    tables: Structure,
    inner: npt.ArrayLike,
    base: int,
    *,
    rng: np.random.Generator,
    how: How = "auto",
    scope: Scope = "all",
    goal: int | None = None,
    sweeps: int = 100,
    inner_weight: float = 0.0,
    weights: npt.ArrayLike | None = None,
    distance: Distance = "absolute",
    steps: int | None = 1000,
    progress: Callable[[float], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Rounded:
    """Round all published cells of linked tables from the counts of their inner cells.

    The local search on inner cells always comes first. It is the only step for ``how="search"``, for
    ``scope="small"`` and, by default, for more than :data:`EXACT_CELLS` cells. Otherwise an exact search
    for the nearest rounding of the published cells follows. If the inner cells are not published, its
    result keeps all relations between the published cells, but may not be the sum of any rounded cube.
    """
    if how not in ("auto", "exact", "search"):
        raise InputError(f"The way to round is 'auto', 'exact' or 'search', not {how!r}.")
    if how == "exact" and scope != "all":
        raise InputError("The exact way rounds all cells; use 'search' to round small ones only.")
    found = round_inner(
        inner,
        tables,
        base,
        rng=rng,
        scope=scope,
        goal=goal,
        sweeps=sweeps,
        inner_weight=inner_weight,
        progress=progress,
        stop=stop,
    )
    true = sums_of(np.asarray(inner, dtype=np.int64).ravel(), tables)
    if how == "search" or scope != "all" or (how == "auto" and tables.rows > EXACT_CELLS):
        made = _rounded(true, found.published, base, proven=False)
        word = "" if found.kept else f" Not every number is within {found.goal} of the true one."
        return Rounded(
            made.published, made.steps, made.largest_error, False, made.message + word, found.inner
        )
    return round_published(
        true,
        complete_relations(tables),
        base,
        weights=weights,
        distance=distance,
        steps=steps,
        incumbent=found.published,
        stop=stop,
    )


class _Stages:
    """Round all cells to neighbouring multiples; if that is impossible, allow one step more, and so on."""

    def __init__(
        self,
        true: Ints,
        matrix: Sparse,
        base: int,
        weights: Floats,
        distance: Distance,
        solver: Solver,
        steps: int | None,
        stop: Callable[[], bool] | None,
    ) -> None:
        self.true, self.matrix, self.base = true, matrix, base
        self.weights, self.distance, self.solver = weights, distance, solver
        self.left = steps
        self.stop = stop or stop_asked()
        self.best: Ints | None = None

    def allowed(self, shown: Ints) -> bool:
        """Whether these are multiples of the base that keep the relations, zeros and signs."""
        return bool(
            (shown % self.base == 0).all()
            and (shown >= 0).all()
            and (shown[self.true == 0] == 0).all()
            and not (self.matrix.astype(np.int64) @ shown).any()
        )

    def rank(self, shown: Ints) -> tuple[int, int, float]:
        """What is minimised, in order of priority."""
        error = np.abs(shown - self.true)
        steps = error // self.base
        size = error if self.distance == "absolute" else error**2
        return int(steps.max(initial=0)), int(steps.sum()), dot(self.weights, size)

    def offer(self, shown: Ints) -> None:
        """Keep a rounding if it is allowed and better than the best so far."""
        if self.allowed(shown) and (self.best is None or self.rank(shown) < self.rank(self.best)):
            self.best = shown

    def run(self) -> bool:
        """Go through the stages; returns whether the best rounding is proven to be optimal."""
        for most in range(_MOST_STEPS):
            program = Program.of(self.true, self.matrix, self.base, most)
            cost = program.cost(self.weights, self.distance)
            if most == 0:
                outcome, proven = self._solve(program, cost)
            else:
                outcome, proven = self._solve(program, program.extra)
                if outcome is Outcome.OPTIMAL and proven and self.best is not None:
                    fewest = self.rank(self.best)[1]
                    outcome, proven = self._solve(program.limited(fewest), cost)
            if outcome is not Outcome.INFEASIBLE:
                return proven
        return (
            False  # pragma: no cover - zeros everywhere keep all relations, so a stage is feasible
        )

    def _solve(self, program: Program, cost: Floats) -> tuple[Outcome, bool]:
        if self.stop():
            raise Stopped
        if self.left is not None and self.left <= 0:
            return Outcome.CUT_SHORT, False
        found = self.solver.load(program.problem).minimise(
            cost, whole=True, steps=self.left, stop=self.stop
        )
        if self.stop():
            raise Stopped  # what a stopped search has found depends on the clock
        if self.left is not None:
            self.left -= found.steps
        if found.point is None:
            return found.outcome, False
        point = np.rint(found.point)
        self.offer(program.published(point.astype(np.int64)))
        value = dot(cost, point)
        # Costs are whole, so nothing lies between two that differ by less than one.
        whole = bool((cost == np.rint(cost)).all())
        closed = value - found.bound < (0.999 if whole else 1e-5 * max(1.0, abs(value)))
        return found.outcome, found.outcome is Outcome.OPTIMAL and closed


def _rounded(true: Ints, shown: Ints, base: int, proven: bool) -> Rounded:
    error = np.abs(shown - true)
    steps = error // base
    moved = int(np.count_nonzero(steps))
    if moved:
        cells = "1 published cell lies" if moved == 1 else f"{moved} published cells lie"
        most = int(steps.max())
        message = (
            f"{cells} beyond the neighbouring multiples of {base}, "
            f"by at most {most} step{'s' if most > 1 else ''}."
        )
    else:
        message = f"Every published cell lies less than {base} from the true count."
    return Rounded(shown, steps, int(error.max(initial=0)), proven, message)


def _checked(values: npt.ArrayLike, matrix: Sparse) -> Ints:
    true = np.asarray(values)
    if true.dtype.kind not in "iu" or (true.size and int(true.min()) < 0):
        raise InputError("Controlled rounding needs cells that are whole counts, 0 or more.")
    true = true.astype(np.int64).ravel()
    if matrix.shape[1] != true.size:
        raise InputError(
            f"The relations are between {matrix.shape[1]} cells, but {true.size} values were given."
        )
    broken = np.count_nonzero(matrix.astype(np.int64) @ true)
    if broken:
        raise InputError(f"The cells do not add up: {broken} of their relations do not hold.")
    return true


def _weights(weights: npt.ArrayLike | None, size: int) -> Floats:
    if weights is None:
        return np.ones(size)
    given = np.asarray(weights, dtype=np.float64).ravel()
    if given.size != size or not bool((np.isfinite(given) & (given >= 0)).all()):
        raise InputError(f"There must be {size} weights, each a number of 0 or more.")
    return given
