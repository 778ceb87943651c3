"""What the demo census promises."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from demo.conftest import positions
from lustrum.demo import people
from lustrum.demo.draws import generators
from lustrum.demo.geography import KINDS, area_kinds
from lustrum.demo.households import members

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
STUDENT, RETIRED = 2, 3
NO_WORK = 12


def hypercube(table: pa.Table) -> npt.NDArray[np.int64]:
    shape = tuple(HYPERCUBE.values())
    cells = np.ravel_multi_index([positions(table, name) for name in HYPERCUBE], shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def shares_of_cells(table: pa.Table) -> npt.NDArray[np.float64]:
    classes = np.digitize(hypercube(table).ravel(), FIRST_OF_CLASS)
    return np.bincount(classes, minlength=7) / classes.size


@pytest.mark.parametrize("seed", [2001, 1, 19])
def test_cell_counts_follow_the_published_distribution(seed: int, census: pa.Table) -> None:
    table = census if seed == 2001 else people(seed=seed)
    found = shares_of_cells(table)
    assert found.sum() == pytest.approx(1)
    assert np.abs(found / PUBLISHED - 1).max() < 0.20, found


def test_the_regions_are_as_large_as_in_the_2015_study(census: pa.Table) -> None:
    first = np.mean(positions(census, "region") == 0)
    assert first == pytest.approx(854_539 / 1_500_000, abs=0.01)


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
