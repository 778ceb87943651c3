"""Ingest writes the same bytes as a plain way that holds everything in memory and encodes value by value."""

from __future__ import annotations

import csv
import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lustrum.model import Dataset
from lustrum.model.keys import text_identity
from lustrum.tabulate import FileSource, FrameSource, QuerySource, Source, Store, ingest
from lustrum.tabulate.keys import record_keys
from lustrum.tabulate.store.files import Digest
from tabulate.worlds import SECRET

PARQUET = import_module("lustrum.tabulate.parquet")
ROWS = 5000
AREAS = ["N", "S", "é", "a,b", ' "x" ', "017", "17", "unknown"]
MUNICIPALITIES = [f"{i:03d}" for i in range(300)]
DAYS = ["2021-10-31", "2021-11-01"]
FILES = ("records.arrow", "keys.arrow", "dataset.json")


def described(record_id: bool = True, day: bool = False) -> Dataset:
    variables: list[dict[str, Any]] = [
        {"name": "area", "codes": AREAS, "missing": "unknown"},
        {"name": "sex", "codes": ["1", "2"]},
        {"name": "municipality", "codes": MUNICIPALITIES},
    ]
    if day:
        variables.append({"name": "day", "codes": DAYS})
    return Dataset.from_mapping(
        {
            "dataset": {"name": "town", "identifiers": ["farm"]}
            | ({"record_id": "id"} if record_id else {}),
            "variables": variables,
            "measures": [
                {"name": "income", "decimals": 2, "missing": "7.25", "holding": "farm"},
                {"name": "rooms"},
            ],
            "weights": [{"name": "w", "decimals": 1, "total": 7500}],
        }
    )


def people(rows: int = ROWS) -> pa.Table:
    """Records with blanks and odd codes, in no order of their ids."""
    chance = np.random.default_rng(7)

    def some(values: list[Any], gaps: float = 0.0) -> list[Any]:
        picked = [values[i] for i in chance.integers(0, len(values), rows)]
        empty = chance.random(rows) < gaps
        return [None if gap else value for gap, value in zip(empty, picked, strict=True)]

    cents = [Decimal(int(i)).scaleb(-2) for i in chance.integers(-900, 10**9, rows)]
    gaps = chance.random(rows) < 0.1
    return pa.table(
        {
            "id": pa.array(chance.permutation(10 * rows)[:rows]),
            "area": pa.array(some(AREAS, 0.2)),
            "sex": pa.array(some([1, 2]), pa.int8()),
            "municipality": pa.array(some(MUNICIPALITIES)),
            "income": pa.array(
                [None if gap else cent for gap, cent in zip(gaps, cents, strict=True)],
                pa.decimal128(12, 2),
            ),
            "rooms": pa.array(some(list(range(9))), pa.uint16()),
            "w": pa.array([1.5] * rows),
            "farm": pa.array([f"farm {i}" for i in some(list(range(5)))]),
            "day": pa.array(some([datetime.date.fromisoformat(day) for day in DAYS])),
        }
    )


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


