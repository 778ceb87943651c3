"""What the demo census promises."""

from __future__ import annotations

import hashlib
import tomllib
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from lustrum.demo import description_path, people
from lustrum.demo.census.households import members
from lustrum.demo.draws import generators
from lustrum.demo.geography import KINDS, area_kinds

HYPERCUBE = {
    "region": 2,
    "sex": 2,
    "age": 21,
    "employment": 5,
    "occupation": 13,
    "education": 9,
    "citizenship": 5,
}
# Shlomo, Antal, Elliot (2015), Table 1: cells with 0, 1, 2, 3-5, 6-8, 9-10 and 11 or more people.
PUBLISHED = np.array([226_939, 4_028, 2_112, 2_964, 1_664, 720, 7_273]) / 245_700
FIRST_OF_CLASS = [1, 2, 3, 6, 9, 11]
EMPLOYED, STUDENT, RETIRED = 0, 2, 3
NO_WORK = 12
# Values of the default population of 5,000 people.
PINNED = "7aa5456b1725f55c1d6896e40c994c374d5e75c0da34500d965e1c7f755069de"


def positions(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    indices = table.column(name).combine_chunks().indices
    return indices.to_numpy().astype(np.int64)


def hypercube(table: pa.Table) -> npt.NDArray[np.int64]:
    shape = tuple(HYPERCUBE.values())
    cells = np.ravel_multi_index([positions(table, name) for name in HYPERCUBE], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def shares_of_cells(table: pa.Table) -> npt.NDArray[np.float64]:
    classes = np.digitize(hypercube(table).ravel(), FIRST_OF_CLASS)
    return np.bincount(classes, minlength=7) / classes.size


def ipc_digest(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def content_digest(table: pa.Table) -> str:
    """A digest of the values alone, free of how Arrow happens to frame them."""
    digest = hashlib.sha256()
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        values = column.indices if pa.types.is_dictionary(column.type) else column
        digest.update(name.encode())
        digest.update(values.to_numpy().astype("<i8").tobytes())
    return digest.hexdigest()


def test_the_census_holds_exactly_the_people_asked_for(census: pa.Table) -> None:
    assert census.num_rows == 1_500_000
    ids = census.column("person_id").to_numpy()
    assert np.array_equal(ids, np.arange(1, 1_500_001))
    for persons in (1, 2, 3, 17, 5_000):
        assert people(persons=persons).num_rows == persons


def test_a_census_of_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one person"):
        people(persons=0)


def test_columns_are_dictionaries_and_wide_integers(census: pa.Table) -> None:
    for field in census.schema:
        if field.name.endswith("_id"):
            assert field.type == pa.int64()
        else:
            assert pa.types.is_dictionary(field.type)
            assert field.type.value_type == pa.string()
            assert field.type.index_type in (pa.uint8(), pa.uint16())
    assert all(column.null_count == 0 for column in census.columns)


@pytest.mark.parametrize("seed", [2001, 1, 19])
def test_cell_counts_follow_the_published_distribution(seed: int, census: pa.Table) -> None:
    table = census if seed == 2001 else people(seed=seed)
    found = shares_of_cells(table)
    assert found.sum() == pytest.approx(1)
    assert np.abs(found / PUBLISHED - 1).max() < 0.20, found


def test_the_regions_are_as_large_as_in_the_2015_study(census: pa.Table) -> None:
    first = np.mean(positions(census, "region") == 0)
    assert first == pytest.approx(854_539 / 1_500_000, abs=0.01)


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert ipc_digest(people(5_000, seed=8)) == ipc_digest(people(5_000, seed=8))
    assert ipc_digest(people(5_000, seed=8)) != ipc_digest(people(5_000, seed=9))


def test_the_default_population_does_not_change_between_releases() -> None:
    # A deliberate change of the model changes this digest; anything else must not.
    assert content_digest(people(5_000)) == PINNED


def test_children_do_not_work(census: pa.Table) -> None:
    child = positions(census, "age") < 3
    assert child.any()
    assert not np.isin(positions(census, "employment")[child], [0, 1, 3]).any()
    assert (positions(census, "occupation")[child] == NO_WORK).all()
    assert (positions(census, "education")[child] == 0).all()


def test_an_occupation_means_employment(census: pa.Table) -> None:
    employed = positions(census, "employment") == EMPLOYED
    assert np.array_equal(employed, positions(census, "occupation") != NO_WORK)


def test_the_retired_are_old_and_the_students_young(census: pa.Table) -> None:
    age, status = positions(census, "age"), positions(census, "employment")
    assert age[status == RETIRED].min() >= 10
    assert np.median(age[status == RETIRED]) >= 13
    assert np.median(age[status == STUDENT]) <= 3


def test_occupation_follows_education(census: pa.Table) -> None:
    job, level = positions(census, "occupation"), positions(census, "education")
    employed = job != NO_WORK
    professional = job == 2
    assert professional[employed & (level == 7)].mean() > 0.4
    assert professional[employed & (level <= 3)].mean() < 0.03


def test_areas_nest_in_regions(census: pa.Table) -> None:
    region = np.array(["1", "2"])[positions(census, "region")]
    codes = np.array(census.column("area").combine_chunks().dictionary.to_pylist())
    area = codes[positions(census, "area")]
    assert np.array_equal(area.astype("U1"), region)


def test_areas_are_of_very_different_sizes(census: pa.Table) -> None:
    sizes = np.bincount(positions(census, "area"))
    assert 120 <= len(sizes) <= 200
    assert sizes.min() > 0
    assert sizes.max() > 100 * sizes.min()


def test_cities_are_younger_and_more_foreign_than_the_coast(census: pa.Table) -> None:
    kind = area_kinds()[positions(census, "area")]
    city, coast = kind == KINDS.index("city"), kind == KINDS.index("coast")
    age, foreign = positions(census, "age"), positions(census, "citizenship") > 0
    assert age[city].mean() + 1 < age[coast].mean()
    assert foreign[city].mean() > 1.5 * foreign[coast].mean()


def test_households_are_coherent(census: pa.Table) -> None:
    household = census.column("household_id").to_numpy()
    _, start, size = np.unique(household, return_index=True, return_counts=True)
    stated = positions(census, "household_size") + 1
    assert np.array_equal(stated, np.minimum(size, 6)[household - 1])
    area = positions(census, "area")
    assert np.array_equal(np.minimum.reduceat(area, start), np.maximum.reduceat(area, start))
    oldest = np.maximum.reduceat(positions(census, "age"), start)
    assert oldest.min() >= 3, "every household has somebody of 15 or over"


def test_household_members_mostly_share_a_citizenship(census: pa.Table) -> None:
    household = census.column("household_id").to_numpy()
    _, start, size = np.unique(household, return_index=True, return_counts=True)
    foreign = positions(census, "citizenship") > 0
    counts = np.add.reduceat(foreign.astype(np.int64), start)
    several = size > 1
    assert np.mean((counts == 0) | (counts == size), where=several) > 0.9


def test_parents_are_older_than_their_children_and_couples_alike_in_age() -> None:
    home = members(50_000, generators(5, 1)[0])
    head_age = home.age[home.first][home.household]
    assert (head_age - home.age)[home.child].min() >= 15
    partners = np.abs(head_age - home.age)[home.partner]
    assert np.median(partners) <= 5
    siblings = home.child[1:] & home.child[:-1]
    assert (np.diff(home.age)[siblings] <= 0).all()
    assert home.age.min() >= 0


def test_structural_zeros_are_never_violated(census: pa.Table) -> None:
    description: dict[str, Any] = tomllib.loads(description_path("demo").read_text("utf-8"))
    zeros = description["structural_zeros"]
    assert len(zeros) >= 10
    for zero in zeros:
        hit = np.ones(census.num_rows, dtype=bool)
        for name, codes in zero["where"].items():
            listed = census.column(name).combine_chunks().dictionary.to_pylist()
            hit &= np.isin(positions(census, name), [listed.index(code) for code in codes])
        assert not hit.any(), zero["reason"]


def test_progress_runs_from_nought_to_one() -> None:
    told: list[float] = []
    people(1_000, progress=told.append)
    assert told[0] == 0.0
    assert told[-1] == 1.0
    assert told == sorted(told)
