"""Shapes of the categories of a variable, from GeoJSON or TopoJSON, on a sheet of whole numbers.

Neighbours share their corners exactly, so a group of categories is outlined by the sides that only one of its
members has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

from lustrum.model.errors import DescriptionError, choices
from lustrum.model.variable import Variable

SHEET = 4000
"""The longer side of the sheet."""

MOST_POINTS = 200_000

Point = tuple[int, int]
Ring = tuple[Point, ...]
_Place = tuple[float, float]


@dataclass(frozen=True)
class Geography:
    """The shapes of a variable's finest codes; ``label`` says where they come from."""

    variable: str
    shapes: Mapping[str, tuple[Ring, ...]]
    width: int
    height: int
    label: str = ""

    def outline(self, codes: Iterable[str]) -> tuple[Ring, ...]:
        """The shape of some codes together: rings of the sides that no two of them share."""
        sides: dict[tuple[Point, Point], None] = {}
        for code in codes:
            for ring in self.shapes.get(code, ()):
                for start, end in pairwise((*ring, ring[0])):
                    if (end, start) in sides:
                        del sides[end, start]
                    else:
                        sides[start, end] = None
        return tuple(_rings(sides))

    def topology(self, shapes: Mapping[str, tuple[str, Sequence[str]]]) -> dict[str, Any]:
        """TopoJSON of some shapes, each a label and the codes that it is made of; a common border is one arc.

        Coordinates are those of the sheet, north above, and no degrees.
        """
        outlines = {code: self.outline(members) for code, (_, members) in shapes.items()}
        neighbours: dict[Point, set[Point]] = {}
        for ring in (ring for rings in outlines.values() for ring in rings):
            for start, end in pairwise((*ring, ring[0])):
                neighbours.setdefault(start, set()).add(end)
                neighbours.setdefault(end, set()).add(start)
        ends = {point for point, beside in neighbours.items() if len(beside) > 2}
        numbers: dict[tuple[Point, ...], int] = {}
        geometries = [
            {
                "type": "MultiPolygon",
                "id": code,
                "properties": {"label": shapes[code][0]},
                "arcs": [
                    [_numbered(ring, ends, numbers) for ring in polygon]
                    for polygon in _polygons_of(rings)
                ],
            }
            for code, rings in outlines.items()
            if rings
        ]
        return {
            "type": "Topology",
            "bbox": [0, 0, self.width, self.height],
            "transform": {"scale": [1, 1], "translate": [0, 0]},
            "objects": {self.variable: {"type": "GeometryCollection", "geometries": geometries}},
            "arcs": [_steps(arc, self.height) for arc in numbers],
        }

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any], variables: Sequence[Variable]) -> Geography:
        """Check what a description says of a map, with the file's content as ``shapes``."""
        where = "[[maps]]"
        for key in raw:
            if key not in ("variable", "shapes", "label"):
                known = ("variable", "file", "label")
                raise DescriptionError(f"{where}: unknown key {key!r}; {choices(key, known)}.")
        name = raw.get("variable")
        variable = next((v for v in variables if v.name == name), None)
        if variable is None:
            there = choices(str(name), [v.name for v in variables])
            raise DescriptionError(f"{where}: there is no variable {name!r}; {there}.")
        where = f"The map of {name!r}"
        features = _features(raw.get("shapes"), where)
        for code in features:
            if code not in variable.codes:
                raise DescriptionError(
                    f"{where} has a shape {code!r}, which is no code of the variable; the 'id' of a shape, "
                    "or its property 'code', must be one of the finest codes."
                )
        return cls(str(name), *_fitted(features, where), label=str(raw.get("label", "")))


def _features(raw: object, where: str) -> dict[str, list[list[_Place]]]:
    """The rings of every shape by its code."""
    wrong = DescriptionError(
        f"{where} cannot be read: give a GeoJSON FeatureCollection or a TopoJSON Topology of polygons, each "
        "with its code as 'id' or as the property 'code'."
    )
    if not isinstance(raw, Mapping):
        raise wrong
    features: dict[str, list[list[_Place]]] = {}
    points = 0
    try:
        if raw.get("type") == "Topology":
            arcs = _arcs(raw)
            objects = [g for o in raw["objects"].values() for g in o["geometries"]]
            shapes = [(_code(g), [_joined(r, arcs) for r in _polygons(g, "arcs")]) for g in objects]
        else:
            geometries = [(f, f["geometry"]) for f in raw["features"]]
            shapes = [
                (_code(f), [_placed(r) for r in _polygons(g, "coordinates")]) for f, g in geometries
            ]
        for code, rings in shapes:
            features.setdefault(code, []).extend(rings)
            points += sum(map(len, rings))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise wrong from None
    if not features:
        raise wrong
    if points > MOST_POINTS:
        raise DescriptionError(
            f"{where} has {points:,} points; simplify it to at most {MOST_POINTS:,}."
        )
    return features


def _code(shape: Mapping[str, Any]) -> str:
    code = shape.get("id", (shape.get("properties") or {}).get("code"))
    if not isinstance(code, str | int) or isinstance(code, bool):
        raise ValueError
    return str(code)


def _polygons(geometry: Mapping[str, Any], key: str) -> Iterator[Any]:
    kind, parts = geometry["type"], geometry[key]
    if kind not in ("Polygon", "MultiPolygon"):
        raise ValueError
    for polygon in [parts] if kind == "Polygon" else parts:
        yield from polygon


def _placed(ring: Iterable[Sequence[float]]) -> list[_Place]:
    points = [(float(p[0]), float(p[1])) for p in ring]
    if len(points) < 3 or not all(isfinite(x) and isfinite(y) for x, y in points):
        raise ValueError
    return points


