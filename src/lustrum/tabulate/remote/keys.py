"""Record keys for records in a database: computed here, written to a table beside them once.

The secret never leaves this machine. Identifiers come here, keys go back in two parts of 32 bits, and only the
role that Lustrum reads with may read their table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, DatasetError, DescriptionError, IngestError
from lustrum.model.arrays import Ints, Words
from lustrum.tabulate.keys import Secret, record_keys
from lustrum.tabulate.remote.columns import KEY_HIGH, KEY_LOW, RemoteColumns, identities
from lustrum.tabulate.remote.connection import BACKENDS, Connection, Database

_BATCH = 100_000
Progress = Callable[[int], None]


def make_keys(
    connection: Connection,
    dataset: Dataset,
    secret: Secret,
    reader: str | None = None,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Make the table of keys that a connection names; gives how many keys there are, and their sum.

    ``reader`` is the role that may read the table besides its owner, in PostgreSQL.
    """
    if connection.keys is None:
        raise DescriptionError("The connection names no table for the keys; write 'keys' into it.")
    if reader is not None and connection.backend != "postgres":
        raise DescriptionError(
            f"Only PostgreSQL takes a reader; grant the right in {BACKENDS[connection.backend]} itself."
        )
    database = Database(connection, read_only=False)
    try:
        records = database.table(connection.table)
        RemoteColumns(
            dataset, records, None, connection.name
        )  # every column that is described is there
        work = _KeyBatches(connection, dataset, secret, progress or (lambda _: None))
        write = {"postgres": _to_postgres, "duckdb": _to_duckdb, "spark": _to_spark}[
            connection.backend
        ]
        database.run(lambda backend: write(backend, work, records, reader), connection.keys)
        return work.rows, work.summed
    finally:
        database.close()


class _KeyBatches:
    """Keys batch by batch, with how many there are and what they sum to."""

    def __init__(
        self, connection: Connection, dataset: Dataset, secret: Secret, progress: Progress
    ) -> None:
        self.connection = connection
        self.identity = str(dataset.record_id)
        self._dataset = dataset
        self._secret = secret
        self._progress = progress
        self._seen: list[Ints] = []
        self.rows, self.summed = 0, 0

    def keys(self, ids: pa.Array) -> pa.Table:
        """Identifiers with the parts of their keys."""
        where = f"{self.connection.name}, column {self.identity!r}"
        if ids.null_count:
            raise IngestError(f"{where}: an identifier is missing; every record needs one.")
        id_numbers = identities(ids)
        if id_numbers.size and int(id_numbers.min()) < 0:
            raise IngestError(f"{where}: an identifier is negative; use other numbers, or texts.")
        keys: Words = record_keys(self._secret, self._dataset.name, id_numbers.astype(np.uint64))
        self._seen.append(id_numbers)
        self.rows += id_numbers.size
        self.summed = (self.summed + int(keys.sum(dtype=np.uint64))) % (1 << 64)
        self._progress(self.rows)
        high, low = keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)
        return pa.table(
            {self.identity: ids, KEY_HIGH: high.astype(np.int64), KEY_LOW: low.astype(np.int64)}
        )

    def finish(self) -> None:
        """Refuse records that share an identifier, or have none."""
        if not self.rows:
            raise IngestError(f"{self.connection.name} has no rows; it needs at least one.")
        if np.unique(np.concatenate(self._seen)).size != self.rows:
            raise IngestError(
                f"{self.connection.name}, column {self.identity!r}: two records have the same record id; every "
                "record needs its own."
            )


def _there_already(name: str) -> DatasetError:
    return DatasetError(
        f"The table {name} is there already; drop it first if its keys may go, for with others every table is "
        "perturbed anew."
    )


def _to_postgres(backend: Any, work: _KeyBatches, records: Any, reader: str | None) -> None:
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
            ids.execute(sql.SQL("SELECT {id} FROM {records}").format(**sql_parts))
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


def _batches(backend: Any, work: _KeyBatches, records: Any) -> Iterator[pa.Table]:
    ids = backend.to_pyarrow(records.select(work.identity)).column(0)
    for start in range(0, len(ids), _BATCH):
        yield work.keys(pa.concat_arrays(ids.slice(start, _BATCH).chunks))


def _to_duckdb(backend: Any, work: _KeyBatches, records: Any, _: str | None) -> None:
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


def _to_spark(backend: Any, work: _KeyBatches, records: Any, _: str | None) -> None:
    session, name = backend._session, str(work.connection.keys)
    if session.catalog.tableExists(name):
        raise _there_already(name)
    try:
        for key_batch in _batches(backend, work, records):
            session.createDataFrame(key_batch).write.mode("append").saveAsTable(name)
        work.finish()
    except BaseException:
        session.sql(f"DROP TABLE IF EXISTS {'.'.join(f'`{part}`' for part in name.split('.'))}")
        raise
