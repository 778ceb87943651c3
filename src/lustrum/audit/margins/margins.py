"""Released margins of a hidden cube, checked once so that the formulas need not be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from string import ascii_uppercase
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.knowledge.facts import ContradictionError, Knowledge
from lustrum.audit.margins.junction import junction_tree
from lustrum.model import InputError
from lustrum.model.errors import choices
from lustrum.structure import UNBOUNDED

__all__ = ["Axes", "Margins"]

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

Axes: TypeAlias = frozenset[int]
"""Variables of the cube by their places; empty for the grand total."""


@dataclass(frozen=True, eq=False)
class Margins:
    """The margins of a cube that everybody can see, in units of ``10**-decimals``.

    Every array has all axes of the cube, of length 1 where it was summed over, so that formulas over
    cells are broadcasts; :attr:`sums` has the same without them. ``possible`` is False at structural zeros.
    Make one by :meth:`of`, :meth:`of_sums`, :meth:`two_way` or :meth:`of_table`, which check that no number is
    negative and that any two margins agree on the variables they share.

    >>> seen = Margins.of({"A": 2, "B": 2}, {"A": [3, 4], "B": [2, 5]})
    >>> seen
    Margins(A 2 x B 2; A, B)
    >>> seen.total, seen.margin("B").ravel().tolist()
    (7, [2, 5])
    """

    names: tuple[str, ...]
    shape: tuple[int, ...]
    tables: Mapping[Axes, Ints]
    decimals: int = 0
    whole: bool = True
    possible: Mask | None = None

    @classmethod
    def of(
        cls,
        cube: Mapping[str, int],
        released: Mapping[str | tuple[str, ...], npt.ArrayLike],
        *,
        decimals: int = 0,
        whole: bool = True,
    ) -> Margins:
        """Margins by the names of their variables; a string stands for its letters."""
        names, shape = tuple(cube), tuple(int(size) for size in cube.values())
        if any(size < 1 for size in shape):
            raise InputError("Every variable of a cube needs at least one category.")
        if not released:
            raise InputError(
                "No margin is released, so nothing bounds the cells; give at least one."
            )
        tables: dict[Axes, Ints] = {}
        for margin, values in released.items():
            axes = _places(names, margin)
            array = _laid_out(names, shape, margin, axes, values)
            if bool((array < 0).any()):
                raise InputError(
                    f"The margin {_label(margin)} holds a negative value; counts have none."
                )
            key = frozenset(axes)
            if key in tables and not np.array_equal(tables[key], array):
                raise ContradictionError(f"The margin {_label(margin)} is given twice and differs.")
            tables[key] = array
        made = cls(names, shape, tables, decimals, whole)
        made._check_agreement()
        return made

    @classmethod
    def of_table(
        cls,
        table: npt.ArrayLike,
        margins: Iterable[Iterable[int]],
        possible: npt.ArrayLike | None = None,
    ) -> Margins:
        """What a table tells when it is released in these margins only; its axes are A, B, C ...

        >>> Margins.of_table([[1, 2], [3, 4]], [[0], [1]]).margin("A").ravel().tolist()
        [3, 7]
        """
        cube = _counts(table)
        tables = {}
        for margin in margins:
            axes = frozenset(margin)
            if not all(0 <= a < cube.ndim for a in axes):
                raise InputError(
                    f"A margin keeps axes {tuple(sorted(axes))}; the table has {cube.ndim} axes."
                )
            tables[axes] = _summed(cube, axes)
        mask = _possible(cube.shape, possible)
        return cls(_letters(cube.ndim), cube.shape, tables, possible=mask)

    @classmethod
    def of_sums(
        cls,
        shape: Sequence[int],
        sums: Mapping[tuple[int, ...], npt.ArrayLike],
        possible: npt.ArrayLike | None = None,
    ) -> Margins:
        """Margins of a table of that shape by the axes that each keeps; its axes are A, B, C ...

        >>> Margins.of_sums((2, 2), {(0,): [3, 2], (1,): [1, 4]}).decomposable
        True
        """
        size = tuple(int(s) for s in shape)
        if not size or min(size) < 1:
            raise InputError("A hidden table needs axes, each with a category at least.")
        if not sums:
            raise InputError("A hidden table needs one margin at least.")
        tables: dict[Axes, Ints] = {}
        for axes, given in sums.items():
            values = _counts(given)
            if len(set(axes)) < len(axes) or not all(0 <= a < len(size) for a in axes):
                raise InputError(f"A margin keeps axes {axes}; the table has {len(size)} axes.")
            wanted = tuple(size[a] for a in axes)
            if values.shape != wanted:
                raise InputError(
                    f"The margin of axes {axes} has shape {values.shape}; it must be {wanted}."
                )
            tables[frozenset(axes)] = _spread_out(values, tuple(axes), size)
        made = cls(_letters(len(size)), size, tables, possible=_possible(size, possible))
        made._check_agreement()
        return made

    @classmethod
    def two_way(
        cls, rows: npt.ArrayLike, columns: npt.ArrayLike, possible: npt.ArrayLike | None = None
    ) -> Margins:
        """Row and column sums of a two-way table."""
        r, c = _counts(rows), _counts(columns)
        if r.ndim != 1 or c.ndim != 1:
            raise InputError("Row sums and column sums are two plain lists of counts.")
        return cls.of_sums((r.size, c.size), {(0,): r, (1,): c}, possible)

    def __repr__(self) -> str:
        cube = " x ".join(f"{n} {s}" for n, s in zip(self.names, self.shape, strict=True))
        shown = (self.label(axes) for axes in self.tables)
        return f"Margins({cube}; {', '.join(shown)})"

    @property
    def size(self) -> int:
        """How many cells the cube has."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def total(self) -> int:
        """The grand total, which every margin tells."""
        return int(next(iter(self.tables.values())).sum())

    @property
    def generators(self) -> tuple[Axes, ...]:
        """The margins that are no margin of another one, in a fixed order."""
        top = [a for a in self.tables if not any(a < b for b in self.tables)]
        return tuple(sorted(top, key=sorted))

    @property
    def covered(self) -> Axes:
        """The variables that some margin shows."""
        return frozenset().union(*self.tables)

    @cached_property
    def sums(self) -> dict[tuple[int, ...], Ints]:
        """The margins as arrays of the axes that each keeps, in ascending order."""
        return {
            (key := tuple(sorted(axes))): table.reshape([self.shape[a] for a in key])
            for axes, table in self.tables.items()
        }

    @property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """The margins that no other margin holds already."""
        sets = sorted(self.sums, key=lambda a: (-len(a), a))
        return tuple(a for i, a in enumerate(sets) if not any(set(a) <= set(b) for b in sets[:i]))

    @property
    def decomposable(self) -> bool:
        """Whether the margins cover all axes and hang together in a tree."""
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
    def known(cls, known: Knowledge) -> Margins | None:
        """The margins that knowledge made from tables consists of, if it is nothing else."""
        structure = known.structure
        if structure is None or structure.columns is not None or not structure.shape:
            return None
        sums: dict[tuple[int, ...], Ints] = {}
        seen_cube = False
        for table, layout in enumerate(structure.tables):
            axes: list[int] = []
            for place, lists in enumerate(structure.memberships(table)):
                size = structure.shape[place]
                if lists.count == size and np.array_equal(lists.items, np.arange(size)):
                    axes.append(place)
                elif lists.count != 1 or lists.items.size != size:
                    return None
            low, high = (a[known.table(table)] for a in (known.low, known.high))
            names = [a.name for a in layout.axes]
            order = [structure.variables[a].name for a in axes]
            if names != order:
                return None
            if np.array_equal(low, high) and int(low.min(initial=0)) >= 0:
                sums[tuple(axes)] = low.reshape(layout.shape)
            elif bool((low != 0).any() or (high < UNBOUNDED).any()):
                return None  # bounds that are more than those of counts
            seen_cube |= len(axes) == len(structure.shape) and table == 0
        return cls.of_sums(structure.shape, sums) if sums and seen_cube else None

    def label(self, axes: Axes) -> str:
        """The names of variables as messages write them."""
        return " x ".join(self.names[a] for a in sorted(axes)) or "total"

    def axes(self, margin: str | Iterable[str]) -> Axes:
        """The places of variables by name; a string stands for its letters."""
        return frozenset(_places(self.names, tuple(margin)))

    def margin(self, margin: str | Iterable[str] | Axes) -> Ints:
        """A margin that follows from a released one by adding up, with all axes of the cube."""
        axes = margin if isinstance(margin, frozenset) else self.axes(margin)
        for key, table in self.tables.items():
            if axes <= key:
                return _summed(table, axes)
        raise InputError(
            f"The margin {self.label(axes)} does not follow from a released one alone."
        )

    def knows(self, axes: Axes) -> bool:
        """Whether a margin follows from a released one by adding up."""
        return any(axes <= key for key in self.tables)

    def part(self, axes: Axes, generators: Iterable[Axes]) -> Margins:
        """The margins of a smaller cube, over some of the variables."""
        kept = sorted(axes)
        rest = tuple(a for a in range(len(self.names)) if a not in axes)
        place = {a: i for i, a in enumerate(kept)}
        tables = {
            frozenset(place[a] for a in g): np.squeeze(self.margin(g), axis=rest)
            for g in generators
        }
        return Margins(
            tuple(self.names[a] for a in kept),
            tuple(self.shape[a] for a in kept),
            tables,
            self.decimals,
            self.whole,
        )

    def bounds(self, low: Ints, high: Ints, sharp: Mask | bool) -> Bounds:
        """Bounds of all cells of the cube, in the order of its axes, the last moving fastest."""
        ends = [np.broadcast_to(a, self.shape).ravel() for a in (low, high, np.asarray(sharp))]
        return Bounds(
            np.arange(self.size, dtype=np.intp),
            ends[0].astype(np.float64),
            ends[1].astype(np.float64),
            ends[2].astype(np.bool_),
            self.decimals,
            self.whole,
        )

    def spread(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """Bounds over the covered variables as bounds of cells.

        A variable that no margin shows can move everybody into another of its categories, so that
        nothing is left in a cell.
        """
        free = [a for a in range(len(self.names)) if a not in self.covered and self.shape[a] > 1]
        return (np.zeros_like(low) if free else low), high

    def _check_agreement(self) -> None:
        for (one, left), (other, right) in combinations(self.tables.items(), 2):
            shared = one & other
            if not np.array_equal(_summed(left, shared), _summed(right, shared)):
                raise ContradictionError(
                    f"The margins {self.label(one)} and {self.label(other)} contradict each other: they do not "
                    f"agree on {'their ' if not shared else ''}{self.label(shared)}."
                )


def _places(names: tuple[str, ...], margin: Iterable[str]) -> tuple[int, ...]:
    places = []
    for name in margin:
        if name not in names:
            raise InputError(f"The cube has no variable {name!r}; {choices(name, names)}.")
        places.append(names.index(name))
    if len(set(places)) < len(places):
        raise InputError(
            f"A variable stands twice in the margin {_label(tuple(margin))}; once is right."
        )
    return tuple(places)


def _laid_out(
    names: tuple[str, ...],
    shape: tuple[int, ...],
    margin: Iterable[str],
    axes: tuple[int, ...],
    values: npt.ArrayLike,
) -> Ints:
    given = np.asarray(values)
    wanted = tuple(shape[a] for a in axes)
    if given.shape != wanted:
        raise InputError(
            f"The margin {_label(margin)} has shape {given.shape}; its variables say {wanted}."
        )
    array = given.astype(np.int64)
    if given.dtype.kind not in "iu" and not np.array_equal(array, given):
        raise InputError(f"The margin {_label(margin)} holds a value that is not a whole number.")
    return _spread_out(array, axes, shape)


def _spread_out(array: Ints, axes: tuple[int, ...], shape: tuple[int, ...]) -> Ints:
    """A margin with all axes of the cube, of length 1 where it was summed over."""
    inside = set(axes)
    laid = np.transpose(array, np.argsort(axes)).reshape(
        [shape[a] if a in inside else 1 for a in range(len(shape))]
    )
    laid = np.ascontiguousarray(laid)
    laid.setflags(write=False)
    return laid


def _possible(shape: tuple[int, ...], given: npt.ArrayLike | None) -> Mask | None:
    if given is None:
        return None
    mask = np.asarray(given, dtype=np.bool_)
    if mask.shape != shape:
        raise InputError(f"The mask of possible cells has shape {mask.shape}, not {shape}.")
    return mask


def _letters(count: int) -> tuple[str, ...]:
    if count > len(ascii_uppercase):
        raise InputError(f"A hidden table has at most {len(ascii_uppercase)} axes, not {count}.")
    return tuple(ascii_uppercase[:count])


def _counts(values: npt.ArrayLike) -> Ints:
    array = np.asarray(values)
    whole = array.dtype.kind in "iu" or (
        array.dtype.kind == "f" and bool(np.isfinite(array).all() and (array % 1 == 0).all())
    )
    if not whole or bool((array < 0).any()):
        raise InputError("A table of counts holds whole numbers of 0 or more.")
    return array.astype(np.int64)


def _summed(table: Ints, axes: Axes) -> Ints:
    rest = tuple(a for a in range(table.ndim) if a not in axes)
    return np.asarray(table.sum(axis=rest, keepdims=True, dtype=np.int64))


def _label(margin: Iterable[str]) -> str:
    return " x ".join(margin) or "total"
