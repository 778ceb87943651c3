"""The hot loops of protected magnitudes: who is largest, how noise is balanced, which cells carry records."""

from __future__ import annotations

from typing import Any

import numpy as np

from lustrum.model.arrays import Array
from lustrum.numeric.compiled import compiled
from lustrum.protect.population.search.forces import place, room

# Columns of the ranking of a cell.
TOTAL, FIRST, SECOND, OWN, OWNER = 0, 1, 2, 3, 4


@compiled
def _flush(ranking: Array, c: Any) -> None:  # pragma: no cover
    size = abs(ranking[c, OWN])
    ranking[c, TOTAL] += size
    if size > ranking[c, FIRST]:
        ranking[c, SECOND] = ranking[c, FIRST]
        ranking[c, FIRST] = size
    elif size > ranking[c, SECOND]:
        ranking[c, SECOND] = size
    ranking[c, OWN] = 0


@compiled
def rank_owners(
    layout: Any, codes: Array, owner: Array, values: Array, ranking: Array
) -> None:  # pragma: no cover
    """The absolute total and the two largest contributors of every controlled cell.

    Records come sorted by owner, so that a cell needs to remember one owner only. ``ranking`` has a row of
    five numbers for every cell, the last of them -1 at the beginning.
    """
    lies = room(layout)
    for i in range(values.size):
        if values[i] == 0:
            continue
        place(layout, codes[i], lies)
        for r in range(lies.base.size):
            for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
                c = lies.base[r] + lies.inner[t]
                if ranking[c, OWNER] != owner[i]:
                    _flush(ranking, c)
                    ranking[c, OWNER] = owner[i]
                ranking[c, OWN] += values[i]
    for cell in range(ranking.shape[0]):
        _flush(ranking, np.uint64(cell))


# Columns of the audit of a cell, after the same first three. What is known of an owner begins with its value.
NET, NOISE, LARGEST, RUNNER_UP, OWNED = 3, 4, 5, 14, 16
VALUE, MOVED, SIZE, COUNT, CUT, ENDS = 0, 1, 2, 3, 4, 5
HOLDER = 25


@compiled
def _flush_noise(rankings: Array, c: Any) -> None:  # pragma: no cover
    size = abs(rankings[c, OWNED + VALUE])
    rankings[c, TOTAL] += size
    rankings[c, NET] += rankings[c, OWNED + VALUE]
    rankings[c, NOISE] += rankings[c, OWNED + MOVED]
    if size > rankings[c, FIRST]:
        rankings[c, SECOND] = rankings[c, FIRST]
        rankings[c, FIRST] = size
        for k in range(RUNNER_UP, OWNED):
            rankings[c, k] = rankings[c, k - RUNNER_UP + LARGEST]
        for k in range(LARGEST, RUNNER_UP):
            rankings[c, k] = rankings[c, k - LARGEST + OWNED]
    elif size > rankings[c, SECOND]:
        rankings[c, SECOND] = size
        for k in range(RUNNER_UP, OWNED):
            rankings[c, k] = rankings[c, k - RUNNER_UP + OWNED]
    for k in range(OWNED, HOLDER):
        rankings[c, k] = 0


@compiled
def rank_noise(
    layout: Any, codes: Array, owner: Array, owned: Array, rankings: Array
) -> None:  # pragma: no cover
    """For every cell: its total, its two largest owners with what they have in it, and all noise.

    ``owned`` has a row for every record: value, noise, size of all gains and losses in it, 1, whether it is a
    piece of a larger record, and four ends of what is left open. The last column of ``rankings`` is the current
    owner, -1 at first.
    """
    lies = room(layout)
    for i in range(owned.shape[0]):
        place(layout, codes[i], lies)
        for r in range(lies.base.size):
            for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
                c = lies.base[r] + lies.inner[t]
                if rankings[c, HOLDER] != owner[i]:
                    _flush_noise(rankings, c)
                    rankings[c, HOLDER] = owner[i]
                for k in range(owned.shape[1]):
                    rankings[c, OWNED + k] += owned[i, k]
    for cell in range(rankings.shape[0]):
        _flush_noise(rankings, np.uint64(cell))


