"""The search: flips, swaps and exchanges of finest cells, cooled, until the controlled tables are close to the
truth.

It has stages, which the method chooses: tables at finest levels only, which are few and bring most of the
coarser ones along, then all tables, then the cells that lie in large errors. A stage may go on to the end:
until no large error is left, or its sweeps are used up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import ceil, floor, prod
from typing import Any

import numpy as np

from lustrum.model.arrays import Array
from lustrum.numeric.stream import next_word
from lustrum.protect.population.search.forces import add_errors, set_forces
from lustrum.protect.population.search.lanes import (
    Lane,
    Lanes,
    Together,
    follow,
    replay,
    share_out,
    working_together,
)
from lustrum.protect.population.search.large_errors import visited_cells, visited_to_end, walk
from lustrum.protect.population.search.layout import SearchCells, TablePlan
from lustrum.protect.population.search.moves import fill_slots
from lustrum.protect.population.search.stages import Stage
from lustrum.protect.population.search.sweep import Pace, all_fields, shuffle, sweep_slices
from lustrum.runtime.stop import check_stop, report_progress, still_working

_PARTS = 16
DRIFT = Fraction(1, 20)
"""How far the share of cells at their upper number, among those with the same residue, may move away from the
probability with which they start there."""


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """Finest cells that may move, in the order of the dataset's codes."""

    every: Array  # (variables of the dataset, all cells), those that cannot move among them
    movable: Array  # among all cells, those that are listed here
    residue: Array  # true count above the lower number
    step: int
    up: Array
    is_empty: Array
    low: Array
    group: Array
    fixed_up: Array  # by how much cells that cannot move differ from the truth
    fixed_smallest: int  # how many of those show the smallest number,
    fixed_empty: int  # and how many of these are empty in truth
    empty_share: tuple[int, int]  # at least this fraction of those is empty in truth
    start_share: tuple[int, int] | None = None  # see ``start_up``; without it transitions are free
    drift_part: Fraction | None = (
        None  # shares move by no more than this part of those at the start
    )
    # In its place, the class of every cell, and which share of each stands up, at least and at most.
    kind: Array | None = None
    up_shares: tuple[tuple[Fraction, Fraction], ...] = ()
    # What an earlier search found, from which this one goes on; the classes are held to where cells start.
    found: Array | None = None
    # The errors of the tables that this block shares with others.
    shared_errors: Array | None = None

    @property
    def codes(self) -> Array:
        """The codes of the cells that may move: (variables of the dataset, cells)."""
        return self.every[:, self.movable]

    @property
    def fixed_codes(self) -> Array:
        """The codes of the cells that cannot move."""
        return self.every[:, ~self.movable]


@dataclass(frozen=True, eq=False, repr=False)
class SearchState:
    """Where a search stands after some sweeps; with it the rest gives the same bytes."""

    sweeps: int
    word: int
    up: Array
    fields: Array


@dataclass(frozen=True, eq=False)
class SearchedPopulation:
    """The outcome: which cells stand at their upper number, in the order given, and the errors."""

    up: Array
    errors: Array
    moves: Array


def search(
    problem: SearchProblem,
    stages: Sequence[Stage],
    seed: int,
    resume: SearchState | None = None,
    keep: Callable[[SearchState], None] | None = None,
    workers: int | None = None,
) -> SearchedPopulation:
    """Run the sweeps that are left; ``keep`` is given the state after each of them.

    ``workers`` is how many threads share the work, by default one for each core; the bytes are the same for any
    number.
    """
    with working_together(workers) as together:
        return _search(problem, stages, seed, resume, keep, together)


