"""Shapes are read from GeoJSON and TopoJSON alike, and groups are outlined without inner borders."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.demo import description_path
from lustrum.model import Dataset, DescriptionError
from lustrum.model.geography import SHEET, Geography, Ring
from lustrum.model.variable import Variable
from lustrum.tabulate import read_description

AREA = Variable("area", "Area", ("a", "b", "c"), ("A", "B", "C"))


def square(x: int, y: int) -> list[list[float]]:
    ring = [[x, y], [x + 1, y], [x + 1, y + 1], [x, y + 1], [x, y]]
    return [[1000.0 + p[0], 2000.0 + p[1]] for p in ring]


def features(**rings: list[list[float]]) -> dict[str, Any]:
    return {
        "type": "FeatureCollection",
        "features": [
            {"type": "Feature", "id": k, "geometry": {"type": "Polygon", "coordinates": [r]}}
            for k, r in rings.items()
        ],
    }


def area(rings: tuple[Ring, ...]) -> float:
    return sum(
        sum(a[0] * b[1] - b[0] * a[1] for a, b in pairwise((*ring, ring[0]))) / 2 for ring in rings
    )


def read(shapes: object) -> Geography:
    return Geography.from_mapping({"variable": "area", "shapes": shapes}, [AREA])


def test_a_group_is_one_ring_around_its_members_whichever_way_they_run() -> None:
    back = square(1, 0)[::-1]
    made = read(features(a=square(0, 0), b=back, c=square(2, 0)))
    assert (made.width, made.height) == (SHEET, round(SHEET / 3))
    (ring,) = made.outline(["a", "b", "c"])
    assert len(ring) == 8  # the corners on the long sides stay, the two inner borders are gone
    assert abs(area((ring,))) == made.width * made.height
    apart = made.outline(["a", "c"])
    assert len(apart) == 2
    assert made.outline(["nowhere"]) == ()


def test_topojson_gives_the_same_shapes_as_geojson() -> None:
    topology = {
        "type": "Topology",
        "transform": {"scale": [1, 1], "translate": [1000, 2000]},
        "arcs": [
            [[1, 0], [0, 1]],
            [[1, 1], [-1, 0], [0, -1], [1, 0]],
            [[1, 0], [1, 0], [0, 1], [-1, 0]],
        ],
        "objects": {
            "x": {
                "type": "GeometryCollection",
                "geometries": [
                    {"type": "Polygon", "id": "a", "arcs": [[0, 1]]},
                    {"type": "MultiPolygon", "properties": {"code": "b"}, "arcs": [[[2, -1]]]},
                ],
            }
        },
    }
    plain, shared = read(features(a=square(0, 0), b=square(1, 0))), read(topology)
    for codes in (["a"], ["b"], ["a", "b"]):
        sides = [
            {frozenset(side) for ring in made.outline(codes) for side in pairwise((*ring, ring[0]))}
            for made in (plain, shared)
        ]
        assert sides[0] == sides[1]


@pytest.mark.parametrize(
    "shapes",
    [
        None,
        {},
        {"type": "FeatureCollection", "features": []},
        {"type": "Topology", "arcs": [], "objects": {"x": {"geometries": [{"type": "Polygon"}]}}},
        features(a=[[0, 0], [1, 1]]),
        features(a=[[0, 0], [1, float("nan")], [1, 1]]),
        {"type": "FeatureCollection", "features": [{"geometry": None}]},
    ],
)
def test_a_file_that_is_no_map_is_refused_in_a_sentence(shapes: object) -> None:
    with pytest.raises(DescriptionError, match="cannot be read"):
        read(shapes)


def test_codes_and_variables_of_a_map_must_exist() -> None:
    with pytest.raises(DescriptionError, match="'z', which is no code"):
        read(features(z=square(0, 0)))
    with pytest.raises(DescriptionError, match="no variable 'aera'"):
        Geography.from_mapping({"variable": "aera", "shapes": {}}, [AREA])


def test_the_map_of_the_demo_covers_every_area() -> None:
    dataset: Dataset = read_description(description_path("demo"))
    (made,) = dataset.maps
    variable = dataset.variable("area")
    assert set(made.shapes) == set(variable.codes)
    whole = made.outline(variable.codes)
    assert len(whole) == 1
    for level in variable.levels:
        outlines = [made.outline(variable.codes[m] for m in c.members) for c in level.categories]
        assert all(len(rings) == 1 for rings in outlines)
        assert abs(sum(area(rings) for rings in outlines)) == abs(area(whole))


def test_a_description_names_the_file_of_its_map(tmp_path: Path) -> None:
    toml = (
        '[dataset]\nname = "d"\n[[variables]]\nname = "area"\ncodes = ["a"]\n'
        '[[maps]]\nvariable = "area"\nfile = "areas.json"\n'
    )
    (tmp_path / "d.toml").write_text(toml)
    with pytest.raises(DescriptionError, match=r"areas\.json cannot be read"):
        read_description(tmp_path / "d.toml")
    (tmp_path / "areas.json").write_text("{")
    with pytest.raises(DescriptionError, match="not valid JSON"):
        read_description(tmp_path / "d.toml")
    (tmp_path / "areas.json").write_text(json.dumps(features(a=square(0, 0))))
    dataset = read_description(tmp_path / "d.toml")
    assert Dataset.from_mapping(dataset.source).maps == dataset.maps  # it stands alone


# --- Shapes to download


def crosses(x: float, y: float, ring: list[tuple[int, int]]) -> bool:
    """Whether a line to the right of a place crosses an odd number of sides, which run along the grid."""
    return (
        sum(a == c > x and min(b, d) < y < max(b, d) for (a, b), (c, d) in pairwise(ring)) % 2 == 1
    )


@given(st.lists(st.lists(st.sampled_from("abc."), min_size=5, max_size=5), min_size=5, max_size=5))
def test_a_download_covers_what_the_groups_cover_and_has_each_border_once(
    drawn: list[list[str]],
) -> None:
    cells = {(x, y): drawn[y][x] for x in range(5) for y in range(5) if drawn[y][x] != "."}
    squares = {f"{x}-{y}": (((x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)),) for x, y in cells}
    made = Geography("area", squares, 5, 5)
    groups = {
        name: (name.upper(), [f"{x}-{y}" for (x, y), own in cells.items() if own == name])
        for name in sorted(set(cells.values()))
    }
    written = json.loads(json.dumps(made.topology(groups)))
    arcs = []
    for arc in written["arcs"]:
        x = y = 0
        arcs.append([(x := x + dx, y := y + dy) for dx, dy in arc])
    geometries = written["objects"]["area"]["geometries"]
    assert [g["id"] for g in geometries] == list(groups)
    for geometry in geometries:
        polygons = []
        for polygon in geometry["arcs"]:
            rings = []
            for numbers in polygon:
                ring: list[tuple[int, int]] = []
                for number in numbers:
                    line = arcs[number] if number >= 0 else arcs[~number][::-1]
                    assert not ring or ring[-1] == line[0]
                    ring += line[1:] if ring else line
                assert ring[0] == ring[-1]
                rings.append(ring)
            polygons.append(rings)
        for x in range(5):
            for y in range(5):
                place = x + 0.5, 5 - y - 0.5  # north above
                inside = [
                    crosses(*place, rings[0]) and not any(crosses(*place, h) for h in rings[1:])
                    for rings in polygons
                ]
                assert sum(inside) == (cells.get((x, y)) == geometry["id"])
    sides = [frozenset(side) for arc in arcs for side in pairwise(arc)]
    assert len(sides) == len(set(sides))


def test_what_is_downloaded_is_read_back_as_the_same_map() -> None:
    dataset: Dataset = read_description(description_path("demo"))
    (made,) = dataset.maps
    variable = dataset.variable("area")
    shapes = {code: (code, [code]) for code in variable.codes}
    again = Geography.from_mapping(
        {"variable": "area", "shapes": made.topology(shapes)}, dataset.variables
    )
    assert (again.width, again.height) == (made.width, made.height)
    for code in variable.codes:
        sides = (
            {frozenset(s) for r in g.shapes[code] for s in pairwise((*r, r[0]))}
            for g in (made, again)
        )
        assert next(sides) == next(sides)
