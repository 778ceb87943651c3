"""Records on a Spark cluster of two workers: the same answers, the same bundle, also after a worker is lost.
Blocks on any number of workers and partitions."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import services
from examples import examples
from lustrum.model import Dataset
from lustrum.protect import ProtectedPopulation
from lustrum.protect.population.start import cell_numbers
from lustrum.publish.bundles.on_spark import made_on_spark
from lustrum.tabulate.remote import ConnectedEngine, Connection, IbisEngine
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


def test_partitions_and_workers_leave_the_bytes_of_blocks_and_held_cells_as_they_are(
    spark: services.Spark, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    # One turn of the last pass is enough to see that it goes through.
    monkeypatch.setattr("lustrum.protect.population.blocks.whole._TURNS", 1)
    world = find_world()
    divided = min((len(codes), name) for name, codes in world.codes.items() if len(codes) > 1)[1]
    head = world.description["dataset"] | {"blocks": divided}
    dataset = Dataset.from_mapping(world.description | {"dataset": head})
    method, key = ProtectedPopulation(sweeps=1, extra_tables=0), bytes(range(32))
    digests = set()
    for workers, partitions in ((1, 8), (2, 2), (1, 1))[: examples(2, 3)]:
        master = f"local[{workers}]"
        settings = spark.settings | {
            "spark.sql.shuffle.partitions": str(partitions),
            "spark.pyspark.python": sys.executable,
        }
        session = spark_session(master, settings)
        in_spark(world, session, True, partitions)
        where = Connection("spark", "people", "keys", master=master, settings=settings)
        engine = ConnectedEngine(where, dataset, (0, 0), "")
        cells = engine.finest_cells()
        held = cell_numbers(dataset, cells.codes[:, (cells.counts % 3 > 0) & (cells.counts < 3)])
        made = made_on_spark(engine, method, key, None, lambda *_: None, False, held)
        assert made is not None, caplog.text
        session.stop()
        here = method.protect(cells, key, held=held)
        for result, true in (made, (here, cells)):
            columns = [true.codes, true.counts, true.keys, result.cells.codes, result.cells.counts]
            digest = hashlib.sha256(repr((result.public, result.agency.to_mapping())).encode())
            for column in columns:
                digest.update(np.ascontiguousarray(column).tobytes())
            digests.add(digest.hexdigest())
    assert held.size
    assert len(digests) == 1


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
