"""Worlds as tables in databases, with keys made by hand beside them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import given, settings

import services
from lustrum.tabulate.remote import Connection
from tabulate.worlds import World, worlds

TYPED = {"turnover": "decimal(12,2)", "debt": "bigint", "weight": "double precision"}


def find_world() -> World:
    """A world that is always the same."""
    found: list[World] = []

    @settings(max_examples=12, derandomize=True, database=None, deadline=None)
    @given(world=worlds())
    def draw(world: World) -> None:
        found.append(world)

    draw()
    return max(found, key=lambda world: len(world.records))


def key_table(world: World) -> pa.Table:
    keys = np.array(world.keys, dtype=np.uint64)
    return pa.table(
        {
            "id": [r["id"] for r in world.records],
            "lustrum_key_high": (keys >> np.uint64(32)).astype(np.int64),
            "lustrum_key_low": (keys & np.uint64(0xFFFFFFFF)).astype(np.int64),
        }
    )


def in_duckdb(world: World, path: Path, typed: bool) -> Connection:
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", world.arrow())
        connection.register("made", key_table(world))
        casts = ", ".join(f"{n}::{k} AS {n}" for n, k in TYPED.items())
        replaced = f"REPLACE ({casts})" if typed else ""
        connection.execute(f"CREATE TABLE people AS SELECT * {replaced} FROM given")
        connection.execute("CREATE TABLE keys AS SELECT * FROM made")
    return Connection("duckdb", "people", "keys", database=str(path))


def in_sqlite(world: World, path: Path, typed: bool, keys: bool = True) -> Connection:
    """SQLite knows no decimals: numbers with a fraction are real ones there."""
    path.unlink(missing_ok=True)
    kinds = {"id": "integer", "owner": "integer", "debt": "integer", "weight": "real"}
    kinds["turnover"] = "real"
    with closing(sqlite3.connect(path)) as connection:
        for name, rows in (("people", world.records), ("keys", key_table(world).to_pylist())):
            names = list(rows[0])
            columns = ", ".join(
                f"{n} {kinds.get(n, 'text' if name == 'people' else 'integer')}" for n in names
            )
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" * len(names))
            connection.executemany(
                f"INSERT INTO {name} VALUES ({marks})", [[r[n] for n in names] for r in rows]
            )
        connection.commit()
    return Connection("sqlite", "people", "keys" if keys else None, database=str(path))


def in_postgres(
    world: World, server: services.Postgres, typed: bool, keys: bool = True
) -> Connection:
    """The records in a schema of the agency, readable by Lustrum's role."""
    names = list(world.records[0])
    kinds = {"id": "bigint", "owner": "bigint"} | (TYPED if typed else {})
    columns = ", ".join(f"{n} {kinds.get(n, 'text')}" for n in names)
    with server.connect() as connection:
        connection.execute("DROP SCHEMA IF EXISTS agency CASCADE")
        connection.execute("CREATE SCHEMA agency")
        connection.execute(f"CREATE TABLE agency.people ({columns})")
        with connection.cursor() as cursor:
            with cursor.copy(f"COPY agency.people ({', '.join(names)}) FROM STDIN") as copy:
                for record in world.records:
                    copy.write_row([record[n] for n in names])
        connection.execute(f"GRANT USAGE ON SCHEMA agency TO {services.READER}")
        connection.execute(f"GRANT SELECT ON agency.people TO {services.READER}")
        if keys:
            connection.execute(
                "CREATE TABLE agency.keys "
                "(id bigint PRIMARY KEY, lustrum_key_high bigint, lustrum_key_low bigint)"
            )
            connection.execute(f"GRANT SELECT ON agency.keys TO {services.READER}")
            with connection.cursor() as cursor:
                with cursor.copy("COPY agency.keys FROM STDIN") as copy:
                    for row in key_table(world).to_pylist():
                        copy.write_row(list(row.values()))
    return reading(server)


def reading(server: services.Postgres, role: str = services.READER) -> Connection:
    return Connection(
        "postgres",
        "agency.people",
        "agency.keys",
        database="census",
        host="127.0.0.1",
        port=server.port,
        user=role,
        password_env=f"LUSTRUM_TEST_{role.upper()}",
    )


def in_spark(world: World, session: Any, typed: bool, partitions: int = 2) -> None:
    """The records as views of the session."""
    table = world.arrow()
    if typed:
        kinds = {"turnover": pa.decimal128(12, 2), "debt": pa.int64(), "weight": pa.float64()}
        for name, kind in kinds.items():
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table[name].cast(kind))
    for name, rows in (("people", table), ("keys", key_table(world))):
        session.createDataFrame(rows).repartition(partitions).createOrReplaceTempView(name)
