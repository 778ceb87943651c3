"""What is wrong with a file is told in one sentence: where, what, and what would be right.

A wrong code is quoted. A wrong number or identifier is not, for it may be somebody's.
"""

from __future__ import annotations

import gzip
import os
import traceback
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lustrum.model import Axis, Dataset, DescriptionError, IngestError, TableQuery
from lustrum.tabulate import (
    FileSource,
    FrameEngine,
    FrameSource,
    QuerySource,
    Source,
    Store,
    ingest,
    read_description,
)
from tabulate.worlds import SECRET

PARQUET = import_module("lustrum.tabulate.parquet")
HEAD = "id,area,sex,income,w\n"
GOOD = HEAD + "1,N,f,10.50,1.5\n2,S,m,20,2\n3,S,f,30.1,0\n"
# A number that stands in the files and must stand in no message.
PRIVATE = "918273"


def described(**changes: Any) -> Dataset:
    variables: list[dict[str, Any]] = [
        {"name": "area", "codes": ["N", "S", "unknown"]},
        {"name": "sex", "codes": ["f", "m"]},
    ]
    description: dict[str, Any] = {
        "dataset": {"name": "town", "record_id": "id"},
        "variables": variables,
        "measures": [{"name": "income", "decimals": 2}],
        "weights": [{"name": "w", "decimals": 1}],
    }
    return Dataset.from_mapping(description | changes)


DATASET = described()
WITH_MISSING = described(
    variables=[
        {"name": "area", "codes": ["N", "S", "unknown"], "missing": "unknown"},
        {"name": "sex", "codes": ["f", "m"]},
    ],
    measures=[{"name": "income", "decimals": 2, "missing": "7.25"}],
)


def refused(source: Source, root: Path, dataset: Dataset = DATASET) -> str:
    """The message of a refusal, after a look at what every such message must keep to."""
    store = Store(root / "store")
    with pytest.raises(IngestError) as caught:
        ingest(source, dataset, store, secret=SECRET)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    assert not message.endswith(("..", "?."))
    assert len(message) < 400
    whole = "".join(traceback.format_exception(caught.value))
    assert PRIVATE not in whole, "a log of the error would show somebody's number"
    assert store.names() == []
    return message


def file(root: Path, name: str, content: str | bytes) -> FileSource:
    path = root / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return FileSource(path)


def parquet(root: Path, columns: dict[str, Any], name: str = "town.parquet") -> FileSource:
    table = {"id": [1], "area": ["N"], "sex": ["f"], "income": [1.5], "w": [1]} | columns
    rows = max(len(c) for c in columns.values())
    full = {n: c if len(c) == rows else list(c) * rows for n, c in table.items()}
    if "id" not in columns:
        full["id"] = list(range(rows))
    pq.write_table(pa.table(full), root / name)
    return FileSource(root / name)


def counted(source: Source, root: Path, dataset: Dataset = DATASET) -> list[int]:
    store = Store(root / "store")
    ingest(source, dataset, store, secret=SECRET)
    values = store.open("town").tabulate(TableQuery("town", (Axis("area"),))).values
    return [int(v) for v in values]


# --- what can be read


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("town.csv", GOOD),
        ("town.csv", GOOD.replace(",", ";")),
        ("town.tsv", GOOD.replace(",", "\t")),
        ("town.txt", GOOD.replace(",", "|")),
        ("town.csv", GOOD.replace("\n", "\r\n")),
        ("town.csv", GOOD.rstrip("\n")),
        ("town.csv", "\ufeff" + GOOD),
        ("town.csv", GOOD.replace("N", '"N"').replace("area", '"area"')),
        ("town.csv.gz", gzip.compress(GOOD.encode(), mtime=0)),
        ("town[1].csv", GOOD),
        ("town*.csv", GOOD),
        ("TOWN.CSV", GOOD),
    ],
)
def test_a_text_file_is_read_whatever_its_dialect(
    name: str, content: str | bytes, tmp_path: Path
) -> None:
    (tmp_path / "town of others.csv").write_text(HEAD + "1,unknown,f,1,1\n")
    assert counted(file(tmp_path, name, content), tmp_path) == [1, 2, 0]