@compiled
def add_amounts(
    layout: Any, codes: Array, amounts: Array, cells: Array
) -> None:  # pragma: no cover
    """Add up amounts of several measures over all controlled cells."""
    lies = room(layout)
    for i in range(amounts.shape[0]):
        place(layout, codes[i], lies)
        for r in range(lies.base.size):
            for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
                for j in range(amounts.shape[1]):
                    cells[lies.base[r] + lies.inner[t], j] += amounts[i, j]


@compiled
def largest_parts(
    layout: Any, codes: Array, values: Array, scale: Array, parts: Array
) -> None:  # pragma: no cover
    """The largest part that each record has of one of its cells; ``scale`` is one over the total of a cell."""
    lies = room(layout)
    for i in range(values.shape[0]):
        place(layout, codes[i], lies)
        for r in range(lies.base.size):
            for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
                for j in range(values.shape[1]):
                    part = scale[lies.base[r] + lies.inner[t], j] * values[i, j]
                    if part > parts[i]:
                        parts[i] = part


@compiled
def _change(layout: Any, lies: Any, errors: Array, change: Array) -> None:  # pragma: no cover
    for r in range(lies.base.size):
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            at = lies.base[r] + lies.inner[t]
            for j in range(change.size):
                errors[at, j] += change[j]


@compiled
def _slopes(
    layout: Any, lies: Any, errors: Array, weights: Array, slope: Array, bend: Array
) -> None:  # pragma: no cover
    """What a change ``c`` of a record's noise costs in its cells: ``2 slope c + bend c**2``, per measure."""
    for j in range(slope.size):
        slope[j] = 0.0
        bend[j] = 0.0
    for r in range(lies.base.size):
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            at = lies.base[r] + lies.inner[t]
            for j in range(slope.size):
                slope[j] += weights[at, j] * errors[at, j]
                bend[j] += weights[at, j]


@compiled
def _settle(
    i: Any,
    way: Any,
    units: Any,
    shown: Array,
    slope: Array,
    bend: Array,
    chosen: Array,
    change: Array,
) -> Any:  # pragma: no cover
    """Move the amounts of a record to their best values within bounds, given its direction; returns the cost.

    ``change`` holds, for every shown measure, the change of the record's noise.
    """
    for _ in range(2):
        for k in range(chosen.size):
            if units.low[i, k] == units.high[i, k]:
                continue
            up = 0.0
            down = 0.0
            for j in range(change.size):
                if shown[j, k]:
                    up += slope[j] + bend[j] * change[j]
                    down += bend[j]
            if down <= 0.0:
                continue
            sign = np.float64(way * units.side[i, k])
            best = np.float64(chosen[k]) - sign * up / down
            best = min(
                max(np.rint(best), np.float64(units.low[i, k])), np.float64(units.high[i, k])
            )
            step = np.int64(best) - chosen[k]
            if step != 0:
                chosen[k] += step
                for j in range(change.size):
                    if shown[j, k]:
                        change[j] += sign * step
    cost = 0.0
    for j in range(change.size):
        cost += change[j] * (2.0 * slope[j] + bend[j] * change[j])
    return cost


@compiled
def _turn(units: Any, o: Any, i: Any, shown: Array, turn: Array) -> None:  # pragma: no cover
    """What the noise of a record changes by if its owner turns, for every shown measure."""
    for j in range(turn.size):
        turn[j] = 0.0
        for k in range(shown.shape[1]):
            if shown[j, k]:
                turn[j] -= 2.0 * units.sign[o] * units.side[i, k] * units.amount[i, k]


