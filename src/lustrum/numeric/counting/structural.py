"""Which cells of a table can hold nobody, from the combinations that a description says cannot exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from lustrum.model import Category, Dataset, StructuralZero
from lustrum.model.arrays import Mask
from lustrum.numeric.structure import Atoms
from lustrum.numeric.structure.atoms import along_axes
from lustrum.runtime.remembered import Remembered

Codes = frozenset[int]

_MOST_LAID_OUT = 1 << 20
"""Combinations of finest codes of some variables that are laid out one by one, a byte each."""

_MOST_BYTES = 1 << 25


class PossibleCells:
    """Which combinations of codes can exist, laid out once for variables that structural zeros tie together.

    Safe to share between threads. It gives what :func:`impossible` gives.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._tied = _tied(dataset)
        self._fits = all(prod(self._shape(names)) <= _MOST_LAID_OUT for names in self._tied)
        self._known = Remembered[Mask](_MOST_BYTES, lambda mask: mask.nbytes)

    def impossible(
        self, axes: Sequence[tuple[str, Sequence[Category]]], passing: Mapping[str, Codes]
    ) -> Mask:
        """The cells for which no combination of finest codes is left; see :func:`impossible`."""
        if not self._fits:
            return impossible(self._dataset, axes, passing)
        asked = {name for name, _ in axes} | set(passing)
        possible = np.ones(tuple(len(categories) for _, categories in axes), dtype=np.bool_)
        for tied in self._tied:
            names = tuple(name for name in tied if name in asked)
            left = self._possible(tied, names)
            possible &= along_axes(np.logical_or, left, names, axes, passing)
        apart = asked.difference(*self._tied).intersection(name for name, _ in axes)
        # Along a variable that no zero names it is enough that a category holds anybody at all.
        for name in apart.intersection(passing):
            every = np.ones(self._shape((name,)), dtype=np.bool_)
            possible &= along_axes(np.logical_or, every, (name,), axes, passing)
        return ~possible

    def _shape(self, names: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(len(self._dataset.variable(name).codes) for name in names)

    def _possible(self, tied: tuple[str, ...], names: tuple[str, ...]) -> Mask:
        """For each combination of codes of some of the variables that are tied, whether anybody can have it."""

        def laid_out() -> Mask:
            left = np.ones(self._shape(tied), dtype=np.bool_)
            for zero in self._dataset.structural_zeros:
                if not set(zero.where) <= set(tied):
                    continue
                hit = [
                    sorted(zero.where[name]) if name in zero.where else range(size)
                    for name, size in zip(tied, left.shape, strict=True)
                ]
                left[np.ix_(*hit)] = False
            return left

        def projected() -> Mask:
            away = tuple(axis for axis, name in enumerate(tied) if name not in names)
            return np.asarray(self._known.get((tied, tied), laid_out).any(axis=away))

        return self._known.get((tied, names), laid_out if names == tied else projected)


def _tied(dataset: Dataset) -> list[tuple[str, ...]]:
    """The variables that structural zeros name, those together that some zeros tie to each other."""
    groups: list[set[str]] = []
    for zero in dataset.structural_zeros:
        touched = [group for group in groups if group & set(zero.where)]
        groups = [group for group in groups if group not in touched]
        groups.append(set(zero.where).union(*touched))
    return [tuple(v.name for v in dataset.variables if v.name in group) for group in groups]


def impossible(
    dataset: Dataset,
    axes: Sequence[tuple[str, Sequence[Category]]],
    passing: Mapping[str, Codes],
) -> Mask:
    """The cells for which no combination of finest codes is left that can exist and passes the filters.

    Several structural zeros may cover a cell together that none of them covers alone.
    """
    boxes = {
        name: [c.member_set & passing.get(name, c.member_set) for c in categories]
        for name, categories in axes
    }
    possible = np.zeros(tuple(len(sets) for sets in boxes.values()), dtype=np.bool_)
    for zeros in _in_force(dataset, boxes, passing):
        possible |= _somebody_left(dataset, boxes, zeros)
    return ~possible


def _in_force(
    dataset: Dataset, boxes: Mapping[str, object], passing: Mapping[str, Codes]
) -> list[list[StructuralZero]]:
    """The structural zeros that people may meet, by what variables off the table they have.

    Only the fewest matter: whatever is possible under more zeros is possible under fewer.
    """
    escaped: set[Codes] = {frozenset()}
    for name in {n for zero in dataset.structural_zeros for n in zero.where}.difference(boxes):
        codes = passing.get(name, dataset.variable(name).everything)
        by_code = {
            frozenset(
                i
                for i, zero in enumerate(dataset.structural_zeros)
                if name in zero.where and code not in zero.where[name]
            )
            for code in codes
        }
        both = {old | new for old in escaped for new in by_code}
        escaped = {one for one in both if not any(one < other for other in both)}
    return [[z for i, z in enumerate(dataset.structural_zeros) if i not in one] for one in escaped]


def _somebody_left(
    dataset: Dataset, boxes: Mapping[str, Sequence[Codes]], zeros: Sequence[StructuralZero]
) -> Mask:
    """Which cells hold a combination of codes that none of these zeros rules out."""
    atoms = {
        name: Atoms.of_sets(
            len(dataset.variable(name).codes),
            [*sets, *(zero.where.get(name, frozenset()) for zero in zeros)],
        )
        for name, sets in boxes.items()
        if any(name in zero.where for zero in zeros)
    }
    # Along a variable that no zero names it is enough that a category holds anybody at all.
    plain = {n: np.array([bool(s) for s in sets]) for n, sets in boxes.items() if n not in atoms}
    sizes = {n: atoms[n].count if n in atoms else plain[n].size for n in boxes}
    left = np.ones(tuple(sizes.values()), dtype=np.bool_)
    for number, zero in enumerate(zeros):
        hit = [
            atoms[n].mask(len(boxes[n]) + number) if n in zero.where else np.ones(size, bool)
            for n, size in sizes.items()
        ]
        left[np.ix_(*hit) if hit else ()] = False
    for position, name in enumerate(boxes):
        if name in plain:
            left &= plain[name].reshape(-1, *[1] * (left.ndim - position - 1))
            continue
        box_atoms = atoms[name].part(slice(len(boxes[name])))
        left = box_atoms.roll_up(left.astype(np.int64), position) > 0
    return left
