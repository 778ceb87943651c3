"""The demo censuses of 2016 and 2021: a record for each person and census, so that changes can be asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lustrum.demo.census import people
from lustrum.demo.descriptions import categories
from lustrum.demo.draws import Positions, Progress, between, generators, silent
from lustrum.demo.geography import area_districts
from lustrum.model.arrays import Floats, Ints

_BANDS = np.arange(21)
#: How many of each five-year band die or leave the country within five years, and how many move in it.
_GONE = between(_BANDS, [0, 4, 6, 10, 13, 16, 20], [0.01, 0.03, 0.03, 0.02, 0.06, 0.25, 0.8])
_MOVES = between(_BANDS, [0, 3, 5, 8, 12, 20], [0.08, 0.2, 0.3, 0.1, 0.05, 0.03])
#: How many people of each band come from abroad, and how much each district draws people.
_COMES = between(_BANDS, [0, 3, 5, 8, 12, 20], [0.02, 0.05, 0.12, 0.05, 0.01, 0.0])
_DRAWS = np.array([1.0, 0.7, 0.5, 0.35, 0.15, 0.6, 0.3, 0.1, 0.9, 0.6, 0.8, 0.3, 0.25, 0.2])
_BECOME_CITIZENS = 0.12
_KEEP_ACTIVITY = 0.7
_FIRST_BAND_KEPT = 6
"""From this band in 2021 on most do what they did in 2016."""


def censuses(
    persons: int = 200_000, seed: int = 2016, progress: Progress | None = None
) -> pa.Table:
    """Two censuses five years apart, of ``persons`` people in the first; the same seed gives the same table.

    >>> censuses(persons=1000).column_names[:3]
    ['record_id', 'person_id', 'census']
    """
    report = progress or silent
    report(0.0)
    before = _traits(people(persons, seed))
    report(0.4)
    others = _traits(people(persons, seed + 1))
    report(0.8)
    leave, move, where, work, papers, come = generators(seed + 2, 6)
    stay = leave.random(persons) >= _GONE[before["age"]]
    after = {name: values[stay] for name, values in before.items()}
    band = after["age"] = np.minimum(after["age"] + 1, _BANDS[-1])
    count = band.size

    # Movers live where somebody else does, in districts that draw people.
    drawing = others["district"][where.random(persons) < _DRAWS[others["district"]]]
    there = (
        drawing[(where.random(count) * drawing.size).astype(np.int64)]
        if drawing.size
        else after["district"]
    )
    moved = move.random(count) < _MOVES[band]
    after["district"] = np.where(moved, there, after["district"])

    twin = _twins(band * 2 + after["sex"], others["age"] * 2 + others["sex"], work.random(count))
    kept = (band >= _FIRST_BAND_KEPT) & (work.random(count) < _KEEP_ACTIVITY)
    same = kept | (twin < 0)
    after["employment"] = np.where(same, after["employment"], others["employment"][twin])
    naturalised = papers.random(count) < _BECOME_CITIZENS
    after["citizenship"] = np.where(naturalised, 0, after["citizenship"])

    arrives = come.random(persons) < _COMES[others["age"]] * _DRAWS[others["district"]] * 2
    new = (others["age"] == 0) | arrives
    ids = np.arange(1, persons + 1)
    person = np.concatenate([ids, ids[stay], persons + ids[new]])
    year = np.repeat([0, 1], [persons, count + int(new.sum())])
    columns = {
        name: np.concatenate([before[name], after[name], others[name][new]]) for name in before
    }
    report(1.0)
    return pa.table(
        {
            "record_id": np.arange(1, person.size + 1),
            "person_id": person,
            **categories("censuses", census=year, **columns),
        }
    )


def _traits(table: pa.Table) -> dict[str, Positions]:
    """What both censuses ask for, by the positions of codes."""
    names = ("area", "sex", "age", "citizenship", "employment")
    columns = [table.column(name).combine_chunks().indices for name in names]
    area, *rest = (np.asarray(column).astype(np.int64) for column in columns)
    return {"district": area_districts()[area], **dict(zip(names[1:], rest, strict=True))}


def _twins(wanted: Ints, kinds: Ints, uniform: Floats) -> Ints:
    """For each a record of the same kind, or -1 where there is none."""
    order = np.argsort(kinds, kind="stable")
    ordered = kinds[order]
    first, last = np.searchsorted(ordered, wanted), np.searchsorted(ordered, wanted, side="right")
    place = first + (uniform * (last - first)).astype(np.int64)
    return np.where(last > first, order[np.minimum(place, order.size - 1)], -1)
