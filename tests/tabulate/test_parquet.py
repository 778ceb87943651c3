"""Parquet files are read a batch at a time, and what is not plain or not whole is not taken for it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.model import Dataset, IngestError
from lustrum.tabulate import FileSource, Store, ingest, parquet
from small import described
from tabulate.worlds import SECRET

ENCODE = import_module("lustrum.tabulate.encode")
PLACE = ENCODE._Place("The file", 1)


def written(root: Path, table: pa.Table, **how: Any) -> Path:
    pq.write_table(table, root / "town.parquet", **how)
    return root / "town.parquet"


PLAIN = {
    "text": pa.array(["a"]),
    "long text": pa.array(["a"], pa.large_string()),
    "view": pa.array(["a"], pa.string_view()),
    "entries": pa.array(["a"]).dictionary_encode(),
    "whole": pa.array([1], pa.int8()),
    "unsigned": pa.array([1], pa.uint64()),
    "float": pa.array([1.5], pa.float32()),
    "decimal": pa.array([1], pa.int64()).cast(pa.decimal128(30, 2)),
}
OTHERS = {
    "day": pa.array([datetime.date(2021, 10, 31)]),
    "moment": pa.array([datetime.datetime(2021, 10, 31)]),
    "yes": pa.array([True]),
    "bytes": pa.array([b"a"]),
    "half": pa.array([1.5], pa.float16()),
    "duration": pa.array([1], pa.duration("s")),
    "wide decimal": pa.array([1], pa.int64()).cast(pa.decimal256(50, 2)),
    "list": pa.array([["a"]]),
    "parts": pa.array([{"a": "b"}]),
    "nothing": pa.array([None]),
}


@pytest.mark.parametrize("name", [*PLAIN, *OTHERS])
def test_only_plain_texts_and_numbers_are_read_plainly(name: str, tmp_path: Path) -> None:
    table = pa.table(PLAIN | OTHERS)
    assert parquet.reads_plainly(written(tmp_path, table), [name]) == (name in PLAIN)


def test_a_name_with_a_point_is_not_taken_for_a_part_of_another_column(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([{"b": "x"}]), "a.b": ["y"], "c": ["z"]})
    path = written(tmp_path, table)
    assert not parquet.reads_plainly(path, ["a.b", "c"])
    assert parquet.reads_plainly(path, ["c"])


@settings(deadline=None, max_examples=50)
@given(
    pieces=st.lists(st.integers(0, 9), max_size=12),
    groups=st.lists(st.integers(0, 9), max_size=12),
    rows=st.integers(1, 5),
)
def test_pieces_of_any_size_become_the_row_groups(
    pieces: list[int], groups: list[int], rows: int
) -> None:
    values = np.arange(sum(pieces))
    ends = np.cumsum(pieces)
    batches = [
        pa.record_batch({"a": values[end - size : end]})
        for size, end in zip(pieces, ends, strict=True)
    ]
    sizes = [min(rows, group - at) for group in groups for at in range(0, group, rows)]
    cut = parquet._cut(iter(batches), iter(sizes))
    if sum(groups) > sum(pieces):
        with pytest.raises(pa.ArrowInvalid, match="fewer records than it says"):
            list(cut)
        return
    tables = list(cut)
    assert [table.num_rows for table in tables] == sizes
    found = [value for table in tables for value in table["a"].to_pylist()]
    assert found == list(range(sum(groups)))


def test_columns_come_in_the_order_that_was_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, pa.table({"a": ["x", "y", "z"], "b": [1, 2, 3]}), row_group_size=2)
    tables = [table for table, _ in parquet.batches(path, ["b", "a"], ["a"], 10)]
    assert [table.column_names for table in tables] == [["b", "a"]] * 2
    assert [table["b"].to_pylist() for table in tables] == [[1, 2], [3]]
    assert pa.types.is_dictionary(tables[0]["a"].type)


def texts_of_bytes(*texts: bytes) -> pa.Array:
    column = pa.array(texts)
    return pa.Array.from_buffers(pa.string(), len(column), column.buffers())


@pytest.mark.parametrize("column", ["id", "area"])
def test_a_text_that_is_not_utf8_is_refused_and_not_quoted(column: str, tmp_path: Path) -> None:
    columns = {"id": pa.array(["1", "2"]), "area": pa.array(["N", "N"])}
    path = written(tmp_path, pa.table(columns | {column: texts_of_bytes(b"N", b"person\xff")}))
    dataset = described("town", {"area": "N"}, head={"record_id": "id"})
    with pytest.raises(
        IngestError, match=r"cannot be read: a text is not UTF-8; make sure"
    ) as caught:
        ingest(FileSource(path), dataset, Store(tmp_path / "store"), secret=SECRET)
    assert "person" not in str(caught.value)


def test_an_entry_that_no_dictionary_has_is_refused() -> None:
    indices = pa.array([0, 1, None, 2], pa.int32())
    entries = pa.array(["a", "b"])
    column = pa.DictionaryArray.from_arrays(indices, entries, safe=False)
    parquet._check(column.slice(0, 3))
    parquet._check(column.slice(2, 1))
    with pytest.raises(pa.ArrowInvalid, match="not in its dictionary"):
        parquet._check(column)


# --- codes that are looked up once for each value


def variable(codes: list[str], missing: str | None = None) -> Any:
    words: dict[str, Any] = {"name": "v", "codes": codes} | (
        {"missing": missing} if missing else {}
    )
    return Dataset.from_mapping({"dataset": {"name": "d"}, "variables": [words]}).variable("v")


CODES = ["1", "2", "-3", "017", "127", "-128", "255", "none", str(2**64 - 1), str(2**63 - 1)]
MADE: list[Callable[[list[Any]], pa.Array]] = [
    lambda values: pa.array(values, pa.int8()),
    lambda values: pa.array(values, pa.int64()),
    lambda values: pa.array([None if v is None else str(v) for v in values], pa.string()),
    lambda values: pa.array(
        [None if v is None else str(v) for v in values], pa.large_string()
    ).dictionary_encode(),
]


@settings(deadline=None)
@given(
    values=st.lists(st.sampled_from([1, 2, -3, 127, -128, 5, None]), max_size=12),
    made=st.sampled_from(MADE),
    missing=st.sampled_from([None, "none"]),
    start=st.integers(0, 3),
)
def test_codes_are_those_of_each_value_or_the_same_refusal(
    values: list[Any], made: Callable[[list[Any]], pa.Array], missing: str | None, start: int
) -> None:
    """``start`` leaves values in dictionaries that no record has; a gap or a 5 that stays is refused."""
    column, kept = made(values).slice(start), values[start:]
    gap = next((i for i, v in enumerate(kept) if v == 5 or (v is None and not missing)), None)
    if gap is not None:
        words = "is missing" if kept[gap] is None else "'5' is not in the code list"
        with pytest.raises(IngestError, match=f"row {gap + 1}: the .*{words}"):
            ENCODE._codes(column, variable(CODES, missing), PLACE)
        return
    codes = ENCODE._codes(column, variable(CODES, missing), PLACE)
    assert codes.dtype == np.uint8
    assert codes.tolist() == [CODES.index("none" if v is None else str(v)) for v in kept]


@pytest.mark.parametrize("kind", [pa.uint64(), pa.int64()])
def test_the_largest_numbers_are_codes_too(kind: pa.DataType) -> None:
    highest = 2**64 - 1 if kind == pa.uint64() else 2**63 - 1
    for values in ([highest, highest], [highest, 1], [highest, None]):
        codes = ENCODE._codes(pa.array(values, kind), variable(CODES, "none"), PLACE)
        expected = [CODES.index("none" if value is None else str(value)) for value in values]
        assert codes.tolist() == expected
