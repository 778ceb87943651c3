"""Frames as people have them: measures, weights, intervals, and columns that no table is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lustrum as lu
from lustrum.model import InputError, Table
from lustrum.publish.frames import table_of_records

RNG = np.random.default_rng(4)
FIRMS = pd.DataFrame(
    {
        "area": RNG.choice(["n", "s"], 80),
        "size": RNG.choice([1, 2, 3], 80),
        "turnover": np.round(RNG.lognormal(3, 1, 80), 2),
        "weight": np.round(RNG.uniform(1, 3, 80), 1),
    }
)


def test_a_measure_is_added_up_with_its_largest_contributions() -> None:
    table = Table.from_frame(FIRMS, by=["area", "size"], measure="turnover", totals=True)
    assert (table.kind, table.decimals) == ("magnitude", 2)
    plain = pd.crosstab(FIRMS.area, FIRMS["size"], FIRMS.turnover, aggfunc="sum", margins=True)
    assert np.allclose(table.values / 100, plain.to_numpy())
    largest = FIRMS[(FIRMS.area == "n") & (FIRMS["size"] == 1)].turnover.nlargest(3)
    assert table.contributions.value[0, 0].tolist() == [round(v * 100) for v in largest]
    assert lu.sensitivity.PPercent(p=10).judge(table).mask.shape == table.shape


@pytest.mark.parametrize("measure", [None, "turnover"])
def test_a_weight_weights_counts_and_sums(measure: str | None) -> None:
    table = Table.from_frame(FIRMS, by=["area"], measure=measure, weight="weight")
    value = FIRMS.weight if measure is None else FIRMS.weight * FIRMS[measure]
    plain = value.groupby(FIRMS.area).sum()
    assert np.allclose(table.values / 10**table.decimals, plain.to_numpy())
    other = table_of_records(
        pl.from_pandas(FIRMS), ["area"], measure=measure, weight="weight", totals=False
    )
    assert np.array_equal(other.values, table.values)
    assert table.contributors.tolist() == FIRMS.area.value_counts().sort_index().tolist()


def test_intervals_of_cut_are_categories_in_their_order() -> None:
    frame = FIRMS.assign(
        band=pd.cut(FIRMS.turnover, [0, 5, 10, 20, 1000]), kind=list(map(str, range(80)))
    )
    table = Table.from_frame(frame, by=["band", "area"])
    assert table.axes[0].codes == ("(0, 5]", "(5, 10]", "(10, 20]", "(20, 1000]")
    plain = pd.crosstab(frame.band, frame.area, dropna=False)
    assert np.array_equal(table.values, plain.to_numpy())
    loose = frame.assign(band=pd.Series(pd.arrays.IntervalArray(frame.band.astype("interval"))))
    assert np.array_equal(Table.from_frame(loose, by=["band", "area"]).values, plain.to_numpy())
    made = lu.crosstab(frame.band, frame.area, policy=lu.protect.ConventionalRounding(base=5))
    assert made.frame.index.tolist() == list(table.axes[0].codes)


def test_a_column_that_is_not_used_may_hold_anything() -> None:
    frame = FIRMS.assign(note=[1, "x"] * 40, thing=[object()] * 80)
    assert Table.from_frame(frame, by=["area"]).values.sum() == 80
    twice = pd.concat([FIRMS, FIRMS[["size"]]], axis=1)
    assert Table.from_frame(twice, by=["area"]).values.sum() == 80
    assert Table.from_frame({"a": ["x", "y"], "b": [1, "z"]}, by=["a"]).values.tolist() == [1, 1]
    release = lu.suppress(frame, ["area"], {"rule": "threshold", "minimum": 3})
    assert release.shown.all()


@pytest.mark.parametrize("by", [["note"], ["size"]])
def test_a_column_that_is_used_is_named_where_it_cannot_be(by: list[str]) -> None:
    frame = pd.concat([FIRMS, FIRMS[["size"]]], axis=1).assign(note=[1, "secret-text"] * 40)
    with pytest.raises(InputError, match=f"{by[0]!r}") as caught:
        Table.from_frame(frame, by=by)
    assert "secret-text" not in str(caught.value)


@pytest.mark.parametrize(
    "where", [{"size": 2}, {"size": [2]}, {"size": "2"}, {"size": np.int64(2)}, {"size": (2,)}]
)
def test_filters_take_values_as_the_column_has_them(where: Any) -> None:
    table = Table.from_frame(FIRMS, by=["area"], where=where)
    assert table.values.sum() == (FIRMS["size"] == 2).sum()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"where": {"size": 2.5}}, "'where' of 'size' names texts or whole numbers"),
        ({"where": {"size": None}}, "'where' of 'size' names texts or whole numbers"),
        ({"where": ["size"]}, "'where' maps columns to values"),
        ({"where": {"size": 9}}, "'9'"),
        ({"measure": "turnovr"}, "did you mean 'turnover'"),
        ({"weight": "area"}, "cannot also span the table"),
        ({"measure": "size", "weight": "nothing"}, "no column 'nothing'"),
    ],
)
def test_every_mistake_about_columns_is_one_sentence(words: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Table.from_frame(FIRMS, by=["area"], **words)
    text = FIRMS.assign(turnover="much")
    with pytest.raises(InputError, match="holds no numbers"):
        Table.from_frame(text, by=["area"], measure="turnover")
    query = lu.TableQuery("frame", (lu.Axis("area"),))
    with pytest.raises(InputError, match="names its own measure"):
        Table.from_frame(pa.Table.from_pandas(FIRMS), query, measure="turnover")
