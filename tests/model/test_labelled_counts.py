"""Counts in pandas frames keep their names and labels, and their margins are totals or are refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import lustrum as lu
from lustrum.model import InputError, Table

RNG = np.random.default_rng(27)
PEOPLE = pd.DataFrame(
    {
        "area": RNG.choice(["north", "south", "west"], 90, p=[0.6, 0.3, 0.1]),
        "faith": RNG.choice(["a", "b", "c", "d"], 90, p=[0.5, 0.3, 0.15, 0.05]),
        "sex": RNG.choice([1, 2], 90),
    }
)


def crossed(margins: bool = True, **words: Any) -> pd.DataFrame:
    return pd.crosstab(PEOPLE.area, PEOPLE.faith, margins=margins, **words)


def counted(area: str, faith: str, sex: str = "_T") -> int:
    own = PEOPLE[
        ((PEOPLE.area == area) | (area == "_T"))
        & ((PEOPLE.faith == faith) | (faith == "_T"))
        & ((PEOPLE.sex.astype(str) == sex) | (sex == "_T"))
    ]
    return len(own)


def test_a_crosstab_with_margins_keeps_names_and_labels_and_its_margins_are_totals() -> None:
    table = Table.from_counts(crossed())
    assert [axis.name for axis in table.axes] == ["area", "faith"]
    assert table.axes[0].codes == ("north", "south", "west", "_T")
    assert table.axes[1].labels == ("a", "b", "c", "d", "All")
    assert table.axes[0].categories[-1].members == (0, 1, 2)
    assert table.inner.tolist() == [[True] * 4 + [False]] * 3 + [[False] * 5]
    for (i, area), (j, faith) in product(*(enumerate(a.codes) for a in table.axes)):
        assert table.values[i, j] == counted(area, faith)


def test_it_is_the_table_that_the_records_give() -> None:
    other = Table.from_frame(PEOPLE, by=["area", "faith"], totals=True)
    table = Table.from_counts(crossed())
    assert np.array_equal(table.values, other.values)
    assert [a.codes for a in table.axes] == [a.codes for a in other.axes]
    assert np.array_equal(table.inner, other.inner)


@pytest.mark.parametrize("rows", [["area", "sex"], ["area"]])
def test_every_level_of_index_and_columns_is_an_axis_with_totals(rows: list[str]) -> None:
    columns = [name for name in ("area", "sex", "faith") if name not in rows]
    frame = pd.crosstab(
        [PEOPLE[n] for n in rows],
        [PEOPLE[n] for n in columns],
        margins=True,
        margins_name="Everybody",
    )
    table = Table.from_counts(frame, margins_name="Everybody")
    names = [axis.name for axis in table.axes]
    assert names == rows + columns
    for cell in product(*(enumerate(axis.codes) for axis in table.axes)):
        chosen = dict(zip(names, (code for _, code in cell), strict=True))
        at = tuple(place for place, _ in cell)
        assert table.values[at] == counted(chosen["area"], chosen["faith"], chosen["sex"])
    assert all(axis.labels[-1] == "Everybody" for axis in table.axes)


def test_a_series_of_counts_is_a_table_where_an_absent_combination_holds_nobody() -> None:
    table = Table.from_counts(PEOPLE.groupby(["area", "faith"]).size())
    assert [axis.name for axis in table.axes] == ["area", "faith"]
    assert table.shape == (3, 4)
    assert table.values.sum() == 90


def test_counts_without_names_get_some_and_arrays_stay_as_they_were() -> None:
    assert [a.name for a in Table.from_counts(pd.DataFrame([[5, 1], [2, 9]])).axes] == ["v1", "v2"]
    assert Table.from_counts([[3, 1], [2, 4]]).axes[0].codes == ("1", "2")
    named = Table.from_counts(crossed(), names=["place", "church"])
    assert [axis.name for axis in named.axes] == ["place", "church"]


def test_intervals_and_missing_labels_are_categories() -> None:
    ages = pd.cut(pd.Series([1, 12, 25, 26, 3, 17, 5]), [0, 10, 20, 30])
    table = Table.from_counts(pd.crosstab(ages.rename("age"), [1, 1, 1, 2, 2, 2, 1], margins=True))
    assert table.axes[0].codes == ("(0, 10]", "(10, 20]", "(20, 30]", "_T")
    gaps = Table.from_counts(pd.Series(["x", None, "x", "y", "x"]).value_counts(dropna=False))
    assert sorted(gaps.axes[0].codes) == ["nan", "x", "y"]


def test_a_row_called_all_that_is_not_the_sum_is_refused() -> None:
    frame = crossed()
    frame.loc["All", "b"] += 1
    with pytest.raises(InputError, match=r"'All' looks like a total but is not the sum"):
        Table.from_counts(frame)
    # It can be a plain category, if the agency says so.
    assert Table.from_counts(frame, margins_name=False).shape == (4, 5)


def test_a_margin_of_another_name_is_refused_until_somebody_says_what_it_is() -> None:
    frame = crossed(margins_name="Gesamt")
    with pytest.raises(InputError, match=r"'Gesamt' of 'area' is the sum of all others"):
        Table.from_counts(frame)
    assert Table.from_counts(frame, margins_name="Gesamt").inner.sum() == 12
    with pytest.raises(InputError, match="No row or column is called 'Sum'"):
        Table.from_counts(frame, margins_name="Sum")
    only = pd.DataFrame({"x": [3, 2], "Alle": [3, 2]}, index=["p", "q"])
    with pytest.raises(InputError, match="is the sum of all others"):
        Table.from_counts(only)


@pytest.mark.parametrize(
    ("frame", "words", "sentence"),
    [
        (PEOPLE, {}, "records are counted by Table.from_frame"),
        (crossed(normalize=True), {}, "a fraction, infinity or NaN"),
        (crossed().astype("Float64").replace(0, pd.NA), {}, "a value is missing"),
        (crossed(), {"codes": [["1"]]}, "leave 'codes' out"),
        (crossed(), {"names": ["one"]}, "2 dimensions but there are 1 names"),
        (crossed(), {"margins_name": 3}, "'margins_name' is the name"),
        (pd.crosstab(PEOPLE.area, PEOPLE.area), {}, "are called 'area'; name all"),
        (pd.Series([1, 2], index=["a", "a"]), {}, "Two rows of the counts have the same label"),
        (pd.Series([1, 2], index=[1, "1"]), {}, "two categories that are written '1'"),
        (pd.Series([5, 5, 9], index=["All", "x", "Total"]), {}, "several categories that look"),
        (pd.Series([5], index=["All"]), {}, "no category that they are the total of"),
        (pd.Series([4, 5], index=["_REST", "x"]), {}, "a code that Lustrum uses itself"),
        (pd.DataFrame(), {}, "no rows or no columns|Counts must be whole"),
        ([[1, 2]], {"margins_name": "All"}, "an array has none"),
    ],
)
def test_what_is_not_certain_is_one_sentence(frame: Any, words: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        Table.from_counts(frame, **words)
    assert str(caught.value).endswith(".")


def ranges(release: lu.Release) -> list[tuple[float, float]]:
    """Of each hidden cell what fits the shown ones: a linear program over the inner cells, of its own."""
    inner = [axis.codes[:-1] for axis in release.axes]
    unseen = list(product(*inner))
    rows, right = [], []
    hidden = []
    for at in np.ndindex(*release.shape):
        codes = [axis.codes[i] for axis, i in zip(release.axes, at, strict=True)]
        parts = [
            float(all(c in ("_T", own) for c, own in zip(codes, cell, strict=True)))
            for cell in unseen
        ]
        if release.status[at] == "F":
            rows.append(parts)
            right.append(float(release.published[at]))
        else:
            hidden.append(parts)
    found = []
    for parts in hidden:
        least, most = (
            linprog(sign * np.array(parts), A_eq=rows or None, b_eq=right or None, method="highs")
            for sign in (1.0, -1.0)
        )
        assert least.status == 0
        found.append((least.fun, np.inf if most.status == 3 else -most.fun))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_no_suppressed_cell_of_a_crosstab_with_margins_follows_by_subtraction(seed: int) -> None:
    rng = np.random.default_rng(seed)
    people = pd.DataFrame(
        {"area": rng.choice(list("nswe"), 70), "job": rng.choice(list("abcd"), 70)}
    )
    frame = pd.crosstab(people.area, people.job, margins=True)
    release = lu.protect.Suppression(rule={"rule": "threshold", "minimum": 4}).apply(
        Table.from_counts(frame)
    )
    small = (frame.to_numpy() < 4) & (frame.to_numpy() > 0)
    assert small.any()
    assert not release.shown[small].any()
    for low, high in ranges(release):
        assert high - low > 0.5
