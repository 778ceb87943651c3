"""Tables and releases are frozen and discreet."""

from __future__ import annotations

import dataclasses
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.model import (
    Axis,
    Category,
    CellStatus,
    Contributions,
    Dataset,
    Decision,
    InputError,
    Records,
    Release,
    Table,
    TableAxis,
    TableQuery,
    Verdict,
)
from lustrum.model.errors import (
    DatasetError,
    DescriptionError,
    IngestError,
    InternalError,
    LustrumError,
    PolicyError,
    QueryError,
    choices,
)
from lustrum.model.plugins import GROUPS, load, names
from lustrum.tabulate import FrameEngine
from lustrum.tabulate.frame import describe_frame

exactly = settings(derandomize=True, database=None, deadline=None)


def full_table(number: int) -> Table:
    """A table with a number that stands nowhere else, in every array it may have."""
    shape = (2, 3)
    axes = (TableAxis.plain("area", ["N", "S"]), TableAxis.plain("age", ["a", "b", "c"]))
    values = np.full(shape, number, dtype=np.int64)
    ranked = np.full((*shape, 2), number, dtype=np.int64)
    return Table(
        axes,
        values,
        kind="magnitude",
        decimals=2,
        contributors=values.copy(),
        keys=values.astype(np.uint64),
        contributions=Contributions(ranked, ranked.copy(), ranked.astype(np.float64)),
        structural=np.zeros(shape, dtype=np.bool_),
    )


def full_release(number: int) -> Release:
    table = full_table(number)
    return Release(
        table.axes,
        table.values,
        np.full(table.shape, "F"),
        {"method": "test"},
        least=table.values,
        most=table.values,
    )


@given(number=st.integers(10**12, 10**17))
@exactly
def test_no_repr_holds_a_number_of_the_table(number: int) -> None:
    table, release = full_table(number), full_release(number)
    decision = Decision(TableQuery("town", (Axis("area"),)), Verdict.ANSWER, release=release)
    things: list[Any] = [table, table.contributions, release, decision, [table], {"r": release}]
    for thing in things:
        for shown in (repr(thing), str(thing), f"{thing}"):
            assert str(number) not in shown
            assert str(number)[:9] not in shown
            assert f"{number:,}"[:9] not in shown


def test_neither_do_those_of_engine_and_cube() -> None:
    rows = 1237
    frame = pa.table({"area": ["N"] * rows})
    engine = FrameEngine(frame, describe_frame(frame, ["area"]))
    cube = engine.cube(TableQuery("frame", (Axis("area"),)), unfiltered=True)
    assert cube.counts.sum() == rows
    for thing in (engine, cube, cube.shown(), cube.plan):
        assert str(rows) not in repr(thing).rpartition(" at 0x")[0] + repr(thing)[:40]


def test_a_repr_says_what_the_table_is() -> None:
    assert repr(full_table(1)) == "Table(area x age, 2 x 3 cells, magnitudes)"
    assert repr(Table((), np.array(5))) == "Table(everybody, 1 cells, counts)"
    assert repr(full_release(1)) == "Release(area x age, by test)"
    assert repr(full_table(1).contributions) == "Contributions(ranks=2)"


def test_the_arrays_of_a_table_cannot_be_written_to() -> None:
    table = full_table(5)
    for array in (table.values, table.contributors, table.keys, table.structural, table.inner):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    release = full_release(5)
    for array in (release.published, release.status, release.low, release.high, release.inner):
        assert array is not None
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    for thing, name in ((table, "values"), (release, "numbers")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, None)


