"""Round inner cells so that all published sums stay close: a local search for large tables.

Every published number is the sum of rounded inner cells, so all tables add up and agree where they overlap.
The search chooses for each inner cell one of its two neighbouring multiples of the base. It minimises the
largest error of a published sum first, then the sum of squared errors.

If every error is below the base, every sum is a neighbouring multiple, too: that is zero-restricted
controlled rounding (Cox 1987). It need not exist for three-way tables (Causey, Cox and Ernst 1985), but in
large ones there is so much choice that the search usually finds it. With
``scope="small"`` only counts below the base are rounded, to 0 or the base, after the idea of Langsrud
and Heldal (2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints, Sparse, Words
from lustrum.numeric.arithmetic import exp, log
from lustrum.numeric.solve.products import dot
from lustrum.numeric.structure import Structure
from lustrum.protect.rounding.controlled.local_kernels import anneal, greedy_start, polish, walk

Scope = Literal["all", "small"]
_Pair: TypeAlias = tuple[Any, Any]

_HOT, _COLD = 0.25, 0.011  # temperatures, as shares of the energy of one step of a balanced cell
_POLISH = 4
_FEWEST_STEPS, _STEPS_A_MARGIN = 20_000, 30


@dataclass(frozen=True, eq=False)
class InnerRounding:
    """Rounded inner cells, and how far the published sums are from the true ones.

    ``largest_error`` is over all published cells, inner ones included; ``squares`` is the sum of squared
    errors over the distinct sums of several inner cells. They follow from the true counts and are
    confidential. ``within_goal`` says whether no published cell is further off than the goal.
    """

    inner: Ints
    published: Ints
    goal: int
    largest_error: int
    squares: int

    def __repr__(self) -> str:
        state = "within" if self.within_goal else "not within"
        return f"InnerRounding({self.published.size} published cells, {state} {self.goal})"

    @property
    def within_goal(self) -> bool:
        return self.largest_error <= self.goal


def round_inner(
    inner: npt.ArrayLike,
    tables: Structure,
    base: int,
    *,
    rng: np.random.Generator,
    scope: Scope = "all",
    goal: int | None = None,
    sweeps: int = 100,
    inner_weight: float = 0.0,
) -> InnerRounding:
    """Round inner cells so that the errors of the published sums are as small as the search can make them.

    The search tries to bring every sum within the ``goal``, by default ``base - 1``, and where it cannot,
    within the next larger error. More ``sweeps`` make the squares smaller. ``inner_weight`` makes the
    squared errors of inner cells count beside those of the sums.

    >>> from lustrum.numeric.structure import Structure
    >>> tables = Structure.margins((4, 3), ["AB", "A", "B", ""])
    >>> counts = [5, 1, 2, 0, 4, 7, 3, 1, 1, 8, 2, 2]
    >>> made = round_inner(counts, tables, 3, rng=np.random.default_rng(1))
    >>> made, bool(made.published[-1] == made.inner.sum())
    (InnerRounding(20 published cells, within 2), True)
    """
    whole_base(base)
    values = _counts(inner)
    search = _LocalRounding.of(values, tables, base, scope, rng, inner_weight)
    target = base - 1 if goal is None else goal
    if type(target) is not int or target < 0:
        raise InputError(f"The goal of rounding must be a whole number of 0 or more, not {goal!r}.")
    if type(sweeps) is not int or sweeps < 0:
        raise InputError(f"The number of sweeps must be a whole number, 0 or more, not {sweeps!r}.")
    search.run(target, sweeps)
    rounded = search.rounded(values)
    true, shown = sums_of(values, tables), sums_of(rounded, tables)
    return InnerRounding(
        inner=rounded,
        published=shown,
        goal=target,
        largest_error=int(np.abs(shown - true).max(initial=0)),
        squares=search.squares,
    )


def whole_base(base: int) -> None:
    """Raise an error for an invalid base."""
    if type(base) is not int or not 2 <= base < 2**20:
        raise InputError(f"Controlled rounding needs a whole base from 2 to 2**20, not {base!r}.")


@dataclass(eq=False)
class _LocalRounding:
    """The cells that can move and the sums they are part of, in the layout of the kernels."""

    base: int
    moving: Ints
    residue: Ints
    lean: Floats
    by_cell: Sparse  # columns: the margins of each cell
    by_margin: Sparse
    error: Ints
    up: npt.NDArray[np.int8]
    state: Words

    @classmethod
    def of(
        cls,
        values: Ints,
        tables: Structure,
        base: int,
        scope: Scope,
        rng: np.random.Generator,
        inner_weight: float,
    ) -> _LocalRounding:
        if scope not in ("all", "small"):
            raise InputError(f"The scope of rounding is 'all' or 'small', not {scope!r}.")
        if not 0.0 <= inner_weight < np.inf:
            raise InputError(f"The weight of inner cells must be 0 or more, not {inner_weight!r}.")
        free = (values % base != 0) & ((values < base) | (scope == "all"))
        moving = np.flatnonzero(free).astype(np.int64)
        margins = _margins(tables, values.size, moving)
        # A random order, so that the search does not follow the lines of the table.
        order = rng.permutation(moving.size)
        by_cell = sparse.csc_array(margins)[:, order]
        residue = values[moving[order]] % base
        return cls(
            base=base,
            moving=moving[order],
            residue=residue,
            lean=(inner_weight * base * (base - 2 * residue)).astype(np.float64),
            by_cell=by_cell,
            by_margin=by_cell.tocsr(),
            error=np.zeros(margins.shape[0], dtype=np.int64),
            up=np.zeros(moving.size, dtype=np.int8),
            state=rng.integers(0, 2**64, size=1, dtype=np.uint64),
        )

    @property
    def squares(self) -> int:
        """The sum of squared errors of all margins."""
        return int(self.error @ self.error)

    def rounded(self, values: Ints) -> Ints:
        """All inner cells, with movable ones at their present multiples."""
        inner_cells = values.copy()
        inner_cells[self.moving] += self.base * self.up - self.residue
        return inner_cells

    def run(self, goal: int, sweeps: int) -> None:
        """Start, anneal, repair, polish; never ends worse than it started."""
        cells, lists = _pair(self.by_cell), _pair(self.by_margin)
        greedy_start(*cells, self.error, self.up, self.residue, self.lean, self.base, self.state)
        started = self._rank(goal), self.up.copy(), self.error.copy()
        heats = self._temperatures(sweeps)
        anneal(*cells, self.error, self.up, self.lean, self.base, heats, self.state)
        self._repair(goal, cells, lists)
        most = max(goal, int(np.abs(self.error).max(initial=0)))
        state = (self.error, self.up, self.lean)
        polish(*cells, *lists, *state, self.base, most, _POLISH, self.state)
        if started[0] < self._rank(goal):
            _, self.up, self.error = started

    def _repair(self, goal: int, cells: _Pair, lists: _Pair) -> None:
        """Bring all errors within the goal, or within the smallest larger error that is achievable."""
        steps = _FEWEST_STEPS + _STEPS_A_MARGIN * self.error.size
        aim = goal
        while int(np.abs(self.error).max(initial=0)) > aim:
            error, up = self.error.copy(), self.up.copy()
            _, done = walk(*cells, *lists, error, up, self.base, aim, steps, self.state)
            # A walk that did not succeed usually ends closer than it started.
            if done or _beyond(error, aim) < _beyond(self.error, aim):
                self.error, self.up = error, up
            aim += 1

    def _rank(self, goal: int) -> tuple[int, float]:
        worst = int(np.abs(self.error).max(initial=0))
        return max(worst, goal), float(self.squares) + dot(self.lean, self.up)

    def _temperatures(self, sweeps: int) -> Floats:
        """Temperatures, from one that accepts about every tenth step down to one that accepts hardly any."""
        each = self.by_cell.indices.size / max(self.moving.size, 1)
        scale = max(each, 1.0) * self.base**2
        fall = log(_COLD / _HOT) * (np.arange(sweeps) / max(sweeps - 1, 1))
        return np.asarray(_HOT * scale * exp(fall))


def _beyond(error: Ints, aim: int) -> int:
    return int(np.count_nonzero(np.abs(error) > aim))


def _pair(matrix: Sparse) -> _Pair:
    """Pointers and entries in fixed types, so that kernels are compiled once."""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)


def _counts(inner: npt.ArrayLike) -> Ints:
    values = np.asarray(inner)
    if values.dtype.kind not in "iu" or (values.size and int(values.min()) < 0):
        raise InputError("Controlled rounding needs inner cells that are whole counts, 0 or more.")
    return values.astype(np.int64).ravel()


def sums_of(values: Ints, tables: Structure) -> Ints:
    """All published cells from values of the inner cells, one table after the other."""
    parts = [np.asarray(t, dtype=np.int64).ravel() for t in tables.published(values)]
    return np.concatenate(parts)


def _margins(tables: Structure, inner: int, moving: Ints) -> Sparse:
    """The sums of several inner cells over the cells that can move, each sum once."""
    if inner != tables.inner:
        raise InputError(f"There are {tables.inner} inner cells, but {inner} values were given.")
    # Sums of random words identify sets of inner cells: equal sums are the same published cell.
    hashes = np.random.default_rng(0).integers(0, 2**64, size=inner, dtype=np.uint64)
    sizes = sums_of(np.ones(inner, dtype=np.int64), tables)
    marks = np.concatenate([t.ravel() for t in tables.published(hashes)])
    matrix = sparse.csr_array(tables.restrict(moving).matrix)
    several = np.flatnonzero((sizes > 1) & (np.diff(matrix.indptr) > 0))
    _, once = np.unique(marks[several], return_index=True)
    return matrix[several[np.sort(once)]]
