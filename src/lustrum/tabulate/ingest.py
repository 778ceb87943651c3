"""Ingest: from CSV, Parquet or anything DuckDB reads into a dataset on disk, whole or not at all."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, DescriptionError, IngestError
from lustrum.model.errors import choices
from lustrum.tabulate.encode import encode
from lustrum.tabulate.frame import as_arrow
from lustrum.tabulate.keys import Secret
from lustrum.tabulate.store import Store

__all__ = ["FileSource", "FrameSource", "QuerySource", "Source", "ingest", "read_description"]

BATCH = 1 << 20
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class FileSource:
    """A CSV or Parquet file, told apart by its ending."""

    path: Path

    @property
    def name(self) -> str:
        """How the source is called in messages."""
        return str(self.path)

    def batches(self, columns: list[str]) -> Iterator[tuple[pa.Table, int | None]]:
        """The wanted columns in order of the file, some rows at a time."""
        before = self._size()
        ending = self.path.suffixes[-2:] if self.path.suffix == ".gz" else self.path.suffixes[-1:]
        kind = "".join(ending).lower().removesuffix(".gz")
        if kind not in (".csv", ".tsv", ".txt", ".parquet"):
            raise IngestError(
                f"{self.path}: files ending in {kind or 'nothing'!r} cannot be read; give .csv, .tsv "
                "or .parquet, or a query for DuckDB."
            )
        with closing(duckdb.connect()) as connection:
            try:
                if kind == ".parquet":
                    relation = connection.read_parquet(str(self.path))
                else:
                    relation = connection.read_csv(str(self.path), header=True, all_varchar=True)
                _check_columns(self.name, relation.columns, columns)
                rows = None
                if kind == ".parquet":
                    rows = int(relation.aggregate("count(*)").fetchall()[0][0])
                for table in _stream(relation, columns):
                    yield table, rows
            except duckdb.Error as error:
                self._check_unchanged(before)
                raise IngestError(f"{self.name} cannot be read: {_plain(error)}") from None
        self._check_unchanged(before)

    def _size(self) -> tuple[int, int]:
        try:
            status = self.path.stat()
        except OSError as error:
            raise IngestError(f"{self.path} cannot be read: {error.strerror}.") from None
        if self.path.is_dir():
            raise IngestError(f"{self.path} is a folder; name one file.")
        if status.st_size == 0:
            raise IngestError(f"{self.path} is empty; it needs a header and at least one row.")
        return status.st_size, status.st_mtime_ns

    def _check_unchanged(self, before: tuple[int, int]) -> None:
        now = self._size()
        if now != before:
            raise IngestError(
                f"{self.path} changed while it was read (it had {before[0]:,} bytes and has {now[0]:,}); "
                "wait until it is complete, or ingest a copy."
            )


@dataclass(frozen=True)
class QuerySource:
    """A query that DuckDB answers: a table of a database file, another format, a join."""

    query: str
    database: Path | None = None

    @property
    def name(self) -> str:
        """How the source is called in messages."""
        return f"The query on {self.database}" if self.database else "The query"

    def batches(self, columns: list[str]) -> Iterator[tuple[pa.Table, int | None]]:
        """The wanted columns in the order of the query, some rows at a time."""
        if self.database is not None and not self.database.is_file():
            raise IngestError(f"There is no DuckDB file {self.database}.")
        try:
            target = ":memory:" if self.database is None else str(self.database)
            with closing(duckdb.connect(target, read_only=self.database is not None)) as connection:
                relation = connection.sql(self.query)
                if relation is None:
                    raise IngestError(f"{self.name} gives no rows; write a SELECT.")
                _check_columns(self.name, relation.columns, columns)
                for table in _stream(relation, columns):
                    yield table, None
        except duckdb.Error as error:
            raise IngestError(f"{self.name} failed: {_plain(error)}") from None


@dataclass(frozen=True)
class FrameSource:
    """A pandas, polars or Arrow table in memory."""

    frame: object
    name: str = "The frame"

    def batches(self, columns: list[str]) -> Iterator[tuple[pa.Table, int | None]]:
        """The wanted columns, some rows at a time."""
        table = as_arrow(self.frame)
        _check_columns(self.name, table.schema.names, columns)
        table = table.select(columns)
        for start in range(0, table.num_rows, BATCH):
            yield table.slice(start, BATCH), table.num_rows


Source = FileSource | QuerySource | FrameSource


def ingest(
    source: Source,
    dataset: Dataset,
    store: Store,
    progress: Progress | None = None,
    secret: Secret | None = None,
) -> int:
    """Read, check and encode a source and put it in force; gives the number of records.

    Whatever goes wrong leaves the dataset as it was. ``progress`` gets the rows done and, where it is
    known, how many there are.
    """
    wanted = [
        *(v.name for v in dataset.variables),
        *(m.name for m in dataset.measures),
        *(w.name for w in dataset.weights),
        *dataset.id_columns,
    ]
    secret = secret or store.secret
    done = 0
    identities: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    with store.replace(dataset) as writer:
        for table, total in source.batches(wanted):
            chunk = encode(table, dataset, source.name, done + 1, secret)
            writer.write(chunk)
            if dataset.record_id is not None:
                identities.append(np.asarray(chunk.ids[dataset.record_id]))
            done += chunk.rows
            if progress is not None:
                progress(done, total)
        if done == 0:
            raise IngestError(f"{source.name} has no rows; it needs at least one.")
        if dataset.record_id is not None:
            _check_unique(np.concatenate(identities), dataset.record_id, source.name)
    return done


def read_description(path: Path) -> Dataset:
    """Read and check a dataset description in TOML."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DescriptionError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DescriptionError(f"{path} is not valid TOML: {error}.") from None
    try:
        return Dataset.from_mapping(raw)
    except DescriptionError as error:
        raise DescriptionError(f"{path}: {error}") from None


def _check_unique(ids: np.ndarray[Any, np.dtype[np.int64]], name: str, source: str) -> None:
    order = np.argsort(ids, kind="stable")
    twice = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if twice.size:
        first, second = sorted(int(order[twice[0] + i]) + 1 for i in (0, 1))
        raise IngestError(
            f"{source}, column {name!r}: rows {first} and {second} have the same record id; every "
            "record needs its own."
        )


def _check_columns(source: str, found: list[str], wanted: list[str]) -> None:
    for name in wanted:
        if name not in found:
            raise IngestError(
                f"{source} has no column {name!r}, which the description asks for; "
                f"{choices(name, found)}."
            )


def _stream(relation: duckdb.DuckDBPyRelation, columns: list[str]) -> Iterator[pa.Table]:
    picked = relation.project(", ".join(f'"{name}"' for name in columns))
    for batch in picked.to_arrow_reader(BATCH):
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def _plain(error: duckdb.Error) -> str:
    """The first sentence of DuckDB's message, without the rows that it may quote."""
    text = str(error)
    line = re.search(r"Line: (\d+)", text) or re.search(r"[Ll]ine (\d+)", text)
    head = re.sub(r"^\w[\w ]* Error: ", "", text.split("\n", 1)[0]).strip().rstrip(".")
    where = f" (line {line.group(1)})" if line and "Line" not in head else ""
    return f"{head}{where}."
