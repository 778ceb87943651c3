"""Records on a Spark cluster of two workers: the same answers, the same bundle, also after a worker is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import services
from lustrum.tabulate.remote import Connection, IbisEngine
from lustrum.tabulate.remote.spark import spark_session
from tabulate.remote.comparing import KINDS, compare, compare_finest
from tabulate.remote.folders import bundle, connected, copied
from tabulate.remote.tables import find_world, in_spark
from tabulate.worlds import World, question_of, questions, quick, worlds


@pytest.fixture
def cluster(spark: services.Spark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    where = Connection("spark", "people", "keys", master=spark.master, settings=spark.settings)
    session = spark_session(where.master, where.settings)
    yield where
    session.stop()


def small_questions(world: World) -> Iterator[tuple[dict[str, Any], bool]]:
    """A question of every kind: totals, groups, chosen codes and filters."""
    first, *_, last = sorted(world.codes, key=lambda name: len(world.codes[name]))
    group = {"label": "own", "members": list(world.codes[last][:2])}
    axes = [
        [{"variable": first}, {"variable": last, "total": True}],
        [{"variable": last, "groups": [group]}],
        [{"variable": last, "codes": list(world.codes[last][1:3])}],
        [],
        [{"variable": first, "total": True}],
    ]
    for place, (by, kind) in enumerate(zip(axes, KINDS, strict=True)):
        where = {last: list(world.codes[last][1:])} if place % 2 else {}
        yield question_of({"dataset": "world", "by": by, "where": where}, **kind), place == 3


def test_spark_answers_and_protects_as_the_kernel_does_also_after_it_lost_a_worker(
    cluster: Connection, spark: services.Spark, tmp_path: Path
) -> None:
    world = find_world()
    in_spark(world, spark_session(cluster.master, cluster.settings), True)
    for query, unfiltered in small_questions(world):
        compare(world, IbisEngine(cluster, world.dataset, checked=True), query, unfiltered)
    made = replace(cluster, keys="made_keys")
    data = connected(world, tmp_path, made, made)
    files = [spark.folder / "warehouse" / "made_keys"]
    files += files[0].rglob("*")
    assert len(files) > 1
    assert not [file for file in files if file.stat().st_mode & 0o077]
    spark.lose_a_worker()
    assert bundle(data) == bundle(copied(world, tmp_path, data / "policies" / "world.toml"))
    compare_finest(world, IbisEngine(cluster, world.dataset))


@pytest.mark.deep
def test_spark_answers_any_question_as_the_kernel_does(cluster: Connection) -> None:
    session = spark_session(cluster.master, cluster.settings)

    @given(data=st.data(), world=worlds(), typed=st.booleans())
    @quick(3, 10)
    def check(data: st.DataObject, world: World, typed: bool) -> None:
        in_spark(world, session, typed)
        engine = IbisEngine(cluster, world.dataset)
        for kind in KINDS:
            query = question_of(data.draw(questions(world)), **kind)
            compare(world, engine, query, data.draw(st.booleans()))
        compare_finest(world, engine)

    check()
