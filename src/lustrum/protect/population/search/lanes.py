"""Lanes: several parts of a sweep that run at the same time and give the same bytes on any number of cores.

Every sweep shares its slices out among a few *lanes*; how many depends on the cells alone. A lane has its own
copy of errors, forces and cells, draws from a random stream of its own, and writes down every move it makes.
After each *round* of so many cells the moves of the first lane stand, and those of the others are made again in
their order, one by one: a move is made only if its cells stand as they stood for the lane, if the rule of empty
cells allows it, and if it costs no more than it was allowed to cost. Then all lanes go on from the same errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from lustrum.model.arrays import Array, Whole
from lustrum.model.workers import workers
from lustrum.numeric.compiled import compiled
from lustrum.protect.population.search.forces import Costs, place, room
from lustrum.protect.population.search.layout import SearchCells, SearchLayout
from lustrum.protect.population.search.moves import allowed, make, move_cost, moved_places

_LANES = 2
_LANE_CELLS = 1 << 13
"""With fewer cells for each lane there is a single one."""
_ROUND_CELLS = 1 << 11
"""How many cells a lane visits in a round at most."""
_ROUNDS = 32
"""The fewest rounds of a sweep, so that lanes soon learn what the others do where there are few cells."""
_PART = 1 << 16
"""How many controlled cells are told to other lanes in one go."""
_FOLLOWED = 8
"""Looking at what a move may have changed in one table takes as long as looking at so many cells in turn."""

Together = Callable[[Callable[[int], None], int], None]
"""Calls a function with 0, 1, ... up to a number, on several cores, and waits for all of them."""


def _one_by_one(work: Callable[[int], None], count: int) -> None:
    for j in range(count):
        work(j)


@contextmanager
def working_together(most: int | None = None) -> Iterator[Together]:
    """Work on all cores that this process may use, or on ``most``."""
    threads = workers() if most is None else most
    if threads < 2:
        yield _one_by_one
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="lustrum search") as pool:

        def together(work: Callable[[int], None], count: int) -> None:
            for _ in pool.map(work, range(count)):
                pass

        yield together


class Lane(NamedTuple):
    """What a lane has for itself."""

    number: int
    up: Array
    errors: Array
    forces: Array
    fields: Array
    tally: Array  # see ``allowed``
    word: Array  # the position of its random stream
    tried: (
        Array  # (3, 2): flips, swaps and exchanges that were worked out, and those that were made
    )
    written: Array  # how many moves of this round are written down
    cells: Array  # (moves, 4): the cells of each; -1 where there are fewer
    limits: Array  # the most that each was allowed to cost


class Shares(NamedTuple):
    """How one sweep is shared out."""

    rounds: list[list[Array]]  # the slices of every lane, round by round
    cells: list[int]  # how many cells all lanes have visited after each round
    most_cells: int  # that a lane visits in a round


def share_out(majors: Array, block_first: Array, visits: Array) -> Shares:
    """Share the slices of the categories ``majors`` of the major variable out among lanes, in their order.

    ``visits`` is how many cells are to be visited in each slice; slices without any are left out. How many
    lanes there are depends on the cells alone, never on the machine.
    """
    size = block_first[majors + 1] - block_first[majors]
    slices = np.repeat(block_first[majors] - np.cumsum(size) + size, size) + np.arange(size.sum())
    slices = slices[visits[slices] > 0]
    length = visits[slices]
    total = int(length.sum())
    lanes = _LANES if total >= _LANES * _LANE_CELLS else 1
    many = max(_ROUNDS if lanes > 1 else 1, -(-total // (lanes * _ROUND_CELLS)))
    middle = np.cumsum(length) - (length + 1) // 2
    # Lanes lie far from each other, so that they seldom want the same cells.
    share_number = lanes * many * middle // max(1, total)
    begin = np.searchsorted(share_number, np.arange(lanes * many + 1))
    rounds = [
        [slices[begin[at] : begin[at + 1]] for at in range(r, lanes * many, many)]
        for r in range(many)
    ]
    cells = np.bincount(share_number, length, lanes * many).reshape(lanes, many).astype(np.int64)
    return Shares(rounds, np.cumsum(cells.sum(axis=0)).tolist(), int(cells.max(initial=0)))


class Lanes:
    """The lanes of one sweep. The errors and forces of the first one are those of the search."""

    def __init__(
        self,
        errors: Array,
        forces: Array,
        fields: Array,
        up: Array,
        tally: Array,
        slice_first: Array,
        seeds: Sequence[Any],
        most_moves: int,
        tables: int,
        together: Together,
    ) -> None:
        count = len(seeds)
        self._together, self._slice_first, self._tables = together, slice_first, tables
        self._parts = -(-errors.size // _PART)
        self._errors = np.empty((count - 1, errors.size), dtype=errors.dtype)
        self._forces = np.empty((count - 1, *forces.shape), dtype=forces.dtype)
        # Lanes write to these all the time, so that no two may lie in one line of the cache.
        word, tried, move_counts = (np.zeros((count, 16), dtype=d) for d in ("u8", "i8", "i8"))
        tallies = np.zeros((count, -(-tally.size // 16) * 16), dtype=np.int64)
        tallies[:, : tally.size] = tally
        word[:, 0] = seeds
        self.lanes = [
            Lane(
                number,
                up.copy() if number else up,
                self._errors[number - 1] if number else errors,
                self._forces[number - 1] if number else forces,
                fields.copy() if number else fields,
                tallies[number],
                word[number],
                tried[number, :6].reshape(3, 2),
                move_counts[number],
                np.empty((most_moves, 4), dtype=np.int32),
                np.empty(most_moves),
            )
            for number in range(count)
        ]
        together(self._copy, self._parts)

    def round(
        self,
        slices: list[Array],
        work: Callable[[Lane], None],
        again: Callable[[Lane, Lane], None],
        follow: Callable[[Lane, Lane, Lane], None],
    ) -> None:
        """Let every lane work on its slices, make the moves of all in the first one, and tell the others.

        ``follow`` gives what the moves of the last lane may have changed from the first one to the second.
        """
        self._together(lambda j: work(self.lanes[j]), len(self.lanes))
        first, *others = self.lanes
        for lane in others:
            again(first, lane)
        for lane in others:
            lane.tally[:] = first.tally
        if others:
            # The more cells there are, the fewer of them the moves of one round concern.
            moves = sum(int(lane.written[0]) for lane in self.lanes)
            if _FOLLOWED * self._tables * moves < first.errors.size:

                def tell(j: int) -> None:
                    for lane in others:
                        follow(first, lane, self.lanes[j])

                self._together(tell, len(self.lanes))
            else:
                self._together(self._follow, self._parts)
                for lane in others:
                    lane.up[:] = first.up
            self._together(lambda j: self._learn(self.lanes[j], slices), len(self.lanes))
        for lane in self.lanes:
            lane.written[0] = 0

    def _learn(self, lane: Lane, slices: list[Array]) -> None:
        """Take over the fields of the slices that other lanes visited."""
        for other in self.lanes:
            if other is not lane:
                some = slices[other.number]
                _copy_fields(self._slice_first, some, other.fields, lane.fields)

    def _copy(self, part: int) -> None:
        some = slice(part * _PART, (part + 1) * _PART)
        self._errors[:, some] = self.lanes[0].errors[some]
        self._forces[:, some] = self.lanes[0].forces[some]

    def _follow(self, part: int) -> None:
        first = self.lanes[0]
        low = part * _PART
        _follow(first.errors, first.forces, self._errors, self._forces, low, low + _PART)


@compiled
def _follow(
    errors: Array, forces: Array, others: Array, other_forces: Array, low: Whole, high: Whole
) -> None:  # pragma: no cover
    """Give the errors and forces of some controlled cells to the other lanes, where theirs differ."""
    for lane in range(others.shape[0]):
        for at in range(low, min(high, errors.size)):
            if others[lane, at] != errors[at]:
                others[lane, at] = errors[at]
                other_forces[lane, at, 0] = forces[at, 0]
                other_forces[lane, at, 1] = forces[at, 1]


@compiled
def _copy_fields(
    slice_first: Array, slices: Array, fields: Array, others: Array
) -> None:  # pragma: no cover
    """Copy the fields of the cells of some slices."""
    for g in slices:
        for i in range(slice_first[g], slice_first[g + 1]):
            others[i, 0] = fields[i, 0]
            others[i, 1] = fields[i, 1]


@compiled
def replay(
    layout: SearchLayout, cells: SearchCells, first: Lane, lane: Lane, step: Whole, costs: Costs
) -> None:  # pragma: no cover
    """Make the moves of ``lane`` again, one by one, in the errors of ``first``.

    A move is left out if one of its cells does not stand as it stood for the lane, because an earlier move was
    left out, if the rule of empty cells forbids it, or if it costs more than it was allowed to.
    """
    lies = room(layout)
    move_count = lane.written[0]
    # How the first cell of every move stood for the lane is found from the last move to the first.
    stood = np.empty(move_count, dtype=np.uint8)
    for x in range(move_count - 1, -1, -1):
        for column in range(4):
            c = lane.cells[x, column]
            if c >= 0:
                lane.up[c] = 1 - lane.up[c]
        stood[x] = lane.up[lane.cells[x, 0]]
    for x in range(move_count):
        i, j = np.int64(lane.cells[x, 0]), np.int64(lane.cells[x, 1])
        k, m = np.int64(lane.cells[x, 2]), np.int64(lane.cells[x, 3])
        if not _stands(cells, stood[x], i, j, k, m):
            continue
        if not allowed(cells, first.tally, i, j, k, m):
            continue
        place(layout, cells.codes[i], lies)
        cost = move_cost(layout, cells, first.errors, lies, i, j, k, costs.rise)
        if cost <= lane.limits[x]:
            errors, forces, tally = first.errors, first.forces, first.tally
            make(layout, cells, errors, forces, tally, lies, i, j, k, m, step, costs.force)


@compiled
def _stands(
    cells: SearchCells, stood: Whole, i: Whole, j: Whole, k: Whole, m: Whole
) -> bool:  # pragma: no cover
    """Whether the cells of a move stand as they did: the first and the fourth alike, the others opposite."""
    if cells.up[i] != stood or (m >= 0 and cells.up[m] != stood):
        return False
    return not ((j >= 0 and cells.up[j] == stood) or (k >= 0 and cells.up[k] == stood))


@compiled
def follow(
    layout: SearchLayout, cells: SearchCells, first: Lane, lane: Lane, source: Lane
) -> None:  # pragma: no cover
    """Give the first lane's errors, forces and cells to ``lane``, wherever a move of ``source`` changes them.

    It does not matter whether a move was made again.
    """
    lies = room(layout)
    for x in range(source.written[0]):
        i, j = np.int64(source.cells[x, 0]), np.int64(source.cells[x, 1])
        k = np.int64(source.cells[x, 2])
        for column in range(4):
            c = source.cells[x, column]
            if c >= 0:
                lane.up[c] = first.up[c]
        place(layout, cells.codes[i], lies)
        for y in range(moved_places(layout, cells, lies, i, j, k)):
            at = lies.changed[y]
            lane.errors[at] = first.errors[at]
            lane.forces[at, 0] = first.forces[at, 0]
            lane.forces[at, 1] = first.forces[at, 1]
