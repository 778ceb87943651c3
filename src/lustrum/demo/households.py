"""Households first, people second: who lives with whom, how old they are, and of which sex.

A household is drawn as a kind (living alone, couple, family, ...) in an area; its members follow
from the kind. Families are built from the eldest child upwards, so a parent is always old enough.
Ages are single years here and become bands in the census.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lustrum.demo.draws import Flags, Positions, between, distribution, pick, pick_by_row
from lustrum.demo.geography import area_kinds, area_shares
from lustrum.model.arrays import Floats
from lustrum.numeric.arithmetic import exp

ALONE, COUPLE, FAMILY, LONE_PARENT, SHARERS, THREE_GENERATIONS = range(6)
MALE, FEMALE = range(2)
OLDEST = 104

#: Kinds of household by kind of area: alone, couple, family, lone parent, sharers, three
#: generations.
_KINDS = np.array(
    [
        [0.36, 0.23, 0.20, 0.09, 0.09, 0.03],
        [0.29, 0.29, 0.27, 0.08, 0.03, 0.04],
        [0.24, 0.31, 0.32, 0.06, 0.02, 0.05],
        [0.38, 0.36, 0.15, 0.06, 0.03, 0.02],
    ]
)
_CHILDREN = np.array([0.42, 0.40, 0.13, 0.04, 0.01])
_CHILDREN_OF_ONE = np.array([0.58, 0.30, 0.09, 0.02, 0.01])
_SHARERS = np.array([0.58, 0.24, 0.11, 0.04, 0.02, 0.01])

# Weights of the bands 15-19, 20-24, ..., 100-104.
_ALONE_AGES = [0.5, 5, 8, 8, 7, 6.5, 6.5, 6.5, 7, 7.5, 8, 9, 10, 9.5, 7, 3.2, 0.75, 0.06]
_COUPLE_AGES = [0.2, 3, 7, 6, 4.5, 5, 7, 9, 11, 12, 11, 9.5, 7.5, 4.5, 1.8, 0.45, 0.05, 0.002]
_SHARER_AGES = [4, 30, 25, 14, 8, 5, 4, 3, 3, 2, 1.5, 1, 0.8, 0.6, 0.4, 0.1, 0.02, 0.001]
#: How much older or younger the people of a kind of area are, per band.
_AGE_TILT = [-0.05, 0.0, 0.015, 0.09]

_BIRTH_AGES = np.concatenate([[1, 2, 3, 4, 5, 6, 7], np.full(9, 8.0), np.linspace(7, 0.2, 9)])
_YOUNGEST_PARENT = 17
_CHILD_AGES = np.concatenate([np.linspace(18, 10, 7), np.full(10, 9.0), np.linspace(8.5, 0.5, 12)])
_GRANDCHILD_AGES = np.full(20, 1.0)
_GAPS = np.array([0.02, 0.1, 0.3, 0.28, 0.16, 0.08, 0.06])
_YEARS_HE_IS_OLDER = np.array([1, 2, 3, 5, 8, 12, 14, 14, 12, 9, 7, 5, 3, 2, 1, 1, 0.5])
_LEAST_YEARS_OLDER = -5

#: Women among those living alone, by band from 0-4.
_WOMEN_ALONE = between(np.arange(21), [3, 8, 12, 16, 20], [0.44, 0.36, 0.46, 0.68, 0.85])


@dataclass(frozen=True)
class Members:
    """One entry a person: household, role and the age and sex that follow from it."""

    household: Positions
    area: Positions
    size: Positions
    first: Flags
    partner: Flags
    child: Flags
    sharer: Flags
    age: Positions
    sex: Positions


@dataclass(frozen=True)
class _Households:
    area: Positions
    kind: Positions
    size: Positions


def _mean_sizes() -> Floats:
    def mean(shares: Floats) -> float:
        return float((shares * np.arange(1, len(shares) + 1)).sum())

    sizes = np.array(
        [
            1.0,
            2.0,
            2 + mean(_CHILDREN),
            1 + mean(_CHILDREN_OF_ONE),
            1 + mean(_SHARERS),
            3 + mean(_CHILDREN),
        ]
    )
    means: Floats = (_KINDS * sizes).sum(axis=1)
    return means


def _draw_households(persons: int, rng: np.random.Generator) -> _Households:
    """Households that hold exactly ``persons`` people.

    More are drawn than needed; the one that would overflow becomes people sharing a home.
    """
    means = _mean_sizes()
    kinds_of_areas = area_kinds()
    count = int(persons / means.min()) + 10
    shares = area_shares() / means[kinds_of_areas]
    area = pick(rng.random(count), distribution(shares))
    kind = pick_by_row(rng.random(count), distribution(_KINDS), kinds_of_areas[area])
    uniform = rng.random(count)
    children = pick(uniform, distribution(_CHILDREN)) + 1
    size = np.select(
        [kind == ALONE, kind == COUPLE, kind == FAMILY, kind == THREE_GENERATIONS, kind == SHARERS],
        [1, 2, 2 + children, 3 + children, 2 + pick(uniform, distribution(_SHARERS))],
        default=2 + pick(uniform, distribution(_CHILDREN_OF_ONE)),
    ).astype(np.int64)
    ends = np.cumsum(size)
    if ends[-1] < persons:  # pragma: no cover - a guard: the margin is hundreds of deviations
        raise RuntimeError("too few households were drawn")
    last = int(np.searchsorted(ends, persons))
    area, kind, size = area[: last + 1], kind[: last + 1], size[: last + 1]
    overflow = int(ends[last]) - persons
    if overflow:
        size[last] -= overflow
        kind[last] = ALONE if size[last] == 1 else SHARERS
    return _Households(area, kind, size)


def _age_distributions(weights: list[float]) -> Floats:
    """Distributions over single years by kind of area, from weights of five-year bands."""
    bands = np.arange(len(weights))
    by_kind = np.array([np.array(weights) * exp(tilt * bands) for tilt in _AGE_TILT])
    years = np.repeat(by_kind, 5, axis=1)
    years[:, :3] = 0.0  # nobody under 18 runs a household
    return distribution(years)


def _adult_ages(weights: list[float], uniform: Floats, kinds: Positions) -> Positions:
    cumulative = _age_distributions(weights)
    ages = np.zeros(len(uniform), dtype=np.int64)
    for kind in range(len(cumulative)):
        here = kinds == kind
        ages[here] = 15 + pick(uniform[here], cumulative[kind])
    return ages


def _siblings(
    homes: _Households, household: Positions, position: Positions, rng: np.random.Generator
) -> tuple[Positions, Positions]:
    """Age of the eldest child by household, and of each child by person.

    Built from the youngest upwards: each elder sibling was born a gap of years before.
    """
    count = len(homes.kind)
    uniform = rng.random(count)
    youngest = np.where(
        homes.kind == THREE_GENERATIONS,
        pick(uniform, distribution(_GRANDCHILD_AGES)),
        pick(uniform, distribution(_CHILD_AGES)),
    )
    gap = pick(rng.random(len(household)), distribution(_GAPS))
    gap[position <= _adults(homes.kind)[household]] = 0  # the eldest child comes first, without one
    running = np.cumsum(gap)
    ends = np.cumsum(homes.size) - 1
    before_youngest = running[ends][household] - running
    starts = ends - homes.size + 1
    return youngest + before_youngest[starts], youngest[household] + before_youngest


def _ages(
    homes: _Households, household: Positions, position: Positions, rng: np.random.Generator
) -> Positions:
    """Age of every person, by the place they have in their household."""
    count, people = len(homes.kind), len(household)
    kinds = area_kinds()[homes.area]
    eldest, child_age = _siblings(homes, household, position, rng)
    parent = eldest + _YOUNGEST_PARENT + pick(rng.random(count), distribution(_BIRTH_AGES))
    uniform = rng.random(count)
    head = np.select(
        [homes.kind == ALONE, homes.kind == COUPLE],
        [_adult_ages(_ALONE_AGES, uniform, kinds), _adult_ages(_COUPLE_AGES, uniform, kinds)],
        default=parent,
    )
    older = _LEAST_YEARS_OLDER + pick(rng.random(count), distribution(_YEARS_HE_IS_OLDER))
    has_children = (homes.kind == FAMILY) | (homes.kind == THREE_GENERATIONS)
    least = np.where(has_children, eldest + _YOUNGEST_PARENT, 18)
    partner = np.clip(head + older, least, OLDEST)
    years_to_grandparent = 20 + pick(rng.random(count), distribution(np.ones(16)))
    grandparent = np.minimum(np.maximum(head, partner) + years_to_grandparent, OLDEST)
    sharer_age = _adult_ages(_SHARER_AGES, rng.random(people), kinds[household])
    kind = homes.kind[household]
    ages: Positions = np.select(
        [kind == SHARERS, position == 0, position >= _adults(kind), position == 1],
        [sharer_age, head[household], child_age, partner[household]],
        default=grandparent[household],
    )
    return ages


def _adults(kind: Positions) -> Positions:
    """How many places at the head of the household belong to the elder generations."""
    adults = np.array([1, 2, 2, 1, 99, 3], dtype=np.int64)
    return adults[kind]


def _sexes(
    kind: Positions, position: Positions, age: Positions, child: Flags, rng: np.random.Generator
) -> Positions:
    """Sex of every person; couples are mostly of two sexes."""
    women = np.full(len(kind), 0.488)  # children
    women[kind == SHARERS] = 0.45
    alone = kind == ALONE
    women[alone] = _WOMEN_ALONE[np.minimum(age[alone] // 5, 20)]
    couple = (kind == COUPLE) | (kind == FAMILY) | (kind == THREE_GENERATIONS)
    women[couple & (position == 0)] = 0.992
    women[couple & (position == 1)] = 0.008
    women[(kind == THREE_GENERATIONS) & (position == 2)] = 0.78
    women[(kind == LONE_PARENT) & (position == 0)] = 0.86
    women[child] = 0.488
    return np.where(rng.random(len(kind)) < women, FEMALE, MALE).astype(np.int64)


def members(persons: int, rng: np.random.Generator) -> Members:
    """Exactly ``persons`` people in households, in the order of their households."""
    homes = _draw_households(persons, rng)
    household = np.repeat(np.arange(len(homes.size), dtype=np.int64), homes.size)
    starts = np.cumsum(homes.size) - homes.size
    position = np.arange(persons, dtype=np.int64) - starts[household]
    kind = homes.kind[household]
    age = _ages(homes, household, position, rng)
    child = position >= _adults(kind)
    couple = (kind == COUPLE) | (kind == FAMILY) | (kind == THREE_GENERATIONS)
    return Members(
        household=household,
        area=homes.area[household],
        size=homes.size[household],
        first=position == 0,
        partner=couple & (position == 1),
        child=child,
        sharer=kind == SHARERS,
        age=age,
        sex=_sexes(kind, position, age, child, rng),
    )
