"""A protected survey of a few respondents: every figure of the file against a plain recomputation."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.model import Dataset, InputError
from lustrum.model.finest import FinestCells
from lustrum.model.variable import FRAME_ROOM
from lustrum.protect.population.public import coarse_error, coarse_share
from lustrum.protect.weighted.classes import classes_of, weight_classes
from lustrum.protect.weighted.means import class_noise, filled_means, limited_weights, shared_values

# The plain survey draws by the same keys.
from lustrum.protect.weighted.method import ProtectedSurvey, _derived
from lustrum.protect.weighted.replicates import GivenReplicates, unit_factors, variance_units
from lustrum.protect.weighted.respondents import SurveyRecords
from lustrum.survey import Design

KEY = b"sixteen bytes or more"


def described(measures: bool = False) -> Dataset:
    words: dict[str, Any] = {
        "dataset": {"name": "panel"},
        "variables": [
            {"name": "sex", "codes": ["f", "m"]},
            {"name": "area", "codes": ["a", "b", "c"]},
        ],
    }
    if measures:
        words["measures"] = [{"name": "income"}, {"name": "age"}]
    return Dataset.from_mapping(words)


def surveyed(
    *, clusters: bool = True, measures: bool = False, replicates: bool = False, total: Any = None
) -> SurveyRecords:
    """Sixty respondents of two strata and twelve clusters."""
    rng = np.random.default_rng(2)
    number = 60
    weights = rng.uniform(5.0, 15.0, number)
    given = None
    if replicates:
        given = GivenReplicates(weights[:, None] * rng.uniform(0.5, 1.5, (number, 3)), 0.5)
    return SurveyRecords(
        described(measures),
        np.stack([rng.integers(0, 2, number), rng.integers(0, 3, number)]),
        Design(
            weights,
            np.arange(number) % 2,
            np.arange(number) % 12 if clusters else None,
        ),
        rng.integers(1, 2**63, number, dtype=np.uint64),
        total=total,
        measures={
            "income": rng.integers(100, 900, number), "age": rng.integers(20, 60, number),
        } if measures else {},
        replicates=given,
    )  # fmt: skip


def counted(records: SurveyRecords) -> Any:
    """Protected counts that are written down: every cell shows nine or twelve."""
    cells = records.cells()
    shown = FinestCells(records.dataset, cells.codes, 9 + 3 * (np.arange(len(cells)) % 2))
    return SimpleNamespace(cells=shown, public=SimpleNamespace(errors={1: 0.5, 2: 1.0}))


def test_cells_hold_their_respondents_and_the_sums_of_their_keys() -> None:
    records = surveyed()
    cells = records.cells()
    for place in range(len(cells)):
        inside = (records.codes == cells.codes[:, [place]]).all(axis=0)
        assert cells.counts[place] == inside.sum()
        assert int(cells.keys[place]) == sum(int(k) for k in records.keys[inside]) % 2**64
    assert cells.counts.sum() == 60
    ordered = [(*records.codes[:, k].tolist(), int(records.keys[k])) for k in records.order]
    assert ordered == sorted(ordered)
    nobody = SurveyRecords(
        described(), np.zeros((2, 0), int), Design(np.zeros(0)), np.zeros(0, np.uint64)
    )
    assert len(nobody.cells()) == 0
    assert repr(records) == "SurveyRecords('panel')"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"codes": np.zeros((1, 60), int)}, "codes of all variables"),
        ({"codes": np.zeros((2, 59), int)}, "codes of all variables"),
        ({"keys": np.ones(59, np.uint64)}, "a key for every record"),
        ({"measures": {"income": np.ones(59)}}, "a value of each measure"),
        ({"replicates": GivenReplicates(np.ones((59, 2)), 1.0)}, "replicate weights for every"),
        ({"design": Design(np.r_[0.0, np.ones(59)])}, "weight 0"),
        ({"total": 10_000}, "do not sum to the frame"),
        ({"total": 1}, "do not sum to the frame"),
    ],
)
def test_records_that_do_not_fit_are_refused(words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        replace(surveyed(), **words)


def test_a_frame_may_be_off_by_its_room() -> None:
    design = Design(np.ones(1000))
    records = {
        "dataset": described(), "codes": np.zeros((2, 1000), int), "design": design,
        "keys": np.ones(1000, np.uint64),
    }  # fmt: skip
    room = FRAME_ROOM
    exact = round(1000 * room)
    assert exact == 1000 * room
    fewer = {
        **records,
        "design": Design(np.ones(1000 - exact)),
        "codes": np.zeros((2, 1000 - exact), int),
        "keys": np.ones(1000 - exact, np.uint64),
    }
    SurveyRecords(**fewer, total=1000)  # type: ignore[arg-type]
    for total in (1000, int(1000 / (1 - room)), int(np.ceil(1000 / (1 + room)))):
        SurveyRecords(**records, total=total)  # type: ignore[arg-type]
    for total in (int(1000 / (1 - room)) + 1, int(np.ceil(1000 / (1 + room))) - 1):
        with pytest.raises(InputError, match="do not sum"):
            SurveyRecords(**records, total=total)  # type: ignore[arg-type]


@pytest.mark.parametrize("decimals", [0, 2])
@pytest.mark.parametrize("total", [None, 600])
@pytest.mark.parametrize("classes", [(), ("area",), ("area", "sex")])
def test_a_class_shares_its_mean_weight_and_its_values_with_keyed_noise(
    decimals: int, total: int | None, classes: tuple[str, ...]
) -> None:
    """A private name derives the secret of the draws, which no caller sees."""
    records = surveyed(measures=True)
    if total is not None:
        scale = total / records.design.weights.sum()
        design = replace(records.design, weights=records.design.weights * scale)
        records = replace(records, design=design, total=total)
    made = counted(records)
    spec = ProtectedSurvey(5, 0.04, classes, classes[::-1], decimals)
    found = spec.with_counts(records, made, KEY)
    codes, shown = made.cells.codes, made.cells.counts
    rows = np.repeat(np.arange(len(shown)), shown)
    secret, keys = _derived(KEY, "survey"), records.keys[records.order]

    def grouped(names: tuple[str, ...]) -> tuple[Any, Any, int]:
        order = [("sex", "area").index(name) for name in names or ("sex", "area")]
        group = weight_classes(codes, shown, order, 5)
        of_record = classes_of(codes, group, order, records.codes[:, records.order])
        return group, of_record, int(group.max()) + 1

    group, of_record, count = grouped(classes)
    limited = limited_weights(of_record, records.design.weights[records.order], count, 5)
    mean = filled_means(of_record, limited, count, 5)
    noise = class_noise(secret, "weights", of_record, keys, count)
    wanted = (mean * (1 + 0.04 * noise))[group[rows]]
    if total is not None:
        wanted = wanted * (total / wanted.sum())
    assert found.weights.tolist() == np.maximum(np.rint(wanted * 10**decimals), 1).tolist()
    assert found.codes.tolist() == codes[:, rows].tolist()
    assert found.classes.tolist() == group[rows].tolist()
    spread = float(np.sqrt(np.mean((limited / mean[of_record] - 1) ** 2)))
    assert found.weight_spread == coarse_share(spread, KEY, "spread of weights")
    assert found.weight_noise == found.value_noise == 0.04
    assert found.count_errors == {1: 0.5, 2: 1.0}
    assert found.decimals == decimals
    group, of_record, count = grouped(classes[::-1])
    assert set(found.values) == {"income", "age"}
    for name, values in found.values.items():
        noise = class_noise(secret, f"measure {name}", of_record, keys, count)
        true = records.measures[name][records.order]
        held, apart = shared_values(of_record, true, count, 5, 0.04 * noise)
        assert values.tolist() == held[group[rows]].tolist()
        assert found.value_spreads[name] == coarse_error(apart, KEY, f"spread of {name}", 0.1)


def test_no_weight_is_below_one_unit() -> None:
    records = surveyed()
    small = replace(records, design=replace(records.design, weights=np.full(60, 0.1)))
    found = ProtectedSurvey(class_size=5).with_counts(small, counted(small), KEY)
    assert (found.weights == 1).all()


@pytest.mark.parametrize("replicates", [False, True])
def test_a_unit_of_the_file_is_made_of_what_it_was_drawn_from(replicates: bool) -> None:
    """Small clusters are joined and large ones are not; numbers have no gaps, and a unit has one stratum."""
    records = surveyed(replicates=replicates)
    strata = np.repeat([0, 1], 30)
    sizes = np.repeat(np.arange(12), [1, 1, 2, 2, 12, 12, 3, 3, 4, 5, 5, 10])
    design = replace(records.design, strata=strata, clusters=sizes)
    records = replace(records, design=design)
    cells = records.cells()
    shown = FinestCells(records.dataset, cells.codes, np.full(len(cells), 90))
    made: Any = SimpleNamespace(cells=shown, public=SimpleNamespace(errors={1: 0.5}))
    found = ProtectedSurvey(class_size=5).with_counts(records, made, KEY)
    units = variance_units(design, 5, np.random.default_rng(list(_derived(KEY, "survey"))))
    joined = np.bincount(units.of_cluster)
    assert len(set(joined.tolist())) > 1
    assert np.bincount(found.clusters).min() > 0
    assert sorted(set(found.strata.tolist())) == list(range(int(units.strata.max()) + 1))
    for cluster in range(int(found.clusters.max()) + 1):
        assert len(set(found.strata[found.clusters == cluster].tolist())) == 1
    if records.replicates is None:
        assert found.replicates is None
        assert sorted(found.joined.tolist()) == sorted(joined.tolist())
    else:
        assert found.joined is None
        wanted = unit_factors(design, units, records.replicates)
        assert sorted(found.replicates.factors.tolist()) == sorted(wanted.factors.tolist())
        assert found.replicates.scale == wanted.scale


def test_no_number_of_a_stratum_or_unit_reveals_its_place() -> None:
    """Under twenty keys the first unit and the first stratum of the sample get several numbers."""
    place = np.arange(400)
    area = place % 2
    records = SurveyRecords(
        described(),
        np.stack([np.zeros(400, int), area]),
        Design(np.ones(400), place // 200, place // 50),
        place.astype(np.uint64) + np.uint64(1),
    )
    cells = FinestCells(records.dataset, records.cells().codes, np.array([600, 600]))
    made: Any = SimpleNamespace(cells=cells, public=SimpleNamespace(errors={1: 0.5}))
    strata_first, ascending = set(), 0
    for number in range(20):
        found = ProtectedSurvey(class_size=5).with_counts(records, made, b"%016d" % number)
        assert found.clusters.max() == 7
        # Units of a stratum stand next to each other in the sample; numbers do not say so.
        stratum_of = [int(found.strata[found.clusters == unit][0]) for unit in range(8)]
        strata_first.add(stratum_of[0])
        ascending += stratum_of == sorted(stratum_of) or stratum_of == sorted(stratum_of)[::-1]
    assert strata_first == {0, 1}
    assert ascending < 5


def test_people_who_were_drawn_one_by_one_are_clusters_of_one() -> None:
    records = surveyed(clusters=False)
    made = counted(records)
    found = ProtectedSurvey(class_size=5).with_counts(records, made, KEY)
    assert found.clusters.tolist() == list(range(int(made.cells.counts.sum())))
    assert found.joined is None
    assert found.replicates is None
    copied = ProtectedSurvey(class_size=5).with_counts(
        surveyed(clusters=False, replicates=True), made, KEY
    )
    assert copied.replicates is not None
    assert copied.clusters.max() < copied.clusters.size - 1


def test_about_half_take_their_unit_from_the_whole_stratum() -> None:
    """Two classes that share no cluster: a quarter of each unit comes from the other class."""
    place = np.arange(400)
    area = place % 2
    records = SurveyRecords(
        described(),
        np.stack([np.zeros(400, int), area]),
        Design(np.ones(400), None, area + 2 * (place % 20 >= 10)),
        place.astype(np.uint64) + np.uint64(1),
    )
    cells = FinestCells(records.dataset, records.cells().codes, np.array([600, 600]))
    made: Any = SimpleNamespace(cells=cells, public=SimpleNamespace(errors={1: 0.5}))
    found = ProtectedSurvey(class_size=5).with_counts(records, made, KEY)
    assert found.clusters.max() == 3
    for cluster in range(4):
        share = float(found.codes[1, found.clusters == cluster].mean())
        # Five standard errors of a share of a quarter among 300 are 0.125.
        assert 0.125 < min(share, 1 - share) < 0.375


def test_strata_of_a_class_of_few_records_are_those_of_anybody() -> None:
    """Four records of a class stand in one of two strata; the file does not tell in which."""
    place = np.arange(800)
    area = (place < 4).astype(np.int64)
    records = SurveyRecords(
        described(),
        np.stack([np.zeros(800, int), area]),
        Design(np.ones(800), (place >= 400).astype(np.int64), place),
        place.astype(np.uint64) + np.uint64(1),
    )
    codes = records.cells().codes
    few = codes[1] == 1
    cells = FinestCells(records.dataset, codes, np.where(few, 200, 400))
    made: Any = SimpleNamespace(cells=cells, public=SimpleNamespace(errors={1: 0.5}))
    found = ProtectedSurvey(class_size=20).with_counts(records, made, KEY)
    mine = found.strata[found.codes[1] == 1]
    assert mine.size == 200
    # A fifth of the class itself and half of the rest stand in the first stratum: 120; six errors are 42.
    assert abs(int(np.bincount(mine, minlength=2).max()) - 120) < 42


class Population:
    """A population that notes what it is given."""

    def protect(self, cells: FinestCells, key: bytes, *, progress: Any = None) -> Any:
        self.given = (cells, key, progress)
        return SimpleNamespace(
            cells=FinestCells(cells.dataset, cells.codes, np.full(len(cells), 9)),
            public=SimpleNamespace(errors={1: 0.5}),
        )


def test_counts_come_from_a_population_with_a_key_of_its_own() -> None:
    records, population = surveyed(), Population()

    def progress(what: str, part: float) -> None:
        """Say nothing."""

    found, made = ProtectedSurvey(class_size=5).protect(records, population, KEY, progress=progress)  # type: ignore[arg-type]
    cells, key, told = population.given
    assert cells.counts.tolist() == records.cells().counts.tolist()
    assert key == _derived(KEY, "population") != _derived(KEY, "survey")
    assert told is progress
    assert len(found) == made.cells.counts.sum()
    again = ProtectedSurvey(class_size=5).with_counts(records, made, KEY)
    assert again.weights.tolist() == found.weights.tolist()


@pytest.mark.parametrize(
    ("words", "key", "sentence"),
    [
        ({}, KEY[:15], "at least 16 bytes"),
        (
            {"classes": ("sex", "sex")},
            KEY,
            "'classes' of a protected survey names a variable twice",
        ),
        ({"measure_classes": ("sex", "sex")}, KEY, "'measure_classes' of a protected survey names"),
        ({"classes": ("age",)}, KEY, "there is no variable 'age'"),
        ({"noise": 0.0}, KEY, "noise"),
        ({"decimals": -1}, KEY, "decimals"),
    ],
)
def test_words_that_do_not_fit_are_refused(
    words: dict[str, Any], key: bytes, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        ProtectedSurvey(class_size=5, **words).protect(surveyed(), Population(), key)  # type: ignore[arg-type]
    ProtectedSurvey(class_size=5).protect(surveyed(), Population(), KEY[:16])  # type: ignore[arg-type]
