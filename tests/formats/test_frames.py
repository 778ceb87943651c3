"""Frames of tables, releases and decisions: hidden is missing, numbers are numbers, a refusal tells why."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lustrum as lu
from lustrum.model import (
    Axis,
    Decision,
    InputError,
    Reason,
    Release,
    Table,
    TableAxis,
    TableQuery,
    Verdict,
)
from lustrum.model.release import DescribedStatistic
from lustrum.publish.frames import suppress

RNG = np.random.default_rng(3)
FIRMS = pd.DataFrame(
    {
        "nace": RNG.choice(["C10", "C11", "D1"], 60),
        "area": RNG.choice(["n", "s", "w"], 60),
        "turnover": np.round(RNG.lognormal(4, 1.6, 60), 2),
    }
)
AXES = (
    TableAxis("age", "Age", TableAxis.plain("age", ["1", "2"], ["Young", "Old"]).categories),
    TableAxis("what", "", TableAxis.plain("what", ["n", "mean"], ["Persons", "Mean"]).categories),
)
STATISTICS = Release(
    axes=AXES,
    published=np.array([[7000, 1250], [-(2**62), 0]]),
    status=np.array([["F", "F"], ["N", "F"]]),
    method={"method": "cell-key"},
    low=np.array([[6000, 1000], [0, 0]]),
    high=np.array([[8000, 1500], [2**62, 0]]),
    decimals=3,
    statistics=(DescribedStatistic("n", "Persons", "", 0), DescribedStatistic("mean", "Mean", "€", 2)),
    undefined=np.array([[False, False], [False, True]]),
    errors=np.array([[100, 30], [100, -1]]),
    grades=np.array([["reliable", "caution"], ["reliable", ""]]),
    label="Figures",
)  # fmt: skip


@cache
def sums() -> Release:
    """Turnover with hidden cells; made when it is first needed, not while tests are collected."""
    return suppress(FIRMS, ["nace", "area"], {"rule": "p-percent", "p": 15}, measure="turnover")


def forms(item: Any, **words: bool) -> list[list[dict[str, Any]]]:
    """The rows of the same frame by way of pandas, polars and Arrow, gaps as None."""
    by_pandas = item.to_pandas(**words)
    rows = [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in by_pandas.reset_index(drop=not words.get("wide")).to_dict("records")
    ]
    return [rows, item.to_polars(**words).to_dicts(), item.to_arrow(**words).to_pylist()]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("item", [sums, lambda: STATISTICS], ids=["sums", "statistics"])
def test_pandas_polars_and_arrow_get_the_same_cells(
    item: Callable[[], Release], labels: bool, wide: bool
) -> None:
    first, second, third = forms(item(), labels=labels, wide=wide)
    assert first == second == third


@pytest.mark.parametrize("wide", [False, True])
def test_what_is_hidden_is_missing_and_never_a_number_that_stands_for_it(wide: bool) -> None:
    assert not sums().shown.all()
    for item in (sums(), STATISTICS):
        for rows in forms(item, wide=wide):
            numbers = [v for row in rows for v in row.values() if isinstance(v, (int, float))]
            assert max(map(abs, numbers)) < 2**60
            missing = [v for row in rows for k, v in row.items() if v is None and k != "high"]
            assert len(missing) >= (~item.shown).sum()
        assert str(2**62) not in item._repr_html_().replace(",", "")
    values = sums().to_pandas().value
    assert values.isna().tolist() == (~sums().shown).ravel().tolist()


def test_sums_are_floating_point_numbers_and_counts_stay_whole() -> None:
    frame = sums().to_pandas()
    assert frame.value.dtype == "Float64"
    assert not any(isinstance(v, Decimal) for v in sums().to_arrow()["value"].to_pylist())
    shown = sums().published[sums().shown] / 100
    assert frame.value.dropna().tolist() == shown.tolist()
    counts = lu.protect.ConventionalRounding(base=5).apply(Table.from_counts([[8, 3], [4, 9]]))
    assert counts.to_pandas().value.dtype == "Int64"
    assert counts.to_pandas(wide=True)["1"].tolist() == [10, 5]


def test_codes_labels_bounds_units_and_standard_errors_are_kept() -> None:
    rows = STATISTICS.to_polars().to_dicts()
    assert rows[0] == {
        "age": "1", "age_label": "Young", "what": "n", "what_label": "Persons", "value": 7.0,
        "unit": "", "status": "F", "low": 6.0, "high": 8.0, "standard_error": 0.0,
        "reliability": "reliable",
    }  # fmt: skip
    assert rows[1]["value"] == 1.25
    assert rows[1]["unit"] == "€"
    assert (rows[1]["standard_error"], rows[1]["reliability"]) == (0.03, "caution")
    hidden, undefined = rows[2:]
    assert (hidden["value"], hidden["high"], hidden["status"]) == (None, None, "N")
    assert hidden["standard_error"] is None
    assert hidden["reliability"] is None
    assert (undefined["value"], undefined["status"]) == (None, "F")
    wide = STATISTICS.to_pandas(wide=True)
    assert wide.index.tolist() == ["Young", "Old"]
    assert wide.columns.tolist() == ["Persons", "Mean"]
    assert [str(kind) for kind in wide.dtypes] == ["Int64", "Float64"]


def test_three_axes_make_rows_of_two_and_equal_labels_get_their_codes() -> None:
    table = Table.from_counts(np.arange(8).reshape(2, 2, 2), names=["a", "b", "value"])
    frame = table.to_pandas(wide=True)
    assert frame.index.names == ["a", "b"]
    assert frame.loc[("2", "1")].tolist() == [4, 5]
    assert table.to_pandas(labels=False).columns.tolist() == ["a", "b", "value", "value_"]
    axis = TableAxis.plain("x", ["1", "2"], ["same", "same"])
    twins = Table((TableAxis.plain("y", ["p"]), axis), np.array([[3, 4]]))
    assert twins.to_polars(wide=True).columns == ["y", "same (1)", "same (2)"]


def test_tables_of_one_and_of_no_variable_have_frames() -> None:
    one = Table.from_counts([4, 6], names=["a"])
    assert one.to_pandas(wide=True).value.tolist() == [4, 6]
    nobody = Table((), np.array(9))
    assert nobody.to_pandas().value.tolist() == [9]
    assert nobody.to_pandas(wide=True).value.tolist() == [9]
    assert "everybody" in nobody._repr_html_()


def test_a_confidential_table_gives_its_numbers_to_a_frame_and_shows_none_in_a_notebook() -> None:
    table = Table.from_counts([[54321, 2], [3, 98765]], names=["area", "<b>"])
    assert table.to_pandas().value.tolist() == [54321, 2, 3, 98765]
    html = table._repr_html_()
    assert "54321" not in html.replace(",", "")
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_the_page_of_a_release_shows_numbers_gaps_and_notes() -> None:
    html = sums()._repr_html_()
    assert html.count("×</span>") == (~sums().shown).sum()
    assert all(str(note) in html for note in sums().notes)
    shown = sums().published[sums().shown].max() / 100
    assert f"{shown:,.2f}" in html
    assert "–</span>" in STATISTICS._repr_html_()
    large = lu.protect.ConventionalRounding(base=5).apply(
        Table.from_counts(np.full((70, 30), 5, dtype=np.int64))
    )
    assert "10 more rows and 10 more columns" in large._repr_html_()


def refusal() -> Decision:
    query = TableQuery("demo", (Axis("age"),))
    return Decision(
        query, Verdict.REFUSAL, (Reason("cells", "Too <many> cells.", "Ask for fewer."),)
    )


def test_a_refusal_tells_why_and_is_never_an_empty_frame() -> None:
    refused = refusal()
    for frame in (refused.to_pandas, refused.to_polars, refused.to_arrow):
        with pytest.raises(InputError, match=r"refused.*Too <many> cells\. Ask for fewer\."):
            frame()
    assert "Too &lt;many&gt; cells. Ask for fewer." in refused._repr_html_()
    answered = replace(refused, verdict=Verdict.PARTIAL, release=sums())
    assert answered.to_pandas().equals(sums().to_pandas())
    assert "Ask for fewer." in answered._repr_html_()


def test_a_wrong_word_is_one_sentence() -> None:
    with pytest.raises(InputError, match="'wide' is True or False, not 'yes'"):
        sums().to_pandas(wide="yes")  # type: ignore[arg-type]


def test_a_frame_imports_only_the_library_that_was_asked_for() -> None:
    code = (
        "import sys; from lustrum.model import Table; t = Table.from_counts([1, 2])\n"
        "before = {'pandas', 'polars', 'pyarrow'} & set(sys.modules)\n"
        "t.to_polars(); print(before, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["set()", "False"]