def test_columns_that_nobody_described_are_left_alone(tmp_path: Path) -> None:
    content = "x,id,area,x,sex,income,w,\n" + f"{PRIVATE},1,N,?,f,1,1,\n"
    assert counted(file(tmp_path, "town.csv", content), tmp_path) == [1, 0, 0]


def test_a_column_may_have_any_name(tmp_path: Path) -> None:
    odd = 'in"come; DROP'
    dataset = described(measures=[{"name": odd}])
    content = 'id,area,sex,"in""come; DROP",w\n1,N,f,3,1\n'
    store = Store(tmp_path / "store")
    ingest(file(tmp_path, "town.csv", content), dataset, store, secret=SECRET)
    query = TableQuery("town", (Axis("area"),), measure=odd)
    assert store.open("town").tabulate(query).values.tolist() == [3, 0, 0]


def test_a_folder_that_looks_like_a_partition_does_not_replace_a_column(tmp_path: Path) -> None:
    folder = tmp_path / "area=S"
    folder.mkdir()
    assert counted(file(folder, "town.csv", HEAD + "1,N,f,1,1\n"), tmp_path) == [1, 0, 0]
    assert counted(parquet(folder, {"area": ["N"]}), tmp_path) == [1, 0, 0]


def test_no_line_is_taken_for_a_comment_or_a_title(tmp_path: Path) -> None:
    dataset = described(
        variables=[{"name": "area", "codes": ["#N", "S"]}, {"name": "sex", "codes": ["f"]}]
    )
    content = "area,id,sex,income,w\n#N,1,f,1,1\nS,2,f,1,1\n#N,3,f,1,1\n"
    assert counted(file(tmp_path, "town.csv", content), tmp_path, dataset) == [2, 1]
    message = refused(file(tmp_path, "titled.csv", "Our town\n\n" + GOOD), tmp_path / "new")
    assert "has no column 'area'" in message


def test_parquet_columns_of_many_types_are_read(tmp_path: Path) -> None:
    columns = {
        "id": pa.array([1, 2], pa.uint32()),
        "area": pa.array(["N", "S"]).dictionary_encode(),
        "income": pa.array([Decimal(1), Decimal(20)], pa.decimal128(20, 5)),
        "w": pa.array([0.1, 2.5], pa.float32()),
    }
    store = Store(tmp_path / "store")
    ingest(parquet(tmp_path, columns), DATASET, store, secret=SECRET)
    query = TableQuery("town", (Axis("area"),), measure="income", weight="w")
    assert store.open("town").tabulate(query).values.tolist() == [100, 50_000, 0]


def test_columns_that_differ_by_case_only_are_told_apart_in_files(tmp_path: Path) -> None:
    content = "id,AREA,area,sex,income,w\n1,S,N,f,1,1\n"
    assert counted(file(tmp_path, "town.csv", content), tmp_path) == [1, 0, 0]
    assert counted(parquet(tmp_path, {"AREA": ["S"], "area": ["N"]}), tmp_path) == [1, 0, 0]


def test_a_duckdb_file_and_a_query_are_read(tmp_path: Path) -> None:
    path = tmp_path / "town.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.sql(
            "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'N', 'f', 1.5, 1), (2, 'S', 'm', 2, 0.5)) "
            "AS v(id, area, sex, income, w)"
        )
    before = path.read_bytes()
    assert counted(QuerySource("SELECT * FROM t", path), tmp_path) == [1, 1, 0]
    assert counted(QuerySource("SELECT * FROM t WHERE id > 1", path), tmp_path) == [0, 1, 0]
    assert path.read_bytes() == before
    csv_file = file(tmp_path, "town.csv", GOOD).path
    query = f"SELECT * FROM read_csv('{csv_file}', all_varchar = true)"
    assert counted(QuerySource(query), tmp_path) == [1, 2, 0]


