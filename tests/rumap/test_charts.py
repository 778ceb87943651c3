"""Charts: valid specifications that draw without a network, and say what the map says."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lustrum as lu
from lustrum.model import InputError, Table
from lustrum.rumap import RUMap, grid, series_map
from lustrum.rumap.charts import (
    COLOURS,
    distribution_chart,
    risk_table_chart,
    save_chart,
    series_chart,
    tables_chart,
)

TABLE = Table.from_counts([[1, 14, 3, 0], [17, 83, 2, 9], [5, 0, 31, 4]], names=["area", "faith"])
METHODS = grid("random-rounding", base=[3, 5, 10]) + grid("conventional-rounding", base=[3, 5, 10])


@cache
def found_map() -> RUMap:
    """The map of these methods, made when a test first needs it."""
    return lu.rumap(TABLE, METHODS, replications=4)


def values_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows of data in a specification, each data set once."""
    return [row for rows in spec["datasets"].values() for row in rows]


def test_the_chart_marks_the_frontier_the_limit_and_the_regions() -> None:
    rows = values_of(found_map().chart(limit=0.2, corners=True).to_dict())
    on_frontier = {r["label"] for r in rows if r.get("state") == "frontier"}
    assert on_frontier == {p.label for p in found_map().frontier()}
    assert {r["label"] for r in rows if r.get("state") == "corner"} == {"no data", "original data"}
    assert any(r.get("limit") == 0.2 for r in rows)
    assert any("order" in r for r in rows)


def test_labels_never_lie_upon_each_other() -> None:
    from lustrum.rumap.charts import _name_points

    rows = [
        {"label": "method", "state": "frontier", "risk": 0.5 + i / 1000, "utility": 0.5, "wanted": True}
        for i in range(5)
    ]  # fmt: skip
    _name_points(rows, ([0, 1], [0, 1]), (500, 400))
    named = [r["side"] for r in rows if r["name"]]
    assert named
    assert len(named) == len(set(named))


@pytest.mark.parametrize("kind", ["png", "svg", "html", "json"])
def test_a_map_is_saved_in_every_form_without_another_host(kind: str, tmp_path: Path) -> None:
    path = found_map().save(tmp_path / f"map.{kind}", limit=0.2)
    content = path.read_bytes()
    if kind == "png":
        assert content.startswith(b"\x89PNG")
    elif kind == "svg":
        assert b"risk of disclosure" in content
    elif kind == "json":
        assert json.loads(content)["layer"]
    else:
        assert b"<script src=" not in content.replace(b"'", b'"')
        assert b"cdn." not in content


def test_a_chart_has_only_forms_that_it_knows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.png"):
        found_map().save(tmp_path / "map.bmp")


def test_small_multiples_share_their_scales() -> None:
    tables = {"all": TABLE, "part": TABLE.take([[0, 1], range(4)])}
    spec = tables_chart(lu.rumap(tables, METHODS, replications=2), limit=0.3).to_dict()
    assert [c["title"] for c in spec["concat"]] == ["all", "part"]
    domains = {
        json.dumps(layer["encoding"]["x"]["scale"]["domain"])
        for c in spec["concat"]
        for layer in c["layer"]
        if "x" in layer["encoding"]
    }
    assert len(domains) == 1


def test_the_table_shows_which_cells_are_known_and_the_bars_all_cells() -> None:
    release = found_map().release("random-rounding base 3")
    cells = values_of(risk_table_chart(TABLE, release).to_dict())
    small = [r for r in cells if r["certainty"] is not None]
    assert len(small) == int(((TABLE.values > 0) & (TABLE.values <= 5)).sum())
    bars = values_of(distribution_chart(TABLE, release).to_dict())
    for word in ("before", "after"):
        assert sum(r["cells"] for r in bars if r["table"] == word) == TABLE.values.size


def test_a_series_is_drawn_line_by_line(tmp_path: Path) -> None:
    chart = series_chart(series_map(TABLE, METHODS[:1], 4, replications=1))
    assert save_chart(chart, tmp_path / "series.svg").stat().st_size > 1000


def _distance(first: str, second: str) -> float:
    """Euclidean distance of two colours in linear light, as a person without red cones sees them."""
    seen = []
    for colour in (first, second):
        rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        # Viénot, Brettel and Mollon (1999), protanopia.
        matrix = [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]
        seen.append(np.array(matrix) @ linear)
    return float(np.linalg.norm(seen[0] - seen[1]))


def test_the_first_colours_differ_for_people_without_red_cones() -> None:
    pairs = [(a, b) for i, a in enumerate(COLOURS[:6]) for b in COLOURS[:i]]
    assert min(_distance(a, b) for a, b in pairs) > 0.08


def test_ten_methods_differ_in_shape_and_forty_in_shape_or_colour() -> None:
    from lustrum.rumap.charts import SHAPES, _cycled

    marks = list(zip(_cycled(SHAPES, 40), _cycled(COLOURS, 40), strict=True))
    assert len({shape for shape, _ in marks[:10]}) == 10
    assert len(set(marks)) == 40
