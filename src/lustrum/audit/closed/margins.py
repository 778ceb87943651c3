"""Released margins of a hidden cube, checked once for all formulas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.knowledge.facts import ContradictionError
from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import check_known

Axes: TypeAlias = frozenset[int]
"""Variables of the cube by their places; empty for the grand total."""


@dataclass(frozen=True, eq=False)
class Margins:
    """The published margins of a cube, in units of ``10**-decimals``.

    Every array has all axes of the cube, with length 1 where it was summed over, so that formulas can
    broadcast. Create one with :meth:`of`, which checks that no number is negative and that any two margins
    agree on the variables they share.

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
            raise InputError("No margin is given, so nothing bounds the cells; give at least one.")
        tables: dict[Axes, Ints] = {}
        for margin, values in released.items():
            axes = _places(names, margin)
            array = _laid_out(names, shape, margin, axes, values)
            if bool((array < 0).any()):
                raise InputError(
                    f"The margin {_label(margin)} holds a negative value; counts are 0 or more."
                )
            key = frozenset(axes)
            if key in tables and not np.array_equal(tables[key], array):
                raise ContradictionError(f"The margin {_label(margin)} is given twice and differs.")
            tables[key] = array
        margins = cls(names, shape, tables, decimals, whole)
        margins._check_agreement()
        return margins

    @classmethod
    def of_table(cls, table: npt.ArrayLike, margins: Iterable[Iterable[int]]) -> Margins:
        """The margins of a table, of which nothing else is released; its axes are A, B, C ...

        >>> Margins.of_table([[1, 2], [3, 4]], [[0], [1]]).margin("A").ravel().tolist()
        [3, 7]
        """
        cube = np.asarray(table, dtype=np.int64)
        names = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: cube.ndim])
        axis_sets = [frozenset(m) for m in margins]
        tables = {axes: _summed(cube, axes) for axes in axis_sets}
        return cls(names, cube.shape, tables)

    def __repr__(self) -> str:
        cube = " x ".join(f"{n} {s}" for n, s in zip(self.names, self.shape, strict=True))
        shown = (self.label(axes) for axes in self.tables)
        return f"Margins({cube}; {', '.join(shown)})"

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def total(self) -> int:
        return int(next(iter(self.tables.values())).sum())

    @property
    def generators(self) -> tuple[Axes, ...]:
        """The maximal margins, in a fixed order."""
        top = [a for a in self.tables if not any(a < b for b in self.tables)]
        return tuple(sorted(top, key=sorted))

    @property
    def covered(self) -> Axes:
        return frozenset().union(*self.tables)

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
        part_axes = sorted(axes)
        rest = tuple(a for a in range(len(self.names)) if a not in axes)
        index = {a: i for i, a in enumerate(part_axes)}
        tables = {
            frozenset(index[a] for a in g): np.squeeze(self.margin(g), axis=rest)
            for g in generators
        }
        return Margins(
            tuple(self.names[a] for a in part_axes),
            tuple(self.shape[a] for a in part_axes),
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

        All people may be in another category of a variable that no margin shows, so the lower bounds are 0
        then.
        """
        free = [a for a in range(len(self.names)) if a not in self.covered and self.shape[a] > 1]
        return (np.zeros_like(low) if free else low), high

    def _check_agreement(self) -> None:
        for (one, left), (other, right) in combinations(self.tables.items(), 2):
            shared = one & other
            if not np.array_equal(_summed(left, shared), _summed(right, shared)):
                raise ContradictionError(
                    f"The margins {self.label(one)} and {self.label(other)} do not agree on "
                    f"{'their ' if not shared else ''}{self.label(shared)}."
                )


def _places(names: tuple[str, ...], margin: Iterable[str]) -> tuple[int, ...]:
    margin = tuple(margin)
    check_known(margin, names, "The cube has no variable")
    places = [names.index(name) for name in margin]
    if len(set(places)) < len(places):
        raise InputError(
            f"The margin {_label(tuple(margin))} names a variable twice; name each once."
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
            f"The margin {_label(margin)} has shape {given.shape}; its variables need {wanted}."
        )
    array = given.astype(np.int64)
    if given.dtype.kind not in "iu" and not np.array_equal(array, given):
        raise InputError(f"The margin {_label(margin)} holds a value that is not a whole number.")
    order = np.argsort(axes, kind="stable")
    inside = set(axes)
    laid = np.transpose(array, order).reshape(
        [shape[a] if a in inside else 1 for a in range(len(names))]
    )
    laid.setflags(write=False)
    return laid


def _summed(table: Ints, axes: Axes) -> Ints:
    rest = tuple(a for a in range(table.ndim) if a not in axes)
    return np.asarray(table.sum(axis=rest, keepdims=True, dtype=np.int64))


def _label(margin: Iterable[str]) -> str:
    return " x ".join(margin) or "total"