def test_missing_values_take_the_codes_that_the_description_gives_them(tmp_path: Path) -> None:
    content = HEAD + '1,,f,10,1\n2,"",m,,2\n3,N,f,1,0\n'
    query = TableQuery("town", (Axis("area"),), measure="income")
    sources: list[Source] = [
        file(tmp_path, "town.csv", content),
        parquet(tmp_path, {"area": [None, None, "N"], "income": [10, None, 1]}),
        parquet(tmp_path, {"area": [None, None, "N"], "income": [10.0, None, 1.0]}, "f.parquet"),
        FrameSource(
            {
                "id": [1, 2, 3],
                "area": pa.array([None, None, "N"]).dictionary_encode(),
                "sex": ["f", "m", "f"],
                "income": ["10", None, "1"],
                "w": [1, 2, 0],
            }
        ),
    ]
    for number, source in enumerate(sources):
        store = Store(tmp_path / str(number))
        ingest(source, WITH_MISSING, store, secret=SECRET)
        values = store.open("town").tabulate(query).values
        assert values.tolist() == [100, 0, 1000 + 725]


# --- what cannot


def test_an_unknown_code_is_quoted_with_its_place_and_the_near_ones(tmp_path: Path) -> None:
    content = GOOD + f"4,unknwon,f,{PRIVATE},1\n"
    message = refused(file(tmp_path, "town.csv", content), tmp_path)
    assert f"{tmp_path / 'town.csv'}, column 'area', row 4" in message
    assert "'unknwon' is not in the code list" in message
    assert "did you mean 'unknown'? There are: N, S, unknown" in message


def test_rows_are_numbered_through_all_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PARQUET, "BATCH", 2)
    columns = {"area": ["N", "N", "S", "S", "X", "N"], "id": list(range(6))}
    frame = pq.read_table(parquet(tmp_path, columns).path)
    assert "The frame, column 'area', row 5:" in refused(FrameSource(frame), tmp_path)


@pytest.mark.parametrize("column", ["area", "income", "w", "id"])
def test_a_missing_value_is_refused_where_the_description_has_no_code_for_it(
    column: str, tmp_path: Path
) -> None:
    record = {"id": "9", "area": "N", "sex": "f", "income": PRIVATE, "w": "1"} | {column: ""}
    content = GOOD + ",".join(record.values()) + "\n"
    message = refused(file(tmp_path, "town.csv", content), tmp_path)
    assert f"{tmp_path / 'town.csv'}, column {column!r}, row 4" in message
    assert "missing" in message
    assert {"area": "'missing' in", "income": "'missing' in", "w": "fill it", "id": "needs one"}[
        column
    ] in message
    if column == "w":
        assert "'missing'" not in message, "a weight has no such key"


def test_a_missing_value_must_stand_for_a_number(tmp_path: Path) -> None:
    dataset = described(measures=[{"name": "income", "missing": "none"}])
    source = file(tmp_path, "town.csv", HEAD + "1,N,f,,1\n")
    with pytest.raises(DescriptionError, match="'income': 'missing' must be a number"):
        ingest(source, dataset, Store(tmp_path / "store"), secret=SECRET)