def test_a_table_from_counts_does_not_follow_the_array_it_was_made_of() -> None:
    counts = np.array([[1, 2], [3, 4]])
    table = Table.from_counts(counts)
    counts[0, 0] = 99
    assert table.values.tolist() == [[1, 2], [3, 4]]
    assert table.axes[0].codes == ("1", "2")
    assert [axis.name for axis in table.axes] == ["v1", "v2"]
    assert table.contributors.tolist() == table.values.tolist()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Table.from_counts([1.5]), "must be whole numbers; a fraction"),
        (lambda: Table.from_counts([float("nan")]), "must be whole numbers; a fraction"),
        (lambda: Table.from_counts([float("inf")]), "must be whole numbers; a fraction"),
        (lambda: Table.from_counts(["one"]), "must be an array of whole numbers"),
        (lambda: Table.from_counts([-417]), "holds a negative value; counts are 0 or more"),
        (lambda: Table.from_counts([[417]], names=["a"]), "2 dimensions but there are 1 names"),
        (
            lambda: Table((TableAxis.plain("a", ["x"]),), np.array([417, 417])),
            "A table of 1 cells got values of shape",
        ),
        (
            lambda: Table((TableAxis.plain("a", ["x"]),), np.array([417.0])),  # type: ignore[arg-type]
            "must be 64-bit integers",
        ),
    ],
)
def test_a_wrong_table_is_refused_without_a_count(make: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        make()
    assert "417" not in str(caught.value)


def test_magnitudes_may_be_negative() -> None:
    axes = (TableAxis.plain("a", ["x"]),)
    assert Table(axes, np.array([-5]), kind="magnitude").values[0] == -5


@given(data=st.data(), rows=st.integers(1, 4), columns=st.integers(1, 4))
@exactly
def test_taking_positions_takes_them_in_every_array(
    data: st.DataObject, rows: int, columns: int
) -> None:
    values = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns)
    ranked = np.stack([values, values + 100], axis=-1)
    axes = (
        TableAxis.plain("r", [f"r{i}" for i in range(rows)]),
        TableAxis.plain("c", [f"c{i}" for i in range(columns)]),
    )
    table = Table(
        axes,
        values,
        contributors=values + 1,
        keys=values.astype(np.uint64),
        contributions=Contributions(ranked, ranked, ranked.astype(np.float64)),
        structural=values % 2 == 0,
    )
    picks = [
        data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=5))
        for size in (rows, columns)
    ]
    part = table.take(picks)
    assert part.axes[0].codes == tuple(f"r{i}" for i in picks[0])
    assert part.axes[1].codes == tuple(f"c{i}" for i in picks[1])
    assert part.contributors is not None
    assert part.keys is not None
    assert part.structural is not None
    assert part.contributions.weight is not None
    for i, row in enumerate(picks[0]):
        for j, column in enumerate(picks[1]):
            value = row * columns + column
            assert part.values[i, j] == value
            assert part.contributors[i, j] == value + 1
            assert part.keys[i, j] == value
            assert part.structural[i, j] == (value % 2 == 0)
            assert part.contributions.value[i, j].tolist() == [value, value + 100]
            assert part.contributions.holding[i, j].tolist() == [value, value + 100]
            assert part.contributions.weight[i, j].tolist() == [value, value + 100]


def test_taking_from_a_bare_table_keeps_it_bare() -> None:
    part = Table((TableAxis.plain("a", ["x", "y"]),), np.array([1, 2])).take([[1]])
    assert part.values.tolist() == [2]
    assert (part.contributors, part.keys, part.contributions, part.structural) == (None,) * 4
    assert int(Table((), np.array(5)).take([]).values) == 5


sets = st.lists(st.sets(st.integers(0, 5), min_size=1), min_size=1, max_size=6, unique_by=frozenset)


@given(one=sets, two=sets)
@exactly
def test_inner_cells_hold_no_other_category_along_any_axis(
    one: list[set[int]], two: list[set[int]]
) -> None:
    axes = tuple(
        TableAxis(n, n, tuple(Category(f"{i}", "", tuple(sorted(s))) for i, s in enumerate(sets_)))
        for n, sets_ in (("a", one), ("b", two))
    )
    table = Table(axes, np.zeros((len(one), len(two)), dtype=np.int64))
    for i, a in enumerate(one):
        for j, b in enumerate(two):
            plain = not any(x < a for x in one) and not any(y < b for y in two)
            assert table.inner[i, j] == plain


def test_totals_and_subtotals_are_not_inner_and_overlaps_are() -> None:
    def inner(**members: tuple[int, ...]) -> list[bool]:
        categories = tuple(Category(c, c, m) for c, m in members.items())
        return TableAxis("a", "A", categories).inner.tolist()

    assert inner(a=(0,), b=(1,), total=(0, 1)) == [True, True, False]
    assert inner(a=(0,), ab=(0, 1), abc=(0, 1, 2)) == [True, False, False]
    assert inner(ab=(0, 1), bc=(1, 2)) == [True, True]
    assert inner(a=(0,), total=(0,)) == [True, False], "nobody counts twice"


def test_a_suppressed_cell_is_not_shown() -> None:
    axes = (TableAxis.plain("a", ["x", "y", "z"]),)
    release = Release(axes, np.array([1, 2, 3]), np.array(["F", "A", "D"]), {"method": "by hand"})
    assert release.shown.tolist() == [True, False, False]


