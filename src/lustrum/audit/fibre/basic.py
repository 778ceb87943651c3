"""Short moves in closed form, for fibres that are too large to search for them.

They need not connect the fibre, because chains use a lattice basis as well; they improve mixing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from math import comb, prod

import numpy as np
import numpy.typing as npt

from lustrum.audit.fibre.margins import Axes, FibreMargins
from lustrum.audit.fibre.two_way import TwoWay
from lustrum.model.arrays import Ints

MovesList = tuple[Ints, Ints]
"""One move a row: the cells it touches, and by how much."""

_SEED = 20010101  # the choice among too many moves affects speed only


def free_sets(margins: FibreMargins) -> list[Axes]:
    """The smallest sets of axes that are in no margin.

    >>> free_sets(FibreMargins.of(np.ones((2, 2, 2), int), [(0, 1), (0, 2), (1, 2)]))
    [(0, 1, 2)]
    """
    free_axes: list[Axes] = []
    for size in range(1, len(margins.shape) + 1):
        for axes in combinations(range(len(margins.shape)), size):
            held = any(set(axes) <= set(c) for c in margins.cliques)
            if not held and not any(set(f) <= set(axes) for f in free_axes):
                free_axes.append(axes)
    return free_axes


def tensor_moves(margins: FibreMargins, most: int = 100_000) -> list[MovesList]:
    """Moves at the corners of boxes over axes that are in no margin, up and down in turn.

    Over two axes they are the squares, over three the basic moves of a cube of which all pairs of axes are
    known (Diaconis and Sturmfels 1998). Each changes no margin, because it cancels when summed over one of
    its axes. At most ``most`` moves are made, chosen at random if there are more.

    >>> [(cells, steps)] = tensor_moves(FibreMargins.of(np.ones((2, 2), int), [(0,), (1,)]))
    >>> cells.tolist(), steps.tolist()
    ([[0, 1, 2, 3]], [[1, -1, -1, 1]])
    """
    rng = np.random.default_rng(_SEED)
    sets = free_sets(margins)
    out = []
    for axes in sets:
        sizes = [margins.shape[a] for a in axes]
        if min(sizes) < 2:
            continue
        rest = [a for a in range(len(margins.shape)) if a not in axes]
        ways = [comb(s, 2) for s in sizes] + [margins.shape[a] for a in rest]
        total, room = prod(ways), max(1, most // len(sets))
        picks = np.arange(total) if total <= room else rng.integers(total, size=room)
        places = np.unravel_index(picks, ways)
        cells, steps = np.zeros((picks.size, 1), np.int64), np.ones(1, np.int64)
        for axis, coordinate in zip((*axes, *rest), places, strict=True):
            stride = prod(margins.shape[axis + 1 :])
            if axis in axes:
                pairs = np.array(list(combinations(range(margins.shape[axis]), 2)))[coordinate]
                cells = (cells[:, :, None] + stride * pairs[:, None, :]).reshape(picks.size, -1)
                steps = np.outer(steps, [1, -1]).ravel()
            else:
                cells = cells + stride * coordinate[:, None]
        out.append((cells, np.broadcast_to(steps, cells.shape)))
    return out


def cycle_moves(table: TwoWay, most: int = 50_000) -> list[MovesList]:
    """Closed walks of four and of six cells through a two-way table with holes.

    Up and down in turn, they keep all row and column sums (Aoki and Takemura 2005, on tables with
    structural zeros). About three times as many moves of six cells are taken as of four.
    """
    rows, columns = table.rows.size, table.columns.size
    number = np.full((rows, columns), -1, dtype=np.int64)
    number[table.positions[:, 0], table.positions[:, 1]] = np.arange(len(table.positions))
    there = number >= 0
    squares = list(_squares(number, there, most))
    wanted = min(most, 3 * len(squares) + 1000)
    hexagons = list(_hexagons(number, there, wanted))
    out = []
    for cycles, size in ((squares, 4), (hexagons, 6)):
        if cycles:
            cells = np.array(cycles, dtype=np.int64)
            steps = np.where(np.arange(size) % 2 == 0, 1, -1).astype(np.int64)
            out.append((cells, np.broadcast_to(steps, cells.shape)))
    return out


def _squares(number: Ints, there: npt.NDArray[np.bool_], most: int) -> Iterator[list[int]]:
    left = most
    for i, j in combinations(range(len(number)), 2):
        for k, m in combinations(np.flatnonzero(there[i] & there[j]).tolist(), 2):
            yield [number[i, k], number[i, m], number[j, m], number[j, k]]
            left -= 1
            if left == 0:
                return


def _hexagons(number: Ints, there: npt.NDArray[np.bool_], wanted: int) -> Iterator[list[int]]:
    """Six cells in three rows and three columns, tried at random."""
    if min(number.shape) < 3:
        return
    rng = np.random.default_rng(_SEED)
    seen: set[tuple[int, ...]] = set()
    tries = 20 * wanted
    # Where all have been found, more tries find nothing new.
    enough = min(wanted, _count_hexagons(there, tries))
    for _ in range(tries):
        if len(seen) >= enough:
            return
        # A walk from cell to cell closes far more often than six random cells do.
        i = int(rng.integers(len(number)))
        k, m = _two(rng, there[i])
        if m < 0:
            continue
        j, n = (int(_one(rng, there[:, c], i)) for c in (k, m))
        if j < 0 or n < 0 or j == n:
            continue
        shared = there[j] & there[n]
        shared[[k, m]] = False
        p = _one(rng, shared, -1)
        if p < 0:
            continue
        cells = [number[i, k], number[j, k], number[j, p], number[n, p], number[n, m], number[i, m]]
        key = tuple(sorted(cells))
        if key not in seen:
            seen.add(key)
            yield cells


def _count_hexagons(there: npt.NDArray[np.bool_], most: int) -> int:
    """How many hexagons a table has; ``most`` where it would take long to count them.

    A hexagon is three rows and three columns without one cell of each.
    """
    if comb(there.shape[0], 3) * comb(there.shape[1], 3) > most:
        return most
    rows, columns = (np.array(list(combinations(range(size), 3))) for size in there.shape)
    blocks = there[rows[:, None, :, None], columns[None, :, None, :]]
    held = blocks.sum(axis=(2, 3))
    without = (blocks[:, :, range(3), order].sum(axis=2) for order in permutations(range(3)))
    return sum(int((held - gone == 6).sum()) for gone in without)


def _two(rng: np.random.Generator, mask: npt.NDArray[np.bool_]) -> tuple[int, int]:
    places = np.flatnonzero(mask)
    if places.size < 2:
        return -1, -1
    first, second = rng.choice(places, 2, replace=False)
    return int(first), int(second)


def _one(rng: np.random.Generator, mask: npt.NDArray[np.bool_], but: int) -> int:
    places = np.flatnonzero(mask)
    places = places[places != but]
    return int(places[rng.integers(places.size)]) if places.size else -1