def _search(
    problem: SearchProblem,
    stages: Sequence[Stage],
    seed: int,
    resume: SearchState | None,
    keep: Callable[[SearchState], None] | None,
    together: Together,
) -> SearchedPopulation:
    report_progress("laying out cells", 0.0)
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
    work = [stage.sweeps * len(stage.plan.tables) * stage.most for stage in stages]
    moves = np.zeros((3, 2), dtype=np.int64)
    before = 0
    plan: TablePlan | None = None
    errors = np.zeros(0, dtype=np.int32)
    for stage_index, stage in enumerate(stages):
        # Fields say what moves cost, and stay as they are while the costs do. A stage that goes on to the end
        # visits few cells, whose fields are added up anew.
        known = stage_index > 0 and stages[stage_index - 1].plan is stage.plan
        known = known and (
            stage.to_the_end
            or (stages[stage_index - 1].costs == stage.costs and not stages[stage_index - 1].walk)
        )
        last = before + stage.sweeps
        if done < last or stage_index == len(stages) - 1:
            if plan is not stage.plan:
                plan = stage.plan
                report_progress("laying out cells", 0.9 if stage_index == 0 else 1.0)
                errors = _errors(problem, cells, order, plan)
                if problem.shared_errors is not None:
                    errors[plan.own_cells :] = problem.shared_errors[plan.shared_cells]
            first = max(done - before, 0)
            for sweep in range(first, stage.sweeps):
                report = _Progress(
                    sum(work[:stage_index]), work[stage_index], sum(work), sweep, stage.sweeps
                )
                anew = sweep == 0 and not known
                visited = _sweep(
                    stage,
                    sweep,
                    anew,
                    problem,
                    cells,
                    errors,
                    fields,
                    state,
                    moves,
                    together,
                    report,
                )
                if stage.to_the_end and not visited:
                    report(stage.sweeps - sweep)
                    break
                if stage.walk and sweep == stage.sweeps - 1:
                    tally = _tally(problem, cells)
                    step = np.int32(problem.step)
                    walk(stage, cells, errors, tally, state, step, partial(_whole, report))
                if keep is not None:
                    keep(SearchState(before + sweep + 1, int(state[0]), cells.up, fields))
        before = last
    up = np.empty(len(order), dtype=np.bool_)
    up[order] = cells.up > 0
    return SearchedPopulation(up, errors, moves)


def _whole(report: Callable[[float], None], _part: float) -> None:
    """Say that a sweep is done, again and again while a walk goes on."""
    report(1.0)


@dataclass(frozen=True)
class _Progress:
    """How far the whole search is when part of a sweep is done."""

    before: float
    work: float
    every: float
    sweep: int
    sweeps: int

    def __call__(self, part: float) -> None:
        done = self.before + self.work * (self.sweep + part) / self.sweeps
        report_progress("protecting", done / self.every)


def _errors(problem: SearchProblem, cells: SearchCells, order: Array, plan: TablePlan) -> Array:
    errors = np.zeros(plan.cells, dtype=np.int32)
    change = cells.up.astype(np.int32) * np.int32(problem.step)
    change -= problem.residue[order].astype(np.int32)
    add_errors(plan, cells.codes, change, errors)
    if problem.fixed_up.any():
        codes = np.ascontiguousarray(problem.fixed_codes[plan.rows()].T)
        add_errors(plan, codes, problem.fixed_up.astype(np.int32), errors)
    return errors


