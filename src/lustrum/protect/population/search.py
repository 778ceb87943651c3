"""The search: flips and swaps of finest cells, cooled, until the controlled tables are close to the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lustrum.model.stop import check_stop, report_progress
from lustrum.protect.population.kernels import add_errors, shuffle, sweep_blocks
from lustrum.protect.population.layout import Plan

__all__ = ["Cooling", "Problem", "SearchCells", "Searched", "search"]

Array = npt.NDArray[Any]
_BLOCK_CELLS = 1 << 14
_QUANTILES = 4096


class SearchCells(NamedTuple):
    """The cells that may move, sorted by the major variable."""

    codes: Array  # (cells, variables), the major variable last
    up: Array  # whether a cell shows its upper number
    group: Array  # -1: free; otherwise cells of one group keep their sum
    is_empty: Array  # empty in truth
    low_smallest: Array  # whether the lower number is the smallest one above 0
    high_smallest: Array
    first: Array  # major code -> its first cell; one more at the end
    partner: Array  # (variables, cells): the next cell along a variable, or -1


@dataclass(frozen=True)
class Cooling:
    """How long the search runs and how it cools: temperatures fall geometrically from hot to cold."""

    sweeps: int
    hot: float
    cold: float
    quadratic: float

    def temperature(self, sweep: int) -> float:
        """The temperature of a sweep, rounded to a whole number so that all machines agree."""
        share = sweep / max(1, self.sweeps - 1)
        return float(round(self.hot * (self.cold / self.hot) ** share))


@dataclass(frozen=True, eq=False)
class Problem:
    """Finest cells that may move, in the order of the dataset's codes."""

    plan: Plan
    movable: Array  # among all cells, those that are listed here
    codes: Array  # (variables of the dataset, cells)
    residue: Array  # true count above the lower number
    step: int
    up: Array
    is_empty: Array
    low: Array
    group: Array
    fixed_smallest: int  # cells that cannot move and show the smallest number
    empty_share: tuple[int, int]  # at least this fraction of those is empty in truth


@dataclass(frozen=True, eq=False)
class Searched:
    """The outcome: which cells stand at their upper number, in the order given, and the errors."""

    up: Array
    errors: Array
    moves: Array


def search(
    problem: Problem,
    cooling: Cooling,
    seed: int,
    resume: tuple[int, int, Array] | None = None,
    keep: Callable[[int, int, Array], None] | None = None,
) -> Searched:
    """Run the sweeps that are left; ``keep`` is given the state after each of them."""
    plan = problem.plan
    cells, order = _laid_out(problem)
    state = np.array([seed], dtype=np.uint64)
    done = 0
    if resume is not None:
        done, word, up = resume
        state[0] = np.uint64(word)
        cells.up[:] = up
    errors = np.zeros(plan.cells, dtype=np.float32)
    step = problem.step
    change = (cells.up.astype(np.int64) * step - problem.residue[order]).astype(np.float32)
    add_errors(plan.layout, cells.codes, change, errors)
    smallest = np.where(cells.up > 0, cells.high_smallest, cells.low_smallest)
    tally = np.array(
        [
            int((cells.is_empty * cells.up).sum()),
            int(smallest.sum()) + problem.fixed_smallest,
            *problem.empty_share,
        ],
        dtype=np.int64,
    )
    moves = np.zeros((2, 2), dtype=np.int64)
    majors = np.flatnonzero(np.diff(cells.first))
    for sweep in range(done, cooling.sweeps):
        temperature = cooling.temperature(sweep)
        finished = 0
        visited = majors.copy()
        shuffle(visited, state)
        for blocks in _batches(visited, cells.first):
            check_stop()
            sweep_blocks(
                plan.layout,
                cells,
                blocks,
                errors,
                tally,
                state,
                float(step),
                cooling.quadratic,
                temperature,
                _exponential_quantiles(),
                moves,
            )
            finished += int(np.diff(cells.first)[blocks].sum())
            report_progress("protecting", (sweep + finished / max(1, len(order))) / cooling.sweeps)
        if keep is not None:
            keep(sweep + 1, int(state[0]), cells.up)
    up = np.empty(len(order), dtype=np.bool_)
    up[order] = cells.up > 0
    return Searched(up, errors, moves)


def _laid_out(problem: Problem) -> tuple[SearchCells, Array]:
    """The cells as the compiled search wants them, and the order in which they stand there."""
    rows = problem.plan.rows()
    codes = problem.codes[rows]
    order = np.lexsort(codes)  # the last row, the major variable, decides first
    codes = np.ascontiguousarray(codes[:, order].T)
    majors = len(problem.plan.dataset.variables[rows[-1]].codes)
    low, step = problem.low[order], problem.step
    cells = SearchCells(
        codes=codes,
        up=problem.up[order].astype(np.uint8),
        group=problem.group[order].astype(np.int64),
        is_empty=problem.is_empty[order].astype(np.int64),
        low_smallest=(low == step).astype(np.int64),
        high_smallest=(low + step == step).astype(np.int64),
        first=np.searchsorted(codes[:, -1], np.arange(majors + 1)).astype(np.int64),
        partner=_partners(codes, [len(problem.plan.dataset.variables[r].codes) for r in rows]),
    )
    return cells, order


def _partners(codes: Array, sizes: list[int]) -> Array:
    """For every cell the next one that differs in a single variable, in a ring; -1 if there is none."""
    count, variables = codes.shape
    partner = np.full((variables, count), -1, dtype=np.int32)
    for v in range(variables):
        others = [u for u in range(variables) if u != v]
        line = np.zeros(count, dtype=np.uint64)
        for u in others:
            line = line * np.uint64(sizes[u]) + codes[:, u]
        order = np.lexsort((codes[:, v], line))
        sorted_line = line[order]
        begins = np.flatnonzero(np.r_[True, sorted_line[1:] != sorted_line[:-1]][:count])
        length = np.diff(np.r_[begins, count])
        following = np.r_[order[1:], -1][:count]
        following[begins + length - 1] = np.where(length > 1, order[begins], -1)
        partner[v, order] = following
    return partner


def _batches(majors: Array, first: Array) -> list[Array]:
    """Blocks in their order, cut into pieces after which the work may stop."""
    sizes = np.diff(first)[majors]
    if not majors.size:
        return []
    cut = np.flatnonzero(np.diff(np.cumsum(sizes) // _BLOCK_CELLS)) + 1
    return [piece.astype(np.int64) for piece in np.split(majors, cut)]


@cache
def _exponential_quantiles() -> Array:
    """Quantiles of the exponential distribution in fixed point, the same on every machine."""
    with localcontext() as context:
        context.prec = 30
        middles = ((Decimal(2 * j + 1) / (2 * _QUANTILES)) for j in range(_QUANTILES))
        exact = [int((-m.ln() * 2**20).to_integral_value()) for m in middles]
    return np.array(exact, dtype=np.float64) / 2**20
