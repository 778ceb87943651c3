"""Which cells of a table can hold nobody, from the combinations that a description says cannot exist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lustrum.arrays import Mask
from lustrum.model import Category, Dataset, StructuralZero
from lustrum.structure import Atoms

__all__ = ["impossible"]

Codes = frozenset[int]


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
            atoms[n].membership[len(boxes[n]) + number] if n in zero.where else np.ones(size, bool)
            for n, size in sizes.items()
        ]
        left[np.ix_(*hit) if hit else ()] = False
    for position, name in enumerate(boxes):
        if name in plain:
            left &= plain[name].reshape(-1, *[1] * (left.ndim - position - 1))
            continue
        held = atoms[name].membership[: len(boxes[name])]
        left = np.stack(
            [left.compress(row, axis=position).any(axis=position) for row in held], axis=position
        )
    return left
