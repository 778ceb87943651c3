"""Ingest: from CSV, Parquet or anything DuckDB reads into a dataset on disk, whole or not at all."""

from __future__ import annotations

import csv
import glob
import gzip
import itertools
import json
import re
import tomllib
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from lustrum.model import Dataset, DescriptionError, IngestError, Weight
from lustrum.model.errors import choices
from lustrum.model.variable import FRAME_ROOM
from lustrum.tabulate import parquet
from lustrum.tabulate.encode import encode
from lustrum.tabulate.frame import as_arrow
from lustrum.tabulate.keys import Secret
from lustrum.tabulate.parquet import ParquetFiles
from lustrum.tabulate.store import Store

LONGEST_HEADER = 1 << 20
_READERS = 2
"""Threads in which DuckDB reads a file: each needs memory, and with one alone batches would end elsewhere."""
_DELIMITERS = (",", ";", "\t", "|")
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class FileSource:
    """A CSV or Parquet file, told apart by its ending."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    def batches(
        self, columns: list[str], coded: Collection[str] = ()
    ) -> Iterator[tuple[pa.Table, int | None]]:
        """The wanted columns in order of the file, some rows at a time.

        Columns that are ``coded`` have few values and may come as dictionaries.
        """
        before = self._size()
        ending = self.path.suffixes[-2:] if self.path.suffix == ".gz" else self.path.suffixes[-1:]
        kind = "".join(ending).lower().removesuffix(".gz")
        if kind not in (".csv", ".tsv", ".txt", ".parquet"):
            raise IngestError(
                f"{self.path}: files ending in {kind or 'nothing'!r} cannot be read; give .csv, .tsv "
                "or .parquet, or a query for DuckDB."
            )
        failed = ""
        try:
            if coded and kind == ".parquet" and self._reads_plainly(columns):
                yield from parquet.batches(self.path, columns, coded, parquet.BATCH)
            else:
                yield from self._queried(kind, columns)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            failed = _csv_problem(error) or (
                f"{_first_line(error)}; make sure that the file is complete and may be read"
            )
        self._check_unchanged(before)
        if failed:
            raise IngestError(f"{self.name} cannot be read: {failed}.")

    def columns(self) -> list[str]:
        self._size()
        failed = ""
        try:
            if self.path.suffix.lower() == ".parquet":
                return list(pq.read_schema(self.path).names)
            return _header(self.path)[0]
        except (pa.ArrowException, OSError) as error:
            failed = _first_line(error)
        raise IngestError(f"{self.name} cannot be read: {failed}.")

    def _reads_plainly(self, columns: list[str]) -> bool:
        _positions(self.name, pq.read_schema(self.path).names, columns)
        return parquet.reads_plainly(self.path, columns)

    def _queried(self, kind: str, columns: list[str]) -> Iterator[tuple[pa.Table, int | None]]:
        """The wanted columns as DuckDB reads them."""
        with closing(duckdb.connect(config={"threads": _READERS})) as connection:
            relation, names = self._open(connection, kind)
            picks = _positions(self.name, names, columns)
            rows = None
            if kind == ".parquet":
                rows = int(relation.aggregate("count(*)").fetchall()[0][0])
            for table in _stream(relation, [relation.columns[i] for i in picks], columns):
                yield table, rows

    def _open(
        self, connection: duckdb.DuckDBPyConnection, kind: str
    ) -> tuple[duckdb.DuckDBPyRelation, list[str]]:
        """The file as a relation, and its columns as the file itself calls them.

        Nothing is left to DuckDB's guesses, which skip lines, rename columns of the same name, take
        a folder ``sex=1`` for a column and a ``*`` in a file's name for many files.
        """
        path = glob.escape(str(self.path))
        if kind == ".parquet":
            relation = connection.read_parquet(path, hive_partitioning=False)
            return relation, pq.read_schema(self.path).names
        names, delimiter = _header(self.path)
        relation = connection.read_csv(
            path,
            header=True,
            auto_detect=False,
            delimiter=delimiter,
            quotechar='"',
            escapechar='"',
            columns={f"c{i}": "VARCHAR" for i in range(len(names))},
            hive_partitioning=False,
        )
        return relation, names

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
        try:
            status = self.path.stat()
            now = (status.st_size, status.st_mtime_ns)
        except OSError:
            now = (0, 0)
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
        return f"The query on {self.database}" if self.database else "The query"

    def batches(
        self, columns: list[str], coded: Collection[str] = ()
    ) -> Iterator[tuple[pa.Table, int | None]]:
        """The wanted columns in the order of the query, some rows at a time."""
        if self.database is not None and not self.database.is_file():
            raise IngestError(f"There is no DuckDB file {self.database}.")
        failed = ""
        try:
            target = ":memory:" if self.database is None else str(self.database)
            with closing(duckdb.connect(target, read_only=self.database is not None)) as connection:
                relation = connection.sql(self.query)
                if relation is None:
                    raise IngestError(f"{self.name} gives no rows; write a SELECT.")
                _positions(self.name, relation.columns, columns, any_case=True)
                for table in _stream(relation, columns, columns):
                    yield table, None
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            failed = _query_problem(error)
        if failed:
            raise IngestError(f"{self.name} failed: {failed}.")


@dataclass(frozen=True)
class FrameSource:
    """A pandas, polars or Arrow table in memory."""

    frame: object = field(repr=False)
    name: str = "The frame"

    def batches(
        self, columns: list[str], coded: Collection[str] = ()
    ) -> Iterator[tuple[pa.Table, int | None]]:
        """The wanted columns, some rows at a time."""
        table = as_arrow(self.frame)
        table = table.select(_positions(self.name, table.schema.names, columns))
        for start in range(0, table.num_rows, parquet.BATCH):
            yield table.slice(start, parquet.BATCH), table.num_rows


Source = FileSource | ParquetFiles | QuerySource | FrameSource


def ingest(
    source: Source,
    dataset: Dataset,
    store: Store,
    progress: Progress | None = None,
    secret: Secret | None = None,
) -> int:
    """Read, check and encode a source and put it in force; gives the number of records.

    Any error leaves the dataset as it was. Record keys come from the secret of the folder, or from the one
    given, which becomes that of the folder. ``progress`` gets the rows done and, where it is
    known, how many there are.

    >>> import pyarrow as pa
    >>> from tempfile import TemporaryDirectory
    >>> from lustrum.tabulate import FrameSource
    >>> words = {"dataset": {"name": "town", "title": "Town"}, "variables": [{"name": "sex", "codes": ["1"]}]}
    >>> with TemporaryDirectory() as folder:
    ...     ingest(FrameSource(pa.table({"sex": ["1", "1"]})), Dataset.from_mapping(words), Store(Path(folder)))
    2
    """
    wanted = [
        *(v.name for v in dataset.variables),
        *(m.name for m in dataset.measures),
        *(c.name for w in dataset.weights for c in w.columns),
        *dataset.id_columns,
    ]
    coded = [v.name for v in dataset.variables]
    done = 0
    weighed = {w.name: 0 for w in dataset.weights if w.total is not None}
    with store.replace(dataset, secret) as writer:
        for table, total in source.batches(wanted, coded):
            chunk = encode(table, dataset, source.name, done + 1, writer.secret)
            writer.write(chunk)
            for name in weighed:
                weighed[name] += int(chunk.numbers[name].sum())
            done += chunk.rows
            if progress is not None:
                progress(done, total)
        if done == 0:
            raise IngestError(f"{source.name} has no rows; it needs at least one.")
        repeated = writer.repeated()
        if repeated is not None:
            first, second = repeated
            raise IngestError(
                f"{source.name}, column {dataset.record_id!r}: rows {first} and {second} have the same record "
                "id; every record needs its own."
            )
        for name, summed in weighed.items():
            _check_frame(dataset.weight(name), summed, source.name)
    return done


def _check_frame(weight: Weight, summed: int, source: str) -> None:
    """Weights must sum to the size of the frame, where the description states it, but for rounding."""
    assert weight.total is not None
    if abs(summed / 10**weight.decimals - weight.total) > FRAME_ROOM * weight.total:
        raise IngestError(
            f"{source}, column {weight.name!r}: the weights do not sum to the frame of {weight.total:,} units "
            f"within {FRAME_ROOM:.1%}; calibrate them, or state another 'total' in the description."
        )


def read_description(path: Path) -> Dataset:
    """Read and check a dataset description in TOML.

    >>> from tempfile import TemporaryDirectory
    >>> text = '[dataset]\\nname = "d"\\ntitle = "D"\\n[[variables]]\\nname = "sex"\\ncodes = ["1", "2"]\\n'
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "d.toml").write_text(text)
    ...     read_description(Path(folder, "d.toml")).variable("sex").codes
    ('1', '2')
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DescriptionError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DescriptionError(f"{path} is not valid TOML: {error}.") from None
    try:
        return Dataset.from_mapping(_with_maps(raw, path.parent))
    except DescriptionError as error:
        raise DescriptionError(f"{path}: {error}") from None


