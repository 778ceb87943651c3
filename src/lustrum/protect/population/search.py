"""The search: flips, swaps and exchanges of finest cells, cooled, until the controlled tables are close to the
truth.

It has stages, which the method chooses: tables at finest levels only, which are few and bring most of the
coarser ones along, then all tables, then the cells that lie in large errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lustrum.arrays import Array
from lustrum.model.stop import check_stop, report_progress
from lustrum.protect.population.exchanges import fill_slots
from lustrum.protect.population.forces import add_errors, set_forces
from lustrum.protect.population.kernels import (
    all_fields,
    cells_beyond,
    shuffle,
    sweep_blocks,
)
from lustrum.protect.population.layout import KINDS, Plan
from lustrum.protect.population.stages import Stage

__all__ = ["Problem", "SearchCells", "SearchState", "Searched", "search"]

_BLOCK_CELLS = 1 << 14
_RINGS = 8
_SLACK = 0.5


class SearchCells(NamedTuple):
    """The cells that may move, sorted by the major variable."""

    codes: Array  # (cells, variables), the major variable last
    up: Array  # whether a cell shows its upper number
    group: Array  # -1: free; otherwise cells of one group keep their sum
    is_empty: Array  # empty in truth
    low_smallest: Array  # whether the lower number is the smallest one above 0
    high_smallest: Array
    first: Array  # major code -> its first cell; one more at the end
    block_first: Array  # major code -> its first slice; one more at the end
    slice_first: Array  # slice -> its first cell; one more at the end
    partner: Array  # (cells, variables): the next cell along a variable, or -1
    number: Array  # the place among all combinations of codes, modulo 2**64
    slot: Array  # where the number of a cell is found
    tied: bool  # whether any cell has a group


@dataclass(frozen=True, eq=False)
class Problem:
    """Finest cells that may move, in the order of the dataset's codes."""

    movable: Array  # among all cells, those that are listed here
    codes: Array  # (variables of the dataset, cells)
    residue: Array  # true count above the lower number
    step: int
    up: Array
    is_empty: Array
    low: Array
    group: Array
    fixed_codes: Array  # cells that cannot move, and by how much they differ from the truth
    fixed_up: Array
    fixed_smallest: int  # how many of those show the smallest number,
    fixed_empty: int  # and how many of these are empty in truth
    empty_share: tuple[int, int]  # at least this fraction of those is empty in truth


@dataclass(frozen=True, eq=False, repr=False)
class SearchState:
    """Where a search stands after some sweeps; with it the rest gives the same bytes."""

    sweeps: int
    word: int
    up: Array
    fields: Array


@dataclass(frozen=True, eq=False)
class Searched:
    """The outcome: which cells stand at their upper number, in the order given, and the errors."""

    up: Array
    errors: Array
    moves: Array


def search(
    problem: Problem,
    stages: Sequence[Stage],
    seed: int,
    resume: SearchState | None = None,
    keep: Callable[[SearchState], None] | None = None,
) -> Searched:
    """Run the sweeps that are left; ``keep`` is given the state after each of them."""
    cells, order = _laid_out(problem, stages[-1].plan)
    state = np.array([seed], dtype=np.uint64)
    # Nothing is known of a cell before its first visit.
    fields = np.full((cells.up.size, 2), np.nan, dtype=np.float32)
    done = 0
    if resume is not None:
        fields[:] = resume.fields
        done = resume.sweeps
        state[0] = np.uint64(resume.word)
        cells.up[:] = resume.up
    work = [stage.sweeps * len(stage.plan.tables) for stage in stages]
    moves = np.zeros((3, 2), dtype=np.int64)
    before = 0
    plan: Plan | None = None
    errors = np.zeros(0, dtype=np.int32)
    for place, stage in enumerate(stages):
        last = before + stage.sweeps
        if done < last or place == len(stages) - 1:
            if plan is not stage.plan:
                plan = stage.plan
                errors = _errors(problem, cells, order, plan)
            first = max(done - before, 0)
            for sweep in range(first, stage.sweeps):
                report = _Progress(sum(work[:place]), work[place], sum(work), sweep, stage.sweeps)
                _sweep(stage, sweep, problem, cells, errors, fields, state, moves, report)
                if keep is not None:
                    keep(SearchState(before + sweep + 1, int(state[0]), cells.up, fields))
        before = last
    up = np.empty(len(order), dtype=np.bool_)
    up[order] = cells.up > 0
    return Searched(up, errors, moves)


@dataclass(frozen=True)
class _Progress:
    """How far the whole search is when part of a sweep is done."""

    before: int
    work: int
    every: int
    sweep: int
    sweeps: int

    def __call__(self, part: float) -> None:
        done = self.before + self.work * (self.sweep + part) / self.sweeps
        report_progress("protecting", done / self.every)


def _errors(problem: Problem, cells: SearchCells, order: Array, plan: Plan) -> Array:
    errors = np.zeros(plan.cells, dtype=np.int32)
    change = cells.up.astype(np.int64) * problem.step - problem.residue[order]
    add_errors(plan, cells.codes, change.astype(np.int32), errors)
    if problem.fixed_up.any():
        codes = np.ascontiguousarray(problem.fixed_codes[plan.rows()].T)
        add_errors(plan, codes, problem.fixed_up.astype(np.int32), errors)
    return errors


