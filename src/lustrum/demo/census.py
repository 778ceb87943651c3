"""The demo censuses: a synthetic population with the sparsity of a real one.

People are drawn household by household, each trait given the earlier ones: home, age and sex,
citizenship, education, activity, occupation. The conditional distributions are set so that the
hypercube of region, sex, age, activity, occupation, education and citizenship (245,700 cells) has
the distribution of cell counts of Shlomo, Antal, Elliot (2015), Table 1, at 1.5 million people.
No cell is ever looked at or changed after the draw.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lustrum.demo.draws import (
    Positions,
    Progress,
    between,
    categories,
    draw_given,
    generators,
    silent,
)
from lustrum.demo.geography import area_districts, area_kinds, area_regions
from lustrum.demo.households import Members, members
from lustrum.model.arrays import Floats, Ints

_OLDEST_BAND = 20
_BANDS = np.arange(_OLDEST_BAND + 1)
_LARGEST_SIZE = 6
_STATELESS, _EMPLOYED, _NO_WORK = 4, 0, 12

# --- citizenship --------------------------------------------------------------------------------

#: Weight of each citizenship: country, other EU, other Europe, outside Europe, stateless.
_CITIZENSHIPS = np.array([1.0, 0.050, 0.028, 0.040, 0.0065])

#: How much more common foreign citizens are by kind of area: city, town, country, coast.
_FOREIGN_BY_KIND = np.array([1.8, 0.75, 0.40, 0.55])

# How much more common each is by five-year band of age: people move to find work, and few of
# those who came in the last generation are old yet.
_AT_BANDS = [0, 3, 5, 8, 11, 13, 15, 17, 20]
_FOREIGN_BY_AGE = (
    [0.7, 0.9, 1.3, 1.2, 0.8, 0.45, 0.15, 0.04, 0.003],
    [0.8, 0.9, 1.2, 1.3, 0.9, 0.35, 0.10, 0.02, 0.001],
    [0.8, 1.0, 1.5, 1.2, 0.6, 0.25, 0.06, 0.01, 0.0005],
    [0.01, 0.3, 1.3, 1.2, 0.8, 0.25, 0.02, 0.0, 0.0],
)

_CITIZENS_BY_BIRTH = 0.2
_PARTNER_DIFFERS = 0.16


def _citizenship(
    home: Members, kind: Positions, band: Positions, rng: np.random.Generator
) -> Positions:
    """Citizenship: households share one mostly, couples may differ, and children are often citizens by birth.

    Being stateless is not handed on: the others of such a household draw their own.
    """
    by_age = np.array([between(_BANDS, _AT_BANDS, row) for row in _FOREIGN_BY_AGE]).T
    weights = np.tile(_CITIZENSHIPS, (len(_FOREIGN_BY_KIND), len(_BANDS), 1))
    weights[..., 1:] *= _FOREIGN_BY_KIND[:, None, None] * by_age
    drawn = draw_given(
        rng.random(len(band)), (weights.reshape(-1, weights.shape[-1]), kind * len(_BANDS) + band)
    )
    of_household = drawn[home.first][home.household]
    uniform = rng.random(len(band))
    differs = (
        home.sharer | (home.partner & (uniform < _PARTNER_DIFFERS)) | (of_household == _STATELESS)
    )
    citizenship = np.where(differs, drawn, of_household)
    citizenship[home.child & (uniform < _CITIZENS_BY_BIRTH)] = 0
    return citizenship


# --- education ----------------------------------------------------------------------------------

# Levels: not applicable, none, primary, lower and upper secondary, post-secondary, bachelor,
# master, not stated. One row for each generation, with the first band it holds for.
_GENERATIONS: tuple[tuple[int, tuple[float, ...]], ...] = (
    (0, (1, 0, 0, 0, 0, 0, 0, 0, 0)),
    (3, (0, 0.8, 5, 65, 26, 2.0, 0.8, 0, 1.2)),
    (4, (0, 0.6, 2, 12, 58, 9, 17, 1.5, 1.1)),
    (5, (0, 0.6, 2, 11, 40, 8, 26, 12, 1.1)),
    (7, (0, 0.7, 2.5, 14, 41, 8, 24, 10, 1.0)),
    (9, (0, 0.9, 4, 19, 44, 7, 19, 7, 0.9)),
    (11, (0, 1.3, 7, 25, 42, 6, 15, 5, 0.8)),
    (13, (0, 2.2, 16, 31, 36, 4.5, 10, 3, 1.0)),
    (15, (0, 4, 29, 34, 25, 3, 6, 1.5, 1.0)),
    (17, (0, 6, 38, 31, 19, 1.5, 4, 0.8, 1.6)),
)

_LEVEL_BY_SEX = np.array(
    [[1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1, 1.1, 1.1, 1.0, 0.9, 1.1, 1.1, 0.95, 1.0]]
)
_LEVEL_BY_CITIZENSHIP = np.array(
    [
        [1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        [1, 1.0, 0.85, 0.85, 1.0, 0.85, 1.2, 1.4, 1.6],
        [1, 2.2, 1.6, 1.3, 0.9, 0.6, 0.85, 0.8, 1.6],
        [1, 3.5, 2.2, 1.2, 0.7, 0.5, 1.0, 1.1, 2.6],
        [1, 4.5, 2.2, 1.2, 0.6, 0.3, 0.5, 0.4, 6.0],
    ]
)
_LEVEL_BY_KIND = np.array(
    [
        [1, 1.1, 0.9, 0.85, 0.9, 1.0, 1.4, 1.8, 1.2],
        [1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 1.0],
        [1, 1.0, 1.2, 1.2, 1.1, 1.0, 0.7, 0.5, 0.8],
        [1, 0.9, 1.0, 1.1, 1.1, 1.1, 0.8, 0.6, 1.0],
    ]
)

_LIKE_TO_LIKE = 0.35


def _education(
    home: Members,
    kind: Positions,
    band: Positions,
    citizenship: Positions,
    rng: np.random.Generator,
) -> Positions:
    """Education: each generation had its own schools.

    Some partners share the draw of the first member: people who find a partner at school do.
    """
    uniform = rng.random(len(band))
    alike = home.partner & (rng.random(len(band)) < _LIKE_TO_LIKE)
    uniform = np.where(alike, uniform[home.first][home.household], uniform)
    starts, levels = zip(*_GENERATIONS, strict=True)
    by_band = np.array(levels)[np.searchsorted(starts, _BANDS, side="right") - 1]
    return draw_given(
        uniform,
        (by_band, band),
        (_LEVEL_BY_SEX, home.sex),
        (_LEVEL_BY_CITIZENSHIP, citizenship),
        (_LEVEL_BY_KIND, kind),
    )


# --- work ---------------------------------------------------------------------------------------

# Employed, unemployed, student, retired, other; one row for each five-year band.
_MEN = np.array(
    [
        [0, 0, 0, 0, 1],
        [0, 0, 97, 0, 3],
        [0, 0, 99.5, 0, 0.5],
        [20, 4, 73, 0, 3],
        [62, 8, 25, 0, 5],
        [83, 7, 6, 0, 4],
        [88, 6, 2.5, 0, 4.5],
        [89, 5.5, 1.5, 0, 5],
        [89, 5, 1.0, 0, 5.7],
        [88, 5, 0.6, 0, 6.8],
        [85, 5, 0.4, 2, 8],
        [76, 5, 0.3, 9, 10],
        [45, 3, 0.2, 43, 9],
        [18, 1.0, 0.3, 80, 2.7],
        [13, 0.4, 0.25, 87, 2],
        [8, 0.15, 0.2, 92, 1.5],
        [4.5, 0.05, 0.1, 96, 1.6],
        [2, 0.02, 0.06, 97, 1.7],
        [0.7, 0.01, 0.02, 98, 2],
        [0.1, 0, 0, 98, 2],
        [0, 0, 0, 98, 2],
    ]
)

# Women against men, by band: care for children and old conventions move them out of work.
_WOMEN_EMPLOYED = between(_BANDS, [3, 5, 7, 10, 12, 20], [1.0, 0.55, 0.45, 0.5, 0.4, 0.35])
_WOMEN_OTHER = between(_BANDS, [3, 5, 7, 10, 12, 20], [1.2, 2.0, 2.2, 1.8, 2.0, 4.0])

_ACTIVITY_BY_LEVEL = np.array(
    [
        [1, 1.0, 1.0, 1, 1.0],
        [0.25, 1.5, 0.3, 1, 2.5],
        [0.5, 1.8, 0.3, 1, 1.8],
        [0.7, 1.6, 1.5, 1, 1.4],
        [1, 1.0, 1.2, 1, 0.9],
        [1.1, 0.8, 0.8, 1, 0.7],
        [1.3, 0.6, 0.9, 1, 0.6],
        [1.8, 0.5, 0.6, 1, 0.5],
        [0.8, 1.0, 1.0, 1, 1.2],
    ]
)
_ACTIVITY_BY_CITIZENSHIP = np.array(
    [
        [1.0, 1.0, 1.0, 1.0, 1.0],
        [1.0, 1.2, 1.1, 0.8, 1.1],
        [0.85, 1.5, 1.1, 0.8, 1.3],
        [0.7, 1.6, 1.6, 0.6, 1.5],
        [0.5, 1.7, 1.0, 0.6, 2.0],
    ]
)
_ACTIVITY_BY_KIND = np.array(
    [
        [1.0, 1.25, 1.5, 0.9, 1.1],
        [1.0, 1.0, 0.9, 1.0, 1.0],
        [1.05, 0.75, 0.7, 1.0, 1.0],
        [0.9, 1.1, 0.7, 1.3, 1.0],
    ]
)

# Occupations by education: armed forces, managers, professionals, technicians, clerks, service,
# farming, craft, machines, elementary, unclassifiable, not stated, no work.
_OCCUPATION_BY_LEVEL = np.array(
    [
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],  # children, who are never asked
        [0, 3.2, 0.35, 1.1, 2, 15, 7, 16, 15, 34, 3.2, 4.4, 0],
        [0.2, 4.2, 0.5, 2.4, 4.2, 17, 7.2, 18, 16, 25, 2.4, 3, 0],
        [1.2, 6, 1.3, 6, 9, 20, 5, 17, 14, 16, 1.7, 2, 0],
        [1.6, 7.6, 3.3, 13, 15, 19, 4.9, 15, 10, 7.6, 1.3, 1.6, 0],
        [1.4, 9.5, 7.8, 21, 16, 16, 2.9, 13, 6, 4, 1.4, 1.5, 0],
        [1.1, 15, 28, 22, 12, 8, 1.5, 3.5, 2.1, 2.4, 1.3, 1.4, 0],
        [0.9, 20, 53, 12.5, 4.8, 2.9, 0.75, 1.1, 0.75, 1.1, 1.1, 1.3, 0],
        [0.6, 5.7, 7.5, 7.5, 8.3, 14, 3.8, 10, 8.3, 12.5, 4.8, 17.5, 0],
    ]
)
_WOMEN_IN = np.array([0.25, 0.65, 1.1, 1.0, 1.8, 1.6, 0.5, 0.25, 0.4, 1.1, 1.0, 1.0, 1.0])
_OCCUPATION_BY_KIND = np.array(
    [
        [0.7, 1.1, 1.4, 1.15, 1.1, 1.0, 0.12, 0.75, 0.7, 0.95, 1.2, 1.2, 1],
        [1.2, 1.0, 0.95, 1.0, 1.0, 1.0, 0.5, 1.1, 1.2, 1.05, 1.0, 1.0, 1],
        [1.0, 0.95, 0.7, 0.85, 0.85, 0.9, 5.0, 1.2, 1.2, 1.0, 0.8, 0.8, 1],
        [1.0, 1.1, 0.8, 0.9, 0.9, 1.5, 0.8, 0.9, 0.6, 1.1, 1.0, 1.0, 1],
    ]
)
_OCCUPATION_BY_CITIZENSHIP = np.array(
    [
        [1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1],
        [0, 0.9, 1.0, 0.9, 0.8, 1.1, 0.9, 1.1, 1.1, 1.3, 1.1, 1.2, 1],
        [0, 0.7, 0.85, 0.8, 0.6, 1.1, 0.85, 1.3, 1.2, 1.6, 1.2, 1.3, 1],
        [0, 0.8, 0.9, 0.8, 0.7, 1.3, 0.45, 0.85, 1.1, 1.6, 1.4, 1.6, 1],
        [0, 0.5, 0.5, 0.5, 0.5, 1.2, 0.55, 1.0, 1.2, 2.0, 1.7, 2.4, 1],
    ]
)
_FIRST_BAND_WITHOUT_SOLDIERS = 13

# How careers move with age: into management, out of the army and of simple jobs. For each occupation that does,
# the bands between which its weight follows straight lines, and the weights there.
_CAREERS: dict[int, tuple[list[int], list[float]]] = {
    0: ([3, 4, 6, 10, 12], [1.5, 2.2, 1.5, 0.5, 0.08]),
    1: ([3, 5, 9, 12, 18], [0.12, 0.5, 1.2, 1.4, 1.8]),
    2: ([3, 5, 9], [0.25, 0.9, 1.0]),
    3: ([3, 5, 9], [0.3, 1.0, 1.0]),
    5: ([3, 5, 9], [2.2, 1.3, 0.9]),
    6: ([3, 8, 13, 16], [0.6, 0.8, 2.0, 4.0]),
    9: ([3, 5, 9, 13], [2.5, 1.1, 0.9, 1.2]),
}


def _activity_by_band_and_sex() -> Floats:
    by_band = np.stack([_MEN, _MEN], axis=1)
    by_band[3:, 1, 0] *= _WOMEN_EMPLOYED[3:]
    by_band[3:, 1, 4] *= _WOMEN_OTHER[3:]
    return by_band.reshape(-1, by_band.shape[-1])


def _occupation_by_band() -> Floats:
    tilt = np.ones((len(_BANDS), len(_WOMEN_IN)))
    for occupation, (bands, weights) in _CAREERS.items():
        tilt[:, occupation] = between(_BANDS, bands, weights)
    tilt[_FIRST_BAND_WITHOUT_SOLDIERS:, 0] = 0.0
    return tilt


def people(
    persons: int = 1_500_000, seed: int = 2001, progress: Progress | None = None
) -> pa.Table:
    """A synthetic census of exactly ``persons`` people; the same seed gives the same table.

    ``progress`` is called with the share of the work done, from 0 to 1.

    >>> people(persons=1000).num_rows
    1000
    """
    if persons < 1:
        raise ValueError(f"a population needs at least one person, not {persons}")
    report = progress or silent
    report(0.0)
    homes, origins, schools, jobs, posts = generators(seed, 5)
    home = members(persons, homes)
    report(0.35)
    kind = area_kinds()[home.area]
    band = np.minimum(home.age // 5, _OLDEST_BAND)
    citizen = _citizenship(home, kind, band, origins)
    report(0.5)
    level = _education(home, kind, band, citizen, schools)
    report(0.65)
    status = draw_given(
        jobs.random(persons),
        (_activity_by_band_and_sex(), band * 2 + home.sex),
        (_ACTIVITY_BY_LEVEL, level),
        (_ACTIVITY_BY_CITIZENSHIP, citizen),
        (_ACTIVITY_BY_KIND, kind),
    )
    report(0.75)
    job = draw_given(
        posts.random(persons),
        (_occupation_by_band(), band),
        (np.stack([np.ones(len(_WOMEN_IN)), _WOMEN_IN]), home.sex),
        (_OCCUPATION_BY_LEVEL, level),
        (_OCCUPATION_BY_CITIZENSHIP, citizen),
        (_OCCUPATION_BY_KIND, kind),
    )
    report(0.9)
    table = pa.table(
        {
            "person_id": pa.array(np.arange(1, persons + 1, dtype=np.int64)),
            "household_id": pa.array(home.household + 1),
            **categories(
                "demo",
                region=area_regions()[home.area],
                area=home.area,
                household_size=np.minimum(home.size, _LARGEST_SIZE) - 1,
                sex=home.sex,
                age=band,
                employment=status,
                occupation=np.where(status == _EMPLOYED, job, _NO_WORK),
                education=level,
                citizenship=citizen,
            ),
        }
    )
    report(1.0)
    return table


_AGE_BANDS = np.arange(21)
#: How many of each five-year band die or leave the country within five years, and how many move in it.
_GONE = between(_AGE_BANDS, [0, 4, 6, 10, 13, 16, 20], [0.01, 0.03, 0.03, 0.02, 0.06, 0.25, 0.8])
_MOVES = between(_AGE_BANDS, [0, 3, 5, 8, 12, 20], [0.08, 0.2, 0.3, 0.1, 0.05, 0.03])
#: How many people of each band come from abroad, and how much each district draws people.
_COMES = between(_AGE_BANDS, [0, 3, 5, 8, 12, 20], [0.02, 0.05, 0.12, 0.05, 0.01, 0.0])
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
    band = after["age"] = np.minimum(after["age"] + 1, _AGE_BANDS[-1])
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
