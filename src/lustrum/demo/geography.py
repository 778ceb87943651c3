"""Where the demo people live and the demo businesses trade: area < district < region.

An area's code shows where it belongs: ``1-03-012`` is area 12 of district 3 in region 1. How many
people an area has follows from its district's share and its kind, so the smallest areas have a few
hundred people and the largest more than a hundred thousand. Their names are in the descriptions.
"""

from __future__ import annotations

from functools import cache
from math import fsum

import numpy as np

from lustrum.demo.draws import Positions
from lustrum.model.arrays import Floats
from lustrum.numeric.arithmetic import power

#: Kinds of area, from most to least urban; the conditional distributions differ by kind.
KINDS = ("city", "town", "country", "coast")

#: Share of all people living in region 1 in the 2015 study (854,539 of 1,500,000).
REGION_1_SHARE = 854_539 / 1_500_000

#: The share of each district in the people of its region, and how many areas of each kind it has. Areas are
#: numbered kind by kind, and within a kind from large to small.
DISTRICTS = {
    "1-01": (0.34, 6, 4, 2, 0),  # Merrow City
    "1-02": (0.15, 2, 4, 6, 0),  # Ardenshire
    "1-03": (0.13, 1, 4, 7, 0),  # Severin Valley
    "1-04": (0.09, 0, 4, 7, 0),  # Lakes
    "1-05": (0.06, 0, 3, 9, 0),  # Highmoor
    "1-06": (0.12, 1, 5, 5, 0),  # Ironbridge Hundred
    "1-07": (0.07, 0, 3, 7, 0),  # Chalk Downs
    "1-08": (0.04, 0, 2, 8, 0),  # Border Marches
    "2-01": (0.31, 5, 4, 2, 1),  # Port Calder
    "2-02": (0.20, 1, 5, 6, 0),  # Vale of Lunt
    "2-03": (0.16, 0, 2, 3, 6),  # Amber Coast
    "2-04": (0.13, 0, 4, 7, 0),  # Fenland
    "2-05": (0.12, 0, 3, 8, 0),  # Weald and Forest
    "2-06": (0.08, 0, 2, 5, 4),  # The Islands
}

_KIND_SIZE = (30.0, 8.0, 1.2, 6.0)
_DECAY_BY_RANK = 0.8


@cache
def area_shares() -> Floats:
    shares: list[float] = []
    for code, (of_region, *counts) in DISTRICTS.items():
        region = REGION_1_SHARE if code[0] == "1" else 1 - REGION_1_SHARE
        sizes = [
            size / float(power(rank, _DECAY_BY_RANK))
            for size, count in zip(_KIND_SIZE, counts, strict=True)
            for rank in range(1, int(count) + 1)
        ]
        shares += [region * of_region * size / fsum(sizes) for size in sizes]
    return np.array(shares)


@cache
def area_kinds() -> Positions:
    return np.concatenate([np.repeat(np.arange(4), counts) for _, *counts in DISTRICTS.values()])


@cache
def area_districts() -> Positions:
    return np.repeat(np.arange(len(DISTRICTS)), [sum(counts) for _, *counts in DISTRICTS.values()])


@cache
def area_regions() -> Positions:
    return np.array([int(code[0]) - 1 for code in DISTRICTS], dtype=np.int64)[area_districts()]