def test_a_column_that_is_missing_or_there_twice_is_named(tmp_path: Path) -> None:
    without = file(tmp_path, "without.csv", GOOD.replace("income", "incomes"))
    message = refused(without, tmp_path)
    assert f"{without.path} has no column 'income'" in message
    assert "did you mean 'incomes'" in message
    twice = file(tmp_path, "twice.csv", "id,area,sex,income,w,area\n1,N,f,1,1,S\n")
    assert f"{twice.path} has 2 columns named 'area'; one is right" in refused(twice, tmp_path)
    table = pa.table(
        [[1], ["N"], ["S"], ["f"], [1], [1]], ["id", "area", "area", "sex", "income", "w"]
    )
    pq.write_table(table, tmp_path / "twice.parquet")
    for source in (FileSource(tmp_path / "twice.parquet"), FrameSource(table)):
        assert "has 2 columns named 'area'; one is right" in refused(source, tmp_path)
    with pytest.raises(IngestError, match="The frame has 2 columns named 'area'"):
        FrameEngine(table, DATASET)
    query = QuerySource("SELECT 1 id, 'N' area, 'S' AREA, 'f' sex, 1 income, 1 w")
    assert "The query has 2 columns named 'area'" in refused(query, tmp_path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("income", f"{PRIVATE}x"),
        ("income", f"{PRIVATE}.125"),
        ("income", f"{PRIVATE},50"),
        ("income", f" {PRIVATE}"),
        ("income", "NaN"),
        ("income", "inf"),
        ("income", f"{PRIVATE}00000000000000"),
        ("w", f"{PRIVATE}.25"),
        ("w", "ten"),
    ],
)
def test_what_is_no_number_of_so_many_decimals_is_refused_unquoted(
    column: str, value: str, tmp_path: Path
) -> None:
    record = {"id": "9", "area": "N", "sex": "f", "income": "1", "w": "1"} | {column: f'"{value}"'}
    content = GOOD + ",".join(record.values()) + "\n"
    message = refused(file(tmp_path, "town.csv", content), tmp_path)
    decimals = {"income": 2, "w": 1}[column]
    assert f"{tmp_path / 'town.csv'}, column {column!r}, row 4" in message
    assert f"not a number with at most {decimals} decimals" in message
    assert "correct it, or raise 'decimals'" in message
    assert value not in message


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.0, float("nan")]),
        pa.array([1.0, float("inf")]),
        pa.array([1.0, 1.005]),
        pa.array([1.0, 2.0**60]),
        pa.array([1, 2**63 + 918273], pa.uint64()),
        pa.array([1, -(2**63)], pa.int64()),
        pa.array([1, 2**62], pa.int64()),
        pa.array(["1", f"{PRIVATE}.001"]),
        pa.array(["1", f"{PRIVATE}.001"], pa.large_string()),
        pa.array(["1", f"{PRIVATE}.001"], pa.string_view()),
        pa.array([Decimal("1.000"), Decimal("2.001")], pa.decimal128(20, 3)),
    ],
    ids=str,
)
def test_numbers_that_do_not_fit_are_refused_in_every_type(values: pa.Array) -> None:
    frame = pa.table(
        {"id": [1, 2], "area": ["N", "N"], "sex": ["f", "f"], "income": values, "w": [1, 1]}
    )
    with pytest.raises(
        IngestError, match="column 'income', row 2: the value is not a num"
    ) as caught:
        FrameEngine(frame, DATASET)
    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [pa.array([True, False]), pa.array([[1], [2]]), pa.array([0, 1], pa.date32())],
    ids=str,
)
def test_a_column_of_another_kind_is_no_measure(values: pa.Array) -> None:
    frame = pa.table(
        {"id": [1, 2], "area": ["N", "N"], "sex": ["f", "f"], "income": values, "w": [1, 1]}
    )
    with pytest.raises(IngestError, match="column 'income', row 1: the value is not a number"):
        FrameEngine(frame, DATASET)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.float64()])
def test_decimals_are_kept_exactly(kind: pa.DataType) -> None:
    texts = ["0.01", "-0.07", "1e2", "12345678901.23", "0.29", "4.35"]
    values = (
        pa.array(texts).cast(pa.float64()).cast(kind)
        if kind == pa.float64()
        else pa.array(texts, kind)
    )
    rows = len(texts)
    frame = pa.table(
        {
            "id": range(rows),
            "area": ["N"] * rows,
            "sex": ["f"] * rows,
            "income": values,
            "w": [1] * rows,
        }
    )
    chunk = FrameEngine(frame, DATASET)._chunks[0]
    assert chunk.numbers["income"].tolist() == [1, -7, 10_000, 1_234_567_890_123, 29, 435]