def plain_way(batches: list[pa.Table], dataset: Dataset) -> dict[str, bytes]:
    """The files of a version, from all batches in memory, one value at a time."""
    fields: list[tuple[str, pa.DataType]] = []
    for v in dataset.variables:
        index = pa.uint8() if len(v.codes) <= 256 else pa.uint16()
        fields.append((v.name, pa.dictionary(index, pa.string())))
    numbers = [*dataset.measures, *dataset.weights]
    fields += [(n.name, pa.int64()) for n in numbers]
    fields += [(name, pa.int64()) for name in dataset.id_columns]
    schema = pa.schema(fields)
    written: dict[str, bytes] = {}
    outs = (pa.BufferOutputStream(), pa.BufferOutputStream())
    first = 1
    key_schema = pa.schema([("key", pa.uint64())])
    with pa.ipc.new_file(outs[0], schema) as records, pa.ipc.new_file(outs[1], key_schema) as keys:
        for batch in batches:
            arrays: list[pa.Array] = []
            for v, field in zip(dataset.variables, schema, strict=False):
                place = {code: i for i, code in enumerate(v.codes)}
                codes = [
                    place[v.missing or "" if x is None else text_of(x)]
                    for x in batch.column(v.name).to_pylist()
                ]
                index_array = pa.array(codes, field.type.index_type)
                arrays.append(pa.DictionaryArray.from_arrays(index_array, pa.array(v.codes)))
            for number in numbers:
                missing = getattr(number, "missing", None)
                values = [
                    int(Decimal(str(missing if x is None else x)).scaleb(number.decimals))
                    for x in batch.column(number.name).to_pylist()
                ]
                arrays.append(pa.array(values, pa.int64()))
            identities: dict[str, list[int]] = {}
            for name in dataset.id_columns:
                identities[name] = [text_identity(str(x)) for x in batch.column(name).to_pylist()]
                arrays.append(pa.array(identities[name], pa.int64()))
            records.write_batch(pa.record_batch(arrays, schema=schema))
            own = (
                list(range(first, first + batch.num_rows))
                if dataset.record_id is None
                else identities[dataset.record_id]
            )
            made = record_keys(SECRET, "town", np.array(own, dtype=np.uint64))
            keys.write_batch(pa.record_batch([pa.array(made)], names=["key"]))
            first += batch.num_rows
    marks: dict[str, Any] = {}
    for name, out in zip(FILES, outs, strict=False):
        written[name] = out.getvalue().to_pybytes()
        digest = Digest()
        digest.update(memoryview(written[name]))
        marks[name] = {"bytes": len(written[name]), "digest": digest.result()}
    words = {
        "format": 2,
        "key_version": 1,
        "rows": first - 1,
        "files": marks,
        "secret": SECRET.fingerprint,
        "description": dataset.source,
    }
    written["dataset.json"] = json.dumps(words, ensure_ascii=False).encode()
    return written


def as_queried(sql: str) -> list[pa.Table]:
    """The batches in which DuckDB streams a query with two threads."""
    with duckdb.connect(config={"threads": 2}) as connection:
        return [
            pa.Table.from_batches([batch])
            for batch in connection.sql(sql).to_arrow_reader(PARQUET.BATCH)
        ]


def parquet_file(
    path: Path, table: pa.Table, groups: list[int] | None = None, **how: Any
) -> FileSource:
    with pq.ParquetWriter(path, table.schema, **how) as writer:
        done = 0
        for rows in groups or [table.num_rows]:
            writer.write_table(table.slice(done, rows), row_group_size=max(1, rows))
            done += rows
        assert done == table.num_rows
    return FileSource(path)


def csv_file(path: Path, table: pa.Table) -> FileSource:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return FileSource(path)


def changed(table: pa.Table, **columns: pa.Array) -> pa.Table:
    for name, column in columns.items():
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def text_ids(table: pa.Table) -> pa.Array:
    """Plain numbers, numbers with zeros before them, long ones, and words."""
    forms: list[Callable[[int], str]] = [str, "0{}".format, "person {}".format, "99{:017d}".format]
    ids = table["id"].to_pylist()
    return pa.array([forms[i % 4](one) for i, one in enumerate(ids)])


