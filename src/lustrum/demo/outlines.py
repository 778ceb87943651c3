"""The invented map of the demo: a Voronoi partition whose cells are the areas, written as TopoJSON.

Seeds of areas stand near the middle of their district, so that districts and regions hang together. All
coordinates are fractions until they are rounded, and chance comes from digests of the codes, so that
every machine writes the same bytes. Borders are bent a little, the same way for both neighbours.
"""

from __future__ import annotations

import json
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from typing import Any

from lustrum.demo.geography import Area, areas

Point = tuple[Fraction, Fraction]
Whole = tuple[int, int]

MIDDLES = {
    "1-01": (430, 430),
    "1-02": (250, 330),
    "1-03": (330, 560),
    "1-04": (140, 500),
    "1-05": (390, 200),
    "1-06": (240, 740),
    "1-07": (470, 700),
    "1-08": (590, 270),
    "2-01": (700, 640),
    "2-02": (640, 470),
    "2-03": (860, 560),
    "2-04": (800, 350),
    "2-05": (620, 830),
    "2-06": (850, 770),
}
"""Where each district lies, on a sheet of 1,000 by 1,000."""

COAST = (
    *((30, 420), (110, 230), (330, 70), (610, 110), (850, 210), (975, 430)),
    *((970, 690), (880, 900), (620, 965), (300, 900), (90, 690)),
)
"""The corners of the country, before its coast is bent."""

REACH = 95
"""How far from the middle of its district an area may lie."""

BENDS = 2
"""How often a border is divided and bent."""

WEST, NORTH = -8.0, 54.0
"""The upper left corner of the sheet."""

STEP = (0.0008, -0.0004)
"""A tenth of a unit of the sheet in degrees, to the east and to the south."""


def topology() -> dict[str, Any]:
    """All areas as polygons whose borders are shared arcs."""
    places = areas()
    seeds = _seeds(places)
    arcs: dict[tuple[Whole, Whole], int] = {}
    lines: list[list[Whole]] = []
    shapes = []
    for area, seed in zip(places, seeds, strict=True):
        ring = _rounded(_cell(seed, seeds))
        ring_arcs = []
        for start, end in pairwise([*ring, ring[0]]):
            key = (start, end) if start < end else (end, start)
            if key not in arcs:
                arcs[key] = len(lines)
                lines.append(_bent(*key))
            ring_arcs.append(arcs[key] if key == (start, end) else ~arcs[key])
        shapes.append({"type": "Polygon", "id": area.code, "arcs": [ring_arcs]})
    return {
        "type": "Topology",
        "transform": {"scale": list(STEP), "translate": [WEST, NORTH]},
        "objects": {"areas": {"type": "GeometryCollection", "geometries": shapes}},
        "arcs": [_steps(line) for line in lines],
    }


def to_text() -> str:
    """The map as a file, one arc or area a line."""
    area_map = topology()
    geometries = area_map["objects"]["areas"]["geometries"]
    head = json.dumps({"type": area_map["type"], "transform": area_map["transform"]})[:-1]
    shapes = ",\n".join(json.dumps(shape, separators=(",", ":")) for shape in geometries)
    arcs = ",\n".join(json.dumps(arc, separators=(",", ":")) for arc in area_map["arcs"])
    return (
        f'{head}, "objects": {{"areas": {{"type": "GeometryCollection", "geometries": [\n{shapes}\n]}}}},\n'
        f'"arcs": [\n{arcs}\n]}}\n'
    )


def _chance(*parts: object) -> int:
    """A number of 32 bits that follows from words."""
    return int.from_bytes(sha256("/".join(map(str, parts)).encode()).digest()[:4], "big")


def _seeds(places: tuple[Area, ...]) -> list[Whole]:
    """A seed for each area; of several candidates the one farthest from all seeds so far."""
    seeds: list[Whole] = []
    for area in places:
        x, y = MIDDLES[area.district]
        tries = []
        for number in range(60):
            dx, dy = (
                _chance(area.code, number, axis) % (2 * REACH + 1) - REACH for axis in ("x", "y")
            )
            if dx * dx + dy * dy <= REACH * REACH:
                tries.append((x + dx, y + dy))
        seeds.append(max(tries, key=lambda at: min((_far(at, s) for s in seeds), default=0)))
    return seeds


def _far(a: Whole, b: Whole) -> int:
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


def _cell(seed: Whole, seeds: list[Whole]) -> list[Point]:
    """What lies nearer to a seed than to any other, inside the country."""
    ring: list[Point] = [(Fraction(x), Fraction(y)) for x, y in COAST]
    for other in sorted(seeds, key=lambda s: (_far(seed, s), s)):
        reach = max((x - seed[0]) ** 2 + (y - seed[1]) ** 2 for x, y in ring)
        if _far(seed, other) > 4 * reach:
            break  # the line half-way to it, and to all that follow, lies beyond every corner
        if other != seed:
            ring = _cut(ring, seed, other)
    return ring


def _cut(ring: list[Point], seed: Whole, other: Whole) -> list[Point]:
    """The part of a convex ring on the seed's side of the line half-way to another seed."""
    a, b = other[0] - seed[0], other[1] - seed[1]
    limit = Fraction(other[0] ** 2 + other[1] ** 2 - seed[0] ** 2 - seed[1] ** 2, 2)
    sides = [limit - a * x - b * y for x, y in ring]
    if all(side >= 0 for side in sides):
        return ring
    clipped: list[Point] = []
    for (p, s), (q, t) in pairwise([*zip(ring, sides, strict=True), (ring[0], sides[0])]):
        if s >= 0:
            clipped.append(p)
        if (s > 0 and t < 0) or (s < 0 and t > 0):
            part = s / (s - t)
            clipped.append((p[0] + part * (q[0] - p[0]), p[1] + part * (q[1] - p[1])))
    return clipped


def _rounded(ring: list[Point]) -> list[Whole]:
    """The corners as whole tenths of a unit, without those that fall together."""
    whole = [(round(10 * x), round(10 * y)) for x, y in ring]
    return [p for i, p in enumerate(whole) if p != whole[i - 1]]


def _bent(start: Whole, end: Whole) -> list[Whole]:
    """A border with its middle moved aside, and so on with both halves."""
    line = [start, end]
    for _ in range(BENDS):
        finer = [line[0]]
        for p, q in pairwise(line):
            along = (q[0] - p[0], q[1] - p[1])
            if abs(along[0]) + abs(along[1]) >= 24:
                part = (
                    _chance(*p, *q) % 41 - 20
                )  # hundredths of the length, to one side or the other
                x, y = p[0] + q[0], p[1] + q[1]
                finer.append(((50 * x - part * along[1]) // 100, (50 * y + part * along[0]) // 100))
            finer.append(q)
        line = finer
    return line


def _steps(line: list[Whole]) -> list[list[int]]:
    """An arc as TopoJSON has it: a point, and the way from each to the next."""
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(line)]
    return [list(line[0]), *(list(step) for step in steps)]