@pytest.mark.parametrize(("total", "refuses"), [(6, False), (7, True)])
def test_weights_must_sum_to_the_frame(tmp_path: Path, total: int, refuses: bool) -> None:
    (weight,) = DATASET.source["weights"]
    described = Dataset.from_mapping({**DATASET.source, "weights": [{**weight, "total": total}]})
    frame = pa.table(
        {"id": range(3), "area": ["N"] * 3, "sex": ["f"] * 3, "income": [1, 2, 3], "w": [1, 2, 3]}
    )
    if not refuses:
        assert ingest(FrameSource(frame), described, Store(tmp_path / "good")) == 3
        return
    with pytest.raises(IngestError, match="do not sum to the frame of 7 units within") as error:
        ingest(FrameSource(frame), described, Store(tmp_path / "bad"))
    assert "column 'w'" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_negative_weight_is_refused(tmp_path: Path) -> None:
    content = GOOD + "4,N,f,1,-918273\n"
    message = refused(file(tmp_path, "town.csv", content), tmp_path)
    assert f"{tmp_path / 'town.csv'}, column 'w', row 4: a weight must not be negative" in message


@pytest.mark.parametrize(
    "codes",
    [
        pa.array([1.0, 2.0]),
        pa.array([b"N", b"S"]),
        pa.array([b"N", b"\xff"], pa.large_binary()),
        pa.array([["N"], ["S"]]),
    ],
    ids=lambda a: str(a.type),
)
def test_codes_must_be_texts_or_whole_numbers(codes: pa.Array, tmp_path: Path) -> None:
    message = refused(parquet(tmp_path, {"area": codes}), tmp_path)
    assert f"{tmp_path / 'town.parquet'}, column 'area'" in message
    assert "must be texts or whole numbers" in message
    assert "store it as text" in message


def test_record_ids_must_differ_and_both_rows_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PARQUET, "BATCH", 2)
    for ids in (["7", PRIVATE, "8", "9", PRIVATE], [7, int(PRIVATE), 8, 9, int(PRIVATE)]):
        frame = pq.read_table(parquet(tmp_path, {"id": ids}).path)
        message = refused(FrameSource(frame, "The register"), tmp_path)
        assert "The register, column 'id': rows 2 and 5 have the same record id" in message
        assert "every record needs its own" in message
    content = HEAD + f"{PRIVATE},N,f,1,1\n2,N,f,1,1\n{PRIVATE},S,m,2,1\n"
    message = refused(file(tmp_path, "town.csv", content), tmp_path)
    assert f"{tmp_path / 'town.csv'}, column 'id': rows 1 and 3" in message


@pytest.mark.parametrize("value", [-918273, 2**63 + 918273])
def test_a_numeric_id_has_63_bits(value: int, tmp_path: Path) -> None:
    kind = pa.int64() if value < 0 else pa.uint64()
    source = parquet(tmp_path, {"id": pa.array([1, value], kind), "area": ["N", "S"]})
    message = refused(source, tmp_path)
    assert f"{tmp_path / 'town.parquet'}, column 'id', row 2" in message
    assert str(value) not in message


def test_a_record_of_an_impossible_combination_is_refused_with_the_reason(tmp_path: Path) -> None:
    dataset = described(
        structural_zeros=[{"reason": "no men in the north", "where": {"area": ["N"], "sex": ["m"]}}]
    )
    assert counted(file(tmp_path, "good.csv", GOOD), tmp_path, dataset) == [1, 2, 0]
    source = file(tmp_path, "town.csv", GOOD + f"4,N,m,{PRIVATE},1\n")
    message = refused(source, tmp_path / "new", dataset)
    assert f"{tmp_path / 'town.csv'}, column 'area', row 4" in message
    assert "area, sex" in message
    assert "no men in the north" in message
    assert "correct the record or the description" in message


# --- files that are not what they should be


