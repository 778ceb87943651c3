"""The same questions on every engine: counts, sums of keys, contributors and finest cells are the same."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import services
from lustrum.tabulate import FrameSource, Store, ingest
from lustrum.tabulate.finest import finest_cells
from lustrum.tabulate.remote import IbisEngine
from tabulate.remote.comparing import KINDS, compare, compare_finest, same
from tabulate.remote.tables import find_world, in_duckdb, in_postgres
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


@given(data=st.data(), world=worlds(), typed=st.booleans())
@quick_here(6, 100)
def test_duckdb_answers_as_the_kernel_does(
    tmp_path: Path, data: st.DataObject, world: World, typed: bool
) -> None:
    engine = IbisEngine(in_duckdb(world, tmp_path / "world.duckdb", typed), world.dataset)
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
