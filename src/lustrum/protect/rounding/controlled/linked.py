"""Controlled rounding of three-way, hierarchical and linked tables: exact if small, otherwise by search.

Every published cell becomes a neighbouring multiple of the base, multiples stay, and every relation between
published cells holds: zero-restricted controlled rounding (Cox 1987). For three-way tables it need not
exist (Causey, Cox and Ernst 1985; Ernst 1989). Then some cells must move further, by as few steps of the
base as possible; zeros stay zeros, and no cell becomes negative.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints, Sparse
from lustrum.numeric.solve import Highs, LinearProblem, Outcome, Solver
from lustrum.numeric.solve.products import dot
from lustrum.numeric.structure import Relations, Structure, complete_relations
from lustrum.protect.rounding.controlled.local import Scope, round_inner, sums_of, whole_base
from lustrum.runtime.stop import Stopped, stop_asked

# Controlled rounding as an integer program over steps of the base.

Distance = Literal["absolute", "squares"]


@dataclass(frozen=True, eq=False)
class RoundingProgram:
    """Columns of 0 or 1, each of which moves a cell by one step of the base.

    A cell starts at the multiple of the base below it. Its first column moves it to the one above; up to
    ``most`` further columns in each direction move it beyond. ``start`` and ``end`` are the errors before
    and after the step of a column. Larger errors cost more, so the columns of a cell are used in order.
    """

    problem: LinearProblem
    floor: Ints
    base: int
    cell: Ints
    sign: Ints
    start: Ints
    end: Ints
    extra: Floats

    @classmethod
    def of(cls, true: Ints, relations: Sparse, base: int, most: int) -> RoundingProgram:
        """The program in which no cell goes more than this many steps beyond its neighbours."""
        floor, residue = true - true % base, true % base
        between = np.flatnonzero(residue)
        parts = [(between, 1, -residue[between], base - residue[between], 0)]
        for k in range(1, most + 1):
            rising = np.flatnonzero(true)
            top = np.where(residue[rising] > 0, base - residue[rising], 0) + (k - 1) * base
            parts.append((rising, 1, top, top + base, 1))
            falling = np.flatnonzero(floor >= k * base)
            bottom = -residue[falling] - (k - 1) * base
            parts.append((falling, -1, bottom, bottom - base, 1))
        cell = np.concatenate([p[0] for p in parts])
        sign = np.concatenate([np.full(p[0].size, p[1], dtype=np.int64) for p in parts])
        whole = relations.astype(np.int64)
        matrix = sparse.csc_array(whole)[:, cell]
        matrix.data *= np.repeat(sign, np.diff(matrix.indptr))
        due = -(whole @ (floor // base)).astype(np.float64)
        columns = cell.size
        return cls(
            problem=LinearProblem(
                sparse.csr_array(matrix), due, due, np.zeros(columns), np.ones(columns)
            ),
            floor=floor,
            base=base,
            cell=cell,
            sign=sign,
            start=np.concatenate([p[2] for p in parts]),
            end=np.concatenate([p[3] for p in parts]),
            extra=np.concatenate([np.full(p[0].size, float(p[4])) for p in parts]),
        )

    def cost(self, distance: Distance) -> Floats:
        """What the step of each column adds to the distance."""
        if distance == "absolute":
            return (np.abs(self.end) - np.abs(self.start)).astype(np.float64)
        if distance == "squares":
            return (self.end**2 - self.start**2).astype(np.float64)
        raise InputError(f"The distance is 'absolute' or 'squares', not {distance!r}.")

    def limited(self, steps: int) -> RoundingProgram:
        """The same with no more than this many steps beyond the neighbours in all."""
        old = self.problem
        problem = LinearProblem(
            sparse.vstack([old.matrix, sparse.csr_array(self.extra[None, :])], format="csr"),
            np.append(old.row_low, 0.0),
            np.append(old.row_high, float(steps)),
            old.low,
            old.high,
        )
        return replace(self, problem=problem)

    def published(self, point: Ints) -> Ints:
        """The cells after the steps of a point."""
        cells = self.floor.copy()
        np.add.at(cells, self.cell, self.base * self.sign * point)
        return cells


How = Literal["auto", "exact", "search"]

EXACT_CELLS = 1500  # by default, tables with up to this many published cells are rounded exactly
_MOST_STEPS = 1000
_ORDER_STEPS = 200  # for one of many roundings that are equally near; most take a few
_EXACT = 2.0**40  # the largest cost of a column whose sums a solver tells apart


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
    distance: Distance = "absolute",
    steps: int | None = 1000,
    incumbent: npt.ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    solver: Solver | None = None,
) -> Rounded:
    """The nearest controlled rounding of published cells under ``relations @ published == 0``.

    The ``distance`` is the sum of absolute errors, or of their squares. An ``incumbent`` is any
    rounding that keeps the relations; it is returned if this many ``steps`` of the solver find nothing
    better. Of many that are equally near ``rng`` chooses.

    >>> sums = sparse.csr_array([[1, 1, 1, -1]])
    >>> round_published([1, 1, 2, 4], sums, 3).published.tolist()
    [0, 0, 3, 3]
    """
    whole_base(base)
    matrix = sparse.csr_array(relations.matrix if isinstance(relations, Relations) else relations)
    true = _checked(values, matrix)
    luck = np.random.default_rng(1) if rng is None else rng
    search = _Stages(true, matrix, base, distance, solver or Highs(), steps, luck)
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
    inner_weight: float = 0.0,
    distance: Distance = "absolute",
    steps: int | None = 1000,
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
    inner_rounding = round_inner(
        inner, tables, base, rng=rng, scope=scope, goal=goal, sweeps=100, inner_weight=inner_weight
    )
    true = sums_of(np.asarray(inner, dtype=np.int64).ravel(), tables)
    if how == "search" or scope != "all" or (how == "auto" and tables.rows > EXACT_CELLS):
        rounding = _rounded(true, inner_rounding.published, base, proven=False)
        word = (
            ""
            if inner_rounding.within_goal
            else f" Not every number is within {inner_rounding.goal} of the true one."
        )
        return Rounded(
            rounding.published,
            rounding.steps,
            rounding.largest_error,
            False,
            rounding.message + word,
            inner_rounding.inner,
        )
    return round_published(
        true,
        complete_relations(tables),
        base,
        distance=distance,
        steps=steps,
        incumbent=inner_rounding.published,
        rng=rng,
    )


class _Stages:
    """Round all cells to neighbouring multiples; if that is impossible, allow one step more, and so on."""

    def __init__(
        self,
        true: Ints,
        matrix: Sparse,
        base: int,
        distance: Distance,
        solver: Solver,
        steps: int | None,
        luck: np.random.Generator,
    ) -> None:
        self.true, self.matrix, self.base = true, matrix, base
        self.distance, self.solver = distance, solver
        self.left, self.luck = steps, luck
        self.stop = stop_asked()
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
        return int(steps.max(initial=0)), int(steps.sum()), float(size.sum())

    def offer(self, shown: Ints, *, equal: bool = False) -> None:
        """Keep a rounding if it is allowed and better than the best so far, or as good."""
        if not self.allowed(shown):
            return
        mine, best = self.rank(shown), None if self.best is None else self.rank(self.best)
        if best is None or mine < best or (equal and mine == best):
            self.best = shown

    def run(self) -> bool:
        """Go through the stages; returns whether the best rounding is proven to be optimal."""
        for most in range(_MOST_STEPS):
            program = RoundingProgram.of(self.true, self.matrix, self.base, most)
            cost = program.cost(self.distance)
            if most == 0:
                outcome, proven = self._nearest(program, cost)
            else:
                outcome, proven = self._solve(program, program.extra, self.left)
                if outcome is Outcome.OPTIMAL and proven and self.best is not None:
                    fewest = self.rank(self.best)[1]
                    outcome, proven = self._nearest(program.limited(fewest), cost)
            if outcome is not Outcome.INFEASIBLE:
                return proven
        return (
            False  # pragma: no cover - zeros everywhere keep all relations, so a stage is feasible
        )

    def _nearest(self, program: RoundingProgram, cost: Floats) -> tuple[Outcome, bool]:
        """The nearest rounding; of many that are equally near always the same, unless that takes long."""
        steps = _ORDER_STEPS if self.left is None else min(_ORDER_STEPS, self.left // 4)
        ordered = ordered_costs(cost, self.luck)
        if steps > 0 and ordered is not None:
            outcome, proven = self._solve(program, ordered, steps)
            if proven or outcome is Outcome.INFEASIBLE:
                return outcome, proven
        return self._solve(program, cost, self.left)

    def _solve(
        self, program: RoundingProgram, cost: Floats, steps: int | None
    ) -> tuple[Outcome, bool]:
        if self.stop():
            raise Stopped
        if steps is not None and steps <= 0:
            return Outcome.CUT_SHORT, False
        solution = self.solver.load(program.problem).minimise(
            cost, whole=True, steps=steps, stop=self.stop
        )
        if self.stop():
            raise Stopped  # what a stopped search has found depends on the clock
        if self.left is not None:
            self.left -= solution.steps
        if solution.point is None:
            return solution.outcome, False
        point = np.rint(solution.point)
        value = dot(cost, point)
        # Costs are whole, so nothing lies between two that differ by less than one.
        whole = bool((cost == np.rint(cost)).all())
        closed = value - solution.bound < (0.999 if whole else 1e-5 * max(1.0, abs(value)))
        proven = solution.outcome is Outcome.OPTIMAL and closed
        self.offer(program.published(point.astype(np.int64)), equal=proven)
        return solution.outcome, proven


def ordered_costs(cost: Floats, luck: np.random.Generator) -> Floats | None:
    """Costs by which one solution is best among those that cost the same; None if they are not whole.

    Every column has a small cost of its own, which is drawn; all together cost less than one unit did.

    >>> ordered_costs(np.array([1.0, -1.0, 0.0]), np.random.default_rng(1)).tolist()
    [633.0, -381.0, 193.0]
    """
    if bool((cost != np.rint(cost)).any()):
        return None
    tie_breakers = luck.integers(0, 256, cost.size)
    unit = 2.0 ** int(tie_breakers.sum()).bit_length()
    large = float(np.abs(cost).max(initial=0.0)) * unit > _EXACT
    return None if large else np.asarray(cost * unit + tie_breakers)


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
