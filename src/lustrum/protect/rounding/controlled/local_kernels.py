"""The loops of the local search, compiled at first use.

A cell that can move stands at one of two neighbouring multiples of the base: ``up[i]`` is 1 at the upper
one. Its margins are ``margin[begin[i]:begin[i + 1]]``; the cells of margin ``m`` are
``cell[first[m]:first[m + 1]]``. ``error[m]`` is published minus true, kept up to date with every move.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.model.arrays import Array
from lustrum.numeric.arithmetic_loops import exp
from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import below, unit

LOOKED_AT = 128  # cells of a margin that are compared before one of them is moved
LEAN = 0.02  # the weight of small errors against those above the goal
DRAWN = 4  # of this many margins beyond the goal, the smallest is repaired first
BLIND = 32  # one step in this many is random, which breaks cycles
TRIES = 4  # partners drawn for a swap


@compiled
def _gain(begin: Array, margin: Array, error: Array, i: int, step: int) -> Any:  # pragma: no cover
    """The change of the sum of squared errors if cell ``i`` takes a step."""
    total = 0
    for k in range(begin[i], begin[i + 1]):
        total += error[margin[k]]
    return 2 * step * total + (begin[i + 1] - begin[i]) * step * step


@compiled
def _move(begin: Array, margin: Array, error: Array, i: int, step: int) -> None:  # pragma: no cover
    for k in range(begin[i], begin[i + 1]):
        error[margin[k]] += step


@compiled
def greedy_start(  # pragma: no cover
    begin: Array,
    margin: Array,
    error: Array,
    up: Array,
    residue: Array,
    lean: Array,
    base: int,
    state: Array,
) -> None:
    """Round cell after cell to the side with the smaller squared errors of its margins.

    ``error`` holds the cells rounded so far. If both sides are equally good, a random choice without bias
    decides.
    """
    for i in range(up.size):
        above, under = base - residue[i], -residue[i]
        rise = _gain(begin, margin, error, i, above) + lean[i]
        fall = _gain(begin, margin, error, i, under)
        raised = rise < fall or (rise == fall and unit(state) * base < residue[i])
        up[i] = 1 if raised else 0
        _move(begin, margin, error, i, above if raised else under)


@compiled
def anneal(  # pragma: no cover
    begin: Array,
    margin: Array,
    error: Array,
    up: Array,
    lean: Array,
    base: int,
    temperatures: Array,
    state: Array,
) -> int:
    """One sweep over all cells at each temperature (Metropolis); gives the number of moves.

    The energy is the sum of squared margin errors and, for each cell that is up, its ``lean``.
    """
    moved = 0
    for t in range(temperatures.size):
        heat = temperatures[t]
        for i in range(up.size):
            step = -base if up[i] == 1 else base
            change = _gain(begin, margin, error, i, step) + (-lean[i] if up[i] == 1 else lean[i])
            # Beyond 30 the chance is less than one in 10**13, and no number is drawn.
            if change > 30.0 * heat:
                continue
            if change > 0.0 and unit(state) >= exp(-change / heat):
                continue
            up[i] = 1 - up[i]
            moved += 1
            _move(begin, margin, error, i, step)
    return moved


@compiled
def _penalty(error: int, goal: int, base: int) -> float:  # pragma: no cover
    """The penalty of an error: squared steps of the base beyond the goal, and a little for its size."""
    share = error / base
    beyond = abs(error) - goal
    if beyond <= 0:
        return LEAN * share * share
    steps = (beyond + base - 1) // base
    return steps * steps + LEAN * share * share


@compiled
def walk(  # pragma: no cover
    begin: Array,
    margin: Array,
    first: Array,
    cell: Array,
    error: Array,
    up: Array,
    base: int,
    goal: int,
    steps: int,
    state: Array,
) -> Any:
    """Repair margins beyond the goal, one cell a step; gives the steps taken and whether all are repaired.

    A few margins are drawn among those beyond the goal. The cell of the smallest margin that does the least
    harm elsewhere is moved, even if the harm exceeds the gain; sometimes a random cell of it is moved (as
    WalkSAT does for logical clauses: Selman, Kautz and Cohen 1994). So an error moves from margin to margin
    until it cancels with an opposite one.
    """
    where = np.full(error.size, -1, dtype=np.int64)
    bad = np.empty(error.size, dtype=np.int64)
    count = 0
    for m in range(error.size):
        if abs(error[m]) > goal:
            where[m] = count
            bad[count] = m
            count += 1
    for taken in range(steps):
        if count == 0:
            return taken, True
        m = bad[below(state, count)]
        for _ in range(DRAWN - 1):
            other = bad[below(state, count)]
            if first[other + 1] - first[other] < first[m + 1] - first[m]:
                m = other
        raised = 1 if error[m] < 0 else 0
        step = base if raised == 1 else -base
        length = first[m + 1] - first[m]
        index = first[m] + below(state, length)
        blind = below(state, BLIND) == 0
        chosen, least, ties = -1, 0.0, 0
        for _ in range(min(length, LOOKED_AT)):
            i = cell[index]
            index += 1
            if index == first[m + 1]:
                index = first[m]
            if up[i] == raised:
                continue
            pain = 0.0
            for k in range(begin[i], begin[i] if blind else begin[i + 1]):
                e = error[margin[k]]
                pain += _penalty(e + step, goal, base) - _penalty(e, goal, base)
            if chosen < 0 or pain < least:
                chosen, least, ties = i, pain, 1
            elif pain == least:
                ties += 1
                if below(state, ties) == 0:
                    chosen = i
        if chosen < 0:
            continue
        up[chosen] = raised
        for k in range(begin[chosen], begin[chosen + 1]):
            touched = margin[k]
            error[touched] += step
            beyond = abs(error[touched]) > goal
            if beyond and where[touched] < 0:
                where[touched] = count
                bad[count] = touched
                count += 1
            elif not beyond and where[touched] >= 0:
                count -= 1
                last = bad[count]
                bad[where[touched]] = last
                where[last] = where[touched]
                where[touched] = -1
    return steps, count == 0


@compiled
def _within(
    begin: Array, margin: Array, error: Array, i: int, goal: int
) -> bool:  # pragma: no cover
    worst = 0
    for k in range(begin[i], begin[i + 1]):
        worst = max(worst, abs(error[margin[k]]))
    return worst <= goal


@compiled
def polish(  # pragma: no cover
    begin: Array,
    margin: Array,
    first: Array,
    cell: Array,
    error: Array,
    up: Array,
    lean: Array,
    base: int,
    goal: int,
    rounds: int,
    state: Array,
) -> int:
    """Single moves and swaps that make the squares smaller and no error larger than the goal.

    A swap moves a second cell of one of the margins the other way, so that this margin stays as it is.
    Gives the number of moves and swaps made; ends early when a whole round makes none.
    """
    move_count = 0
    for _ in range(rounds):
        before = move_count
        for i in range(up.size):
            if begin[i] == begin[i + 1]:
                continue
            step = -base if up[i] == 1 else base
            change = _gain(begin, margin, error, i, step) + (-lean[i] if up[i] == 1 else lean[i])
            _move(begin, margin, error, i, step)
            up[i] = 1 - up[i]
            if change < 0.0 and _within(begin, margin, error, i, goal):
                move_count += 1
                continue
            m = margin[begin[i] + below(state, begin[i + 1] - begin[i])]
            swapped = False
            for _ in range(TRIES):
                j = cell[first[m] + below(state, first[m + 1] - first[m])]
                if j == i or up[j] != up[i]:
                    continue
                back = _gain(begin, margin, error, j, -step) + (-lean[j] if up[j] == 1 else lean[j])
                if change + back >= 0.0:
                    continue
                _move(begin, margin, error, j, -step)
                if _within(begin, margin, error, i, goal) and _within(
                    begin, margin, error, j, goal
                ):
                    up[j] = 1 - up[j]
                    swapped = True
                    break
                _move(begin, margin, error, j, step)
            if swapped:
                move_count += 1
            else:
                _move(begin, margin, error, i, -step)
                up[i] = 1 - up[i]
        if move_count == before:
            break
    return move_count
