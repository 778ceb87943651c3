"""Margins of a hidden table as plain arrays, and the junction tree of decomposable ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lustrum.audit.closed import margins_of
from lustrum.audit.knowledge.facts import ContradictionError, Knowledge
from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask
from lustrum.numeric.later import sparse
from lustrum.numeric.structure import UNBOUNDED

# How far a search or a chain may go, as its caller says.


def check_limit(name: str, value: object, least: int = 1) -> None:
    """A limit is a whole number of at least so much, of Python's own or of numpy.

    >>> check_limit("nodes", 2.5)
    Traceback (most recent call last):
    lustrum.model.errors.InputError: 'nodes' must be a whole number of 1 or more.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"'{name}' must be a whole number of {least} or more.")
    if value >= 2**62:
        raise InputError(f"'{name}' must be below 2**62.")


Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class FibreMargins:
    """Sums of a hidden table of counts over some of its axes, and which of its cells can be filled.

    ``sums`` has an array for each set of axes that was kept. ``possible`` is False at structural
    zeros.

    >>> margins = FibreMargins.two_way([3, 2], [1, 4])
    >>> margins, margins.decomposable
    (FibreMargins(2 x 2, kept 0; 1), True)
    >>> FibreMargins.of([[[1, 0], [2, 1]], [[0, 3], [1, 1]]], [(0, 1), (0, 2), (1, 2)]).decomposable
    False
    """

    shape: tuple[int, ...]
    sums: Mapping[Axes, Ints]
    possible: Mask | None = None

    def __post_init__(self) -> None:
        shape = tuple(int(s) for s in self.shape)
        if not shape or min(shape) < 1:
            raise InputError("A hidden table needs axes, each with at least one category.")
        sums = {tuple(int(a) for a in k): _counts(v) for k, v in self.sums.items()}
        if not sums:
            raise InputError("A hidden table needs at least one margin.")
        for axes, values in sums.items():
            if len(set(axes)) < len(axes) or not all(0 <= a < len(shape) for a in axes):
                raise InputError(f"A margin keeps axes {axes}; the table has {len(shape)} axes.")
            wanted = tuple(shape[a] for a in axes)
            if values.shape != wanted:
                raise InputError(
                    f"The margin of axes {axes} has shape {values.shape}; it must be {wanted}."
                )
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "sums", {tuple(sorted(k)): _sorted(k, v) for k, v in sums.items()})
        if self.possible is not None:
            mask = np.asarray(self.possible, dtype=np.bool_)
            if mask.shape != shape:
                raise InputError(f"The mask of possible cells has shape {mask.shape}, not {shape}.")
            object.__setattr__(self, "possible", mask)
        self._check_agreement()

    def __repr__(self) -> str:
        axes = "; ".join(",".join(map(str, a)) for a in self.sums)
        return f"FibreMargins({' x '.join(map(str, self.shape))}, kept {axes})"

    @classmethod
    def of(
        cls,
        table: npt.ArrayLike,
        axis_sets: Sequence[Sequence[int]],
        possible: npt.ArrayLike | None = None,
    ) -> FibreMargins:
        values = _counts(table)
        sums = {}
        for axes in axis_sets:
            try:
                kept_axes = tuple(sorted(set(axes)))
            except TypeError:
                raise InputError(
                    "'axis_sets' lists the axes of each margin, such as [(0, 1), (2,)]."
                ) from None
            rest = tuple(a for a in range(values.ndim) if a not in kept_axes)
            sums[kept_axes] = values.sum(axis=rest)
        return cls(values.shape, sums, None if possible is None else np.asarray(possible))

    @classmethod
    def two_way(
        cls, rows: npt.ArrayLike, columns: npt.ArrayLike, possible: npt.ArrayLike | None = None
    ) -> FibreMargins:
        r, c = _counts(rows), _counts(columns)
        if r.ndim != 1 or c.ndim != 1:
            raise InputError("Row sums and column sums are two plain lists of counts.")
        mask = None if possible is None else np.asarray(possible)
        return cls((r.size, c.size), {(0,): r, (1,): c}, mask)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def cliques(self) -> tuple[Axes, ...]:
        """The maximal margins."""
        sets = sorted(self.sums, key=lambda a: (-len(a), a))
        return tuple(a for i, a in enumerate(sets) if not any(set(a) <= set(b) for b in sets[:i]))

    @property
    def decomposable(self) -> bool:
        """Whether the margins cover all axes and have a junction tree."""
        return junction_tree(self.cliques, len(self.shape)) is not None

    def knowledge(self) -> Knowledge:
        """The same as facts about the cells of the hidden table, in the order of its memory."""
        cells = np.arange(self.size, dtype=np.int64)
        where = np.unravel_index(cells, self.shape)
        blocks, ends = [], []
        for axes, values in self.sums.items():
            row = np.zeros(self.size, dtype=np.int64)
            if axes:
                row = np.ravel_multi_index([where[a] for a in axes], values.shape).astype(np.int64)
            ones = np.ones(self.size, dtype=np.int64)
            blocks.append(sparse.csr_array((ones, (row, cells)), shape=(values.size, self.size)))
            ends.append(values.ravel())
        high = np.full(self.size, UNBOUNDED, dtype=np.int64)
        if self.possible is not None:
            high[~self.possible.ravel()] = 0
        sums = np.concatenate(ends)
        return Knowledge(
            names=[f"cell {','.join(map(str, np.unravel_index(c, self.shape)))}" for c in cells],
            low=np.zeros(self.size, dtype=np.int64),
            high=high,
            matrix=sparse.vstack(blocks, format="csr"),
            fact_low=sums,
            fact_high=sums,
        )

    @classmethod
    def known(cls, known: Knowledge) -> FibreMargins | None:
        """The margins that some knowledge consists of, the cube first; None if it holds anything else."""
        margins = margins_of(known)
        if margins is None or known.structure is None or not margins.shape:
            return None
        if [axis.name for axis in known.structure.tables[0].axes] != list(margins.names):
            return None
        sums = {
            tuple(sorted(axes)): table.reshape([margins.shape[a] for a in sorted(axes)])
            for axes, table in margins.tables.items()
        }
        return cls(margins.shape, sums)

    def _check_agreement(self) -> None:
        """Two margins must have the same sums over the axes they share."""
        pairs = list(self.sums.items())
        for i, (a, u) in enumerate(pairs):
            for b, v in pairs[:i]:
                shared = set(a) & set(b)
                first = u.sum(axis=tuple(k for k, axis in enumerate(a) if axis not in shared))
                other = v.sum(axis=tuple(k for k, axis in enumerate(b) if axis not in shared))
                if not np.array_equal(first, other):
                    raise ContradictionError(
                        f"The margins of axes {b} and {a} contradict each other where they meet."
                    )


