"""Measures row by row: the same numbers as on the rows alone, and no silent NaN."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.model import InputError, Table
from lustrum.protect import RandomRounding
from lustrum.risk.r1 import R1, r1
from lustrum.risk.r2 import R2, r2
from lustrum.risk.slices import SliceRisk, slice_risks
from lustrum.risk.table_entropy import EntropyRisk
from lustrum.study.sample_tables import AREAS_BY_RELIGION

TABLE = Table.from_counts(AREAS_BY_RELIGION, names=["area", "religion"])


@pytest.mark.parametrize(("along", "axis"), [(["area"], 0), ([1], 1), ("area", 0)])
def test_each_slice_has_the_risk_of_its_own_table(along: list[str | int], axis: int) -> None:
    risks = slice_risks(R1(), TABLE, along)
    rows = AREAS_BY_RELIGION if axis == 0 else AREAS_BY_RELIGION.T
    assert [s.risk for s in risks] == [r1(row) for row in rows]
    assert risks.along == (("area", "religion")[axis],)
    assert [s.codes for s in risks] == [(str(i + 1),) for i in range(len(rows))]
    assert len(risks) == len(rows)


def test_slices_along_two_of_three_axes() -> None:
    cube = np.arange(24).reshape(2, 3, 4)
    found = slice_risks(R1(), cube, [0, 1]).to_mapping()
    assert found["2", "3"] == r1(cube[1, 2])
    assert len(found) == 6


def test_a_slice_of_nobody_is_marked_and_never_nan() -> None:
    risks = slice_risks(R1(), [[0, 0], [3, 1]], [0])
    assert risks.slices[0] == SliceRisk(
        ("1",), None, "The slice has nobody in it; an entropy needs at least one person."
    )
    assert risks.highest == risks.slices[1]
    assert "not measurable" in str(risks)


def test_a_slice_of_one_cell_is_marked() -> None:
    risks = slice_risks(R1(), [[5], [3]], [0])
    assert all(s.risk is None and "two cells" in s.reason for s in risks)
    assert risks.highest is None


def test_a_release_is_cut_like_its_table() -> None:
    release = RandomRounding(base=3).apply(TABLE, np.random.default_rng(1))
    risks = slice_risks(R2(), TABLE, ["area"], release)
    expected = [r2(*rows) for rows in zip(AREAS_BY_RELIGION, release.published, strict=True)]
    assert [s.risk for s in risks] == expected


def test_a_sample_is_cut_like_its_population() -> None:
    sample = AREAS_BY_RELIGION // 20
    risks = slice_risks(R2(), AREAS_BY_RELIGION, [1], sample)
    for column, found in enumerate(risks):
        if sample[:, column].any():
            assert found.risk == r2(AREAS_BY_RELIGION[:, column], sample[:, column])
        else:
            assert found.risk is None
            assert "published table has nobody" in found.reason


def test_other_measures_of_tables_are_welcome() -> None:
    risk = EntropyRisk()
    release = RandomRounding(base=3).apply(TABLE, np.random.default_rng(1))
    before = slice_risks(risk, TABLE, ["area"])
    after = slice_risks(risk, TABLE, ["area"], release)
    assert before.slices[0].risk == risk.before(Table.from_counts(AREAS_BY_RELIGION[:1]))
    assert all(s.risk is not None for s in (*before, *after))


@pytest.mark.parametrize(
    ("along", "words"),
    [
        (["arena"], "did you mean 'area'"),
        ([2], "different axes"),
        (["area", 0], "different axes"),
        ([], "at least one axis"),
        (["area", "religion"], "single cells"),
    ],
)
def test_wrong_axes_are_named(along: list[str | int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        slice_risks(R1(), TABLE, along)


def test_a_release_needs_a_measure_of_releases_and_the_same_shape() -> None:
    with pytest.raises(InputError, match="no risk after"):
        slice_risks(R1(), TABLE, ["area"], AREAS_BY_RELIGION)
    with pytest.raises(InputError, match="different shapes"):
        slice_risks(R2(), TABLE, ["area"], AREAS_BY_RELIGION[:2])
