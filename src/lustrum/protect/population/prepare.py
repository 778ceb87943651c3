"""From true finest cells to the cells that the search may move, and where each of them starts.

A second release of the same people keeps every number of the first that can be kept. A cell, at the
variables of the earlier release, whose records did not change keeps its number; where variables were added,
its parts add up to that number. This is always possible: parts next to their true counts can add up to any
multiple of the base next to the true sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt

from lustrum.arrays import Array, Ints, Words
from lustrum.model import InputError
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.model.keys import scramble
from lustrum.protect.population.search.run import Problem
from lustrum.protect.population.start import (
    Options,
    cell_numbers,
    derived,
    empty_candidates,
    empty_start,
    options,
    start_up,
)

__all__ = ["Prepared", "prepare"]


CANDIDATES = 4
"""Candidates among the empty cells for each that must show somebody."""


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """All cells that hold or may show somebody, which are fixed, and which the search may move."""

    every: FinestCells
    shown: Ints
    problem: Problem
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
    held: Words | None = None,
) -> Prepared:
    """Choose the empty cells that may show somebody, and where every cell starts.

    ``held`` are numbers of occupied cells, as :func:`cell_numbers` makes them, that show their upper number.
    """
    choice = options(cells.counts, base, small_only)
    smallest = _expected_smallest(choice, base)
    needed = empty_share / (1 - empty_share) * smallest
    extra = empty_candidates(cells, ceil(CANDIDATES * needed), key)
    if previous is None:
        every = _joined(cells, extra)
        kept = _Kept.nothing(len(every))
    else:
        if small_only and len(previous.dataset.variables) < len(cells.dataset.variables):
            raise InputError(
                "Counts that stay exact cannot be refined by a new variable; move all cells ('cells')."
            )
        every, kept = _with_previous(cells, extra, previous, key)
    choice = options(every.counts, base, small_only)
    empty = every.counts == 0
    residue = choice.residue
    surplus = base * int(needed)
    total = int(residue.sum())
    shrink = (max(total - surplus, total // 2), total) if total else (1, 1)
    up = start_up(every, choice, key, shrink) & choice.movable
    up |= empty & empty_start(every.dataset, every.codes, key, CANDIDATES)
    movable = (choice.movable | empty) & ~kept.frozen
    shown = np.where(kept.frozen, kept.number, choice.low)
    if held is not None and held.size:
        stays_up = movable & choice.movable & (kept.group < 0)
        stays_up &= np.isin(cell_numbers(every.dataset, every.codes), held)
        shown = np.where(stays_up, choice.low + base, shown)
        movable &= ~stays_up
    _start_groups(every, choice, kept, up, movable, key)
    problem = Problem(
        movable=movable,
        codes=every.codes[:, movable],
        residue=residue[movable],
        step=base,
        up=up[movable],
        is_empty=empty[movable],
        low=choice.low[movable],
        group=kept.group[movable],
        fixed_up=(shown - every.counts)[~movable],
        fixed_codes=every.codes[:, ~movable],
        fixed_smallest=int((shown[~movable] == base).sum()),
        fixed_empty=int(((shown == base) & empty)[~movable].sum()),
        # In thousandths, and never fewer than were promised; what rounding errors add is no thousandth.
        empty_share=(ceil(round(empty_share * 1000, 6)), 1000),
    )
    return Prepared(every, shown, problem, kept.unchanged, kept.changed)


def _expected_smallest(choice: Options, base: int) -> float:
    """How many cells the unbiased start makes show the base."""
    low, residue = choice.low, choice.residue
    return float((residue[low == 0] / base).sum() + (1 - residue[low == base] / base).sum())


def _joined(cells: FinestCells, extra: Array) -> FinestCells:
    """Occupied cells and candidates among the empty ones."""
    nobody = np.zeros(extra.shape[1], dtype=np.uint64)
    return FinestCells(
        cells.dataset,
        np.concatenate([cells.codes, extra.astype(cells.codes.dtype)], axis=1),
        np.concatenate([cells.counts, nobody.astype(np.int64)]),
        None if cells.keys is None else np.concatenate([cells.keys, nobody]),
    )


@dataclass(frozen=True, eq=False)
class _Kept:
    """What an earlier release fixes: numbers of cells, and sums of groups of cells."""

    frozen: npt.NDArray[np.bool_]
    number: Ints
    group: Ints  # -1: free
    target: dict[int, int]
    unchanged: int = 0
    changed: int = 0

    @classmethod
    def nothing(cls, cells: int) -> _Kept:
        zeros = np.zeros(cells, dtype=np.int64)
        return cls(zeros.astype(np.bool_), zeros, np.full(cells, -1, dtype=np.int64), {})


def _with_previous(
    cells: FinestCells, extra: Array, previous: FinestCells, key: bytes
) -> tuple[FinestCells, _Kept]:
    if previous.keys is None or cells.keys is None:
        raise InputError(
            "A second release needs the record keys of both: give the memory of the first release and "
            "cells counted with keys."
        )
    rows = _rows_of(cells, previous)
    known = cell_numbers(previous.dataset, previous.codes)
    order = np.argsort(known, kind="stable")
    known, known_keys, known_shown = known[order], previous.keys[order], previous.counts[order]

    def parents(codes: Array) -> Words:
        return cell_numbers(previous.dataset, codes[rows])

    parent, inverse = np.unique(parents(cells.codes), return_inverse=True)
    sums = np.zeros(parent.size, dtype=np.uint64)
    np.add.at(sums, inverse, cells.keys)
    place, found = _find(known, parent)
    same = found & (_at(known_keys, place, found) == sums)
    # Parents that were and are empty keep what they showed; those that lost all records are free.
    gone = ~_find(parent, known)[1]
    still_empty = gone & (known_keys == 0)
    showing = np.flatnonzero(still_empty & (known_shown > 0))
    chosen = _parts_of_empty(cells, previous, rows, order[showing], key)
    # A candidate may not change a number that is kept: that of a parent that was and is empty.
    candidate_parent = parents(extra)
    _, new_found = _find(parent, candidate_parent)
    in_old, old_found = _find(known, candidate_parent)
    lost = old_found & ~new_found & ~_at(still_empty, in_old, old_found)
    extra = extra[:, new_found | lost]
    outside = ~np.isin(cell_numbers(cells.dataset, extra), cell_numbers(cells.dataset, chosen))
    every = _joined(cells, np.concatenate([extra[:, outside], chosen.astype(extra.dtype)], axis=1))

    every_parent = parents(every.codes)
    new_place, is_new = _find(parent, every_parent)
    fixed = _at(same, new_place, is_new)
    number = np.zeros(len(every), dtype=np.int64)
    number[fixed] = known_shown[place[new_place[fixed]]]
    was_empty = np.isin(
        cell_numbers(every.dataset, every.codes), cell_numbers(cells.dataset, chosen)
    )
    old_place, _ = _find(known, every_parent)
    number[was_empty] = known_shown[old_place[was_empty]]
    refined = len(cells.dataset.variables) > len(previous.dataset.variables)
    group = np.full(len(every), -1, dtype=np.int64)
    if refined:
        group[fixed] = new_place[fixed]
        frozen = was_empty
    else:
        frozen = fixed | was_empty
    target = (
        {int(g): int(n) for g, n in zip(group[fixed], number[fixed], strict=True)}
        if refined
        else {}
    )
    kept = _Kept(
        frozen,
        number,
        group,
        target,
        int(same.sum()),
        int((~same).sum() + (gone & ~still_empty).sum()),
    )
    return every, kept


def _rows_of(cells: FinestCells, previous: FinestCells) -> list[int]:
    places = {v.name: i for i, v in enumerate(cells.dataset.variables)}
    rows = []
    for variable in previous.dataset.variables:
        place = places.get(variable.name)
        if place is None:
            raise InputError(
                f"The earlier release has the variable {variable.name!r}, which is missing now; keep it, and "
                "leave it out of tables."
            )
        if cells.dataset.variables[place].codes != variable.codes:
            raise InputError(
                f"The codes of {variable.name!r} differ from those of the earlier release; a second release "
                "needs the same ones."
            )
        rows.append(place)
    return rows


def _find(ordered: Words, wanted: Words) -> tuple[Ints, npt.NDArray[np.bool_]]:
    if not ordered.size:
        return np.zeros(wanted.size, dtype=np.int64), np.zeros(wanted.size, dtype=np.bool_)
    place = np.minimum(np.searchsorted(ordered, wanted), ordered.size - 1)
    return place.astype(np.int64), np.asarray(ordered[place] == wanted)


def _at(values: Array, place: Ints, found: npt.NDArray[np.bool_]) -> Array:
    """The values at some places; 0 where nothing was found."""
    out = np.zeros(place.size, dtype=values.dtype)
    out[found] = values[place[found]]
    return out


def _parts_of_empty(
    cells: FinestCells, previous: FinestCells, rows: list[int], showing: Ints, key: bytes
) -> Array:
    """For every empty cell of the earlier release that shows somebody, the part that shows them now."""
    parents = previous.codes[:, showing]
    made = np.zeros((len(cells.dataset.variables), showing.size), dtype=cells.codes.dtype)
    made[rows] = parents
    new = [i for i in range(made.shape[0]) if i not in rows]
    waiting = np.arange(showing.size)
    stream = scramble(derived(key, "part"), cell_numbers(previous.dataset, parents))
    for attempt in range(_PART_ATTEMPTS):
        for row in new:
            size = len(cells.dataset.variables[row].codes)
            words = scramble(derived(key, f"part {attempt} {row}"), stream[waiting])
            made[row, waiting] = ((words >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32)
        waiting = waiting[~possible_cells(cells.dataset, made[:, waiting])]
        if not waiting.size:
            return made
    raise InputError(
        "The new variables leave no possible part for a cell that showed somebody; correct structural zeros."
    )


_PART_ATTEMPTS = 400


def _start_groups(
    every: FinestCells,
    choice: Options,
    kept: _Kept,
    up: npt.NDArray[np.bool_],
    movable: npt.NDArray[np.bool_],
    key: bytes,
) -> None:
    """Let as many parts of every kept cell start at their upper number as its sum asks for."""
    members = np.flatnonzero((kept.group >= 0) & movable)
    everyone = np.flatnonzero(kept.group >= 0)
    if not everyone.size:
        return
    base_sum: dict[int, int] = {}
    for cell in everyone:
        group = int(kept.group[cell])
        base_sum[group] = base_sum.get(group, 0) + int(choice.low[cell])
    words = scramble(derived(key, "parts"), cell_numbers(every.dataset, every.codes[:, members]))
    drawn = (words >> np.uint64(11)).astype(np.float64) / 2**53
    # Parts with a larger residue come first more often; empty ones only where nothing else is left.
    residue = choice.residue[members]
    rank = np.where(residue > 0, drawn / np.maximum(residue, 1), 2.0 + drawn)
    up[members] = False
    left = {g: (kept.target[g] - low) // choice.step for g, low in base_sum.items()}
    for place in np.lexsort((rank, kept.group[members])):
        group = int(kept.group[members[place]])
        if left[group] > 0:
            up[members[place]] = True
            left[group] -= 1
    if any(left.values()):
        raise InputError("The memory of the earlier release does not belong to these records.")
