"""The hidden cube: its variables cut into atoms, as fine as any table needs and no finer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lustrum.model import InputError, TableAxis, Variable
from lustrum.model.arrays import Ints
from lustrum.numeric.structure.atoms import atom_of_codes, listed
from lustrum.numeric.structure.layout import TableLayout
from lustrum.numeric.structure.ragged import Lists, pointers


@dataclass(frozen=True, eq=False)
class CutVariable:
    """A variable of the hidden cube; ``atom_of[i]`` is the atom of finest code ``i``, or -1."""

    name: str
    label: str
    atom_of: Ints
    count: int

    def __repr__(self) -> str:
        return f"CutVariable({self.name}, {self.count} atoms)"

    def lists(self, axis: TableAxis | None) -> Lists:
        """The atoms of each category of an axis; an axis that is absent is one list of all."""
        if axis is None:
            return Lists.everything(self.count)
        sizes = [len(c.members) for c in axis.categories]
        codes = np.fromiter((m for c in axis.categories for m in c.members), np.int64, sum(sizes))
        row = np.repeat(np.arange(len(axis), dtype=np.int64), sizes)
        pairs = np.unique(row * max(1, self.count) + self.atom_of[codes])
        row, atoms = np.divmod(pairs, max(1, self.count))
        return Lists(pointers(np.bincount(row, minlength=len(axis))), atoms)


def cut(
    layouts: Sequence[TableLayout],
    hidden: Sequence[TableAxis],
    known: Mapping[str, Variable],
) -> tuple[CutVariable, ...]:
    """Cut every variable that a table or the hidden cube names, in the order they are first met.

    A table in which a variable is absent counts everybody, whatever their code; so the cut then
    covers the whole code list. Without a known variable the list ends at the last code that any
    category holds, and has one code at least.
    """
    axes: dict[str, list[TableAxis]] = {axis.name: [axis] for axis in hidden}
    for layout in layouts:
        for axis in layout.parts:
            axes.setdefault(axis.name, []).append(axis)
    return tuple(
        _cut_one(name, variable_axes, layouts, known) for name, variable_axes in axes.items()
    )


def _cut_one(
    name: str,
    axes: Sequence[TableAxis],
    layouts: Sequence[TableLayout],
    known: Mapping[str, Variable],
) -> CutVariable:
    sets = {c.members: None for axis in axes for c in axis.categories}
    last = max((members[-1] for members in map(sorted, sets) if members), default=-1)
    if name in known:
        codes = len(known[name].codes)
        if last >= codes:
            raise InputError(
                f"Variable {name!r} has {codes} codes, but a category holds position {last}; the "
                "tables and the variable must name the same code list."
            )
    else:
        codes = max(1, last + 1)
        _check_same_codes(name, axes)
    if any(name not in {axis.name for axis in layout.parts} for layout in layouts):
        sets[tuple(range(codes))] = None
    atom_of = atom_of_codes(codes, listed(list(sets)))
    return CutVariable(name, axes[0].label, atom_of, int(atom_of.max()) + 1)


def _check_same_codes(name: str, axes: Iterable[TableAxis]) -> None:
    meaning: dict[str, frozenset[int]] = {}
    for axis in axes:
        for category in axis.categories:
            if meaning.setdefault(category.code, category.member_set) != category.member_set:
                raise InputError(
                    f"Variable {name!r}: the category {category.code!r} does not hold the same "
                    "codes in all tables; tables over one population must share one code list."
                )
