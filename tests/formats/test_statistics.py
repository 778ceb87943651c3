"""Files of several statistics: units, decimals, and no number where there is none."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import openpyxl
import pytest

from lustrum.formats.csv import Csv
from lustrum.formats.jsonstat import JsonStat
from lustrum.formats.xlsx import Xlsx
from lustrum.model import Category, DescribedStatistic, Release, TableAxis


@pytest.fixture
def release() -> Release:
    """Two regions by a count, a sum with one decimal and a mean with two; one is hidden, one does not exist."""
    return Release(
        axes=(
            TableAxis.plain("region", ["n", "s"], ["North", "South"]),
            TableAxis(
                "statistic",
                "Statistic",
                tuple(
                    Category(code, label, (i,))
                    for i, (code, label) in enumerate(
                        [("count", "Firms"), ("sum:t", "Turnover (euro)"), ("mean:t", "Mean")]
                    )
                ),
            ),
        ),
        published=np.array([[300, 12345670, -333], [0, 0, 0]]),
        status=np.array([["F", "F", "F"], ["F", "O", "F"]]),
        low=np.array([[200, 12345000, -(2**62)], [0, 0, 0]]),
        high=np.array([[400, 12346000, 2**62], [0, 100, 0]]),
        method={"method": "x"},
        decimals=2,
        undefined=np.array([[False] * 3, [False, False, True]]),
        statistics=(
            DescribedStatistic("count", "Firms", "firms", 0),
            DescribedStatistic("sum:t", "Turnover", "euro", 1),
            DescribedStatistic("mean:t", "Mean", "euro", 2),
        ),
        label="Statistic",
        additive=False,
    )


def test_csv_has_a_column_for_the_statistic_and_one_for_its_unit(release: Release) -> None:
    rows = list(csv.DictReader(io.StringIO(Csv().write(release))))
    assert [(r["statistic"], r["value"], r["unit"], r["status"]) for r in rows] == [
        ("count", "3", "firms", "F"),
        ("sum:t", "123456.7", "euro", "F"),
        ("mean:t", "-3.33", "euro", "F"),
        ("count", "0", "firms", "F"),
        ("sum:t", "", "euro", "O"),
        ("mean:t", "", "euro", "F"),
    ]


def test_json_stat_has_a_dimension_of_metrics_with_units_and_decimals(release: Release) -> None:
    found = json.loads(JsonStat().write(release))
    assert found["role"] == {"metric": ["statistic"]}
    assert found["dimension"]["statistic"]["category"]["unit"] == {
        "count": {"label": "firms", "decimals": 0},
        "sum:t": {"label": "euro", "decimals": 1},
        "mean:t": {"label": "euro", "decimals": 2},
    }
    assert found["value"] == [3, 123456.7, -3.33, 0, None, None]
    assert isinstance(found["value"][0], int)
    assert found["status"] == ["F", "F", "F", "F", "O", "F"]


def test_a_workbook_writes_each_statistic_with_its_own_decimals(release: Release) -> None:
    book = openpyxl.load_workbook(io.BytesIO(Xlsx().write(release, "Firms")))
    table = book["Table"]
    rows = [[cell.value for cell in row] for row in table.iter_rows()]
    north = next(row for row in rows if row[0] == "North")
    south = next(row for row in rows if row[0] == "South")
    assert north[1:4] == [3, 123456.7, -3.33]
    assert south[1:4] == [0, "O", "\u2013"]
    place = next(row for row in table.iter_rows() if row[0].value == "North")
    assert [cell.number_format for cell in place[1:4]] == ["#,##0", "#,##0.0", "#,##0.00"]
    cells = list(book["Cells"].iter_rows(values_only=True))
    assert cells[0][-1] == "unit"
    assert cells[2][4:] == (123456.7, "F", 123450, 123460, "euro")
    assert cells[3][6:8] == (None, None)
    notes = [row[1] for row in book["Notes"].iter_rows(values_only=True)]
    assert "Turnover; unit: euro" in notes


def test_a_part_of_the_statistics_keeps_their_words(release: Release) -> None:
    part = release.take([[0, 1], [2, 0]])
    assert [s.code for s in part.statistics] == ["mean:t", "count"]
    assert part.known.tolist() == [[True, True], [False, True]]
