"""A protected survey: nobody's weight, tables that agree, and errors that cover what they claim."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.demo.draws import described
from lustrum.demo.labour_force import frame, survey
from lustrum.model import Dataset, InputError
from lustrum.protect import ProtectedPopulation
from lustrum.protect.weighted import (
    ProtectedRespondents,
    ProtectedSurvey,
    RespondentSums,
    SurveyRecords,
    weight_classes,
)
from lustrum.protect.weighted.means import cut_values
from lustrum.survey import Design, Reliability, estimate_totals

KEY = b"sixteen bytes or more"
PERSONS = 60_000


def positions(table, names):  # type: ignore[no-untyped-def]
    return np.stack(
        [np.asarray(table.column(n).combine_chunks().indices).astype(np.int64) for n in names]
    )


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return Dataset.from_mapping(described("survey"))


@pytest.fixture(scope="module")
def records(dataset: Dataset) -> SurveyRecords:
    table = survey(PERSONS)
    names = [v.name for v in dataset.variables]
    design = Design(
        table.column("weight").to_numpy(),
        table.column("stratum").to_numpy(),
        table.column("block").to_numpy(),
        lonely="centre",
    )
    keys = np.random.default_rng(5).integers(0, 2**64, design.records, dtype=np.uint64)
    return SurveyRecords(
        dataset,
        positions(table, names),
        design,
        keys,
        frame(PERSONS).num_rows,
        {"hours": table.column("hours").to_numpy()},
    )


@pytest.fixture(scope="module")
def method() -> ProtectedSurvey:
    return ProtectedSurvey(
        classes=("district", "age", "sex"), measure_classes=("employment", "age", "sex")
    )


@pytest.fixture(scope="module")
def made(records: SurveyRecords, method: ProtectedSurvey) -> ProtectedRespondents:
    return method.protect(records, ProtectedPopulation(base=3, sweeps=1), KEY)[0]


def cells(codes: np.ndarray, dataset: Dataset, picks: tuple[int, ...]) -> tuple[np.ndarray, int]:
    sizes = [len(dataset.variables[v].codes) for v in picks]
    return np.ravel_multi_index(tuple(codes[v] for v in picks), sizes), int(np.prod(sizes))


def test_estimates_cover_the_population_that_the_sample_was_drawn_from(
    dataset: Dataset, records: SurveyRecords, made: ProtectedRespondents
) -> None:
    # The frame is known, so the true counts are too. A correct standard error covers them in 95 of 100 cells;
    # cells of one sample depend on each other, and 88 leaves room for that.
    everybody = positions(frame(PERSONS), [v.name for v in dataset.variables])
    inside, away, sampled = [], [], []
    for number in (1, 2):
        for picks in combinations(range(5), number):
            place, count = cells(made.codes, dataset, picks)
            found = made.totals(RespondentSums(place, count), number)
            true = np.bincount(cells(everybody, dataset, picks)[0], minlength=count)
            own = estimate_totals(records.design, cells(records.codes, dataset, picks)[0], count)
            large = own.respondents >= 30
            inside += (np.abs(found.values - true) <= 1.96 * found.standard_errors)[large].tolist()
            away += np.abs(found.values[large] / own.values[large] - 1.0).tolist()
            sampled += (found.standard_errors[large] / own.standard_errors[large]).tolist()
    assert len(inside) > 200
    assert np.mean(inside) >= 0.88
    assert np.median(away) < 0.04
    # Protection adds to the error of sampling, and does not drown it.
    assert 1.0 < np.median(sampled) < 2.0


def test_every_weight_is_shared_by_a_class_and_is_nobodys_own(
    records: SurveyRecords, made: ProtectedRespondents, method: ProtectedSurvey
) -> None:
    assert made.classes is not None
    assert np.bincount(made.classes).min() >= method.class_size
    shared = {
        int(k): set(made.weights[made.classes == k].tolist()) for k in np.unique(made.classes)
    }
    assert all(len(values) == 1 for values in shared.values())


def test_the_weight_of_one_respondent_does_not_follow_from_the_file(
    records: SurveyRecords, method: ProtectedSurvey
) -> None:
    # The respondent's weight is doubled. The weight of its class moves by less than the noise can.
    changed = records.design.weights.copy()
    who = int(records.order[0])
    changed[who] *= 2.0
    other = replace(records, design=replace(records.design, weights=changed), total=None)
    plain = replace(records, total=None)
    population = ProtectedPopulation(base=3, sweeps=1)
    one, two = (method.protect(r, population, KEY)[0] for r in (plain, other))
    assert (one.codes == two.codes).all()
    moved = np.unique(two.weights / one.weights)
    assert moved.max() < 1.0 + 2.0 / method.class_size + 0.05
    true = plain.cells()
    counted = population.protect(true, KEY)
    drawn = [method.with_counts(plain, counted, bytes([k]) * 16) for k in range(12)]
    first = np.array([file.weights[0] for file in drawn], dtype=np.float64)
    assert np.ptp(first) / first.mean() > method.noise


def test_a_class_and_a_unit_that_meet_in_the_file_need_not_meet_in_truth(
    records: SurveyRecords, method: ProtectedSurvey
) -> None:
    """In truth every cluster has one sex; in the file each class meets units of both."""
    number = np.arange(records.design.records) % 4
    cluster = records.codes[1] * 4 + number
    apart = replace(records, design=replace(records.design, strata=None, clusters=cluster))
    by_sex = replace(method, classes=("sex",))
    made = by_sex.protect(apart, ProtectedPopulation(base=3, sweeps=1), KEY)[0]
    assert np.unique(made.clusters).size == 8
    for sex in (0, 1):
        assert np.unique(made.clusters[made.codes[1] == sex]).size == 8
    # Half of the respondents take the unit of their class all the same.
    met = np.stack([np.bincount(made.clusters[made.codes[1] == s], minlength=8) for s in (0, 1)])
    assert (met.max(axis=0) > 2 * met.min(axis=0)).all()


def test_the_order_of_the_records_does_not_matter(
    records: SurveyRecords, made: ProtectedRespondents, method: ProtectedSurvey
) -> None:
    turn = np.random.default_rng(3).permutation(records.design.records)
    design = Design(
        records.design.weights[turn],
        np.asarray(records.design.strata)[turn],
        np.asarray(records.design.clusters)[turn],
        lonely="centre",
    )
    mixed = SurveyRecords(
        records.dataset, records.codes[:, turn], design, records.keys[turn], records.total
    )
    other = method.protect(mixed, ProtectedPopulation(base=3, sweeps=1), KEY)[0]
    for name in ("codes", "weights", "strata", "clusters"):
        assert (getattr(other, name) == getattr(made, name)).all(), name


def test_few_protected_respondents_are_flagged_whatever_their_weight(
    dataset: Dataset, made: ProtectedRespondents
) -> None:
    place, count = cells(made.codes, dataset, (0, 2, 4))
    found = made.totals(RespondentSums(place, count), 3)
    flags = found.flagged(Reliability(respondents=20, unreliable=0.3))
    assert flags[found.respondents < 20].all()
    assert not flags.all()


@given(
    st.integers(1, 60).flatmap(
        lambda n: st.tuples(
            st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=n, max_size=n),
            st.lists(st.integers(0, 9), min_size=n, max_size=n),
        )
    ),
    st.integers(1, 12),
)
def test_classes_are_a_partition_of_which_no_part_is_too_small(drawn, least: int) -> None:  # type: ignore[no-untyped-def]
    pairs, counts = drawn
    codes, sizes = np.array(pairs).T, np.array(counts, dtype=np.int64)
    if sizes.sum() < least:
        with pytest.raises(InputError, match="fewer respondents than a weight class needs"):
            weight_classes(codes, sizes, [0, 1], least)
        return
    group = weight_classes(codes, sizes, [0, 1], least)
    assert np.bincount(group, weights=sizes).min() >= least
    assert sorted(set(group.tolist())) == list(range(group.max() + 1))
    for place in range(codes.shape[1]):
        same = (codes == codes[:, [place]]).all(axis=0)
        assert (group[same] == group[place]).all()


def test_bad_input_is_one_sentence(records: SurveyRecords, method: ProtectedSurvey) -> None:
    design = records.design
    with pytest.raises(InputError, match="do not sum to the frame of 999"):
        replace(records, total=999)
    zero = design.weights.copy()
    zero[0] = 0.0
    with pytest.raises(InputError, match="has the weight 0"):
        replace(records, design=replace(design, weights=zero))
    for wrong, said in ((-1.0, "A weight is negative"), (np.nan, "missing or not a number")):
        bad = design.weights.copy()
        bad[3] = wrong
        with pytest.raises(InputError, match=said):
            replace(design, weights=bad)
    with pytest.raises(InputError, match="single cluster"):
        Design(np.ones(3), np.array([0, 0, 1]))
    with pytest.raises(InputError, match="did you mean 'district'"):
        replace(method, classes=("distrikt",)).protect(
            records, ProtectedPopulation(base=3, sweeps=1), KEY
        )
    with pytest.raises(InputError, match="at least 16 bytes"):
        method.protect(records, ProtectedPopulation(), b"short")


def test_sums_of_a_measure_cover_the_population(
    dataset: Dataset, made: ProtectedRespondents
) -> None:
    everybody = frame(PERSONS)
    codes = positions(everybody, [v.name for v in dataset.variables])
    hours = everybody.column("hours").to_numpy()
    inside, means = [], []
    for picks in [(0,), (1,), (2,), (3,), (1, 2), (2, 3), (1, 3)]:
        place, count = cells(made.codes, dataset, picks)
        true_place = cells(codes, dataset, picks)[0]
        true = np.bincount(true_place, weights=hours, minlength=count)
        people = np.bincount(true_place, minlength=count)
        part = RespondentSums(place, count, "hours")
        found = made.totals(part, len(picks))
        mean = made.quotients(part, RespondentSums(place, count), np.arange(count), len(picks))
        large = (found.respondents >= 30) & (true > 0)
        inside += (np.abs(found.values - true) <= 1.96 * found.standard_errors)[large].tolist()
        apart = np.abs(mean.values - true / np.maximum(people, 1))
        means += (apart <= 1.96 * mean.standard_errors)[large].tolist()
    assert len(inside) > 30
    assert np.mean(inside) >= 0.88
    assert np.mean(means) >= 0.85


def test_the_largest_value_of_a_class_does_not_show(
    dataset: Dataset, records: SurveyRecords, method: ProtectedSurvey, made: ProtectedRespondents
) -> None:
    """Whatever the two largest values of a class are, the file is the same."""
    hours = records.measures["hours"].copy()
    hours[np.argmax(hours)] = 10**6
    giant = replace(records, measures={"hours": hours})
    other = method.protect(giant, ProtectedPopulation(base=3, sweeps=1), KEY)[0]
    assert np.array_equal(other.values["hours"], made.values["hours"])
    assert np.array_equal(other.weights, made.weights)
    assert other.value_spreads == made.value_spreads


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 50)), min_size=1, max_size=40))
def test_cut_values_are_those_of_a_plain_loop(drawn: list[tuple[int, int]]) -> None:
    group = np.unique([g for g, _ in drawn], return_inverse=True)[1].ravel()
    values = np.array([v for _, v in drawn])
    found = cut_values(group, values)
    for one in np.unique(group):
        own = values[group == one]
        limit = sorted(np.abs(own), reverse=True)[min(2, own.size - 1)]
        assert found[group == one].tolist() == [
            int(np.sign(v)) * min(abs(int(v)), int(limit)) for v in own
        ]