def _arcs(raw: Mapping[str, Any]) -> list[list[_Place]]:
    """The arcs of a topology; where they are steps on a grid they are added up."""
    transform = raw.get("transform")
    if transform is None:
        return [[(float(p[0]), float(p[1])) for p in arc] for arc in raw["arcs"]]
    (kx, ky), (dx, dy) = transform["scale"], transform["translate"]
    lines = []
    for arc in raw["arcs"]:
        x = y = 0
        line = []
        for step in arc:
            x, y = x + step[0], y + step[1]
            line.append((x * kx + dx, y * ky + dy))
        lines.append(line)
    return lines


def _joined(ring: Iterable[int], arcs: Sequence[list[_Place]]) -> list[_Place]:
    """A ring of arcs; a negative number is an arc the other way round."""
    points: list[_Place] = []
    for number in ring:
        line = arcs[number] if number >= 0 else arcs[~number][::-1]
        points += line[1:] if points else line
    return _placed(points)


def _fitted(
    features: Mapping[str, list[list[_Place]]], where: str
) -> tuple[dict[str, tuple[Ring, ...]], int, int]:
    """All rings on the sheet, north above, every outer ring in the same direction."""
    xs = [x for rings in features.values() for ring in rings for x, _ in ring]
    ys = [y for rings in features.values() for ring in rings for _, y in ring]
    degrees = max(map(abs, xs)) <= 180 and max(map(abs, ys)) <= 90
    narrow = _cosine((min(ys) + max(ys)) / 2) if degrees else 1.0
    wide, tall = (max(xs) - min(xs)) * narrow, max(ys) - min(ys)
    if not wide or not tall:
        raise DescriptionError(f"{where} has no extent; its shapes must be polygons.")
    unit = SHEET / max(wide, tall)

    def on_sheet(ring: list[_Place]) -> Ring:
        whole = [(round((x - min_x) * narrow * unit), round((max_y - y) * unit)) for x, y in ring]
        return tuple(p for i, p in enumerate(whole) if p != whole[i - 1])

    min_x, max_y = min(xs), max(ys)
    shapes = {
        code: tuple(_turned(sheet_ring, rings) for r in rings if len(sheet_ring := on_sheet(r)) > 2)
        for code, rings in features.items()
    }
    return shapes, round(wide * unit), round(tall * unit)


def _turned(ring: Ring, rings: list[list[_Place]]) -> Ring:
    """A single ring runs clockwise, so that neighbours pass a common side in opposite directions."""
    area = sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise((*ring, ring[0])))
    return ring[::-1] if area < 0 and len(rings) == 1 else ring


def _rings(sides: Mapping[tuple[Point, Point], None]) -> Iterator[Ring]:
    """Sides put together to rings."""
    following: dict[Point, list[Point]] = {}
    for start, end in sides:
        following.setdefault(start, []).append(end)
    for start in list(following):
        while following.get(start):
            ring = [start]
            at = following[start].pop()
            while at != start and following.get(at):
                ring.append(at)
                at = following[at].pop()
            if len(ring) > 2:
                yield tuple(ring)


def _numbered(ring: Ring, ends: set[Point], numbers: dict[tuple[Point, ...], int]) -> list[int]:
    """A ring as numbers of arcs between ends, each in the direction in which it came first."""
    first = next((place for place, point in enumerate(ring) if point in ends), None)
    if (
        first is None
    ):  # a ring without neighbours begins where any shape with the same ring would begin
        first = ring.index(min(ring))
    turned = (*ring[first:], *ring[:first], ring[first])
    cuts = [0, *(i for i, p in enumerate(turned) if p in ends and 0 < i < len(turned) - 1)]
    found = []
    for start, end in pairwise([*cuts, len(turned) - 1]):
        arc = turned[start : end + 1]
        back = arc[::-1]
        found.append(~numbers[back] if back in numbers else numbers.setdefault(arc, len(numbers)))
    return found


def _polygons_of(rings: Sequence[Ring]) -> list[list[Ring]]:
    """Rings as polygons: one that lies inside an odd number of others is a hole of the innermost of them."""
    around = {
        ring: [other for other in rings if other is not ring and _inside(ring, other)]
        for ring in rings
    }
    polygons = {ring: [ring] for ring in rings if len(around[ring]) % 2 == 0}
    for ring, outside in around.items():
        if len(outside) % 2:
            polygons[max(outside, key=lambda other: len(around[other]))].append(ring)
    return list(polygons.values())


def _inside(ring: Ring, other: Ring) -> bool:
    """Whether a ring lies inside another, by the sides of it that a line to the right of a point crosses."""
    corners = set(other)
    x, y = next((point for point in ring if point not in corners), ring[0])
    crossed = False
    for (ax, ay), (bx, by) in pairwise((*other, other[0])):
        if (ay > y) != (by > y):
            crossed ^= (by > ay) == ((bx - ax) * (y - ay) > (x - ax) * (by - ay))
    return crossed


def _steps(arc: Sequence[Point], height: int) -> list[list[int]]:
    """An arc as a first place and steps from there, north above."""
    places = [(x, height - y) for x, y in arc]
    return [
        [x - before[0], y - before[1]]
        for before, (x, y) in zip([(0, 0), *places], places, strict=False)
    ]


def _cosine(degrees: float) -> float:
    """The cosine by its series, of operations that every processor rounds alike."""
    x = degrees * 0.017453292519943295
    term = cosine = 1.0
    for k in range(1, 12):
        term = -term * x * x / ((2 * k - 1) * (2 * k))
        cosine += term
    return cosine
