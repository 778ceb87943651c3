"""The last large errors, taken away by a walk.

Sweeps make moves that pay by themselves. They end where every move that would mend a large error makes another
one. The walk makes the cheapest of these swaps and exchanges all the same, and goes on with the error that it
made, until none is left or its steps are used up. Cells that have moved rest for a while, so that it does not
turn in circles. What it leaves is the best state that it came through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lustrum.model.arrays import Array
from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import next_word
from lustrum.protect.population.search.exchanges import (
    allowed,
    fourth_cell,
    move,
    neighbours,
)
from lustrum.protect.population.search.kernels import places, shuffle
from lustrum.protect.population.search.layout import KINDS, ControlledTable, TablePlan
from lustrum.protect.population.search.moves import (
    apart,
    exchange_cells,
    exchange_cost,
    moved_places,
    swap_cells,
    swap_cost,
)
from lustrum.protect.population.search.stages import Stage
from lustrum.runtime.stop import check_stop

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
    cells: Any,
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
    counts = plan.layout.cell_kind < KINDS.index("single" if stage.to_the_end else "extra")
    far = np.flatnonzero(counts & (np.abs(errors) > stage.beyond))
    if not far.size or not stage.walk:
        return
    costs = stage.costs_of(int(step))
    forces = np.zeros((errors.size, 2), dtype=np.int32)
    rests = np.zeros(cells.up.size, dtype=np.int32)
    changed = np.empty(4 * len(plan.tables), dtype=np.uint64)
    near = np.empty((cells.codes.shape[1], _NEAR), dtype=np.int64)
    inside = np.zeros(cells.up.size, dtype=np.bool_)
    moves: list[Array] = []
    least, best_count, last = _beyond(errors[far], stage.beyond), 0, 0
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
        chosen = (
            np.flatnonzero(inside[some] & (cells.up[some] == wrong) & (rests[some] < number)) + low
        )
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
        _make(plan.layout, cells, move_cells, errors, forces, tally, step, costs)
        moves.append(move_cells)
        rests[move_cells[move_cells >= 0]] = number + _REST
        far = _still_far(
            far, _changed(plan.layout, cells, move_cells, changed), counts, errors, stage.beyond
        )
        left = _beyond(errors[far], stage.beyond)
        if left < least:
            least, best_count, last = left, len(moves), number
        if not far.size:
            break
        if left > least + _ASTRAY:
            undone_at = [
                _changed(plan.layout, cells, undone, changed).copy()
                for undone in moves[best_count:]
            ]
            _back(plan.layout, cells, moves, best_count, errors, forces, tally, step, costs)
            far = _still_far(far, np.concatenate(undone_at), counts, errors, stage.beyond)
    _back(plan.layout, cells, moves, best_count, errors, forces, tally, step, costs)


def _back(
    layout: Any,
    cells: Any,
    moves: list[Array],
    best_count: int,
    errors: Array,
    forces: Array,
    tally: Array,
    step: np.int32,
    costs: Any,
) -> None:
    """Undo all moves but the first ``best_count``."""
    while len(moves) > best_count:
        _make(layout, cells, moves.pop(), errors, forces, tally, step, costs)


def _beyond(errors: Array, most: int) -> int:
    """By how much errors are too large, in all."""
    return int((np.abs(errors).astype(np.int64) - most).sum())


def _still_far(far: Array, changed: Array, counts: Array, errors: Array, beyond: int) -> Array:
    """The controlled cells with large errors, in their order, from those before and the cells that changed."""
    again = np.union1d(far, changed)
    return np.asarray(again[counts[again] & (np.abs(errors[again]) > beyond)])


def _changed(layout: Any, cells: Any, move_cells: Array, room: Array) -> Array:
    """The controlled cells that a move changes."""
    return room[: int(_note_changed(layout, cells, move_cells, room))].astype(np.int64)


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
def _note_changed(layout: Any, cells: Any, move_cells: Any, room: Any) -> Any:  # pragma: no cover
    """Write down where the controlled cells lie that a swap or an exchange changes, and say how many."""
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    places(layout, cells.codes[move_cells[0]], p, inner, base)
    return moved_places(
        layout, cells, inner, base, move_cells[0], move_cells[1], move_cells[2], room
    )


@compiled
def _make(
    layout: Any,
    cells: Any,
    move_cells: Any,
    errors: Any,
    forces: Any,
    tally: Any,
    step: Any,
    costs: Any,
) -> None:  # pragma: no cover
    """Make a swap or an exchange; made twice, it is undone."""
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    i, j, k = move_cells[0], move_cells[1], move_cells[2]
    sign = np.int64(-1 if cells.up[i] else 1)
    places(layout, cells.codes[i], p, inner, base)
    by = step * sign
    if k < 0:
        v = apart(cells, i, j)
        swap_cells(layout, cells, errors, forces, inner, base, i, j, v, by, costs.force)
    else:
        u, v = apart(cells, i, j), apart(cells, i, k)
        exchange_cells(layout, cells, errors, forces, inner, base, i, j, k, u, v, by, costs.force)
    for c in move_cells:
        if c >= 0:
            move(cells, tally, c)


@compiled
def _cheapest(
    layout: Any,
    cells: Any,
    chosen: Any,
    inside: Any,
    rests: Any,
    number: Any,
    errors: Any,
    tally: Any,
    near: Any,
    rise: Any,
    best: Any,
) -> None:  # pragma: no cover
    """Find the cheapest move of one of the ``chosen`` cells that moves no other cell ``inside``."""
    p = np.zeros(layout.variable_of.size, dtype=np.uint64)
    inner = np.empty(layout.table_offset.size, dtype=np.uint64)
    base = np.empty(layout.run_offset.size, dtype=np.uint64)
    variables = near.shape[0]
    tried = 0
    least = np.float64(np.inf)
    for i in chosen:
        if tried >= _TRIED:
            break
        sign = np.int64(-1 if cells.up[i] else 1)
        neighbours(cells.partner, cells.up, cells.group, cells.tied, i, near)
        placed = False
        for u in range(variables):
            for x in range(near.shape[1]):
                j = near[u, x]
                if j < 0:
                    break
                if inside[j] or rests[j] >= number:
                    continue
                if not placed:
                    places(layout, cells.codes[i], p, inner, base)
                    placed = True
                if allowed(cells, tally, i, j, -1, -1):
                    tried += 1
                    cost = swap_cost(layout, cells, errors, inner, base, i, j, u, sign, rise)
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
                            layout, cells, errors, inner, base, i, j, k, u, v, sign, rise, least
                        )
                        if cost < least:
                            least = np.float64(cost)
                            best[0], best[1], best[2], best[3] = i, j, k, m
