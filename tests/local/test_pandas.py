"""What a protected cross tabulation shows is what pandas computes; what it hides is missing there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lustrum as lu
from lustrum.local import ProtectedTable
from lustrum.model import Dataset, InputError
from lustrum.sensitivity import Threshold
from lustrum.tabulate import Secret

KINDS = st.tuples(
    st.sampled_from(["count", "weighted", "sum", "mean"]),
    st.booleans(),
    st.sampled_from([False, "all", "index", "columns"]),
    st.sampled_from([1, 4]),
)


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    count = draw(st.integers(1, 40))
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    order = draw(st.permutations(["low", "mid", "high"]))
    return pd.DataFrame(
        {
            "area": seed.choice(list("nsw"), count),
            "size": pd.Categorical(seed.choice(["low", "mid", "high"], count), order, ordered=True),
            "income": seed.integers(0, 500, count) / 4,
            "weight": seed.integers(1, 9, count) / 2,
        }
    )


@given(frame=frames(), kind=KINDS)
def test_what_is_shown_is_what_pandas_computes(
    frame: pd.DataFrame, kind: tuple[str, bool, Any, int]
) -> None:
    what, margins, normalize, minimum = kind
    normalize = False if what == "mean" else normalize
    words: dict[str, Any] = {}
    if what in ("sum", "mean"):
        words = {"values": frame["income"], "aggfunc": what}
    usual = words or ({"values": frame["weight"], "aggfunc": "sum"} if what == "weighted" else {})
    made = lu.crosstab(
        frame["area"],
        frame["size"],
        margins=margins,
        normalize=normalize,
        policy=lu.protect.Suppression(rule=Threshold(minimum)),
        **({"weights": frame["weight"]} if what == "weighted" else words),
    ).frame
    theirs = pd.crosstab(
        frame["area"], frame["size"], margins=margins, normalize=normalize, dropna=False, **usual
    ).reindex(index=made.index, columns=made.columns)
    people = pd.crosstab(frame["area"], frame["size"], margins=margins, dropna=False)
    people = people.reindex(index=made.index, columns=made.columns, fill_value=0).to_numpy()
    shown = made.notna().to_numpy()
    ours, plain = made.to_numpy(float, na_value=np.nan), theirs.to_numpy(float, na_value=np.nan)
    assert not shown[(people > 0) & (people < minimum)].any()
    # What nobody is in has no mean, and pandas shows nothing or 0 of it.
    there = shown & (people > 0)
    assert np.allclose(ours[there], plain[there], atol=0.006 if what == "mean" else 1e-9)
    assert (ours[shown & ~there] == 0).all()
    if minimum == 1 and not normalize:
        assert shown[people > 0].all()


def test_shares_are_missing_where_a_whole_would_give_a_hidden_cell_away() -> None:
    frame = pd.DataFrame(
        {"area": ["n"] * 9 + ["s"] * 10, "job": (["a"] * 8 + ["b"]) + ["a", "b"] * 5}
    )
    rule = lu.protect.Suppression(rule=Threshold(3))
    shares = lu.crosstab(frame.area, frame.job, normalize="index", policy=rule).frame
    assert shares.loc["n"].isna().all()
    assert shares.loc["s"].tolist() == [0.5, 0.5]


CENSUS = Dataset.from_mapping(
    {
        "dataset": {"name": "census", "title": "Census"},
        "variables": [
            {
                "name": "age",
                "label": "Age",
                "codes": [[str(k), f"{k} years"] for k in range(40)],
                "hierarchies": [
                    {
                        "name": "groups",
                        "levels": [
                            {
                                "name": "ten-year",
                                "label": "Ten years",
                                "groups": [
                                    {
                                        "code": f"{10 * k}-{10 * k + 9}",
                                        "label": f"{10 * k} to {10 * k + 9}",
                                        "members": [str(10 * k + i) for i in range(10)],
                                    }
                                    for k in range(4)
                                ],
                            }
                        ],
                    }
                ],
            },
            {"name": "sex", "label": "Sex", "codes": ["1", "2"]},
        ],
    }
)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_a_level_of_a_described_column_spans_every_table_of_a_frame(kind: Any) -> None:
    rng = np.random.default_rng(5)
    age, sex = rng.integers(0, 40, 4000), rng.choice([1, 2], 4000)
    frame = kind({"age": age, "sex": sex})
    plain = pd.crosstab(age // 10, sex).to_numpy()
    by = ["age:ten-year", "sex"]
    table = lu.Table.from_frame(frame, by=by, dataset=CENSUS)
    assert table.values.tolist() == plain.tolist()
    assert table.axes[0].labels[1] == "10 to 19"
    words: dict[str, Any] = {"policy": lu.protect.Suppression(rule=Threshold(2)), "dataset": CENSUS}
    ways = [
        lu.pivot_table(frame, index="age:ten-year", columns="sex", **words),
        lu.crosstab(frame["age"], frame["sex"], rownames=["age:ten-year"], **words),
        lu.crosstab(
            frame["age"],
            frame["sex"],
            rownames=["age:ten-year"],
            dataset=CENSUS,
            policy="keyed-rounding",
            secret=Secret(bytes(32)),
        ),
    ]
    for made in ways:
        assert isinstance(made, ProtectedTable)
        assert list(made.frame.index) == ["0 to 9", "10 to 19", "20 to 29", "30 to 39"]
        assert made.frame.index.name == "age"
    assert ways[0].frame.to_numpy().tolist() == ways[1].frame.to_numpy().tolist() == plain.tolist()
    release = lu.suppress(frame, by=by, rule=Threshold(2), dataset=CENSUS, totals=False)
    assert release.published.tolist() == plain.tolist()


def test_a_level_that_nobody_described_is_one_sentence() -> None:
    frame = pd.DataFrame({"age": [1, 2, 3], "sex": [1, 1, 2]})
    for call in (
        lambda: lu.Table.from_frame(pl.from_pandas(frame), by=["age:ten-year"]),
        lambda: lu.pivot_table(frame, index="age:ten-year", policy=lu.protect.Suppression()),
        lambda: lu.suppress(frame, by=["age:ten-year"], rule=Threshold(2)),
    ):
        with pytest.raises(lu.LustrumError, match="the level 'ten-year' of 'age'"):
            call()
    with pytest.raises(lu.LustrumError, match="has no level 'decade'"):
        lu.suppress(frame, by=["age:decade"], rule=Threshold(2), dataset=CENSUS)
    with pytest.raises(InputError, match="names a column twice"):
        lu.suppress(frame, by=["age:ten-year", "age"], rule=Threshold(2), dataset=CENSUS)
    with pytest.raises(InputError, match="'dataset' is a lustrum Dataset"):
        lu.pivot_table(frame, index="age", policy=lu.protect.Suppression(), dataset="census")  # type: ignore[arg-type]
