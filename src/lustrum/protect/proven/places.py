"""Where finest cells of a dataset stand in its domain."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.finest import FinestCells
from lustrum.protect.proven.domain import Domain, Subset


@dataclass(frozen=True, eq=False, repr=False)
class Placed:
    """Numbers of finest cells that hold anything, where they stand: all others are 0."""

    major: Ints
    combination: Ints
    numbers: Ints

    @classmethod
    def of(cls, domain: Domain, cells: FinestCells, numbers: Ints | None = None) -> Placed:
        """The people of finest cells, or other numbers of the same cells."""
        return cls(*positions(domain, cells.codes), cells.counts if numbers is None else numbers)

    def table(self, domain: Domain, subset: Subset) -> Ints:
        """The table of these axes; sums below 2 to the power of 53 are exact."""
        index = domain.groups(subset)[self.combination]
        if 0 in subset:
            index = index + self.major * prod(domain.sizes[axis] for axis in subset if axis)
        shape = domain.table_shape(subset)
        summed = np.bincount(index, self.numbers, prod(shape))
        return summed.astype(np.int64).reshape(shape)


def laid_out(domain: Domain, cells: FinestCells) -> Ints:
    """The counts of all finest cells, those of nobody among them: (major codes, combinations)."""
    counts = np.zeros(domain.shape, dtype=np.int64)
    counts[positions(domain, cells.codes)] = cells.counts
    return counts


def positions(domain: Domain, codes: Array) -> tuple[Ints, Ints]:
    """The major code and the combination of each finest cell; an error if one cannot exist."""
    places = []
    for axis in domain.axes:
        wanted, known = (
            _numbered(domain, axis.variables, r) for r in (codes[list(axis.variables)], axis.codes)
        )
        order = np.argsort(known, kind="stable")
        place = order[np.minimum(np.searchsorted(known[order], wanted), known.size - 1)]
        _require_possible(known[place] == wanted)
        places.append(place)
    number = np.zeros(codes.shape[1], dtype=np.int64)
    known = np.zeros(domain.shape[1], dtype=np.int64)
    for size, place, row in zip(domain.sizes[1:], places[1:], domain.combined, strict=True):
        number, known = number * size + place, known * size + row
    # Combinations stand in ascending order of their codes.
    combination = np.minimum(np.searchsorted(known, number), known.size - 1)
    _require_possible(known[combination] == number)
    _require_possible(domain.possible[places[0], combination])
    return places[0], combination


def _require_possible(possible: Mask) -> None:
    if not possible.all():
        raise InputError("A record has a combination that the description says cannot exist.")


def _numbered(domain: Domain, variables: tuple[int, ...], rows: Array) -> Ints:
    """One number for the codes of several variables."""
    number = np.zeros(rows.shape[1], dtype=np.int64)
    for variable, row in zip(variables, rows, strict=True):
        number = number * len(domain.dataset.variables[variable].codes) + row
    return number