def test_the_status_letters_are_those_of_sdmx() -> None:
    assert [s.value for s in CellStatus] == ["F", "A", "O", "T", "G", "M", "D", "N"]
    assert [s for s in CellStatus if s.shown] == [CellStatus.FREE]
    assert len({s.meaning for s in CellStatus}) == len(CellStatus)
    assert all(("suppressed" in s.meaning) == (s.value not in "FN") for s in CellStatus)
    with pytest.raises(ValueError, match="Z"):
        CellStatus("Z")


def test_every_error_on_purpose_has_one_root_and_mistakes_are_value_errors() -> None:
    for error in (DescriptionError, QueryError, IngestError, PolicyError):
        assert issubclass(error, InputError)
        assert issubclass(error, ValueError)
    for error in (InputError, DatasetError, InternalError):
        assert issubclass(error, LustrumError)
    assert not issubclass(DatasetError, ValueError)


def test_choices_name_the_near_one_and_how_many_more_there_are() -> None:
    assert choices("sexx", ["age", "sex"]) == "did you mean 'sex'? There are: age, sex"
    assert choices("zzz", ["age", "sex"]) == "there are: age, sex"
    assert choices("zzz", []) == "there are none"


def test_a_wrong_name_is_compared_with_few_of_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing with all would cost seconds for each mistake, and anybody can make one."""
    compared: list[int] = []

    def near(given: str, names: list[str], n: int) -> list[str]:
        compared.append(len(names))
        return get_close_matches(given, names, n)

    monkeypatch.setattr("lustrum.model.errors.get_close_matches", near)
    codes = [f"{first}{i:05}" for first in "EW" for i in range(50_000)]
    assert choices("W00012x", codes).startswith("did you mean 'W000")
    assert choices("district", codes).startswith("there are: E00000, ")
    assert compared == [1000, 0]
    many = choices("zzz", [f"code{i}" for i in range(20)])
    assert many.endswith("code7 and 12 more")
    assert "code8" not in many


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_a_plugin_that_is_not_there_is_answered_with_those_that_are(group: str) -> None:
    there = names(group)
    assert there
    assert list(there) == sorted(set(there))
    with pytest.raises(InputError) as caught:
        load(group, "qqqq")
    assert f"no {GROUPS[group]} 'qqqq'; there are: " in str(caught.value)
    assert all(name in str(caught.value) for name in there[:8])
    with pytest.raises(InputError, match=f"did you mean '{there[0]}'"):
        load(group, there[0] + "x")
    assert load(group, there[0]) is load(group, there[0])


DESCRIPTION = {
    "dataset": {"name": "people", "identifiers": ["household"]},
    "variables": [{"name": "area", "codes": ["a", "b", "c"]}, {"name": "sex", "codes": ["m", "f"]}],
}


def records() -> Records:
    return Records(
        Dataset.from_mapping(DESCRIPTION),
        codes={"area": np.array([0, 1, 2], np.uint8), "sex": np.array([0, 1, 0], np.uint8)},
        ids={"household": np.array([7, 7, 8])},
        keys=np.array([1, 2, 3], np.uint64),
    )


def test_nothing_of_a_record_is_in_its_repr() -> None:
    assert repr(records()) == "Records('people')"


def test_columns_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        records().codes["area"][0] = 1


def test_new_codes_keep_their_type_and_must_be_in_the_code_list() -> None:
    changed = records().with_codes(area=np.array([2, 2, 2]))
    assert changed.codes["area"].dtype == np.uint8
    assert changed.codes["area"].tolist() == [2, 2, 2]
    with pytest.raises(InputError, match="outside its code list"):
        records().with_codes(sex=np.array([0, 2, 0]))


def test_some_records_keep_all_their_columns() -> None:
    some = records().take(np.array([True, False, True]))
    assert len(some) == 2
    assert some.ids["household"].tolist() == [7, 8]
    assert some.keys.tolist() == [1, 3]


def test_columns_of_other_lengths_or_missing_ones_are_refused() -> None:
    good = records()
    with pytest.raises(InputError, match="differ in length"):
        Records(good.dataset, {"area": good.codes["area"], "sex": good.codes["sex"][:2]})
    with pytest.raises(InputError, match="no column 'sex'"):
        Records(good.dataset, {"area": good.codes["area"]})
