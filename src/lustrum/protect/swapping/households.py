"""Households as runs of records, and which of them are alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Ints
from lustrum.model.errors import choices
from lustrum.model.records import Records
from lustrum.protect.microdata import canonical_order, numbered


@dataclass(frozen=True, eq=False, repr=False)
class Households:
    """The units that move: ``order[first[u]:first[u + 1]]`` are the records of unit ``u``.

    Their order does not depend on the order of the records, if they have identifiers: it is that of
    household ids or, where each record is a unit of its own, of record keys or record ids.
    """

    order: Ints
    first: Ints
    ids: Ints

    @classmethod
    def of(cls, records: Records, household: str | None) -> Households:
        """The households of an identifier, or each record on its own."""
        if household is None:
            order = canonical_order(records)
            id_name = records.dataset.record_id
            ids = (
                order
                if id_name is None or id_name not in records.ids
                else records.ids[id_name][order]
            )
            return cls(order, np.arange(order.size + 1, dtype=np.int64), ids)
        if household not in records.ids:
            raise InputError(
                f"The records have no identifier {household!r}; {choices(household, records.ids)}."
            )
        column = records.ids[household]
        order = np.argsort(column, kind="stable").astype(np.int64)
        ids = column[order]
        starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))[: ids.size]
        first = np.append(starts, ids.size).astype(np.int64)
        return cls(order, first, ids[first[:-1]])

    def __len__(self) -> int:
        return int(self.first.size - 1)

    @cached_property
    def sizes(self) -> Ints:
        """How many records each unit has."""
        return np.diff(self.first)

    def least(self, values: Ints) -> Ints:
        """The smallest value among the records of each unit."""
        return np.minimum.reduceat(values[self.order], self.first[:-1])

    def one_of(self, values: npt.NDArray[np.integer], name: str) -> Ints:
        """The value that all records of a unit share."""
        ordered = values[self.order].astype(np.int64)
        unit_codes = ordered[self.first[:-1]]
        if not np.array_equal(np.repeat(unit_codes, self.sizes), ordered):
            raise InputError(
                f"A household has records with different codes of {name!r}; it must have one place."
            )
        return unit_codes

    def spread(self, values: Ints) -> Ints:
        """A value per unit, copied to each of its records."""
        out = np.empty(self.order.size, dtype=np.int64)
        out[self.order] = np.repeat(values, self.sizes)
        return out

    def profile(self, codes: Ints, same_size: bool = True) -> Ints:
        """A number per unit: equal for units whose members have the same codes.

        With ``same_size`` each code must occur equally often in both; without it, the same codes must
        occur.
        """
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        span = int(codes.max(initial=0)) + 1
        unit = np.repeat(np.arange(len(self), dtype=np.int64), self.sizes)
        both = unit * span + codes[self.order]
        both.sort()
        if not same_size:
            both = both[np.concatenate(([True], both[1:] != both[:-1]))]
        unit = both // span
        sizes = np.bincount(unit, minlength=len(self))
        first = np.cumsum(sizes) - sizes
        sorted_codes = both - unit * span
        number = numbered(sizes)
        for position in range(int(sizes.max())):
            # Members are compared one place at a time; units that have ended differ in size from the rest.
            longer = np.flatnonzero(sizes > position)
            number[longer] = numbered(
                number[longer] * span + sorted_codes[first[longer] + position]
            )
        return numbered(number * (int(sizes.max()) + 1) + sizes)
