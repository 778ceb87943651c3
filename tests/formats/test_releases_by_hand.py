"""Tables of files as releases and as confidential tables: what is known of each cell, and nothing more."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from lustrum.model import InputError, Release, Table
from lustrum.numeric.structure import UNBOUNDED
from lustrum.readers import (
    ColumnNames,
    TableFile,
    confidential_table,
    recognise,
    releases_of,
    table_of_csv,
)


def read(*rows: str, head: str = "area,value,status") -> TableFile:
    return table_of_csv("\n".join([head, *rows]) + "\n", "t.csv")


HIDDEN = read("n,3,F", "s,,D", "t,2,F", "Total,9,F")


def ends(release: Release) -> list[tuple[int, int]]:
    assert release.low is not None
    assert release.high is not None
    return list(zip(release.low.tolist(), release.high.tolist(), strict=True))


FINE = ColumnNames(values=("value", "pay"))


def of(file: TableFile, **words: Any) -> Release:
    (release,) = releases_of([replace(file, **words)], recognise([file]))
    return release


def test_without_stated_bounds_a_release_has_none() -> None:
    found = of(HIDDEN)
    assert found.low is found.high is None
    assert found.status.tolist() == ["F", "D", "F", "F"]
    nothing = {"value": ((None, None),) * 4}
    assert of(HIDDEN, bounds=nothing).low is None


def test_a_hidden_cell_has_the_bounds_that_are_stated_for_it() -> None:
    """Values are not negative unless something says so."""
    none = (None, None)
    stated = {"value": (none, (Decimal(1), Decimal(6)), (Decimal(0), Decimal(9)), none)}
    # What is stated of a cell that is shown adds nothing.
    assert ends(of(HIDDEN, bounds=stated)) == [(3, 3), (1, 6), (2, 2), (9, 9)]
    upper = {"value": (none, (None, Decimal(6)), none, none)}
    assert ends(of(HIDDEN, bounds=upper))[1] == (0, 6)
    lower = {"value": (none, (Decimal(2), None), none, none)}
    assert ends(of(HIDDEN, bounds=lower))[1] == (2, UNBOUNDED)


def test_values_that_can_be_negative_leave_hidden_cells_open_below() -> None:
    assert ends(of(HIDDEN, signed=True))[1] == (-UNBOUNDED, UNBOUNDED)
    none = (None, None)
    upper = {"value": (none, (None, Decimal(6)), none, none)}
    assert ends(of(HIDDEN, bounds=upper, signed=True))[1] == (-UNBOUNDED, 6)
    negative = read("n,-3,F", "s,,D", "t,2,F", "Total,9,F")
    assert ends(of(negative, bounds=upper))[1] == (-UNBOUNDED, 6)
    zero = read("n,0,F", "s,,D", "t,2,F", "Total,9,F")
    assert ends(of(zero, bounds=upper))[1] == (0, 6)


def test_an_interval_of_columns_and_a_stated_bound_both_hold() -> None:
    none = Decimal(3), Decimal(3)
    interval = (
        (none[0], Decimal(-5), Decimal(2), Decimal(9)),
        (none[1], Decimal(8), Decimal(2), Decimal(9)),
    )
    assert ends(of(HIDDEN, interval=interval))[1] == (-5, 8)
    empty: tuple[Any, Any] = (None, None)
    stated = {"value": (empty, (Decimal(1), Decimal(20)), empty, empty)}
    assert ends(of(HIDDEN, interval=interval, bounds=stated))[1] == (1, 8)
    open_ended = ((None,) * 4, (None, Decimal(8), None, None))
    assert ends(of(HIDDEN, interval=open_ended))[1] == (0, 8)
    assert ends(of(HIDDEN, interval=open_ended, signed=True))[1] == (-UNBOUNDED, 8)
    # Once an interval reaches below 0, hidden values can be negative.
    for below in (
        ((Decimal(-1), None, None, None), (None, Decimal(8), None, None)),
        ((None,) * 4, (Decimal(-1), Decimal(8), None, None)),
    ):
        assert ends(of(HIDDEN, interval=below))[1] == (-UNBOUNDED, 8)


def test_an_end_of_zero_says_nothing_of_negative_values() -> None:
    none = (None,) * 4
    zero = (None, Decimal(0), None, None)
    assert ends(of(HIDDEN, interval=(none, zero)))[1] == (0, 0)
    assert ends(of(HIDDEN, interval=(none, (None, Decimal(-1), None, None))))[1] == (-UNBOUNDED, -1)


def test_what_was_recognised_already_is_not_looked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = recognise([HIDDEN])

    def again(files: Any) -> Any:
        raise AssertionError(files)

    monkeypatch.setattr("lustrum.readers.releases.recognise", again)
    (release,) = releases_of([HIDDEN], found)
    assert release.published[0] == 3


def test_tables_are_in_the_unit_of_the_finest_and_of_the_response_that_is_asked_for() -> None:
    head = "area,value,pay"
    fine = table_of_csv(f"{head}\nn,1,2.25\ns,2,3\nTotal,3,5.25\n", "a.csv", FINE)
    coarse = read("n,3,F", "s,5,F", "Total,8,F")
    found = releases_of([fine, coarse], recognise([fine, coarse]), ["pay", "value"])
    assert [one.decimals for one in found] == [2, 2]
    assert found[0].published.tolist() == [225, 300, 525]
    assert found[1].published.tolist() == [300, 500, 800]
    assert releases_of([fine], recognise([fine]))[0].published.tolist() == [100, 200, 300]
    assert releases_of([]) == []


def confidential(file: TableFile, **how: Any) -> Table:
    return confidential_table(file, recognise([file]), **how)


def test_counts_are_their_own_contributors_and_other_numbers_have_none() -> None:
    counts = confidential(read("n,3", "s,5", "Total,8", head="area,value"))
    assert (counts.kind, counts.decimals) == ("count", 0)
    assert counts.contributors is not None
    assert counts.contributors.tolist() == [3, 5, 8]
    assert dict(counts.provenance) == {"source": "t.csv"}
    empty = confidential(read("n,0", "s,5", "Total,5", head="area,value"))
    assert empty.kind == "count"  # nobody is a number of people
    for rows in (["n,3.5", "s,5", "Total,8.5"], ["n,-3", "s,5", "Total,2"]):
        table = confidential(read(*rows, head="area,value"))
        assert table.kind == "magnitude"
        assert table.contributors is None
    assert confidential(read("n,3.5", "s,5", "Total,8.5", head="area,value")).decimals == 1


def test_a_response_is_taken_by_its_name() -> None:
    fine = table_of_csv("area,value,pay\nn,1,2\ns,2,3\nTotal,3,5\n", "a.csv", FINE)
    assert confidential(fine).values.tolist() == [1, 2, 3]
    assert confidential(fine, response="pay").values.tolist() == [2, 3, 5]


def test_contributions_are_kept_with_numbers_of_holdings() -> None:
    only_count = read("n,30,4", "s,50,5", "Total,80,9", head="area,value,n")
    table = confidential(only_count)
    assert table.kind == "magnitude"
    assert table.contributors is not None
    assert table.contributors.tolist() == [4, 5, 9]
    head = "area,value,n,x1,h1"
    named = read("n,30,4,20,a", "s,50,5,30,b", "Total,80,9,30,b", head=head)
    seen: list[str] = []

    def number(name: str) -> int:
        seen.append(name)
        return ord(name)

    assert confidential(named, holding_number=number).contributions is not None
    assert set(seen) == {"a", "b"}


@pytest.mark.parametrize(
    ("blank", "cells"), [(1, "1 cell has"), (2, "2 cells have")], ids=["one", "two"]
)
def test_blank_contributions_are_taken_to_be_as_large_as_they_can_be(
    blank: int, cells: str
) -> None:
    rows = ["n,30,4,20", "s,50,5,", "Total,80,9,30"]
    if blank == 2:
        rows[0] = "n,30,4,"
    table = confidential(read(*rows, head="area,value,n,x1"))
    line = "line 3" if blank == 1 else "line 2"
    assert table.provenance["assumed"].startswith(
        f"t.csv: {cells} blank contributions (first: {line});"
    )


def test_contributors_of_a_total_are_those_of_its_parts() -> None:
    with pytest.raises(InputError, match="number of contributors of a total"):
        confidential(read("n,30,4", "s,50,5", "Total,80,10", head="area,value,n"))
    head = "area,value,n,x1"
    less = ["n,0,4,0", "s,80,5,30", "Total,80,9,20"]
    with pytest.raises(InputError, match="largest contribution to a total"):
        confidential(read(*less, head=head))
    # What some add others may take away again, where values can be negative.
    mixed = ["n,-10,4,20", "s,80,5,30", "Total,70,9,25"]
    assert confidential(read(*mixed, head=head)).values.tolist() == [-10, 80, 70]


def test_a_value_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match=r"t\.csv, line 3: the value is missing"):
        confidential(read("n,3", "s,", "Total,8", head="area,value"))


def test_a_total_that_is_not_the_sum_of_its_parts_is_named() -> None:
    whole = read("n,3", "s,5", "Total,8", head="area,value")
    wrong = replace(whole, values={"value": (Decimal(3), Decimal(5), Decimal(9))})
    with pytest.raises(InputError) as refused:
        confidential_table(wrong, recognise([whole]))
    assert str(refused.value) == "t.csv: the cell area=Total is not the sum of its parts, by 1."
    turned = read("Total,8", "n,3", "s,5", head="area,value")
    wrong = replace(turned, values={"value": (Decimal(9), Decimal(3), Decimal(5))})
    with pytest.raises(InputError, match="the cell area=Total is not the sum"):
        confidential_table(wrong, recognise([turned]))


def test_rows_that_are_missing_are_named_as_a_reason() -> None:
    rows = ["n,a,3", "n,b,4", "n,T,7", "s,a,5", "s,T,9", "T,a,8", "T,b,8", "T,T,16"]
    with pytest.raises(InputError, match="rows are missing, which would be 0"):
        confidential(read(*rows, head="area,job,value"))