@pytest.mark.parametrize("early", [True, False], ids=["early", "late"])
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (f"4,N,f,{PRIVATE}\n", "does not have as many fields as the header"),
        (f"4,N,f,{PRIVATE},1,5,6\n", "does not have as many fields as the header"),
        (f'4,"N,f,{PRIVATE},1\n', "has a quote that is not closed"),
        (f'4,"N"x,f,{PRIVATE},1\n', "has a quote that is not closed, or text after it"),
    ],
)
def test_a_line_that_is_not_csv_is_numbered_and_not_quoted(
    line: str, problem: str, early: bool, tmp_path: Path
) -> None:
    ahead = 3 if early else 25_000  # beyond what a look at the first lines would see
    rows = "".join(f"{i},N,f,{PRIVATE},1\n" for i in range(10, 10 + ahead))
    content = HEAD + rows + line + "5,S,f,1,1\n"
    message = refused(file(tmp_path, "town.csv", content), tmp_path)
    assert f"{tmp_path / 'town.csv'} cannot be read: line {ahead + 2} {problem}" in message
    assert "correct it" in message


@pytest.mark.parametrize("line", [1, 3, 25_002])
def test_a_csv_file_in_another_encoding_is_refused(line: int, tmp_path: Path) -> None:
    lines = [HEAD.encode(), *(f"{i},N,f,{PRIVATE},1\n".encode() for i in range(line + 1))]
    lines[line - 1] = lines[line - 1].replace(b"N", b"\xdcnter").replace(b"sex", b"s\xe9x")
    message = refused(file(tmp_path, "town.csv", b"".join(lines)), tmp_path)
    assert f"cannot be read: line {line} is not UTF-8; save the file in that encoding" in message


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("town.csv", "", "is empty; it needs a header and at least one row"),
        ("town.parquet", "", "is empty"),
        ("town.csv", "\n\n", "has no header; its first line must name the columns"),
        ("town.csv", HEAD, "has no rows; it needs at least one"),
        ("town.csv", GOOD.replace("m,20,2\n", "m,20,2\r\n"), "make its line ends all of one kind"),
        ("town.parquet", b"PAR1" + b"garbage " * 20, "cannot be read"),
        ("town.parquet", b"x", "cannot be read"),
        ("town.parquet", GOOD, "cannot be read"),
        ("town.csv.gz", gzip.compress(GOOD.encode(), mtime=0)[:-12], "cannot be read"),
        ("town.csv.gz", gzip.compress(GOOD.encode(), mtime=0)[:14], "not a complete gzip file"),
        ("town.csv.gz", GOOD, "not a complete gzip file"),
        ("town.xlsx", GOOD, "files ending in '.xlsx' cannot be read; give .csv, .tsv or .parquet"),
        ("town", GOOD, "cannot be read; give .csv, .tsv or .parquet, or a query for DuckDB"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_named(
    name: str, content: str | bytes, problem: str, tmp_path: Path
) -> None:
    source = file(tmp_path, name, content)
    message = refused(source, tmp_path)
    assert str(source.path) in message
    assert problem in message


def test_a_broken_parquet_file_is_refused_wherever_it_breaks(tmp_path: Path) -> None:
    rows = 5000
    good = parquet(tmp_path, {"area": ["N", "S"] * (rows // 2), "id": list(range(rows))})
    content = good.path.read_bytes()
    for share in (0.1, 0.5, 0.95):
        cut = file(tmp_path, "cut.parquet", content[: int(len(content) * share)])
        message = refused(cut, tmp_path)
        assert f"{cut.path} cannot be read" in message
        assert "make sure that the file is complete" in message
    scrambled = bytearray(content)
    scrambled[4:600] = bytes(255 - b for b in scrambled[4:600])
    message = refused(file(tmp_path, "scrambled.parquet", bytes(scrambled)), tmp_path)
    assert f"{tmp_path / 'scrambled.parquet'}" in message


def test_no_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    message = refused(FileSource(tmp_path / "none.csv"), tmp_path)
    assert f"{tmp_path / 'none.csv'} cannot be read: No such file" in message
    (tmp_path / "folder.csv").mkdir()
    message = refused(FileSource(tmp_path / "folder.csv"), tmp_path)
    assert f"{tmp_path / 'folder.csv'} is a folder; name one file" in message


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _grow(path: Path) -> None:
    with path.open("ab") as more:
        more.write(b"999999,N,f,1,1\n")


def _empty(path: Path) -> None:
    os.truncate(path, 0)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("change", [_truncate, _grow, _empty, Path.unlink])
def test_a_file_that_changes_while_it_is_read_is_refused(
    ending: str, change: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PARQUET, "BATCH", 2048)
    rows = 20_000
    path = tmp_path / f"town.{ending}"
    if ending == "csv":
        lines = (f"{i},N,f,{i % 7},1\n" for i in range(rows))
        path.write_text(HEAD + "".join(lines))
    else:
        columns = {"id": list(range(rows)), "area": ["N", "S"] * (rows // 2)}
        content = pq.read_table(parquet(tmp_path, columns).path)
        pq.write_table(content, path, row_group_size=2048)
    store = Store(tmp_path / "store")
    calls: list[int] = []

    def progress(done: int, total: int | None) -> None:
        if not calls:
            change(path)
        calls.append(done)

    with pytest.raises(IngestError, match="changed while it was read") as caught:
        ingest(FileSource(path), DATASET, store, progress, SECRET)
    assert str(path) in str(caught.value)
    assert "wait until it is complete, or ingest a copy" in str(caught.value)
    assert 0 < calls[0] < rows
    assert store.names() == []


# --- queries


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT nothing FROM (SELECT 1 AS a)", "nothing"),
        ("-- nothing", "gives no rows; write a SELECT"),
        ("SELECT 1 AS id", "has no column 'area'"),
        ("SELECT * FROM read_csv('nowhere.csv')", "nowhere.csv"),
    ],
)
def test_a_wrong_query_is_told_in_the_words_of_the_database(
    query: str, problem: str, tmp_path: Path
) -> None:
    message = refused(QuerySource(query), tmp_path)
    assert message.startswith("The query")
    assert problem in message


def test_a_query_that_stumbles_over_a_value_does_not_quote_it(tmp_path: Path) -> None:
    for column in (
        f"'{PRIVATE}x'::INT",
        f"strptime('{PRIVATE}', '%d/%m/%Y')::TEXT",
        "error('918273')",
    ):
        # More rows than a first look sees, the bad one at the end.
        query = (
            f"SELECT i AS id, 'N' AS area, 'f' AS sex, 1 AS w, "
            f"CASE WHEN i = 9999 THEN {column} ELSE NULL END AS income FROM range(10000) t(i)"
        )
        message = refused(QuerySource(query), tmp_path)
        assert "The query failed" in message


def test_a_query_on_no_database_is_refused(tmp_path: Path) -> None:
    message = refused(QuerySource("SELECT 1", tmp_path / "none.duckdb"), tmp_path)
    assert f"There is no DuckDB file {tmp_path / 'none.duckdb'}" in message
    garbage = tmp_path / "garbage.duckdb"
    garbage.write_bytes(b"garbage" * 1000)
    message = refused(QuerySource("SELECT 1", garbage), tmp_path)
    assert str(garbage) in message


# --- descriptions as files


def test_a_description_is_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "town.toml"
    path.write_text(
        '[dataset]\nname = "town"\n[[variables]]\nname = "area"\ncodes = [["N", "North"], ["S", "South"]]\n'
    )
    dataset = read_description(path)
    assert dataset.variable("area").labels == ("North", "South")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[dataset\n", "is not valid TOML"),
        (b"\xff\xfe", "is not valid TOML"),
        (b'[dataset]\nname = "town"\n', "There is no [[variables]] table"),
        (
            b'[dataset]\nname="t"\n[[variables]]\nname="a"\ncodes=["1","2","1"]\n',
            "uses the code '1' twice",
        ),
    ],
)
def test_a_wrong_description_names_its_file(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "town.toml"
    path.write_bytes(content)
    with pytest.raises(DescriptionError) as caught:
        read_description(path)
    assert str(path) in str(caught.value)
    assert problem in str(caught.value)
    with pytest.raises(DescriptionError, match="cannot be read: No such file"):
        read_description(tmp_path / "none.toml")
