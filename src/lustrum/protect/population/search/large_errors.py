"""Large errors: which finest cells lie in them, and a walk that takes the last of them away.

With few sweeps and very many cells, errors of large table cells are left. Any of many cells can mend them, so
that it is enough to visit some, up to a share of all cells: those of some categories of the major variable,
others in every sweep. Cells in large errors within one category are few, and all are visited.

Sweeps make moves that pay by themselves. They end where every move that would mend a large error makes another
one. The walk makes the cheapest of these swaps and exchanges all the same, and goes on with the error that it
made, until none is left or its steps are used up. Cells that have moved rest for a while, so that it does not
turn in circles. What it leaves is the best state that it came through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lustrum.model.arrays import Array, Whole
from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import next_word
from lustrum.protect.population.search.forces import Places, place, place_inner, room
from lustrum.protect.population.search.lanes import Together
from lustrum.protect.population.search.layout import (
    KINDS,
    ControlledTable,
    SearchCells,
    SearchLayout,
    TablePlan,
)
from lustrum.protect.population.search.moves import (
    allowed,
    exchange_cost,
    fourth_cell,
    make,
    neighbours,
    swap_cost,
)
from lustrum.protect.population.search.stages import Stage
from lustrum.protect.population.search.sweep import shuffle
from lustrum.runtime.stop import check_stop, still_working

OWN, OTHER = 1, 2
"""Marks of cells in a large error within one category of the major variable, and of those in others only."""
_PARTS, _TURNS = 16, 4
"""Into how many parts the work is divided, and how often it says that it goes on."""


def visited_cells(stage: Stage, codes: Array, errors: Array, state: Array) -> Array:
    """The finest cells that a sweep visits: all, or those in large errors, of too many an even share."""
    if not stage.beyond:
        return np.ones(len(codes), dtype=np.uint8)
    visited = _in_large_errors(stage.plan, codes, errors, stage.beyond)
    marked_cells, most = np.flatnonzero(visited), max(1, int(stage.most * len(codes)))
    if marked_cells.size > most:
        apart = -(-marked_cells.size // most)
        visited[:] = 0
        visited[marked_cells[int(next_word(state)) % apart :: apart]] = 1
    return visited


def _in_large_errors(plan: TablePlan, codes: Array, errors: Array, beyond: int) -> Array:
    """Which finest cells lie in a controlled cell with an error larger than ``beyond``.

    Extra tables are left aside, and so are those with single finest cells.
    """
    marks = np.zeros(len(codes), dtype=np.uint8)
    far = np.abs(errors) > beyond
    far &= plan.layout.cell_kind < KINDS.index("extra")
    if not far.any():
        return marks
    column = {name: index for index, name in enumerate(plan.variables)}
    for number in np.unique(plan.table_of_cell[far]):
        table = plan.tables[number]
        at = np.full(len(codes), table.start, dtype=np.int64)
        for level, stride in zip(table.levels, table.strides, strict=True):
            at += stride * level.group_of[codes[:, column[level.variable]]]
        marks |= far[at]
    return marks


def visited_to_end(
    stage: Stage, sweep: int, cells: SearchCells, errors: Array, majors: Array, together: Together
) -> Array:
    """The finest cells to visit so that no error is larger than ``stage.beyond``, in extra tables neither.

    There are none where that is so already. Errors of single finest cells do not count. If there are too
    many cells, every category of the major variable has its turn in one of the next sweeps.
    """
    marks = np.zeros(cells.up.size, dtype=np.uint8)
    layout = stage.plan.layout
    far = np.empty(errors.size, dtype=np.bool_)
    cut = np.linspace(0, errors.size, _PARTS + 1).astype(np.int64)
    single = KINDS.index("single")

    def mark(j: int) -> None:
        mark_far(errors, layout.cell_kind, stage.beyond, single, cut[j], cut[j + 1], far)

    together(mark, _PARTS)
    begins = layout.run_offset + layout.table_offset[layout.run_first].astype(np.int64)
    runs = np.logical_or.reduceat(far, begins)
    if not runs.any():
        return marks
    still_working()
    # The finest level of the major variable is the first of its nodes.
    within = (layout.run_node == layout.first_node[-2]).any(axis=0)
    major_runs, others = np.flatnonzero(runs & within), np.flatnonzero(runs & ~within)
    for some in np.array_split(np.arange(cells.slice_first.size - 1), _TURNS):
        slices = np.array_split(some, _PARTS)
        together(
            lambda j, slices=slices: mark_inside(  # type: ignore[misc]
                layout, cells.codes, cells.slice_first, slices[j], major_runs, others, far, marks
            ),
            _PARTS,
        )
        still_working()
    most = max(1, int(stage.most * marks.size))
    turns = max(1, round(1 / stage.most))
    majors = majors[np.argsort((majors - sweep) % turns > 0, kind="stable")]
    visited = _first_of(marks == OWN, cells.first, majors, most)
    return visited | _first_of(marks == OTHER, cells.first, majors, most)


def _first_of(marked: Array, first: Array, majors: Array, most: int) -> Array:
    """The marked cells of the first categories of the major variable, as many as hold ``most`` of them."""
    sums = np.r_[0, np.cumsum(marked, dtype=np.int64)]
    if sums[-1] > most:
        held = sums[first[majors + 1]] - sums[first[majors]]
        chosen = np.zeros(first.size - 1, dtype=np.bool_)
        chosen[majors[: 1 + int(np.searchsorted(np.cumsum(held), most))]] = True
        marked = marked & np.repeat(chosen, np.diff(first))
    return marked.astype(np.uint8)


@compiled
def mark_far(
    errors: Array, kinds: Array, beyond: Whole, single: Whole, low: Whole, high: Whole, far: Array
) -> None:  # pragma: no cover
    """Mark the controlled cells ``low`` to ``high`` with errors beyond ``beyond``, but for single ones."""
    for at in range(low, high):
        far[at] = abs(errors[at]) > beyond and kinds[at] != single


@compiled
def mark_inside(
    layout: SearchLayout,
    codes: Array,
    slice_first: Array,
    slices: Array,
    major_runs: Array,
    others: Array,
    far: Array,
    marks: Array,
) -> None:  # pragma: no cover
    """Mark the finest cells of some slices in far controlled cells of ``major_runs``, or else of ``others``."""
    lies = room(layout)
    for g in slices:
        place(layout, codes[slice_first[g]], lies)
        for i in range(slice_first[g], slice_first[g + 1]):
            place_inner(layout, codes[i], lies)
            if _is_inside(layout, major_runs, far, lies):
                marks[i] = OWN
            elif _is_inside(layout, others, far, lies):
                marks[i] = OTHER


@compiled
def _is_inside(
    layout: SearchLayout, runs: Array, far: Array, lies: Places
) -> bool:  # pragma: no cover
    """Whether a finest cell lies in a far controlled cell of some runs."""
    for r in runs:
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            if far[lies.base[r] + lies.inner[t]]:
                return True
    return False


_TRIED = 10000
"""How many moves are worked out for one step."""
_ASTRAY = 5
"""The walk goes back to its best state where errors are too large by so much more than there."""
_PATIENCE = 400
"""The walk ends where so many steps in a row have not led to a better state."""
_REST = 50
"""For so many steps a cell that has moved stays as it is."""
_STEPS, _MANY_CELLS = 4, 1 << 24
"""How many moves are made for every large error, where there are at least so many controlled cells."""
_NEAR = 32
"""How many neighbours of a cell are tried along every variable."""


def walk(
    stage: Stage,
    cells: SearchCells,
    errors: Array,
    tally: Array,
    state: Array,
    step: np.int32,
    report: Callable[[float], None] = lambda _part: None,
) -> None:
    """Make up to ``stage.walk`` moves that take away errors larger than ``stage.beyond``.

    With very many controlled cells there are many such errors, and so there are more moves. In a stage that
    goes on to the end hardly any are left, and those of extra tables count too.
    """
    plan = stage.plan
    kinds = plan.layout.cell_kind
    counts = kinds != KINDS.index("single") if stage.to_the_end else kinds < KINDS.index("extra")
    far = np.flatnonzero(counts & (np.abs(errors) > stage.beyond))
    if not far.size or not stage.walk:
        return
    costs = stage.costs_of(int(step))
    forces = np.zeros((errors.size, 2), dtype=np.int32)
    rests = np.zeros(cells.up.size, dtype=np.int32)
    near = np.empty((cells.codes.shape[1], _NEAR), dtype=np.int64)
    inside = np.zeros(cells.up.size, dtype=np.bool_)
    moves: list[Array] = []
    least, best_count, last = _too_large(errors[far], stage.beyond), 0, 0

    def make_move(move_cells: Array) -> Array:
        """Make a move, which is undone if it is made twice; returns the controlled cells that change."""
        words = errors, forces, tally, step, costs.force
        return np.asarray(_make(plan.layout, cells, move_cells, *words))

    def undo() -> list[Array]:
        """Go back to the best state."""
        return [make_move(moves.pop()) for _ in range(len(moves) - best_count)]

    steps = stage.walk
    if errors.size >= _MANY_CELLS and not stage.to_the_end:
        steps = max(steps, _STEPS * far.size)
    for number in range(1, steps + 1):
        check_stop()
        report((number - 1) / steps)
        if number > last + _PATIENCE:
            break
        target = int(far[int(next_word(state) % np.uint64(far.size))])
        low, high = _stretch(plan, cells.first, target)
        inside[:] = False
        inside[low:high] = _inside(plan, cells.codes[low:high], target)
        wrong = 1 if errors[target] > 0 else 0
        some = slice(low, high)
        chosen = inside[some] & (cells.up[some] == wrong) & (rests[some] < number)
        chosen = np.flatnonzero(chosen) + low
        shuffle(chosen, state)
        chosen = chosen[: (chosen.size + 1) // 2]
        move_cells = np.full(4, -1, dtype=np.int64)
        _cheapest(
            plan.layout,
            cells,
            chosen,
            inside,
            rests,
            number,
            errors,
            tally,
            near,
            costs.rise,
            move_cells,
        )
        if move_cells[0] < 0:
            continue
        changed = make_move(move_cells)
        moves.append(move_cells)
        rests[move_cells[move_cells >= 0]] = number + _REST
        far = _still_far(far, changed, counts, errors, stage.beyond)
        left = _too_large(errors[far], stage.beyond)
        if left < least:
            least, best_count, last = left, len(moves), number
        if not far.size:
            break
        if left > least + _ASTRAY:
            far = _still_far(far, np.concatenate(undo()), counts, errors, stage.beyond)
    undo()


def _too_large(errors: Array, most: int) -> int:
    """By how much errors are too large, in all."""
    return int((np.abs(errors).astype(np.int64) - most).sum())


def _still_far(far: Array, changed: Array, counts: Array, errors: Array, beyond: int) -> Array:
    """The controlled cells with large errors, in their order, from those before and the cells that changed."""
    again = np.union1d(far, changed)
    return np.asarray(again[counts[again] & (np.abs(errors[again]) > beyond)])


def _stretch(plan: TablePlan, first: Array, target: int) -> tuple[int, int]:
    """From which finest cell to which those of a controlled cell can lie; they stand by major code."""
    table, groups = _categories(plan, target)
    for level, group in zip(table.levels, groups, strict=True):
        if level.variable == plan.major:
            codes = np.flatnonzero(level.group_of == group)
            return int(first[codes[0]]), int(first[codes[-1] + 1])
    return 0, int(first[-1])


def _categories(plan: TablePlan, target: int) -> tuple[ControlledTable, tuple[int, ...]]:
    """The table of a controlled cell, and its category at each level."""
    table = plan.tables[int(plan.table_of_cell[target])]
    groups = table.categories(target)
    assert groups is not None
    return table, groups


def _inside(plan: TablePlan, codes: Array, target: int) -> Array:
    """Which finest cells lie in a controlled cell."""
    column = {name: index for index, name in enumerate(plan.variables)}
    inside = np.ones(len(codes), dtype=np.bool_)
    table, groups = _categories(plan, target)
    for level, group in zip(table.levels, groups, strict=True):
        inside &= level.group_of[codes[:, column[level.variable]]] == group
    return inside


@compiled
def _make(
    layout: SearchLayout,
    cells: SearchCells,
    move_cells: Array,
    errors: Array,
    forces: Array,
    tally: Array,
    step: Whole,
    force: Array,
) -> Any:  # pragma: no cover
    """Make a swap or an exchange; returns the controlled cells that it changes."""
    lies = room(layout)
    i, j, k, m = move_cells[0], move_cells[1], move_cells[2], move_cells[3]
    place(layout, cells.codes[i], lies)
    count = make(layout, cells, errors, forces, tally, lies, i, j, k, m, step, force)
    return lies.changed[:count].astype(np.int64)


@compiled
def _cheapest(
    layout: SearchLayout,
    cells: SearchCells,
    chosen: Array,
    inside: Array,
    rests: Array,
    number: Whole,
    errors: Array,
    tally: Array,
    near: Array,
    rise: Array,
    best: Array,
) -> None:  # pragma: no cover
    """Find the cheapest move of one of the ``chosen`` cells that moves no other cell ``inside``."""
    lies = room(layout)
    variables = near.shape[0]
    tried = 0
    least = np.float64(np.inf)
    for i in chosen:
        if tried >= _TRIED:
            break
        sign = np.int64(-1 if cells.up[i] else 1)
        neighbours(cells, i, near)
        placed = False
        for u in range(variables):
            for x in range(near.shape[1]):
                j = near[u, x]
                if j < 0:
                    break
                if inside[j] or rests[j] >= number:
                    continue
                if not placed:
                    place(layout, cells.codes[i], lies)
                    placed = True
                if allowed(cells, tally, i, j, -1, -1):
                    tried += 1
                    cost = swap_cost(layout, cells, errors, lies, i, j, u, sign, rise)
                    if cost < least:
                        least = np.float64(cost)
                        best[0], best[1], best[2], best[3] = i, j, -1, -1
                for v in range(u + 1, variables):
                    for y in range(near.shape[1]):
                        k = near[v, y]
                        if k < 0:
                            break
                        if inside[k] or rests[k] >= number:
                            continue
                        m = fourth_cell(cells, i, j, k, u, v)
                        if m < 0 or rests[m] >= number or cells.up[m] != cells.up[i]:
                            continue
                        if cells.tied and cells.group[m] != cells.group[i]:
                            continue
                        if not allowed(cells, tally, i, j, k, m):
                            continue
                        tried += 1
                        cost = exchange_cost(
                            layout, cells, errors, lies, i, j, k, u, v, sign, rise, np.inf, least
                        )
                        if cost < least:
                            least = np.float64(cost)
                            best[0], best[1], best[2], best[3] = i, j, k, m
