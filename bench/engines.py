"""Counting where the records are: PostgreSQL and Spark through Lustrum, beside a GROUP BY written by hand.

    python bench/engines.py [--records 1000000] [--repeats 5] [--engines postgres spark]

Both sides ask the same server for the same counts and the same sums of keys, in turn; first the answers are
compared. Servers are started on free ports of this machine and stopped at the end, as in the tests.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from parts.figures import record

from lustrum.model import Dataset, TableQuery
from lustrum.tabulate.remote import Connection, IbisEngine
from lustrum.tabulate.remote.spark import spark_session

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import services

SIZES = {"age": 21, "occupation": 13, "education": 9, "region": 2}
LOW = [str(i + 1) for i in range(10)]
WIDE = f"CASE WHEN age IN ({', '.join(map(repr, LOW))}) THEN 0 ELSE 1 END"
QUERIES: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "one-way": ({"by": ["age"]}, ["age"], ""),
    "three-way": (
        {"by": ["age", "occupation", "education"]},
        ["age", "occupation", "education"],
        "",
    ),
    "three-way, one filter": (
        {"by": ["age", "occupation", "education"], "where": {"region": ["1"]}},
        ["age", "occupation", "education"],
        "WHERE region = '1'",
    ),
    "two-way, groups": (
        {"by": [{"variable": "age", "level": "wide"}, "region"]},
        [WIDE, "region"],
        "",
    ),
}


def describe() -> Dataset:
    """Four variables of the sizes of a census hypercube, one with a coarser level."""
    rest = [str(i + 1) for i in range(10, SIZES["age"])]
    wide = [{"code": "low", "members": LOW}, {"code": "high", "members": rest}]
    ladder = {"name": "ages", "levels": [{"name": "wide", "groups": wide}]}
    return Dataset.from_mapping(
        {
            "dataset": {"name": "bench", "record_id": "id"},
            "variables": [
                {"name": name, "codes": [str(i + 1) for i in range(size)]}
                | ({"hierarchies": [ladder]} if name == "age" else {})
                for name, size in SIZES.items()
            ],
        }
    )


def invented(records: int) -> tuple[pa.Table, pa.Table]:
    """People and their keys."""
    chance = np.random.default_rng(1)
    people = {"id": np.arange(records)}
    for name, size in SIZES.items():
        people[name] = np.array([str(i + 1) for i in range(size)])[
            chance.integers(0, size, records)
        ]
    high, low = (chance.integers(0, 2**32, records) for _ in range(2))
    keys = {"id": people["id"], "lustrum_key_high": high, "lustrum_key_low": low}
    return pa.table(people), pa.table(keys)


def by_hand(axes: list[str], where: str) -> str:
    """The GROUP BY that somebody would write."""
    return (
        f"SELECT {', '.join(axes)}, count(*), sum(lustrum_key_high), sum(lustrum_key_low) "
        f"FROM people JOIN keys USING (id) {where} "
        f"GROUP BY {', '.join(str(i + 1) for i in range(len(axes)))}"
    )


Ask = Callable[[str], list[tuple[Any, ...]]]


@contextmanager
def postgres(people: pa.Table, keys: pa.Table) -> Iterator[tuple[Connection, Ask]]:
    """A server that holds the records and has been told to look at them."""
    with services.postgres() as server:
        with server.connect() as connection:
            columns = ", ".join(f"{name} text" for name in SIZES)
            connection.execute(f"CREATE TABLE people (id bigint PRIMARY KEY, {columns})")
            parts = "lustrum_key_high bigint, lustrum_key_low bigint"
            connection.execute(f"CREATE TABLE keys (id bigint PRIMARY KEY, {parts})")
            for name, table in (("people", people), ("keys", keys)):
                with connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
                    for batch in table.to_batches(50_000):
                        for row in zip(*(c.to_pylist() for c in batch.columns), strict=True):
                            copy.write_row(row)
            connection.execute("VACUUM ANALYZE")
        os.environ["LUSTRUM_BENCH"] = server.passwords[services.OWNER]
        where = Connection(
            "postgres",
            "people",
            "keys",
            database="census",
            host="127.0.0.1",
            port=server.port,
            user=services.OWNER,
            password_env="LUSTRUM_BENCH",
        )
        with server.connect() as connection:
            yield where, lambda sql: connection.execute(sql).fetchall()


@contextmanager
def spark(people: pa.Table, keys: pa.Table) -> Iterator[tuple[Connection, Ask]]:
    """A cluster of two workers over Parquet files."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with services.spark() as cluster:
        quick = {"spark.sql.codegen.wholeStage": "true", "spark.sql.adaptive.enabled": "true"}
        where = Connection(
            "spark", "people", "keys", master=cluster.master, settings=cluster.settings | quick
        )
        session = spark_session(where.master, where.settings)
        for name, table in (("people", people), ("keys", keys)):
            path = cluster.folder / f"{name}.parquet"
            pyarrow.parquet.write_table(table, path, row_group_size=100_000)
            session.read.parquet(str(path)).createOrReplaceTempView(name)

        def ask(sql: str) -> list[tuple[Any, ...]]:
            found = session.sql(sql).toArrow()
            return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

        try:
            yield where, ask
        finally:
            session.stop()


def measure(where: Connection, ask: Ask, repeats: int) -> None:
    """Compare answers, then times."""
    engine = IbisEngine(where, describe(), checked=True)
    for name, (words, axes, condition) in QUERIES.items():
        query = TableQuery.from_mapping({"dataset": "bench"} | words)
        sql = by_hand(axes, condition)
        rows = ask(sql)
        table = engine.tabulate(query)
        assert table.keys is not None
        assert int(table.values.sum()) == sum(int(row[-3]) for row in rows)
        assert sorted(table.values[table.values > 0].ravel().tolist()) == sorted(
            int(row[-3]) for row in rows
        )
        summed = sum((int(row[-2]) << 32) + int(row[-1]) for row in rows) % 2**64
        assert int(table.keys.sum(dtype=np.uint64)) == summed
        took: dict[str, list[float]] = {"own": [], "hand": []}
        for _ in range(repeats):
            for who, task in (
                ("own", lambda query=query: engine.tabulate(query)),
                ("hand", lambda sql=sql: ask(sql)),
            ):
                started = time.perf_counter()
                task()
                took[who].append(time.perf_counter() - started)
        own, hand = (statistics.median(took[who]) for who in ("own", "hand"))
        figures = {"engine": where.backend, "table": name, "Lustrum (s)": own, "by hand (s)": hand}
        record("Records in databases", figures | {"ratio": own / hand})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--engines", nargs="+", default=["postgres", "spark"])
    asked = parser.parse_args()
    people, keys = invented(asked.records)
    print(f"{asked.records:,} records, median of {asked.repeats}")
    for name in asked.engines:
        with {"postgres": postgres, "spark": spark}[name](people, keys) as (where, ask):
            measure(where, ask, asked.repeats)


if __name__ == "__main__":
    main()