def _sweep(
    stage: Stage,
    sweep: int,
    anew: bool,
    problem: SearchProblem,
    cells: SearchCells,
    errors: Array,
    fields: Array,
    state: Array,
    moves: Array,
    together: Together,
    report: Callable[[float], None],
) -> int:
    """Visit cells and make moves; says how many cells were visited."""
    costs = stage.costs_of(problem.step)
    layout = stage.plan.layout
    temperature = stage.temperature(sweep, costs.rise)
    majors = np.flatnonzero(np.diff(cells.first)).astype(np.int64)
    shuffle(majors, state)
    if stage.to_the_end:
        visited = visited_to_end(stage, sweep, cells, errors, majors, together)
    else:
        visited = visited_cells(stage, cells.codes, errors, state)
    if not visited.any():
        report(1.0)
        return 0
    shares = share_out(majors, cells.block_first, _visits(visited, cells.slice_first))
    forces = np.empty((errors.size, 2), dtype=np.int32)
    cut = np.linspace(0, errors.size, _PARTS + 1).astype(np.int64)
    together(
        lambda j: set_forces(errors, layout.cell_kind, costs.force, forces, cut[j], cut[j + 1]),
        _PARTS,
    )
    still_working()
    if anew:
        for some in np.array_split(np.arange(cells.slice_first.size - 1), _PARTS):
            parts = np.array_split(some, _PARTS)
            together(
                lambda j, parts=parts: all_fields(  # type: ignore[misc]
                    layout, cells.codes, cells.slice_first, parts[j], forces, fields
                ),
                _PARTS,
            )
            still_working()
    lanes = Lanes(
        errors,
        forces,
        fields,
        cells.up,
        _tally(problem, cells),
        cells.slice_first,
        [next_word(state) for _ in shares.rounds[0]],
        shares.most_cells * (2 + stage.rings * cells.codes.shape[1]),
        len(stage.plan.tables),
        together,
    )
    still_working()

    pace = Pace(
        np.int32(problem.step),
        temperature,
        stage.slack * temperature,
        stage.lost * temperature,
        stage.rings,
        stage.near,
    )

    def again(first: Lane, lane: Lane) -> None:
        replay(layout, cells, first, lane, pace.step, costs)

    def told(first: Lane, lane: Lane, source: Lane) -> None:
        follow(layout, cells, first, lane, source)

    for slices, finished in zip(shares.rounds, shares.cells, strict=True):
        check_stop()

        def work(lane: Lane, slices: list[Array] = slices) -> None:
            own = cells._replace(up=lane.up)
            sweep_slices(layout, own, slices[lane.number], lane, costs, pace, visited)

        lanes.round(slices, work, again, told)
        report(finished / shares.cells[-1])
    moves += sum(lane.tried for lane in lanes.lanes)
    return shares.cells[-1]


def _visits(visited: Array, slice_first: Array) -> Array:
    """How many cells of each slice are visited."""
    if visited.all():
        return np.diff(slice_first)
    sums = np.r_[0, np.cumsum(visited, dtype=np.int64)]
    return np.diff(sums[slice_first])


def _lack(problem: SearchProblem, cells: SearchCells) -> int:
    """By how much the empty cells that show the smallest number are too few; below 0 where there are enough."""
    smallest = np.where(cells.up > 0, cells.high_smallest, cells.low_smallest)
    showing = int(smallest.sum(dtype=np.int64)) + problem.fixed_smallest
    empty = int((cells.is_empty * cells.up).sum(dtype=np.int64)) + problem.fixed_empty
    share, of = problem.empty_share
    return share * showing - of * empty


def _tally(problem: SearchProblem, cells: SearchCells) -> Array:
    """What moves are held to: the lack of empty cells, the share they need, and the cells up of each class."""
    classed = cells.kind >= 0
    up = np.bincount(
        cells.kind[classed], weights=cells.up[classed], minlength=cells.least_up.size
    ).astype(np.int64)
    return np.concatenate([[_lack(problem, cells), *problem.empty_share], up]).astype(np.int64)


def _classes(problem: SearchProblem) -> tuple[Array, Array, Array]:
    """The class of every cell, and how few and how many cells of each may stand at their upper number.

    Tables do not care which of two cells with different residues stands up, so that a search alone would
    wash out the difference between them, and between true counts and shown ones with it.
    """
    step = problem.step
    none = np.zeros(0, dtype=np.int64)
    if problem.kind is not None:
        kind, shares = problem.kind.astype(np.int16), list(problem.up_shares)
    elif problem.start_share is None:
        return np.full(problem.residue.size, -1, dtype=np.int16), none, none
    else:
        kind = problem.residue - 1 + (step - 1) * (problem.low > 0)
        kind = np.where(problem.residue > 0, kind, -1).astype(np.int16)
        share, of = problem.start_share
        part = problem.drift_part
        small, full = (
            [Fraction(r, step) * by for r in range(1, step)]
            for by in (Fraction(share, of), Fraction(share, of) if part is None else 1)
        )
        chances = [*small, *full]
        drifts = [DRIFT if part is None else min(DRIFT, c * part) for c in chances]
        shares = [(c - drift, c + drift) for c, drift in zip(chances, drifts, strict=True)]
    size = np.bincount(kind[kind >= 0], minlength=len(shares))
    start = np.bincount(kind[(kind >= 0) & (problem.up > 0)], minlength=len(shares))
    least, most = (
        np.array(
            [whole(n * ends[i]) for n, ends in zip(size.tolist(), shares, strict=True)], np.int64
        )
        for i, whole in enumerate((floor, ceil) if problem.kind is None else (ceil, floor))
    )
    return kind, np.minimum(start, least), np.maximum(start, most)


