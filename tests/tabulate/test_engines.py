"""Every engine gives the same table and the same summed keys as loops over the records."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lustrum.model import Axis, Dataset, Filter, InputError, QueryError, Table, TableQuery
from lustrum.numeric.counting import kernel, plan
from lustrum.runtime.stop import Stopped, stopping
from lustrum.tabulate import (
    EmbeddedEngine,
    Engine,
    FileSource,
    FrameEngine,
    FrameSource,
    HypercubeEngine,
    KernelEngine,
    Store,
    aggregate,
    ingest,
)
from small import described
from tabulate.sql_engine import SqlEngine
from tabulate.worlds import (
    HOLDINGS,
    MODULUS,
    SECRET,
    Truth,
    World,
    question_of,
    questions,
    quick,
    truth,
    units,
    worlds,
)

PARQUET = import_module("lustrum.tabulate.parquet")


@contextmanager
def engines(
    world: World, source: str, batch: int, block: int, workers: int, at_once: int = 1_000_000
) -> Iterator[dict[str, Engine]]:
    """All engines over one world, the one on disk in small chunks."""
    dataset = world.dataset
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(PARQUET, "BATCH", batch),
        patch.object(kernel, "BLOCK", block),
        patch.object(kernel, "WIDE_BLOCK", 2 * block),
        patch.object(plan, "ZONE", min(block, 3)),
        patch.object(kernel, "WORTH_IT", at_once),
        patch.object(os, "fsync"),
    ):
        root = Path(folder)
        given_as = {
            "frame": lambda: FrameSource(world.arrow()),
            "csv": lambda: FileSource(world.to_csv(root / "world.csv")),
            "parquet": lambda: FileSource(world.to_parquet(root / "world.parquet")),
        }[source]()
        store = Store(root / "store")
        assert ingest(given_as, dataset, store, secret=SECRET) == len(world.records)
        disk = store.open("world", workers)
        yield {
            "disk": disk,
            "arrow": FrameEngine(world.arrow(), dataset, SECRET, workers),
            "pandas": FrameEngine(world.pandas(), dataset, SECRET, workers),
            "polars": FrameEngine(world.polars(), dataset, SECRET, workers),
            "sql": SqlEngine(dataset, list(disk.chunks)),
        }


def hypercube(world: World, engine: Engine, workers: int) -> HypercubeEngine:
    return HypercubeEngine(aggregate(engine, list(world.codes)), world.dataset, workers=workers)


settings_of_a_run = {
    "source": st.sampled_from(["frame", "frame", "csv", "parquet"]),
    "batch": st.sampled_from([1, 3, 1000]),
    "block": st.sampled_from([1, 2, 7, 1 << 15]),
    "workers": st.integers(1, 4),
}


def check_counts(table: Table, world: World, expected: Truth) -> None:
    keys = world.keys
    assert [list(axis.codes) for axis in table.axes] == expected.codes
    assert table.shape == expected.shape
    assert table.keys is not None
    assert table.contributors is not None
    assert table.structural is not None
    for position, cell in expected.cells.items():
        assert table.values[position] == len(cell.records)
        assert table.contributors[position] == len(cell.records)
        assert int(table.keys[position]) == sum(keys[r] for r in cell.records) % MODULUS
        assert table.structural[position] == cell.structural


@given(data=st.data(), world=worlds(), at_once=st.sampled_from([0, 3]), **settings_of_a_run)
@quick(10, 80)
def test_every_engine_counts_like_a_loop_over_the_records(
    data: st.DataObject, world: World, at_once: int, **settings: Any
) -> None:
    workers = settings["workers"]
    with engines(world, at_once=at_once, **settings) as found:
        found["hypercube"] = hypercube(world, found["arrow"], workers)
        for _ in range(2):
            raw = data.draw(questions(world))
            query = question_of(raw)
            expected = truth(world, raw)
            for name, engine in found.items():
                check_counts(engine.tabulate(query), world, expected)
                assert engine.tabulate(query).decimals == 0, name
            for frame in (world.arrow(), world.pandas(), world.polars()):
                at_once = Table.from_frame(frame, query, dataset=world.dataset, secret=SECRET)
                check_counts(at_once, world, expected)


@given(data=st.data(), world=worlds(), **settings_of_a_run)
@quick(8, 60)
def test_one_pass_also_counts_what_was_there_before_choices_and_filters(
    data: st.DataObject, world: World, source: str, batch: int, block: int, workers: int
) -> None:
    with engines(world, source, batch, block, workers) as found:
        found["hypercube"] = hypercube(world, found["sql"], workers)
        raw = data.draw(questions(world))
        for engine in found.values():
            cube = engine.cube(question_of(raw), unfiltered=True)
            check_counts(cube.shown(), world, truth(world, raw))
            check_counts(cube.widened(), world, truth(world, raw, wide=True))
            check_counts(cube.unfiltered(), world, truth(world, raw, wide=True, filtered=False))


@given(
    data=st.data(),
    world=worlds(variables=3),
    measure=st.sampled_from(["turnover", "debt"]),
    weighted=st.booleans(),
    ranks=st.integers(0, 3),
    unfiltered=st.booleans(),
    **settings_of_a_run,
)
@quick(10, 80)
def test_every_engine_sums_and_ranks_like_a_loop_over_the_records(
    data: st.DataObject,
    world: World,
    measure: str,
    weighted: bool,
    ranks: int,
    unfiltered: bool,
    source: str,
    batch: int,
    block: int,
    workers: int,
) -> None:
    with engines(world, source, batch, block, workers) as found:
        raw = data.draw(questions(world))
        more = {"measure": measure} | ({"weight": "weight"} if weighted else {})
        for engine in found.values():
            cube = engine.cube(question_of(raw, **more), unfiltered=unfiltered, ranks=ranks)
            check_magnitudes(cube.shown(), world, truth(world, raw), measure, weighted, ranks)
            if unfiltered:
                before = truth(world, raw, wide=True, filtered=False)
                check_sums(cube.unfiltered(), world, before, measure, weighted)
                # Contributors are holdings; those of the table before the filters are not known.
                records = None if measure == "turnover" else cube.unfiltered().values.size
                whole = cube.unfiltered().contributors
                assert (None if whole is None else whole.size) == records


def check_sums(table: Table, world: World, expected: Truth, measure: str, weighted: bool) -> None:
    assert table.kind == "magnitude"
    assert table.decimals == {"turnover": 2, "debt": 0}[measure] + (1 if weighted else 0)
    assert table.unit == {"turnover": "EUR", "debt": "EUR"}[measure]
    for position, cell in expected.cells.items():
        rows = [world.records[r] for r in cell.records]
        times = [units(r["weight"]) if weighted else 1 for r in rows]
        total = sum(units(r[measure]) * t for r, t in zip(rows, times, strict=True))
        assert table.values[position] == total


def check_magnitudes(
    table: Table, world: World, expected: Truth, measure: str, weighted: bool, ranks: int
) -> None:
    check_sums(table, world, expected, measure, weighted)
    assert table.contributors is not None
    assert (table.contributions is None) == (ranks == 0)
    for position, cell in expected.cells.items():
        own: dict[int, list[int]] = {}
        for number in cell.records:
            owner = world.records[number]["owner" if measure == "turnover" else "id"]
            own.setdefault(owner, []).append(number)
        assert table.contributors[position] == len(own)
        amounts = {o: sum(units(world.records[r][measure]) for r in rs) for o, rs in own.items()}
        best = sorted(own, key=lambda o: (-abs(amounts[o]), o))[:ranks]
        if table.contributions is None:
            continue
        filled = best + [-1] * (ranks - len(best))
        assert table.contributions.holding[position].tolist() == filled
        assert table.contributions.value[position].tolist() == [amounts.get(o, 0) for o in filled]
        assert table.contributions.present[position].tolist() == [o >= 0 for o in filled]
        assert (table.contributions.weight is None) == (not weighted)
        assert table.contributions.weight_decimals == (1 if weighted else 0)
        if table.contributions.weight is not None:
            for found, owner in zip(table.contributions.weight[position], filled, strict=True):
                parts = [units(world.records[r]["weight"]) for r in own.get(owner, [])]
                assert math.isclose(found, sum(parts) / len(parts) if parts else 0.0)


@given(data=st.data(), world=worlds(variables=3), **settings_of_a_run)
@quick(5, 40)
def test_weights_alone_give_weighted_counts(
    data: st.DataObject, world: World, source: str, batch: int, block: int, workers: int
) -> None:
    with engines(world, source, batch, block, workers) as found:
        raw = data.draw(questions(world))
        expected = truth(world, raw)
        for engine in found.values():
            table = engine.tabulate(question_of(raw, weight="weight"))
            assert (table.kind, table.decimals) == ("count", 1)
            assert table.contributors is not None
            for position, cell in expected.cells.items():
                weights = [units(world.records[r]["weight"]) for r in cell.records]
                assert table.values[position] == sum(weights)
                assert table.contributors[position] == len(cell.records)


@given(data=st.data(), world=worlds(zeros=True, variables=3))
@quick(15, 160)
def test_a_cell_is_structural_when_no_combination_is_left_for_it(
    data: st.DataObject, world: World
) -> None:
    assume(world.records)
    engine = FrameEngine(world.arrow(), world.dataset, SECRET)
    raw = data.draw(questions(world))
    cube = engine.cube(question_of(raw), unfiltered=True)
    check_counts(cube.shown(), world, truth(world, raw))
    check_counts(cube.widened(), world, truth(world, raw, wide=True))
    check_counts(cube.unfiltered(), world, truth(world, raw, wide=True, filtered=False))


def test_two_structural_zeros_may_cover_a_cell_together() -> None:
    dataset = described(
        "people",
        {"age": ["child", "adult"], "marital": ["single", "married", "widowed"]},
        structural_zeros=[
            {"reason": "no child marries", "where": {"age": ["child"], "marital": ["married"]}},
            {"reason": "nor is widowed", "where": {"age": ["child"], "marital": ["widowed"]}},
        ],
    )
    frame = pa.table({"age": ["child", "adult"], "marital": ["single", "widowed"]})
    engine = FrameEngine(frame, dataset)
    ever = {"label": "ever married", "members": ["married", "widowed"]}
    query = {"dataset": "people", "by": ["age", {"variable": "marital", "groups": [ever]}]}
    table = engine.tabulate(TableQuery.from_mapping(query))
    assert table.structural.tolist() == [[True], [False]]
    by_age = TableQuery("people", (Axis("age"),), (Filter("marital", ("married", "widowed")),))
    structural = engine.tabulate(by_age).structural
    assert structural.tolist() == [True, False]


def test_a_structural_zero_of_some_is_not_one_of_all() -> None:
    """Each job is closed to one sex: neither job is closed to everybody."""
    dataset = described(
        "work",
        {"job": ["nun", "monk", "cook"], "sex": "fm"},
        structural_zeros=[
            {"reason": "nuns are women", "where": {"job": ["nun"], "sex": ["m"]}},
            {"reason": "monks are men", "where": {"job": ["monk"], "sex": ["f"]}},
        ],
    )
    engine = FrameEngine(pa.table({"job": ["cook"], "sex": ["f"]}), dataset)
    by_job = TableQuery("work", (Axis("job"),))
    women = TableQuery("work", (Axis("job"),), (Filter("sex", ("f",)),))
    for query, expected in ((by_job, [False, False, False]), (women, [False, True, False])):
        structural = engine.tabulate(query).structural
        assert structural.tolist() == expected


def test_a_question_without_variables_counts_everybody() -> None:
    frame = pa.table({"area": ["N", "N", "S"]})
    table = Table.from_frame(frame, by=[])
    assert table.shape == ()
    assert int(table.values) == 3
    assert int(Table.from_frame(frame, by=[], where={"area": "N"}).values) == 2


def test_a_table_of_one_variable_has_its_total() -> None:
    table = Table.from_frame(pa.table({"area": ["N", "N", "S"]}), by=["area"], totals=True)
    assert table.axes[0].codes == ("N", "S", "_T")
    assert table.values.tolist() == [2, 1, 3]


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"area": ["S", "N", "S"], "age": [10, 9, 10]}),
        pa.table({"area": ["S", "N", "S"], "age": [10, 9, 10]}).to_pandas(),
        pd.DataFrame({"area": pd.Categorical(["S", "N", "S"]), "age": pd.Categorical([10, 9, 10])}),
        pl.DataFrame({"area": ["S", "N", "S"], "age": [10, 9, 10]}),
        pl.DataFrame({"area": ["S", "N", "S"], "age": [10, 9, 10]}).with_columns(
            pl.col("area").cast(pl.Categorical)
        ),
        {"area": ["S", "N", "S"], "age": [10, 9, 10]},
    ],
    ids=["arrow", "pandas", "pandas categories", "polars", "categorical", "mapping"],
)
def test_an_undescribed_frame_has_the_codes_that_occur_in_their_order(frame: Any) -> None:
    table = Table.from_frame(frame, by=["area", "age"])
    assert [axis.codes for axis in table.axes] == [("N", "S"), ("9", "10")]
    assert table.values.tolist() == [[1, 0], [0, 2]]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(
            {
                "size": pd.Categorical(
                    ["small", "large", "small"], ["small", "medium", "large"], ordered=True
                )
            }
        ),
        pd.DataFrame(
            {"size": pd.Categorical(["small", "large", "small"], ["small", "medium", "large"])}
        ),
        pl.DataFrame({"size": ["small", "large", "small"]}).with_columns(
            pl.col("size").cast(pl.Enum(["small", "medium", "large"]))
        ),
        pa.table(
            {
                "size": pa.DictionaryArray.from_arrays(
                    pa.array([0, 2, 0]), ["small", "medium", "large"], ordered=True
                )
            }
        ),
    ],
    ids=["pandas ordered", "pandas", "polars enum", "arrow ordered"],
)
def test_categories_keep_their_order_also_those_that_do_not_occur(frame: Any) -> None:
    table = Table.from_frame(frame, by=["size"], totals=True)
    assert table.axes[0].codes == ("small", "medium", "large", "_T")
    assert table.values.tolist() == [2, 0, 1, 3]
    some = Table.from_frame(frame, by=["size"], where={"size": ["large"]})
    assert dict(zip(some.axes[0].codes, some.values.tolist(), strict=True))["large"] == 1


def test_categories_that_are_numbers_are_written_as_their_codes() -> None:
    frame = pd.DataFrame({"age": pd.Categorical([10, 9, 10], [11, 10, 9], ordered=True)})
    table = Table.from_frame(frame, by=["age"])
    assert (table.axes[0].codes, table.values.tolist()) == (("11", "10", "9"), [0, 2, 1])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"toatls": True}, "has no argument 'toatls'; did you mean 'totals'"),
        ({"totals": 1}, "'totals' is True or False, not 1"),
        ({"dataset": "town"}, "'dataset' is a lustrum Dataset, not a str"),
        ({"secret": b"key"}, "'secret' is a lustrum Secret, not a bytes"),
    ],
)
def test_a_wrong_argument_of_from_frame_is_one_sentence(
    words: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        Table.from_frame(pa.table({"area": ["N"]}), by=["area"], **words)


def test_no_engine_answers_about_another_dataset(town: dict[str, Engine]) -> None:
    for engine in town.values():
        with pytest.raises(QueryError, match="for 'village', but this is 'town'"):
            engine.tabulate(TableQuery("village", (Axis("area"),)))


def test_a_wrong_variable_measure_or_weight_is_named_with_what_there_is(
    town: dict[str, Engine],
) -> None:
    for engine in town.values():
        with pytest.raises(QueryError, match="no variable 'aera'; did you mean 'area'"):
            engine.tabulate(TableQuery("town", (Axis("aera"),)))
        with pytest.raises(QueryError, match="no measure 'incom'; did you mean 'income'"):
            engine.tabulate(TableQuery("town", (Axis("area"),), measure="incom"))
        with pytest.raises(QueryError, match="no weight 'wt'; did you mean 'w'"):
            engine.tabulate(TableQuery("town", (Axis("area"),), weight="wt"))


def test_a_sum_that_could_leave_64_bits_is_refused_without_a_number() -> None:
    dataset = described("rich", {"area": "N"}, measures=[{"name": "wealth"}])
    frame = FrameEngine(pa.table({"area": ["N", "N"], "wealth": [1 << 61, 1 << 61]}), dataset)
    query = TableQuery("rich", (Axis("area"),), measure="wealth")
    for engine in (frame, SqlEngine(dataset, list(frame._chunks))):
        with pytest.raises(QueryError, match="'wealth' do not fit 64 bits") as caught:
            engine.tabulate(query)
        assert "61" not in str(caught.value)
        assert str(1 << 62) not in str(caught.value)
    assert int(frame.tabulate(TableQuery("rich", ())).values) == 2


def test_variables_that_differ_by_case_only_stay_apart_in_sql() -> None:
    dataset = described("cases", {"sex": "12", "Sex": "12"})
    frame = FrameEngine(pa.table([["1", "1"], ["2", "2"]], names=["sex", "Sex"]), dataset)
    sql = SqlEngine(dataset, list(frame._chunks))
    assert sql.tabulate(TableQuery("cases", (Axis("sex"),))).values.tolist() == [2, 0]
    assert sql.tabulate(TableQuery("cases", (Axis("Sex"),))).values.tolist() == [0, 2]


def test_questions_from_many_threads_do_not_mix(town: dict[str, Engine]) -> None:
    by = {
        "area": (Axis("area"),),
        "sex": (Axis("sex", total=True),),
        "both": (Axis("sex"), Axis("area")),
    }
    queries = {name: TableQuery("town", axes) for name, axes in by.items()}
    for engine in town.values():
        alone = {name: engine.tabulate(q).values.tolist() for name, q in queries.items()}
        with ThreadPoolExecutor(6) as pool:
            names = list(queries) * 12
            answers = list(pool.map(engine.tabulate, [queries[n] for n in names]))
        assert [table.values.tolist() for table in answers] == [alone[n] for n in names]


def test_a_hypercube_keeps_no_contributions() -> None:
    dataset = described("town", {"area": "NS"})
    cells = pa.table({"area": ["N", "S", "N"], "count": [3, 0, 4]})
    engine = HypercubeEngine(cells, dataset)
    table = engine.tabulate(TableQuery("town", (Axis("area", total=True),)))
    assert table.values.tolist() == [7, 0, 7]
    assert table.keys is None
    with pytest.raises(QueryError, match="no measure"):
        engine.tabulate(TableQuery("town", (Axis("area"),), measure="income"))


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"area": ["N"]}, "no column 'count'"),
        ({"area": ["N"], "count": [1.5]}, "column 'count': counts must be whole numbers"),
        ({"area": ["N"], "count": [-417]}, "column 'count', row 1: the count is negative"),
        ({"area": ["N", "N"], "count": [1, None]}, "none missing"),
        ({"area": ["N"], "count": [1], "key": [-1]}, "column 'key': summed keys must be unsigned"),
        (
            {"area": ["X"], "count": [1]},
            "column 'area', row 1: the code 'X' is not in the code list",
        ),
    ],
)
def test_a_wrong_hypercube_is_refused(cells: dict[str, list[Any]], message: str) -> None:
    dataset = described("town", {"area": "NS"})
    with pytest.raises(ValueError, match=message) as caught:
        HypercubeEngine(cells, dataset)
    assert "417" not in str(caught.value)


def test_an_engine_over_no_records_answers_with_zeros() -> None:
    dataset = described("empty", {"area": "NS"}, measures=[{"name": "income", "decimals": 2}])
    nobody = pa.table({"area": pa.array([], pa.string()), "income": pa.array([], pa.string())})
    frame = FrameEngine(nobody, dataset, SECRET)
    for engine in (frame, SqlEngine(dataset, list(frame._chunks))):
        table = engine.tabulate(TableQuery("empty", (Axis("area"),), measure="income"), ranks=2)
        assert table.values.tolist() == [0, 0]
        assert not table.contributions.present.any()


def test_an_engine_stops_when_it_is_asked_to() -> None:
    frame = FrameEngine(pa.table({"area": ["N"]}), _area(), SECRET)
    engine = KernelEngine(_area(), frame._chunks)
    with stopping(lambda: True), pytest.raises(Stopped):
        engine.tabulate(TableQuery("town", (Axis("area"),)))


def test_a_table_too_large_to_count_is_refused_before_counting() -> None:
    codes = [str(i) for i in range(1000)]
    dataset = Dataset.from_mapping(
        {
            "dataset": {"name": "wide"},
            "variables": [{"name": n, "codes": codes} for n in ("a", "b", "c")],
        }
    )
    frame = pa.table({n: ["1"] for n in ("a", "b", "c")})
    with pytest.raises(QueryError, match=r"1,000,000,000 cells; the most .* coarser levels"):
        FrameEngine(frame, dataset).tabulate(TableQuery("wide", (Axis("a"), Axis("b"), Axis("c"))))


def test_many_codes_need_wider_columns_and_count_the_same(tmp_path: Path) -> None:
    for number in (256, 257, 65_537):
        codes = [f"{i}" for i in range(number)]
        dataset = described("codes", {"a": codes})
        picked = ["0", codes[-1], codes[-1], "255"]
        store = Store(tmp_path / str(number))
        ingest(FrameSource(pa.table({"a": picked})), dataset, store, secret=SECRET)
        query = TableQuery("codes", (Axis("a", codes=("0", "1", codes[-1]), total=True),))
        last = picked.count(codes[-1])
        assert store.open("codes").tabulate(query).values.tolist() == [1, 0, last, 4]


def _area() -> Dataset:
    return described("town", {"area": "NS"})


def test_the_oracle_knows_holdings_and_filters_on_an_axis() -> None:
    """A guard for the tests above: over many worlds, the cases that matter do occur."""
    seen: set[str] = set()

    @given(data=st.data(), world=worlds())
    @quick(40, 160)
    def look(data: st.DataObject, world: World) -> None:
        raw = data.draw(questions(world))
        names = {a["variable"] for a in raw["by"]}
        if names & set(raw["where"]):
            seen.add("a filter on an axis")
        if any("groups" in a for a in raw["by"]):
            seen.add("own groups")
        if any(len(v["hierarchies"]) == 2 for v in world.description["variables"]):
            seen.add("two hierarchies")
        if any(
            c in world.codes[n] for n in world.codes for lv in world.levels[n].values() for c in lv
        ):
            seen.add("a ragged branch")
        if len(raw["where"]) == 3:
            seen.add("three filters")
        if len({r["owner"] for r in world.records}) == HOLDINGS:
            seen.add("all holdings")

    look()
    assert len(seen) == 6


def test_the_engine_on_disk_maps_its_files(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ingest(FrameSource(pa.table({"area": ["N", "S"]})), _area(), store, secret=SECRET)
    engine = store.open("town")
    assert isinstance(engine, EmbeddedEngine)
    codes = engine.chunks[0].codes["area"]
    assert codes.dtype == np.uint8
    assert not codes.flags.owndata
    files = ["records.arrow", "keys.arrow"]
    sizes = [(tmp_path / "town" / engine.version / name).stat().st_size for name in files]
    assert engine.encoded_bytes == sum(sizes)
    assert engine.rows == 2