@compiled
def balance(
    layout: Any, units: Any, order: Any, shown: Array, weights: Any, errors: Any
) -> None:  # pragma: no cover
    """Visit owners in the given order: reverse an owner's direction where that helps, and settle its amounts.

    ``units`` holds the records sorted by owner: ``amount[i, k]`` is the change of record ``i`` in measure
    ``k``, from ``low`` to ``high``; ``sign`` is the direction of its owner, ``side`` -1 where it goes against.
    ``shown[j, k]`` says whether measure ``k`` is part of the shown measure ``j``; ``errors[c, j]`` is the noise
    of controlled cell ``c`` and ``weights[c, j]`` what its square costs.
    """
    lies = room(layout)
    seen, parts = shown.shape
    slope, bend = np.empty(seen), np.empty(seen)
    stay, turn = np.empty(seen), np.empty(seen)
    stay_amount = np.empty(parts, dtype=np.int64)
    turned = np.empty(parts, dtype=np.int64)
    for o in order:
        start, stop = units.first[o], units.first[o + 1]
        alone = stop - start == 1
        # Several records of one owner may lie in the same cells, so they are reversed one after the other.
        if not alone:
            total = 0.0
            for i in range(start, stop):
                place(layout, units.codes[i], lies)
                _slopes(layout, lies, errors, weights, slope, bend)
                _turn(units, o, i, shown, turn)
                for j in range(seen):
                    total += turn[j] * (2.0 * slope[j] + bend[j] * turn[j])
                _change(layout, lies, errors, turn)
            units.sign[o] = -units.sign[o]
            if not total < 0.0:
                for i in range(start, stop):
                    place(layout, units.codes[i], lies)
                    _turn(units, o, i, shown, turn)
                    _change(layout, lies, errors, turn)
                units.sign[o] = -units.sign[o]
        for i in range(start, stop):
            place(layout, units.codes[i], lies)
            _slopes(layout, lies, errors, weights, slope, bend)
            stay[:] = 0.0
            stay_amount[:] = units.amount[i]
            way = units.sign[o]
            cost = _settle(i, way, units, shown, slope, bend, stay_amount, stay)
            if alone:
                _turn(units, o, i, shown, turn)
                turned[:] = units.amount[i]
                if _settle(i, -way, units, shown, slope, bend, turned, turn) < cost:
                    units.sign[o] = -way
                    units.amount[i] = turned
                    _change(layout, lies, errors, turn)
                    continue
            units.amount[i] = stay_amount
            _change(layout, lies, errors, stay)


@compiled
def _cost(
    layout: Any, lies: Any, errors: Array, weights: Array, amount: Array
) -> Any:  # pragma: no cover
    """The cost of adding a record's amounts to a finest cell, over the cells of all tables that contain it."""
    cost = 0.0
    for r in range(lies.base.size):
        for t in range(np.uint64(layout.run_first[r]), np.uint64(layout.run_stop[r])):
            at = lies.base[r] + lies.inner[t]
            for j in range(amount.size):
                if amount[j] != 0.0:
                    cost += weights[at, j] * amount[j] * (2.0 * errors[at, j] + amount[j])
    return cost


@compiled
def carry(
    layout: Any,
    cells: Array,
    amounts: Array,
    whole: Array,
    free: Array,
    candidates: Array,
    carriers: Array,
    holders: Array,
    weights: Any,
    errors: Any,
) -> None:  # pragma: no cover
    """Move each free record to the cheapest of its candidates, but leave no cell without a whole record.

    ``errors[c, j]`` is the sum of measure ``j`` that controlled cell ``c`` carries, less the sum of its own
    records.
    """
    lies = room(layout)
    for f in range(free.size):
        i = free[f]
        now = carriers[i]
        if whole[i] and holders[now] < 2:
            continue
        amount = amounts[i]
        place(layout, cells[now], lies)
        _change(layout, lies, errors, -amount)
        best = now
        least = _cost(layout, lies, errors, weights, amount)
        for k in range(candidates.shape[1]):
            other = candidates[f, k]
            if other == now:
                continue
            place(layout, cells[other], lies)
            cost = _cost(layout, lies, errors, weights, amount)
            if cost < least:
                least = cost
                best = other
        place(layout, cells[best], lies)
        _change(layout, lies, errors, amount)
        if best != now:
            carriers[i] = best
            if whole[i]:
                holders[now] -= 1
                holders[best] += 1
