"""From true finest cells to the cells that the search may move, and where each of them starts.

A later release of the same people begins with the numbers of the one before;
see :mod:`lustrum.protect.population.later`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Words
from lustrum.model.finest import FinestCells
from lustrum.model.keys import scramble
from lustrum.protect.population.later.before import Kept, Redraw, joined
from lustrum.protect.population.later.continued import continued
from lustrum.protect.population.search.run import SearchProblem
from lustrum.protect.population.siblings import candidates
from lustrum.protect.population.start import (
    Options,
    cell_numbers,
    derived,
    empty_start,
    options,
    start_up,
)
from lustrum.runtime.stop import still_working


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """All cells that hold or may show somebody, which are fixed, and which the search may move."""

    every: FinestCells
    shown: Ints
    problem: SearchProblem
    unchanged: int
    changed: int


def prepare(
    cells: FinestCells,
    key: bytes,
    *,
    base: int,
    small_only: bool,
    empty_share: float,
    previous: FinestCells | None = None,
    refresh: float = 0.05,
    change_odds: float = 0.5,
    min_left: int = 2,
    held: Words | None = None,
    sparse_siblings: float = 0.0,
) -> Prepared:
    """Choose the empty cells that may show somebody, and where every cell starts.

    ``held`` are numbers of occupied cells, as :func:`cell_numbers` makes them, that show their upper number.
    ``sparse_siblings`` is described with :class:`~lustrum.protect.population.method.ProtectedPopulation`.
    """
    choice = options(cells.counts, base, small_only)
    total = int(choice.residue.sum())
    required = empty_share / (1 - empty_share) * _expected_smallest(choice, base)
    extra, needed, one_in = candidates(cells, key, base, required, sparse_siblings, total)
    still_working()
    if previous is None:
        every = joined(cells, extra)
        constraints = Kept.nothing(len(every))
    else:
        redraw = Redraw(base, small_only, empty_share > 0, refresh, change_odds, min_left)
        every, constraints = continued(cells, extra, previous, key, redraw, held)
    still_working()
    choice = options(every.counts, base, small_only)
    empty = every.counts == 0
    residue = choice.residue
    left = total - base * int(needed)
    if needed == required:
        left = max(left, total // 2)
    shrink = (left, total) if total else (1, 1)
    up = start_up(every, choice, key, shrink) & choice.movable
    up |= empty & empty_start(every.dataset, every.codes, key, one_in)
    up = np.where(constraints.starts, constraints.up, up)
    still_working()
    movable = (choice.movable | empty) & ~constraints.frozen
    shown = np.where(constraints.frozen, constraints.number, choice.low)
    if held is not None and held.size:
        stays_up = movable & choice.movable & (constraints.group < 0)
        stays_up &= np.isin(cell_numbers(every.dataset, every.codes), held)
        shown = np.where(stays_up, choice.low + base, shown)
        movable &= ~stays_up
    _start_groups(every, choice, constraints, up, movable, key)
    # There may be tens of millions of cells, so that small numbers are kept as such.
    small = np.int32 if int(shown.max(initial=0)) + base < 2**31 else np.int64
    problem = SearchProblem(
        every=every.codes,
        movable=movable,
        residue=residue[movable].astype(np.int16),
        step=base,
        up=up[movable],
        is_empty=empty[movable],
        low=choice.low[movable].astype(small),
        group=constraints.group[movable].astype(np.int32),
        fixed_up=(shown - every.counts)[~movable],
        fixed_smallest=int((shown[~movable] == base).sum()),
        fixed_empty=int(((shown == base) & empty)[~movable].sum()),
        # In thousandths, and never fewer than were promised; what rounding errors add is no thousandth.
        empty_share=(ceil(round(empty_share * 1000, 6)), 1000),
        start_share=shrink,
    )
    return Prepared(every, shown, problem, constraints.unchanged, constraints.changed)


def _expected_smallest(choice: Options, base: int) -> float:
    """How many cells the unbiased start makes show the base."""
    low, residue = choice.low, choice.residue
    return float((residue[low == 0] / base).sum() + (1 - residue[low == base] / base).sum())


def _start_groups(
    every: FinestCells,
    choice: Options,
    constraints: Kept,
    up: npt.NDArray[np.bool_],
    movable: npt.NDArray[np.bool_],
    key: bytes,
) -> None:
    """Let as many parts of every kept cell start at their upper number as its sum asks for."""
    members = np.flatnonzero((constraints.group >= 0) & movable)
    everyone = np.flatnonzero(constraints.group >= 0)
    if not everyone.size:
        return
    base_sum: dict[int, int] = {}
    for cell in everyone:
        group = int(constraints.group[cell])
        base_sum[group] = base_sum.get(group, 0) + int(choice.low[cell])
    random_words = scramble(
        derived(key, "parts"), cell_numbers(every.dataset, every.codes[:, members])
    )
    drawn = (random_words >> np.uint64(11)).astype(np.float64) / 2**53
    # Parts with a larger residue come first more often; empty ones only where nothing else is left.
    residue = choice.residue[members]
    rank = np.where(residue > 0, drawn / np.maximum(residue, 1), 2.0 + drawn)
    up[members] = False
    left = {g: (constraints.target[g] - low) // choice.step for g, low in base_sum.items()}
    for index in np.lexsort((rank, constraints.group[members])):
        group = int(constraints.group[members[index]])
        if left[group] > 0:
            up[members[index]] = True
            left[group] -= 1
    if any(left.values()):
        raise InputError("The memory of the earlier release does not belong to these records.")
