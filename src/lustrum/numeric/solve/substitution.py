"""Substitute columns by equations, once for all questions, until a small core is left.

An equation with a 1 or -1 gives one of its columns by the others. The column can go if its own bounds follow
from those of the others (it is implied free); in an equation of two columns its bounds pass to the other one.
The relations of tables have mostly two or three open cells, so that a quarter of the rows remains. All is done
in whole numbers: every x of the problem is ``offset + map @ u`` for a u of the core, and bounds proven for the
core hold for the problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from lustrum.model.arrays import Floats, Sparse
from lustrum.numeric.later import sparse
from lustrum.numeric.solve.highs import Highs
from lustrum.numeric.solve.problem import LinearProblem, Loaded, Optimum, Solver
from lustrum.numeric.solve.products import sparse_product

_LONGEST = 12  # an equation with more columns is not solved for one of them
_FILL = 24  # the most entries that one substitution may write
_LARGE = 2**30  # numbers beyond this are left alone, so that nothing overflows
_EPS = float(np.finfo(np.float64).eps)
_OFF = 1e-6  # how far a table from the core may be beyond bounds that were found to follow, for its size


@dataclass(frozen=True, eq=False)
class Core:
    """A smaller problem with the same solutions: ``x = offset + map @ u`` for every u in it."""

    problem: LinearProblem
    map: Sparse
    offset: Floats


def core_of(problem: LinearProblem) -> Core | None:
    """The core of a problem of whole numbers, or None if it is not smaller or no whole numbers are given."""
    if not _is_whole(problem):
        return None
    work = _Work(problem)
    if not work.reduce():
        return None
    return work.core()


class _Work:
    """Rows as dictionaries of whole numbers, and which rows each column occurs in."""

    def __init__(self, problem: LinearProblem) -> None:
        self.problem = problem
        matrix = problem.matrix.tocsr()
        height, width = matrix.shape
        self.rows: list[dict[int, int]] = []
        self.uses: list[set[int]] = [set() for _ in range(width)]
        for r in range(height):
            span = slice(matrix.indptr[r], matrix.indptr[r + 1])
            columns, values = matrix.indices[span].tolist(), matrix.data[span].tolist()
            row = {c: int(v) for c, v in zip(columns, values, strict=True) if v}
            self.rows.append(row)
            for c in row:
                self.uses[c].add(r)
        equal = problem.row_low == problem.row_high
        self.equation = equal.tolist()
        self.ends = [_numbers(end) for end in (problem.row_low, problem.row_high)]
        self.low, self.high = _numbers(problem.low), _numbers(problem.high)
        # A column that went: the whole number and the columns that it equals, at that time.
        self.gone: list[tuple[int, int, dict[int, int]]] = []

    def reduce(self) -> bool:
        """Substitute until nothing more can go; False if an equation contradicts itself or nothing went."""
        queue = [(len(row), r) for r, row in enumerate(self.rows) if self.equation[r]]
        heapify(queue)
        while queue:
            size, r = heappop(queue)
            row = self.rows[r]
            if not self.equation[r] or len(row) != size or size > _LONGEST:
                continue
            if size == 0:
                if self.ends[0][r] != 0:
                    return False
                continue
            picked = self._pick(r)
            if picked is None:
                continue
            for other in self._substitute(r, picked):
                if self.equation[other]:
                    heappush(queue, (len(self.rows[other]), other))
        return bool(self.gone)

    def _pick(self, r: int) -> int | None:
        """The column of an equation that can go and writes the fewest new entries."""
        row, best, least = self.rows[r], None, _FILL + 1
        for c, weight in row.items():
            if abs(weight) != 1:
                continue
            fill = (len(row) - 1) * (len(self.uses[c]) - 1)
            if fill < least and (self._follows(r, c) or self._passes(r, c)):
                best, least = c, fill
        return best

    def _follows(self, r: int, c: int) -> bool:
        """Whether the bounds of a column follow from those of the others in an equation."""
        weight, total = self.rows[r][c], self.ends[0][r]
        least = most = total * weight
        for other, w in self.rows[r].items():
            if other == c:
                continue
            a, b = -w * weight * self.low[other], -w * weight * self.high[other]
            least, most = least + min(a, b), most + max(a, b)
        return bool(self.low[c] <= least and most <= self.high[c])

    def _passes(self, r: int, c: int) -> bool:
        """Whether the bounds of a column can pass to the only other one."""
        if len(self.rows[r]) == 1:
            return bool(self.low[c] <= self.ends[0][r] * self.rows[r][c] <= self.high[c])
        if len(self.rows[r]) != 2:
            return False
        return all(abs(w) == 1 for w in self.rows[r].values())

    def _substitute(self, r: int, c: int) -> list[int]:
        """Replace a column by the others of an equation everywhere; returns the rows that changed."""
        row, total = self.rows[r], self.ends[0][r]
        weight = row.pop(c)
        start, terms = total * weight, {o: -w * weight for o, w in row.items()}
        if len(terms) == 1:
            ((other, times),) = terms.items()
            ends = sorted((e - start) * times for e in (self.low[c], self.high[c]))
            if abs(times) == 1:
                self.low[other] = max(self.low[other], ends[0])
                self.high[other] = min(self.high[other], ends[1])
        self.gone.append((c, start, terms))
        self.equation[r], self.rows[r] = False, {}
        for other in terms:
            self.uses[other].discard(r)
        self.uses[c].discard(r)
        changed = sorted(self.uses[c])
        for changed_row in changed:
            line = self.rows[changed_row]
            factor = line.pop(c)
            for ends_of in self.ends:
                ends_of[changed_row] -= factor * start
            for other, times in terms.items():
                value = line.get(other, 0) + factor * times
                if value:
                    line[other] = value
                    self.uses[other].add(changed_row)
                else:
                    del line[other]
                    self.uses[other].discard(changed_row)
        self.uses[c] = set()
        return changed

    def core(self) -> Core | None:
        """What is left, and every column as an expression of what is left."""
        width = len(self.uses)
        gone = {c for c, _, _ in self.gone}
        left = [c for c in range(width) if c not in gone]
        core_index = {c: i for i, c in enumerate(left)}
        terms: list[dict[int, int]] = [
            {core_index[c]: 1} if c in core_index else {} for c in range(width)
        ]
        offset = [0] * width
        for c, start, parts in reversed(self.gone):
            expression: dict[int, int] = {}
            for other, times in parts.items():
                start += times * offset[other]
                for u, value in terms[other].items():
                    expression[u] = expression.get(u, 0) + times * value
            terms[c] = {u: v for u, v in expression.items() if v}
            offset[c] = start
        rows = [r for r, row in enumerate(self.rows) if row]
        if not left or max(map(abs, offset)) > _LARGE:
            return None
        ends = [np.array([e[r] for r in rows], dtype=np.float64) for e in self.ends]
        bounds = [np.array([e[c] for c in left], dtype=np.float64) for e in (self.low, self.high)]
        matrix = _sparse(
            [{core_index[c]: v for c, v in self.rows[r].items()} for r in rows], len(left)
        )
        mapped = _sparse(terms, len(left))
        if (
            np.abs(mapped.data).max(initial=0.0) > _LARGE
            or np.abs(matrix.data).max(initial=0.0) > _LARGE
        ):
            return None
        problem = LinearProblem(matrix, *ends, *bounds)
        return Core(problem, mapped, np.array(offset, dtype=np.float64))


def _numbers(ends: Floats) -> list[Any]:
    """Whole numbers of any size, and infinities as they are."""
    return [int(e) if np.isfinite(e) else float(e) for e in ends.tolist()]


def _is_whole(problem: LinearProblem) -> bool:
    arrays = (problem.matrix.data, problem.row_low, problem.row_high, problem.low, problem.high)
    for array in arrays:
        finite = array[np.isfinite(array)]
        if bool((finite != np.round(finite)).any()) or np.abs(finite).max(initial=0.0) > _LARGE:
            return False
    return True


def _sparse(rows: list[dict[int, int]], width: int) -> Sparse:
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([c for row in rows for c in row], dtype=np.int64)
    data = np.array([v for row in rows for v in row.values()], dtype=np.float64)
    return sparse.csr_array((data, indices, indptr), shape=(len(rows), width))


@dataclass(frozen=True)
class Substituted:
    """A solver that is asked about the core of each problem only.

    >>> problem = LinearProblem(sparse.csr_array([[1.0, 1.0]]), [3.0], [3.0], [0.0] * 2, [2.0] * 2)
    >>> loaded = Substituted().load(problem)
    >>> [round(float(loaded.minimise(np.array(cost)).bound), 9) for cost in ([1.0, 0.0], [-1.0, 0.0])]
    [1.0, -2.0]
    """

    solver: Solver = field(default_factory=Highs)

    def load(self, problem: LinearProblem) -> _Mapped:
        """Take in a problem; its core is found when the first linear program is asked for."""
        return _Mapped(self.solver, problem)


class _Mapped:
    def __init__(self, solver: Solver, problem: LinearProblem) -> None:
        self._solver, self._problem = solver, problem
        self._sought = False
        self._core: Core | None = None
        self._inside: Loaded | None = None
        self._direct: Loaded | None = None

    def minimise(
        self,
        cost: Floats,
        *,
        whole: bool = False,
        target: float | None = None,
        steps: int | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Optimum:
        """The least ``cost @ x``; whole x are searched for in the problem itself."""
        core = None if whole or not _small_whole(cost) else self._opened()
        if core is None or self._inside is None:
            return self._directly().minimise(
                cost, whole=whole, target=target, steps=steps, stop=stop
            )
        core_optimum = self._inside.minimise(
            sparse_product(self._costs, cost), steps=steps, stop=stop
        )
        point = None
        if core_optimum.point is not None:
            point = core.offset + sparse_product(core.map, core_optimum.point)
            off = np.maximum(self._problem.low - point, point - self._problem.high)
            if bool((off > _OFF * (1.0 + np.abs(point))).any()):
                # The solver's error in the core grew on the way back.
                self._core = None
                return self._directly().minimise(cost, steps=steps, stop=stop)
            point = np.clip(point, self._problem.low, self._problem.high)
        terms = cost * core.offset
        bound = core_optimum.bound + float(terms.sum())
        if np.isfinite(bound):
            size = float(np.abs(terms).sum()) + abs(core_optimum.bound)
            bound -= _EPS * (np.count_nonzero(cost) + 2.0) * size
        return Optimum(core_optimum.outcome, bound, point, None, core_optimum.steps)

    def again(self) -> _Mapped:
        """The same core at the same vertex."""
        twin = _Mapped.__new__(_Mapped)
        twin.__dict__.update(self.__dict__)
        twin._inside = None if self._inside is None else self._inside.again()
        twin._direct = None if self._direct is None else self._direct.again()
        return twin

    def _opened(self) -> Core | None:
        if not self._sought:
            self._sought, self._core = True, core_of(self._problem)
            if self._core is not None:
                self._costs = self._core.map.T.tocsr()
                self._inside = self._solver.load(self._core.problem)
        return self._core

    def _directly(self) -> Loaded:
        if self._direct is None:
            self._direct = self._solver.load(self._problem)
        return self._direct


def _small_whole(cost: Floats) -> bool:
    """Whether costs are whole and small, so that those of the core come out without rounding error."""
    return bool(((cost == np.round(cost)) & (np.abs(cost) < 2**20)).all())
