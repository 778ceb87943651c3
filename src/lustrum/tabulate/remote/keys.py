"""Record keys for records in a database, written to a table beside them once.

The secret never leaves this machine. Identifiers come here and keys go back in two parts of 32 bits; Spark's
workers make them where they are, from a key derived for this dataset, if what they send is encrypted. Only the
role that Lustrum reads with, or the owner of the files, may read the keys. For any other database they go to a
file, which the agency loads with rights of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, DatasetError, DescriptionError, IngestError, InputError
from lustrum.model.arrays import Ints
from lustrum.model.keys import scramble
from lustrum.tabulate.keys import Secret, dataset_key
from lustrum.tabulate.remote import spark
from lustrum.tabulate.remote.columns import KEY_HIGH, KEY_LOW, RemoteColumns, identities
from lustrum.tabulate.remote.connection import BACKENDS, Connection, Database

_BATCH = 100_000
Progress = Callable[[int], None]


@dataclass(frozen=True, repr=False)
class KeyMaker:
    """Makes keys of one dataset's records, here or in a worker of Spark, without the agency's secret."""

    identity: str
    key: bytes

    def __repr__(self) -> str:
        return "KeyMaker(hidden)"

    def __call__(self, ids: pa.Array) -> pa.Table:
        """Identifiers beside the two parts of their keys."""
        keys = scramble(self.key, identities(ids).astype(np.uint64))
        high, low = keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)
        return pa.table(
            {self.identity: ids, KEY_HIGH: high.astype(np.int64), KEY_LOW: low.astype(np.int64)}
        )


def make_keys(
    connection: Connection,
    dataset: Dataset,
    secret: Secret,
    reader: str | None = None,
    progress: Progress | None = None,
    file: Path | None = None,
) -> tuple[int, int, str]:
    """Make the table of keys that a connection names; gives their number, their sum, and who may read them.

    ``reader`` is the role that may read the table besides its owner, in PostgreSQL. With ``file`` the keys go
    to a new file, CSV or Parquet, that only its owner may read.
    """
    if file is None and connection.keys is None:
        raise DescriptionError("The connection names no table for the keys; write 'keys' into it.")
    if file is None and connection.backend not in _WRITERS:
        raise DescriptionError(
            f"Lustrum writes no keys into {BACKENDS[connection.backend]}, where it does not know who may read "
            "them; write them into a file (--file keys.csv), and load it into a table with rights of your own."
        )
    if reader is not None and connection.backend != "postgres":
        raise DescriptionError(
            f"Only PostgreSQL takes a reader; grant the right in {BACKENDS[connection.backend]} itself."
        )
    database = Database(connection, read_only=file is not None)
    try:
        # Every column that is described is there, and identifiers are numbers or texts.
        columns = RemoteColumns(dataset, database.table(connection.table), None, connection.name)
        work = _KeysMade(connection, dataset, secret, progress or (lambda _: None))
        if file is not None:
            database.run(lambda backend: _to_file(backend, work, columns.table, file))
            return work.rows, work.summed, f"Only their owner may read {file}."
        write = _WRITERS[connection.backend]
        database.run(lambda backend: write(backend, work, columns.table, reader), connection.keys)
        return work.rows, work.summed, work.readers
    finally:
        database.close()


class _KeysMade:
    """Keys piece by piece, with how many there are, what they sum to, and who may read them."""

    def __init__(
        self, connection: Connection, dataset: Dataset, secret: Secret, progress: Progress
    ) -> None:
        self.connection = connection
        self.identity = str(dataset.record_id)
        self.make = KeyMaker(self.identity, dataset_key(secret, dataset.name))
        self._progress = progress
        self._seen: list[Ints] = []
        self.rows, self.summed = 0, 0
        self.readers = ""

    def keys(self, ids: pa.Array) -> pa.Table:
        """Identifiers with the parts of their keys."""
        id_numbers = identities(ids) if not ids.null_count else np.zeros(0, dtype=np.int64)
        self.require_sound(ids.null_count, int(id_numbers.min()) if id_numbers.size else 0)
        table = self.make(ids)
        self._seen.append(id_numbers)
        high, low = (table.column(name).to_numpy().sum() for name in (KEY_HIGH, KEY_LOW))
        self.summed = (self.summed + (int(high) << 32) + int(low)) % (1 << 64)
        self.count(id_numbers.size)
        return table

    def count(self, rows: int) -> None:
        """So many keys were made."""
        self.rows += rows
        self._progress(self.rows)

    def require_sound(self, missing: int, smallest: int) -> None:
        """Refuse identifiers that are missing or negative."""
        where = f"{self.connection.name}, column {self.identity!r}"
        if missing:
            raise IngestError(f"{where}: an identifier is missing; every record needs one.")
        if smallest < 0:
            raise IngestError(f"{where}: an identifier is negative; use other numbers, or texts.")

    def finish(self, rows: int | None = None, different: int | None = None) -> None:
        """Refuse no records at all, and records that share an identifier."""
        if not (self.rows if rows is None else rows):
            raise IngestError(f"{self.connection.name} has no rows; it needs at least one.")
        if rows is None:
            rows, different = self.rows, np.unique(np.concatenate(self._seen)).size
        if different != rows:
            raise IngestError(
                f"{self.connection.name}, column {self.identity!r}: two records have the same record id; every "
                "record needs its own."
            )


def _there_already(name: str) -> DatasetError:
    return DatasetError(
        f"The table {name} is there already; drop it first if its keys may go, for with others every table is "
        "perturbed anew."
    )


def _to_postgres(backend: Any, work: _KeysMade, records: Any, reader: str | None) -> None:
    from psycopg import sql

    def named(table: str) -> Any:
        return sql.Identifier(*table.split("."))

    target = str(work.connection.keys)
    sql_parts = {
        "keys": named(target),
        "records": named(work.connection.table),
        "id": sql.Identifier(work.identity),
        "high": sql.Identifier(KEY_HIGH),
        "low": sql.Identifier(KEY_LOW),
        "kind": sql.SQL("bigint" if records[work.identity].type().is_integer() else "text"),
    }
    connection = backend.con
    connection.rollback()
    with connection.transaction():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT to_regclass(%s) IS NOT NULL", [named(target).as_string(connection)]
            )
            if cursor.fetchone()[0]:
                raise _there_already(target)
            cursor.execute(
                sql.SQL(
                    "CREATE TABLE {keys} "
                    "({id} {kind} PRIMARY KEY, {high} bigint NOT NULL, {low} bigint NOT NULL)"
                ).format(**sql_parts)
            )
            cursor.execute(sql.SQL("REVOKE ALL ON {keys} FROM PUBLIC").format(**sql_parts))
        with connection.cursor("lustrum_ids") as ids, connection.cursor() as writer:
            ids.execute(sql.SQL("SELECT {id}::{kind} FROM {records}").format(**sql_parts))
            while id_rows := ids.fetchmany(_BATCH):
                key_table = work.keys(pa.array([row[0] for row in id_rows]))
                command = sql.SQL("COPY {keys} ({id}, {high}, {low}) FROM STDIN").format(
                    **sql_parts
                )
                with writer.copy(command) as copy:
                    for row in zip(
                        *(key_table.column(i).to_pylist() for i in range(3)), strict=True
                    ):
                        copy.write_row(row)
        work.finish()
        with connection.cursor() as cursor:
            if reader is not None:
                role = sql.Identifier(reader)
                cursor.execute(
                    sql.SQL("GRANT SELECT ON {keys} TO {role}").format(**sql_parts, role=role)
                )
            cursor.execute(sql.SQL("ANALYZE {keys}").format(**sql_parts))


def _batches(backend: Any, work: _KeysMade, records: Any) -> Iterator[pa.Table]:
    ids = records.select(work.identity)
    if work.connection.backend == "duckdb":  # Ibis 12 asks DuckDB for pieces by a name that is gone
        pieces = backend.to_pyarrow(ids).to_batches(_BATCH)
    else:
        pieces = backend.to_pyarrow_batches(ids, chunk_size=_BATCH)
    for piece in pieces:
        yield work.keys(piece.column(0))


def _to_file(backend: Any, work: _KeysMade, records: Any, file: Path) -> None:
    """Keys into a new file, which is there as a whole or not at all."""
    from pyarrow import csv, parquet

    kind = pa.int64() if records[work.identity].type().is_integer() else pa.string()
    schema = pa.schema({work.identity: kind, KEY_HIGH: pa.int64(), KEY_LOW: pa.int64()})
    writers = {".csv": csv.CSVWriter, ".parquet": parquet.ParquetWriter}
    if file.suffix not in writers:
        raise InputError(f"{file} must end in .csv or .parquet.")
    unfinished = file.with_name(f".{file.name}.unfinished")
    try:
        if file.exists():
            raise InputError(f"{file} is there already; name a new file.")
        unfinished.unlink(missing_ok=True)
        unfinished.touch(0o600)
        with unfinished.open("wb") as out:
            with writers[file.suffix](out, schema) as writer:
                for table in _batches(backend, work, records):
                    writer.write_table(table.cast(schema))
            work.finish()
            out.flush()
            os.fsync(out.fileno())
        unfinished.rename(file)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}.") from None
    finally:
        unfinished.unlink(missing_ok=True)


def _to_duckdb(backend: Any, work: _KeysMade, records: Any, _: str | None) -> None:
    name = str(work.connection.keys)
    plain = name.rpartition(".")[2]
    known = "SELECT count(*) FROM information_schema.tables WHERE table_name = ?"
    if backend.con.execute(known, [plain]).fetchall()[0][0]:
        raise _there_already(name)
    key_table = pa.concat_tables(list(_batches(backend, work, records)))
    work.finish()
    backend.con.register("lustrum_made_keys", key_table)
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))
    backend.con.execute(f"CREATE TABLE {quoted} AS SELECT * FROM lustrum_made_keys")
    backend.con.unregister("lustrum_made_keys")


def _to_spark(backend: Any, work: _KeysMade, records: Any, _: str | None) -> None:
    """Keys from Spark's own workers where nobody between can read them, otherwise from here in large pieces."""
    session, where = backend._session, work.connection
    source, target = (spark.quoted(where.parts(name)) for name in (where.table, str(where.keys)))
    if session.catalog.tableExists(target):
        raise _there_already(str(where.keys))
    kind = "BIGINT" if records[work.identity].type().is_integer() else "STRING"
    ids = session.table(source).selectExpr(f"CAST(`{work.identity}` AS {kind}) `{work.identity}`")
    rows, present, different, smallest = spark.identifiers(ids)
    work.require_sound(rows - present, smallest)
    work.finish(rows, different)
    try:
        if not (spark.is_private(session) and spark.written_by_workers(ids, work.make, target)):
            for piece in spark.pieces(ids):
                session.createDataFrame(work.make(piece)).write.mode("append").saveAsTable(target)
                work.count(len(piece))
        work.rows, high, low = spark.sums_of(session.table(target), KEY_HIGH, KEY_LOW)
        work.summed = ((high << 32) + low) % (1 << 64)
        if work.rows != rows:
            raise DatasetError(f"{where.name} changed while keys were made; make them again.")
        work.readers = spark.closed_to_others(session, target)
    except BaseException:
        session.sql(f"DROP TABLE IF EXISTS {target}")
        raise


_WRITERS = {"postgres": _to_postgres, "duckdb": _to_duckdb, "spark": _to_spark}
