"""Exact totals that are public elsewhere: bounds of a bundle's tables hold them, and state them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from lustrum.model import Axis, Filter, Group, TableQuery
from lustrum.public.bundle import BundleNumbers, read_bundle
from lustrum.publish.bundles.make import make_bundle
from lustrum.tabulate import FrameSource, Secret, Store, ingest
from small import described, hierarchy

POLICY = """dataset = "town"
[rules]
nested_only = false
[risk]
limit = 1.0
[[before]]
method = "protected-population"
base = 3
sweeps = 1
known_totals = [["area:half"]]
[protect]
method = "none"
end = true
"""
CODES = {"area": ["n1", "n2", "s1", "s2"], "sex": ["f", "m"], "job": ["a", "b", "c"]}
DESCRIBED = described(
    "town",
    {
        "area": {
            "codes": CODES["area"],
            "hierarchies": [hierarchy("place", {"half": {"N": ["n1", "n2"], "S": ["s1", "s2"]}})],
        },
        "sex": CODES["sex"],
        "job": CODES["job"],
    },
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, BundleNumbers]:
    root = tmp_path_factory.mktemp("known")
    rng = np.random.default_rng(4)
    frame = pa.table({name: rng.choice(codes, 90) for name, codes in CODES.items()})
    store = Store(root / "data")
    ingest(FrameSource(frame), DESCRIBED, store, secret=Secret(bytes(range(32))))
    (root / "town.toml").write_text(POLICY)
    make_bundle(store, "town", root / "town.toml", root / "bundle", workers=1)
    return store, BundleNumbers(read_bundle(root / "bundle"), workers=1)


AXES = (
    None,
    Axis("area"),
    Axis("area", "half", total=True),
    Axis("area", groups=(Group("all of N and one", ("n1", "n2", "s1")),)),
    Axis("area", codes=("n1",), total=True),
)
FILTERS: tuple[tuple[Filter, ...], ...] = (
    (),
    (Filter("sex", ("f",)),),
    (Filter("sex", ("f", "m")),),
    (Filter("area", ("N",)),),
    (Filter("area", ("n1", "s1")),),
)


def test_bounds_hold_the_truth_and_are_exact_where_a_cell_is_made_of_whole_totals(
    world: tuple[Store, BundleNumbers],
) -> None:
    store, numbers = world
    engine = store.open("town", 1)
    exact = set()
    for area, job, where in product(AXES, (Axis("job"), Axis("job", total=True), None), FILTERS):
        by = tuple(axis for axis in (job, area) if axis is not None)
        if not by or any(f.variable == a.variable for f in where for a in by):
            continue
        query = TableQuery("town", by, where)
        release, true = numbers.views(query).shown, engine.tabulate(query).values
        assert ((release.least <= true) & (true <= release.most)).all(), query
        for place in np.argwhere(release.least == release.most):
            exact.add((str(query.to_mapping()), tuple(place)))
            assert true[tuple(place)] == release.least[tuple(place)]
    halves = numbers.views(TableQuery("town", (Axis("area", "half", total=True),))).shown
    assert np.array_equal(halves.low, halves.high)
    assert any("public elsewhere" in str(note) for note in halves.notes)
    areas = numbers.views(TableQuery("town", (Axis("area"),))).shown
    assert (areas.low < areas.high).all()
    assert (areas.high <= halves.low[[0, 0, 1, 1]]).all()
    assert not any("public elsewhere" in str(note) for note in areas.notes)
    assert len(exact) > 10