@dataclass(frozen=True)
class Edge:
    """An edge of a junction tree: clique ``child`` is attached to the cliques before it."""

    child: Axes
    separator: Axes
    left: Axes
    right: Axes


def junction_tree(cliques: Sequence[Axes], axes: int) -> tuple[Edge, ...] | None:
    """The edges of a junction tree of cliques, or None where there is none.

    A spanning tree with the largest shared axes is a junction tree exactly where the shared axes account
    for everything that the cliques count more than once (Lauritzen 1996). ``left`` and ``right`` are all
    axes on the two sides of the edge, without the separator. The order of edges builds the tree up.

    >>> [edge.separator for edge in junction_tree([(0, 1), (1, 2), (2, 3)], 4)]
    [(1,), (2,)]
    >>> junction_tree([(0, 1), (1, 2), (0, 2)], 3) is None
    True
    """
    if set().union(*cliques) != set(range(axes)):
        return None
    inside, links = [0], []
    outside = set(range(1, len(cliques)))
    while outside:
        shared, child, parent = max(
            (len(set(cliques[c]) & set(cliques[p])), -c, -p) for c in outside for p in inside
        )
        links.append((-parent, -child, shared))
        inside.append(-child)
        outside.remove(-child)
    if sum(map(len, cliques)) - axes != sum(s for _, _, s in links):
        return None
    edges = []
    for parent, child, _ in links:
        far = {child}
        for (
            p,
            c,
            _,
        ) in links:  # links come in the order of the tree, so one pass finds all descendants
            if p in far:
                far.add(c)
        separator = set(cliques[parent]) & set(cliques[child])
        below = set().union(*(cliques[k] for k in far)) - separator
        above = set(range(axes)) - below - separator
        parts = (sorted(s) for s in (separator, above, below))
        edges.append(Edge(cliques[child], *(tuple(p) for p in parts)))
    return tuple(edges)


def _counts(values: npt.ArrayLike) -> Ints:
    try:
        array = np.asarray(values)
    except ValueError:  # numpy's own sentence is about shapes and sequences
        raise InputError("A table of counts needs rows of the same length.") from None
    whole = array.dtype.kind in "iu" or (
        array.dtype.kind == "f" and bool(np.isfinite(array).all() and (array % 1 == 0).all())
    )
    if not whole or bool((array < 0).any()):
        raise InputError("A table of counts holds whole numbers of 0 or more.")
    if float(array.sum(dtype=np.float64)) > 2.0**53:
        raise InputError("Counts add up to more than 2**53, beyond which audits are not exact.")
    return array.astype(np.int64)


def _sorted(axes: Axes, values: Ints) -> Ints:
    out = (
        np.ascontiguousarray(np.transpose(values, np.argsort(axes, kind="stable")))
        if axes
        else values
    )
    out.setflags(write=False)
    return out
