"""The moves of a chain: squares where they are a Markov basis, otherwise lattice vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, permutations
from math import comb, prod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lustrum.audit.bounding.lattice import integer_kernel, reduced, short_moves
from lustrum.audit.fibre.margins import Axes, FibreMargins, junction_tree
from lustrum.audit.fibre.system import FibreBlock
from lustrum.audit.fibre.two_way import TwoWay
from lustrum.model import InputError
from lustrum.model.arrays import Floats, Indices, Ints, Mask, Words
from lustrum.numeric.structure.ragged import pointers

# Short moves in closed form, for fibres that are too large to search for them.
#
# They need not connect the fibre, because chains use a lattice basis as well; they improve mixing.


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


def _squares(number: Ints, there: Mask, most: int) -> Iterator[list[int]]:
    left = most
    for i, j in combinations(range(len(number)), 2):
        for k, m in combinations(np.flatnonzero(there[i] & there[j]).tolist(), 2):
            yield [number[i, k], number[i, m], number[j, m], number[j, k]]
            left -= 1
            if left == 0:
                return


def _hexagons(number: Ints, there: Mask, wanted: int) -> Iterator[list[int]]:
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


def _count_hexagons(there: Mask, most: int) -> int:
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


def _two(rng: np.random.Generator, mask: Mask) -> tuple[int, int]:
    places = np.flatnonzero(mask)
    if places.size < 2:
        return -1, -1
    first, second = rng.choice(places, 2, replace=False)
    return int(first), int(second)


def _one(rng: np.random.Generator, mask: Mask, but: int) -> int:
    places = np.flatnonzero(mask)
    places = places[places != but]
    return int(places[rng.integers(places.size)]) if places.size else -1


MIXED = 0.15
"""The share of moves that are random sums of others; any share above 0 connects the fibre."""

_SMALL = 64  # short moves are searched for up to this dimension, which finds more kinds


class FibreMoves(Protocol):
    """Moves from a table to others of its fibre that keep the target distribution."""

    @property
    def empty(self) -> bool: ...

    def run(
        self, x: Ints, state: Words, *, hypergeometric: bool, logs: Floats, thin: int, out: Ints
    ) -> int:
        """Move x in place and keep a table every ``thin`` moves; returns how many moves changed it."""
        ...


@dataclass(frozen=True, eq=False)
class Squares:
    """The primitive moves of decomposable margins: two counts up, two down, at the corners of a square.

    At each edge of the junction tree, for a fixed configuration of the separator, two configurations of one
    side and two of the other are the corners. Over all edges these moves are a Markov basis (Dobra 2003,
    *Bernoulli* 9); for a two-way table they are the basic moves of Diaconis and Sturmfels (1998). A step
    may use any multiple of a move.
    """

    begin: Ints
    counts: Ints
    offsets: Ints
    keep: Indices

    @classmethod
    def of(cls, margins: FibreMargins, keep: npt.ArrayLike) -> Squares:
        """The squares of margins without structural zeros; the places ``keep`` are recorded."""
        tree = junction_tree(margins.cliques, len(margins.shape))
        if tree is None or margins.possible is not None:
            raise InputError("Squares alone connect only tables given by decomposable margins.")
        begin, counts, lists = [0], [], []
        for edge in tree:
            parts = [
                _places(margins.shape, axes) for axes in (edge.separator, edge.left, edge.right)
            ]
            if parts[1].size < 2 or parts[2].size < 2:
                continue
            lists += parts
            counts.append([p.size for p in parts])
            begin.append(begin[-1] + sum(counts[-1]))
        return cls(
            begin=np.array(begin[:-1], dtype=np.int64),
            counts=np.array(counts, dtype=np.int64).reshape(-1, 3),
            offsets=np.concatenate(lists) if lists else np.zeros(0, dtype=np.int64),
            keep=np.asarray(keep, dtype=np.intp),
        )

    @property
    def empty(self) -> bool:
        return bool(self.counts.shape[0] == 0)

    def run(
        self, x: Ints, state: Words, *, hypergeometric: bool, logs: Floats, thin: int, out: Ints
    ) -> int:
        """Move a table without upper bounds."""
        # Imported here because the compiler takes long to load, and only sampling needs it.
        from lustrum.audit.fibre.kernels import run_squares

        if self.empty:
            out[:] = x[self.keep]
            return 0
        arrays = (self.begin, self.counts, self.offsets)
        return int(run_squares(x, *arrays, hypergeometric, logs, state, thin, self.keep, out))


@dataclass(frozen=True, eq=False)
class Lines:
    """Directions of a lattice: a basis, short sums of its vectors and, sometimes, sums of any length.

    >>> from lustrum.audit.fibre.system import FibreSystem
    >>> ring = FibreMargins.two_way([1, 1, 1], [1, 1, 1], possible=1 - np.eye(3))
    >>> Lines.of(FibreSystem.of(ring).blocks[0]).vectors().tolist()
    [[1, -1, -1, 1, 1, -1]]
    """

    low: Ints
    high: Ints
    counted: Mask
    indptr: Ints
    cells: Ints
    steps: Ints
    keep: Indices
    mixed: float = MIXED
    basis: Ints = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64), repr=False)

    @classmethod
    def of(
        cls, block: FibreBlock, margins: FibreMargins | None = None, *, mixed: float = MIXED
    ) -> Lines:
        """The directions of a block, with its bounds; its margins help where it is large."""
        try:
            basis = reduced(integer_kernel(block.matrix))
        except OverflowError as error:
            raise InputError(f"This fibre cannot be sampled: {error}.") from None
        known = _known_moves(block, margins) if len(basis) > _SMALL else []
        vectors = basis if known else short_moves(basis)
        row, column = np.nonzero(vectors)
        lengths = [np.bincount(row, minlength=len(vectors))]
        lengths += [np.full(len(cells), cells.shape[1]) for cells, _ in known]
        return cls(
            low=block.low,
            high=block.high,
            counted=block.counted,
            indptr=pointers(np.concatenate(lengths)),
            cells=np.concatenate([column, *(c.ravel() for c, _ in known)]).astype(np.int64),
            steps=np.concatenate([vectors[row, column], *(s.ravel() for _, s in known)]),
            keep=np.arange(block.cells.size, dtype=np.intp),
            mixed=mixed,
            basis=basis,
        )

    @property
    def empty(self) -> bool:
        return self.indptr.size <= 1

    def run(
        self, x: Ints, state: Words, *, hypergeometric: bool, logs: Floats, thin: int, out: Ints
    ) -> int:
        """Move a table within its bounds."""
        from lustrum.audit.fibre.kernels import run_lines

        if self.empty:
            out[:] = x[self.keep]
            return 0
        bounds = (self.low, self.high, self.counted)
        lines = (self.indptr, self.cells, self.steps)
        mixed, keep = self.mixed, self.keep
        return int(
            run_lines(x, *bounds, *lines, mixed, hypergeometric, logs, state, thin, keep, out)
        )

    def vectors(self) -> Ints:
        """Every listed move as a vector."""
        out = np.zeros((self.indptr.size - 1, self.low.size), dtype=np.int64)
        out[np.repeat(np.arange(len(out)), np.diff(self.indptr)), self.cells] = self.steps
        return out


def _known_moves(block: FibreBlock, margins: FibreMargins | None) -> list[MovesList]:
    """Short moves of a block that is a two-way table or a part of a table with given margins."""
    table = TwoWay.of(block)
    if table is not None:
        return cycle_moves(table)
    if margins is None or len(block) > block.cells.size or block.cells.max() >= margins.size:
        return []
    local_index = np.full(margins.size, -1, dtype=np.int64)
    local_index[block.cells] = np.arange(block.cells.size)
    out = []
    for cells, steps in tensor_moves(margins):
        # A move that touches a settled cell is never possible.
        inside = (local_index[cells] >= 0).all(axis=1)
        if inside.any():
            out.append((local_index[cells[inside]], steps[inside]))
    return out


def _places(shape: tuple[int, ...], axes: Axes) -> Ints:
    """The places in memory of the configurations of some axes, with all other axes at 0."""
    places = np.zeros(1, dtype=np.int64)
    for axis in axes:
        stride = int(np.prod(shape[axis + 1 :], dtype=np.int64))
        steps = stride * np.arange(shape[axis], dtype=np.int64)
        places = (places[:, None] + steps[None, :]).ravel()
    return places
