"""The same questions on every engine: counts, sums of keys, contributors and finest cells are the same."""

from __future__ import annotations

import ast
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import services
from lustrum.tabulate import FrameSource, Store, ingest
from lustrum.tabulate.finest import finest_cells
from lustrum.tabulate.remote import BACKENDS, Database, IbisEngine, check_engine
from lustrum.tabulate.remote.connection import PASSWORDS
from tabulate.remote.comparing import KINDS, compare, compare_finest, same
from tabulate.remote.tables import find_world, in_duckdb, in_postgres, in_sqlite
from tabulate.worlds import SECRET, World, question_of, questions, quick, worlds


def quick_here(usual: int, deep: int) -> settings:
    return settings(
        quick(usual, deep),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def check_same(data: st.DataObject, world: World, engine: IbisEngine) -> None:
    for kind in KINDS:
        query = question_of(data.draw(questions(world)), **kind)
        compare(world, engine, query, unfiltered=data.draw(st.booleans()))
    compare_finest(world, engine)


@pytest.mark.parametrize("into", [in_duckdb, in_sqlite])
@given(data=st.data(), world=worlds(), typed=st.booleans())
@quick_here(6, 100)
def test_a_file_answers_as_the_kernel_does(
    tmp_path: Path, into: Any, data: st.DataObject, world: World, typed: bool
) -> None:
    engine = IbisEngine(into(world, tmp_path / "world", typed), world.dataset)
    try:
        check_same(data, world, engine)
    finally:
        engine.database.close()


@given(data=st.data(), world=worlds(), typed=st.booleans())
@quick_here(6, 100)
def test_postgres_answers_as_the_kernel_does(
    postgres: services.Postgres, data: st.DataObject, world: World, typed: bool
) -> None:
    engine = IbisEngine(in_postgres(world, postgres, typed), world.dataset)
    try:
        check_same(data, world, engine)
    finally:
        engine.database.close()


def test_the_engine_on_disk_gives_the_same_finest_cells(
    postgres: services.Postgres, tmp_path: Path
) -> None:
    world = find_world()
    store = Store(tmp_path / "store")
    ingest(FrameSource(world.arrow()), world.dataset, store, secret=SECRET)
    engine = IbisEngine(in_postgres(world, postgres, True), world.dataset)
    ours, theirs = engine.finest_cells(), finest_cells(store.open("world"))
    engine.database.close()
    for name in ("codes", "counts", "keys"):
        assert same(getattr(ours, name), getattr(theirs, name))


def test_a_database_that_answers_otherwise_in_one_number_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = find_world()
    connection = in_duckdb(world, tmp_path / "world.duckdb", True)
    assert check_engine(connection, world.dataset, 8).conforms
    assert check_engine(replace(connection, keys=None), world.dataset, 3).conforms
    answered = Database.rows
    for wrong in ("n", "s", "low", "everybody", "value"):

        def one_more(
            self: Database, question: Any, *, few: bool = False, column: str = wrong
        ) -> pa.Table:
            rows = answered(self, question, few=few)
            if column not in rows.schema.names or not rows.num_rows:
                return rows
            place = rows.schema.get_field_index(column)
            values = [int(v or 0) for v in rows.column(column).to_pylist()]
            values[-1] += 1
            return rows.set_column(place, column, pa.array(values))

        with monkeypatch.context() as patch:
            # Only answers to questions are wrong: what is read as the copy holds none of these columns.
            patch.setattr(Database, "rows", one_more)
            assert not check_engine(connection, world.dataset, 8).conforms


def test_ibis_knows_every_word_that_a_connection_gives_it() -> None:
    """Most drivers are not here, so that Ibis's own text is read."""
    anything = {"athena", "bigquery", "druid", "snowflake"}  # these take what their driver takes
    for backend in sorted(set(BACKENDS) - {"duckdb", "spark", "sqlite"} - anything):
        found = find_spec(f"ibis.backends.{backend}")
        assert found is not None
        assert found.origin is not None
        functions = [
            node
            for node in ast.walk(ast.parse(Path(found.origin).read_text()))
            if isinstance(node, ast.FunctionDef) and node.name == "do_connect"
        ]
        known = {a.arg for f in functions for a in (*f.args.args, *f.args.kwonlyargs)}
        takes_more = any(f.args.kwarg for f in functions)
        words = {"host", "port", "user", PASSWORDS.get(backend, "password"), "database"}
        if backend == "databricks":
            words = {"access_token", "catalog", "schema", "server_hostname", "http_path"}
        assert words <= known or (takes_more and {"host", "port", "user"} <= known), backend
