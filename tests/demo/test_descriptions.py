"""What holds for all demo data: they are what their descriptions say, and follow from a seed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import lustrum.demo
from demo.conftest import content_digest, positions
from lustrum.demo import businesses, censuses, description_path, people, survey
from lustrum.demo.draws import NAMES, codes, described
from lustrum.demo.geography import DISTRICTS, area_districts, area_kinds, area_regions
from lustrum.model.translations import people_texts
from lustrum.tabulate import read_description

MAKERS = {"demo": people, "businesses": businesses, "survey": survey, "censuses": censuses}
# Digests of the default data; a change of a model changes these, anything else must not.
PINNED = {
    "demo": "b6a9154b7cb7f770",
    "businesses": "1320aa0dfa08b5be",
    "survey": "2385fec682200675",
    "censuses": "ddca55aa6214e970",
}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(name: str, census: pa.Table, register: pa.Table, sample: pa.Table) -> pa.Table:
    made = {"demo": census, "businesses": register, "survey": sample}
    return censuses() if name == "censuses" else made[name]


def test_the_package_exports_what_it_says() -> None:
    assert lustrum.demo.__all__ == [
        "businesses",
        "censuses",
        "description_path",
        "people",
        "survey",
    ]
    assert all(callable(getattr(lustrum.demo, one)) for one in lustrum.demo.__all__)
    with pytest.raises(ValueError, match="demo, businesses, survey, censuses"):
        description_path("moon")


def test_every_column_is_described_and_every_code_listed(name: str, table: pa.Table) -> None:
    dataset = read_description(description_path(name))  # which checks codes, levels and zeros
    raw = described(name)
    listed = [raw["dataset"]["record_id"], *raw["dataset"]["identifiers"]]
    for part in ("variables", "measures", "weights"):
        listed += [entry["name"] for entry in raw.get(part, [])]
    for weight in raw.get("weights", []):
        listed += weight.get("replicates", {}).get("columns", [])
    assert sorted(listed) == sorted(table.column_names)
    for variable in dataset.variables:
        column = table.column(variable.name).combine_chunks()
        assert tuple(column.dictionary.to_pylist()) == variable.codes
        assert positions(table, variable.name).max() < len(variable.codes)
        assert len(set(variable.labels)) == len(variable.labels)
    for field in table.schema:
        if pa.types.is_dictionary(field.type):
            assert field.type.index_type in (pa.uint8(), pa.uint16())
    assert all(column.null_count == 0 for column in table.columns)


def test_structural_zeros_are_never_violated(name: str, table: pa.Table) -> None:
    for zero in described(name).get("structural_zeros", ()):
        hit = np.ones(table.num_rows, dtype=bool)
        for variable, ruled_out in zero["where"].items():
            listed = codes(name, variable)
            hit &= np.isin(positions(table, variable), [listed.index(code) for code in ruled_out])
        assert not hit.any(), zero["reason"]


def test_every_text_but_names_of_places_is_translated(name: str) -> None:
    raw = described(name)
    places = {"Merrow"}  # the country, of which people are citizens
    for variable in raw["variables"]:
        if variable["name"] in ("region", "area", "district"):
            places |= {label for _, label in variable["codes"]}
            levels = [v for h in variable.get("hierarchies", ()) for v in h["levels"]]
            places |= {group["label"] for level in levels for group in level["groups"]}
    policy = tomllib.loads(description_path(name).with_name(f"{name}-policy.toml").read_text())
    texts = people_texts(raw) | {policy["title"], *policy["notes"]}
    for language, known in raw["translations"].items():
        missing = texts - places - set(known)
        assert not missing, (language, missing)


def test_areas_are_numbered_within_districts_and_regions() -> None:
    for name in ("demo", "businesses"):
        area = codes(name, "area")
        assert [code[:4] for code in area] == [list(DISTRICTS)[d] for d in area_districts()]
        assert [int(code[0]) - 1 for code in area] == area_regions().tolist()
        assert len(area) == len(area_kinds()) == len(set(area))
    assert codes("survey", "district") == list(DISTRICTS)


@pytest.mark.parametrize("make", [people, businesses])
def test_exactly_as_many_records_as_asked_for(make: Callable[..., pa.Table]) -> None:
    for count in (1, 2, 17, 5000):
        table = make(count)
        assert table.column(0).to_pylist() == list(range(1, count + 1))
    with pytest.raises(ValueError, match="at least one"):
        make(0)


def test_the_same_seed_gives_the_same_values(name: str, table: pa.Table) -> None:
    make = MAKERS[name]
    assert make(5000, 3).equals(make(5000, 3))
    assert not make(5000, 3).equals(make(5000, 4))
    assert content_digest(table) == PINNED[name]


def test_progress_runs_from_nought_to_one(name: str) -> None:
    heard: list[float] = []
    MAKERS[name](1000, progress=heard.append)
    assert heard == sorted(heard)
    assert (heard[0], heard[-1]) == (0.0, 1.0)


def test_people_of_both_censuses_are_the_same_five_years_older() -> None:
    table = censuses(20_000, 7).to_pandas()
    assert table.record_id.is_unique
    assert not table.duplicated(["person_id", "census"]).any()
    both = table[table.census == "2016"].merge(table[table.census == "2021"], on="person_id")
    assert 0.8 < len(both) / 20_000 < 0.98
    assert (both.sex_x == both.sex_y).all()
    band, later = (both[f"age_{side}"].astype(int) for side in "xy")
    assert (later == (band + 1).clip(upper=21)).all()
    assert 0.03 < (both.district_x != both.district_y).mean() < 0.2
    born = table[(table.census == "2021") & ~table.person_id.isin(both.person_id)]
    assert (born.person_id > 20_000).all()
    assert (table[(table.census == "2021") & (table.age == "1")].person_id > 20_000).all()
