"""Where the demo people live and the demo businesses trade: area < district < region.

An area's code shows where it belongs: ``1-03-012`` is area 12 of district 3 in region 1. How many
people an area has follows from its district's share and its kind, so the smallest areas have a few
hundred people and the largest more than a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import fsum

import numpy as np

from lustrum.demo.draws import Positions
from lustrum.demo.names import DISTRICTS, REGIONS, DistrictNames
from lustrum.demo.vocabulary import (
    DemoGroup,
    DemoHierarchy,
    DemoLevel,
    DemoStructuralZero,
    DemoVariable,
)
from lustrum.model.arrays import Floats
from lustrum.numeric.arithmetic import power

#: Kinds of area, from most to least urban; the conditional distributions differ by kind.
KINDS = ("city", "town", "country", "coast")

#: Share of all people living in region 1 in the 2015 study (854,539 of 1,500,000).
REGION_1_SHARE = 854_539 / 1_500_000

_KIND_SIZE = {"city": 30.0, "town": 8.0, "country": 1.2, "coast": 6.0}
_DECAY_BY_RANK = 0.8


@dataclass(frozen=True)
class Area:
    """One area with the share of the whole population that lives in it."""

    code: str
    name: str
    district: str
    region: str
    kind: str
    share: float


def _places(district: DistrictNames) -> Iterator[tuple[str, str, float]]:
    for kind in KINDS:
        names: tuple[str, ...] = getattr(district, kind)
        for rank, name in enumerate(names, start=1):
            yield name, kind, _KIND_SIZE[kind] / float(power(rank, _DECAY_BY_RANK))


@cache
def areas() -> tuple[Area, ...]:
    """All areas in the order of their codes."""
    region_share = {"1": REGION_1_SHARE, "2": 1 - REGION_1_SHARE}
    area_list: list[Area] = []
    numbers = {"1": 0, "2": 0}
    for district in DISTRICTS:
        numbers[district.region] += 1
        district_code = f"{district.region}-{numbers[district.region]:02d}"
        places = list(_places(district))
        total = fsum(size for _, _, size in places)
        for number, (name, kind, size) in enumerate(places, start=1):
            share = region_share[district.region] * district.share * size / total
            code = f"{district_code}-{number:03d}"
            area_list.append(Area(code, name, district_code, district.region, kind, share))
    return tuple(area_list)


@cache
def districts() -> tuple[tuple[str, str], ...]:
    """Code and name of every district."""
    codes = dict.fromkeys(area.district for area in areas())
    return tuple(zip(codes, (district.name for district in DISTRICTS), strict=True))


def area_shares() -> Floats:
    """Share of the population by area."""
    return np.array([area.share for area in areas()])


def area_kinds() -> Positions:
    """Position in :data:`KINDS` by area."""
    return np.array([KINDS.index(area.kind) for area in areas()], dtype=np.int64)


def area_regions() -> Positions:
    """Position of the region by area."""
    codes = [code for code, _ in REGIONS]
    return np.array([codes.index(area.region) for area in areas()], dtype=np.int64)


def region_variable(description: str) -> DemoVariable:
    """The two regions as a variable of their own."""
    return DemoVariable("region", "Region", description, REGIONS)


def area_variable(description: str) -> DemoVariable:
    """The areas with the hierarchy area < district < region."""
    district_groups = tuple(
        DemoGroup(code, name, tuple(area.code for area in areas() if area.district == code))
        for code, name in districts()
    )
    region_groups = tuple(
        DemoGroup(code, name, tuple(d for d, _ in districts() if d.startswith(f"{code}-")))
        for code, name in REGIONS
    )
    geography = DemoHierarchy(
        "geography",
        "Districts and regions",
        (
            DemoLevel("district", "District", district_groups),
            DemoLevel("region", "Region", region_groups),
        ),
    )
    codes = tuple((area.code, area.name) for area in areas())
    return DemoVariable("area", "Area", description, codes, (geography,))


def nesting_zeros() -> tuple[DemoStructuralZero, ...]:
    """An area lies in one region only."""
    return tuple(
        DemoStructuralZero(
            f"No area of another region lies in {name}.",
            (
                ("region", (code,)),
                ("area", tuple(area.code for area in areas() if area.region != code)),
            ),
        )
        for code, name in REGIONS
    )