GROUPS = [10, 1500, 0, 1, 2048, 941, 500]
PEOPLE = people()
SHAPES: dict[str, tuple[pa.Table, dict[str, Any]]] = {
    "as it comes": (PEOPLE, {}),
    "row groups of many sizes": (PEOPLE, {"groups": GROUPS}),
    "no dictionaries": (PEOPLE, {"groups": GROUPS, "use_dictionary": False}),
    "dictionaries given up": (PEOPLE, {"dictionary_pagesize_limit": 64, "data_page_size": 512}),
    "ids in order": (changed(PEOPLE, id=pa.array(range(ROWS))), {"groups": GROUPS}),
    "ids as texts": (changed(PEOPLE, id=text_ids(PEOPLE)), {"groups": GROUPS}),
    "numbers as texts": (
        changed(
            PEOPLE,
            sex=PEOPLE["sex"].cast(pa.string()),
            income=PEOPLE["income"].cast(pa.string()),
            w=pa.array(["1.5"] * ROWS),
        ),
        {"groups": GROUPS},
    ),
    "other types": (
        changed(
            PEOPLE,
            area=PEOPLE["area"].dictionary_encode(),
            sex=PEOPLE["sex"].cast(pa.uint64()),
            municipality=PEOPLE["municipality"].cast(pa.large_string()),
            rooms=PEOPLE["rooms"].cast(pa.int64()),
            w=PEOPLE["w"].cast(pa.float32()),
        ),
        {"groups": GROUPS},
    ),
    "binary views": (
        changed(PEOPLE, area=PEOPLE["area"].cast(pa.string_view())),
        {"groups": GROUPS, "compression": "zstd"},
    ),
    "second kind of data pages": (
        PEOPLE,
        {"groups": GROUPS, "data_page_version": "2.0", "write_batch_size": 100},
    ),
}


def same(source: Source, batches: list[pa.Table], dataset: Dataset, root: Path) -> None:
    store = Store(root / "store")
    assert ingest(source, dataset, store, secret=SECRET) == ROWS
    folder = store.root / "town" / store.version("town")
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    expected = plain_way(batches, dataset)
    for name in FILES:
        assert (folder / name).read_bytes() == expected[name], name


@pytest.fixture(params=[1 << 20, 2048, 700], ids="batches of {}".format)
def batch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(PARQUET, "BATCH", request.param)
    return int(request.param)


@pytest.mark.usefixtures("batch")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("record_id", [True, False], ids=["record ids", "row numbers"])
def test_parquet_files_give_the_same_bytes(shape: str, record_id: bool, tmp_path: Path) -> None:
    table, how = SHAPES[shape]
    source = parquet_file(tmp_path / "people.parquet", table, **how)
    batches = as_queried(f"SELECT * FROM read_parquet('{source.path}')")
    same(source, batches, described(record_id), tmp_path)


@pytest.mark.usefixtures("batch")
def test_columns_of_rarer_types_give_the_same_bytes(tmp_path: Path) -> None:
    source = parquet_file(tmp_path / "people.parquet", PEOPLE, GROUPS)
    batches = as_queried(f"SELECT * FROM read_parquet('{source.path}')")
    same(source, batches, described(day=True), tmp_path)


@pytest.mark.usefixtures("batch")
def test_text_files_give_the_same_bytes(tmp_path: Path) -> None:
    source = csv_file(tmp_path / "people.csv", changed(PEOPLE, id=text_ids(PEOPLE)))
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in PEOPLE.column_names)
    read = f"read_csv('{source.path}', header=true, auto_detect=false, columns={{{columns}}}"
    batches = as_queried(f"SELECT * FROM {read}, quote='\"', escape='\"')")
    same(source, batches, described(), tmp_path)


@pytest.mark.usefixtures("batch")
def test_a_query_over_several_files_gives_the_same_bytes(tmp_path: Path) -> None:
    parts = [PEOPLE.slice(0, 3000), PEOPLE.slice(3000)]
    for i, part in enumerate(parts):
        parquet_file(tmp_path / f"people{i}.parquet", part)
    paths = [str(tmp_path / f"people{i}.parquet") for i in range(2)]
    query = f"SELECT * FROM read_parquet({paths})"
    same(QuerySource(query), as_queried(query), described(), tmp_path)


def test_frames_give_the_same_bytes(batch: int, tmp_path: Path) -> None:
    batches = [PEOPLE.slice(start, batch) for start in range(0, ROWS, batch)]
    same(FrameSource(PEOPLE), batches, described(day=True), tmp_path)
    coded = changed(PEOPLE, area=PEOPLE["area"].dictionary_encode())
    same(FrameSource(coded), batches, described(day=True), tmp_path / "coded")