def _with_maps(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The description with the content of the files that its maps name, so that it can stand alone."""
    maps = raw.get("maps", ())
    if not maps or not all(isinstance(m, Mapping) for m in maps):
        return raw
    return {**raw, "maps": [_with_shapes(one, folder) for one in maps]}


def _with_shapes(map_spec: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    rest = {key: value for key, value in map_spec.items() if key != "file"}
    if "file" not in map_spec:
        return rest
    file = folder / str(map_spec["file"])
    try:
        return {**rest, "shapes": json.loads(file.read_text(encoding="utf-8"))}
    except OSError as error:
        raise DescriptionError(f"The map {file.name} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise DescriptionError(f"The map {file.name} is not valid JSON.") from None


def _positions(
    source: str, columns: list[str], wanted: list[str], any_case: bool = False
) -> list[int]:
    """Where each wanted column stands; with ``any_case``, as in SQL, ``Sex`` and ``sex`` are the same."""
    same = str.lower if any_case else str
    for name in wanted:
        if name not in columns:
            raise IngestError(
                f"{source} has no column {name!r}, which the description asks for; "
                f"{choices(name, columns)}."
            )
        times = sum(same(other) == same(name) for other in columns)
        if times > 1:
            raise IngestError(f"{source} has {times} columns named {name!r}; one is right.")
    return [columns.index(name) for name in wanted]


def _header(path: Path) -> tuple[list[str], str]:
    """The columns that a text file names in its first line, and what stands between them."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            first = file.readline(LONGEST_HEADER)
            delimiter = max(_DELIMITERS, key=first.count)
            names = next(csv.reader(itertools.chain([first], file), delimiter=delimiter), [])
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise IngestError(
            f"{path} cannot be read: it is not a complete gzip file; write it again."
        ) from None
    except csv.Error:
        names = []
    if not any(names):
        raise IngestError(f"{path} has no header; its first line must name the columns.")
    if any("\udc80" <= char <= "\udcff" for name in names for char in name):
        raise IngestError(f"{path} cannot be read: line 1 {_NOT_UTF8}.")
    return names, delimiter


def _stream(
    relation: duckdb.DuckDBPyRelation, columns: list[str], names: list[str]
) -> Iterator[pa.Table]:
    quoted = ['"' + column.replace('"', '""') + '"' for column in columns]
    picked = relation.project(", ".join(f"{q} AS c{i}" for i, q in enumerate(quoted)))
    for batch in picked.to_arrow_reader(parquet.BATCH):
        if batch.num_rows:
            yield pa.Table.from_batches([batch]).rename_columns(names)


_NOT_UTF8 = "is not UTF-8; save the file in that encoding"
_CSV_PROBLEMS = {
    "Expected Number of Columns": "does not have as many fields as the header; correct it",
    "Value with unterminated quote": "has a quote that is not closed, or text after it; correct it",
    "Invalid unicode": _NOT_UTF8,
    "Maximum line size": "is too long; a quote before it may not be closed",
}


def _csv_problem(error: Exception) -> str:
    """What is wrong in which line; DuckDB's own message would quote the record."""
    text = str(error)
    line = re.search(r"CSV Error on Line: (\d+)", text)
    if line is None:
        mixed = "it is not valid CSV; make its line ends all of one kind"
        return mixed if "CSV Parser state machine" in text else ""
    for start, problem in _CSV_PROBLEMS.items():
        if re.search(f"^{start}", text, re.MULTILINE):
            return f"line {line.group(1)} {problem}"
    return f"line {line.group(1)} is not valid CSV; correct it"


def _query_problem(error: Exception) -> str:
    """DuckDB's words about the query itself; about the data they would quote somebody's value."""
    kind = str(error).partition(" Error:")[0]
    if kind in ("Binder", "Catalog", "IO", "Parser", "Permission"):
        return _first_line(error)
    return f"a value does not fit what the query does with it ({kind[:30].lower()} error)"


def _first_line(error: Exception) -> str:
    head = str(error).split("\n", 1)[0]
    return re.sub(r"^\w[\w ]* Error: ", "", head).strip().rstrip(".")