def _laid_out(problem: SearchProblem, plan: TablePlan) -> tuple[SearchCells, Array]:
    """The cells as the compiled search wants them, and the order in which they stand there."""
    rows = plan.rows()
    given = problem.codes
    order = _sorted(plan, given).astype(_place_type(given.shape[1]), copy=False)
    report_progress("laying out cells", 0.2)
    codes = np.empty((order.size, len(rows)), dtype=given.dtype)
    for column, r in enumerate(rows):
        codes[:, column] = given[r][order]
    del given
    sizes = [len(plan.dataset.variables[r].codes) for r in rows]
    low, step = problem.low[order], problem.step
    still_working()
    numbers = np.zeros(len(codes), dtype=np.uint64)
    for column, size in enumerate(sizes):
        numbers = numbers * np.uint64(size) + codes[:, column].astype(np.uint64)
    outer = codes[:, -plan.outer :]
    begins = np.flatnonzero(np.r_[True, (outer[1:] != outer[:-1]).any(axis=1)][: len(codes)])
    kind, least_up, most_up = _classes(problem)
    still_working()
    slot = np.zeros(1 << (2 * len(codes)).bit_length(), dtype=np.uint64)
    fill_slots(numbers, slot)
    still_working()
    cells = SearchCells(
        codes=codes,
        up=(problem.up if problem.found is None else problem.found)[order].astype(np.uint8),
        group=problem.group[order].astype(np.int32),
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
        kind=kind[order],
        least_up=least_up,
        most_up=most_up,
    )
    return cells, order


def _sorted(plan: TablePlan, codes: Array) -> Array:
    """The order of cells by their codes; the last variable, the major one, decides first."""
    rows = plan.rows()
    sizes = [len(plan.dataset.variables[r].codes) for r in rows]
    if prod(sizes) >= 2**64:
        return np.lexsort([codes[r] for r in rows])
    numbers = np.zeros(codes.shape[1], dtype=np.uint64)
    for r, size in zip(reversed(rows), reversed(sizes), strict=True):
        numbers = numbers * np.uint64(size) + codes[r]
    return np.argsort(numbers, kind="stable")


def _place_type(cells: int) -> type[np.signedinteger[Any]]:
    """The type of places among so many cells: there may be tens of millions."""
    return np.int32 if cells < 2**31 else np.int64


def _partners(codes: Array, sizes: list[int]) -> Array:
    """For every cell the next one that differs in a single variable, in a ring; -1 if there is none."""
    count, variables = codes.shape
    partner = np.full((count, variables), -1, dtype=np.int32)
    for v in range(variables):
        report_progress("laying out cells", 0.3 + 0.5 * v / variables)
        line = np.zeros(count, dtype=np.uint64)
        for u in range(variables):
            if u != v:
                line = line * np.uint64(sizes[u]) + codes[:, u]
        # Cells of one line stand in the order of their codes already.
        still_working()
        order = np.argsort(line, kind="stable")
        still_working()
        sorted_line = line[order]
        begins = np.flatnonzero(np.r_[True, sorted_line[1:] != sorted_line[:-1]][:count])
        length = np.diff(np.r_[begins, count])
        del line, sorted_line
        following = np.r_[order[1:], -1][:count]
        following[begins + length - 1] = np.where(length > 1, order[begins], -1)
        partner[order, v] = following
    return partner
