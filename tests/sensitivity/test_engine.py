"""From records to sensitive cells, through an engine."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lustrum.model import Axis, Dataset, Measure, Table, TableQuery, Variable, Weight
from lustrum.sensitivity import AnyOf, Background, Dominance, KDisclosure, PPercent, Threshold
from lustrum.tabulate import FrameEngine

FIRMS = pa.table(
    {
        "region": ["N", "N", "N", "N", "S", "S", "S", "S"],
        "branch": ["x", "x", "x", "x", "x", "y", "y", "y"],
        "turnover": [40, 35, 30, 25, 50, 30, 30, 30],
        "weight": ["1.0", "1.5", "2.0", "1.0", "1.0", "1.2", "1.0", "3.5"],
        # In the north one group owns the three largest firms.
        "group": [7, 7, 7, 8, 9, 9, 10, 11],
    }
)


def dataset(holding: str | None) -> Dataset:
    """The firms, each on its own or by group."""
    return Dataset(
        name="firms",
        title="Firms",
        variables=(
            Variable("region", "Region", ("N", "S"), ("North", "South")),
            Variable("branch", "Branch", ("x", "y"), ("X", "Y")),
        ),
        measures=(Measure("turnover", "Turnover", holding=holding),),
        weights=(Weight("weight", "Weight", decimals=1),),
        identifiers=("group",),
    )


def tabulate(holding: str | None, weight: str | None = None, ranks: int = 3) -> Table:
    """Regions and their total."""
    query = TableQuery("firms", (Axis("region", total=True),), measure="turnover", weight=weight)
    return FrameEngine(FIRMS, dataset(holding), workers=1).tabulate(query, ranks=ranks)


def test_records_of_one_holding_count_as_one_contributor() -> None:
    rule = AnyOf(Threshold(3), PPercent(10))
    apart, together = rule.judge(tabulate(None)), rule.judge(tabulate("group"))
    assert apart.status.tolist() == ["F", "F", "F"]
    # The north is two groups, and each can work out the other.
    assert together.status.tolist() == ["A", "F", "F"]
    assert [r.rule for r in together.reasons_at((0,))] == ["threshold", "p-percent"]
    # 10 % of 105, rounded up to a whole unit.
    assert PPercent(10).judge(tabulate("group")).upper.tolist() == [11, 0, 0]


def test_waivers_name_holdings_as_the_data_do() -> None:
    table = tabulate("group")
    assert PPercent(10).judge(table, Background(waived=[7])).mask.tolist() == [True, False, False]
    assert not PPercent(10).judge(table, Background(waived=[7, 8])).mask.any()


def test_holdings_are_merged_over_the_cells_of_a_total() -> None:
    # Group 9 has firms in both branches of the south: 80 of 140.
    table = tabulate("group")
    assert Dominance(1, 57).judge(table).mask.tolist() == [True, True, False]
    assert Dominance(1, 58).judge(table).mask.tolist() == [True, False, False]


def test_weights_with_decimals_go_all_the_way() -> None:
    table = tabulate(None, weight="weight", ranks=4)
    assert table.decimals == 1
    # North: 40, 35, 35/2, 30 ... of a total of 177.5; the two largest are 40 and 35.
    two = (40 + 35) / 177.5 * 100
    assert Dominance(2, two - 0.01).judge(table).mask[0]
    assert not Dominance(2, two + 0.01).judge(table).mask[0]
    # The sample by itself has the same two largest; three differ by half a firm.
    three = (40 + 52.5 + 15) / 177.5 * 100
    sample = (40 + 35 + 30) / 177.5 * 100
    assert Dominance(3, three - 0.01).judge(table).mask[0]
    assert not Dominance(3, three + 0.01).judge(table).mask[0]
    assert Dominance(3, sample - 0.01, weights="sample").judge(table).mask[0]
    assert not Dominance(3, sample + 0.01, weights="sample").judge(table).mask[0]


def test_a_mean_weight_never_makes_a_cell_larger_than_it_is() -> None:
    # One holding has 100 with weight 1 and nothing with weight 9; the mean is 5, the cell still 110.
    frame = pa.table(
        {
            "region": ["N"] * 3,
            "branch": ["x"] * 3,
            "turnover": [100, 0, 10],
            "weight": ["1.0", "9.0", "1.0"],
            "group": [1, 1, 2],
        }
    )
    query = TableQuery("firms", (Axis("region"),), measure="turnover", weight="weight")
    table = FrameEngine(frame, dataset("group"), workers=1).tabulate(query, ranks=2)
    assert Dominance(1, 90).judge(table).mask.tolist() == [True, False]


def test_levels_of_a_weighted_table_are_in_its_own_units() -> None:
    table = tabulate(None, weight="weight", ranks=4)
    found = Dominance(2, 50).judge(table)
    # South: 50 and 30 of 221; safe. North: 75 of 177.5; safe. At 40 percent the north is not.
    assert not found.mask.any()
    found = Dominance(2, 40).judge(table)
    assert found.upper.tolist() == [100, 0, 0]


@pytest.mark.parametrize("totals", [False, True])
def test_counts_of_an_engine_are_judged_along_their_lines(totals: bool) -> None:
    query = TableQuery("firms", (Axis("region", total=totals), Axis("branch", total=totals)))
    table = FrameEngine(FIRMS, dataset(None), workers=1).tabulate(query)
    found = KDisclosure(0).judge(table)
    # All firms of the north are of branch x, all of branch y in the south.
    assert found.mask[:2, :2].tolist() == [[True, False], [False, True]]
    assert not found.mask[2:].any()
    assert not found.mask[:, 2:].any()