def _sweep(
    stage: Stage,
    sweep: int,
    problem: Problem,
    cells: SearchCells,
    errors: Array,
    fields: Array,
    state: Array,
    moves: Array,
    report: Callable[[float], None],
) -> None:
    costs = stage.costs_of(problem.step)
    layout = stage.plan.layout
    temperature = stage.temperature(sweep, costs.rise)
    forces = np.empty((errors.size, 2), dtype=np.int32)
    set_forces(errors, layout.cell_kind, costs.force, forces)
    if sweep == 0:
        all_fields(layout, cells.codes, cells.slice_first, forces, fields)
    visited = np.ones(cells.up.size, dtype=np.uint8)
    if stage.beyond:
        counts = np.array([kind != "extra" for kind in KINDS])
        cells_beyond(layout, cells.codes, errors, counts, stage.beyond, visited)
    tally = np.array([_lack(problem, cells), *problem.empty_share], dtype=np.int64)
    majors = np.flatnonzero(np.diff(cells.first)).astype(np.int64)
    shuffle(majors, state)
    finished = 0
    for blocks in _batches(majors, cells.first):
        check_stop()
        sweep_blocks(
            layout,
            cells,
            blocks,
            errors,
            forces,
            fields,
            tally,
            state,
            np.int32(problem.step),
            costs,
            temperature,
            _SLACK * temperature,
            stage.lost * temperature,
            _RINGS,
            stage.near,
            visited,
            moves,
        )
        finished += int(np.diff(cells.first)[blocks].sum())
        report(finished / max(1, cells.up.size))


def _lack(problem: Problem, cells: SearchCells) -> int:
    """By how much the empty cells that show the smallest number are too few; below 0 where there are enough."""
    smallest = np.where(cells.up > 0, cells.high_smallest, cells.low_smallest)
    showing = int(smallest.sum(dtype=np.int64)) + problem.fixed_smallest
    empty = int((cells.is_empty * cells.up).sum(dtype=np.int64)) + problem.fixed_empty
    share, of = problem.empty_share
    return share * showing - of * empty


def _laid_out(problem: Problem, plan: Plan) -> tuple[SearchCells, Array]:
    """The cells as the compiled search wants them, and the order in which they stand there."""
    rows = plan.rows()
    codes = problem.codes[rows]
    order = np.lexsort(codes)  # the last row, the major variable, decides first
    codes = np.ascontiguousarray(codes[:, order].T)
    sizes = [len(plan.dataset.variables[r].codes) for r in rows]
    low, step = problem.low[order], problem.step
    numbers = np.zeros(len(codes), dtype=np.uint64)
    for place, size in enumerate(sizes):
        numbers = numbers * np.uint64(size) + codes[:, place].astype(np.uint64)
    outer = codes[:, -plan.outer :]
    begins = np.flatnonzero(np.r_[True, (outer[1:] != outer[:-1]).any(axis=1)][: len(codes)])
    slot = np.zeros(1 << (2 * len(codes)).bit_length(), dtype=np.uint64)
    fill_slots(numbers, slot)
    cells = SearchCells(
        codes=codes,
        up=problem.up[order].astype(np.uint8),
        group=problem.group[order].astype(np.int64),
        is_empty=problem.is_empty[order].astype(np.int8),
        low_smallest=(low == step).astype(np.int8),
        high_smallest=(low == 0).astype(np.int8),
        first=np.searchsorted(codes[:, -1], np.arange(sizes[-1] + 1)).astype(np.int64),
        block_first=np.searchsorted(codes[begins, -1], np.arange(sizes[-1] + 1)).astype(np.int64),
        slice_first=np.r_[begins, len(codes)].astype(np.int64),
        partner=_partners(codes, sizes),
        number=numbers,
        slot=slot,
        tied=bool((problem.group >= 0).any()),
    )
    return cells, order


def _partners(codes: Array, sizes: list[int]) -> Array:
    """For every cell the next one that differs in a single variable, in a ring; -1 if there is none."""
    count, variables = codes.shape
    partner = np.full((count, variables), -1, dtype=np.int32)
    for v in range(variables):
        line = np.zeros(count, dtype=np.uint64)
        for u in range(variables):
            if u != v:
                line = line * np.uint64(sizes[u]) + codes[:, u]
        # Cells of one line stand in the order of their codes already.
        order = np.argsort(line, kind="stable")
        sorted_line = line[order]
        begins = np.flatnonzero(np.r_[True, sorted_line[1:] != sorted_line[:-1]][:count])
        length = np.diff(np.r_[begins, count])
        following = np.r_[order[1:], -1][:count]
        following[begins + length - 1] = np.where(length > 1, order[begins], -1)
        partner[order, v] = following
    return partner


def _batches(majors: Array, first: Array) -> list[Array]:
    """Blocks in their order, cut into pieces after which the work may stop."""
    if not majors.size:
        return []
    sizes = np.diff(first)[majors]
    cut = np.flatnonzero(np.diff(np.cumsum(sizes) // _BLOCK_CELLS)) + 1
    return list(np.split(majors, cut))
