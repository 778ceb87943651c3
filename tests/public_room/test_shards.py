"""Bundles whose cells stand in shards: the same numbers as all at once, and no number from a wrong byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answer.test_service_by_hand import STRICT, made_by, rewritten
from lustrum.answer import TableService
from lustrum.model import Axis, Dataset, DatasetError, Filter, TableQuery
from lustrum.model.finest import FinestCells
from lustrum.public.bundle import Bundle, BundleNumbers, read_bundle
from lustrum.public.bundle.shards import ShardedCells, shards_of
from lustrum.publish.bundles import write as write_module
from lustrum.publish.bundles.write import pack_bundle, write_bundle
from lustrum.server.operation.lifecycle import warm_up

AREAS = 40


def land(blocks: str | None) -> Dataset:
    """Areas whose regions take turns in the list of codes, so that blocks are no runs of codes."""
    codes = [f"a{n}" for n in range(AREAS)]
    groups = [{"code": f"r{r}", "members": codes[r::4]} for r in range(4)]
    levels = [{"name": "region", "groups": groups}]
    return Dataset.from_mapping(
        {
            "dataset": {"name": "town", **({"blocks": blocks} if blocks else {})},
            "variables": [
                {"name": "sex", "codes": ["f", "m"]},
                {"name": "area", "codes": codes, "hierarchies": [{"name": "g", "levels": levels}]},
                {"name": "job", "codes": ["a", "b", "c"]},
            ],
        }
    )


def population(seed: int, blocks: str | None) -> FinestCells:
    counts = 3 * np.random.default_rng(seed).poisson(0.6, (2, AREAS, 3)).astype(np.int64)
    codes = np.stack(np.nonzero(counts))
    return FinestCells(land(blocks), codes, counts[tuple(codes)])


def standing(place: Path, cells: FinestCells, size: int = 12) -> Path:
    """A bundle of these cells in shards of at most so many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_module, "SHARDED_FROM", 0)
        patch.setattr(write_module, "shards_of", lambda one: shards_of(one, size))
        write_bundle(place, pack_bundle(cells, STRICT, made_by().report))
    return place


def question(by: tuple[str, ...], where: dict[str, tuple[str, ...]]) -> TableQuery:
    named = [name.partition(":") for name in by]
    axes = tuple(Axis(name, level=level or None, total=True) for name, _, level in named)
    return TableQuery("town", axes, tuple(Filter(n, c) for n, c in where.items()))


@settings(max_examples=6, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["area:region", "sex", "area", None]),
    st.integers(1, 40),
    st.booleans(),
)
def test_cells_in_shards_give_the_tables_of_all_cells_at_once(
    tmp_path_factory: pytest.TempPathFactory, seed: int, blocks: str | None, size: int, large: bool
) -> None:
    cells = population(seed, blocks)
    read = read_bundle(standing(tmp_path_factory.mktemp("b") / "town", cells, size))
    assert isinstance(read.cells, ShardedCells)
    assert len(read.cells) == len(cells)
    with pytest.MonkeyPatch.context() as patch:
        if large:  # no tables beforehand: every question reads shards
            patch.setattr("lustrum.public.bundle.numbers._MOST_CELLS", 0)
        ours = BundleNumbers(read, workers=2)
        theirs = BundleNumbers(Bundle(cells, read.policy, read.report, ""), workers=1)
        asked: list[tuple[tuple[str, ...], dict[str, tuple[str, ...]]]] = [
            ((), {}),
            (("area:region", "sex"), {}),
            (("job",), {"area": ("a3", "a7")}),
            (("area",), {"sex": ("f",), "job": ("a", "c")}),
            (("sex", "area", "job"), {}),
        ]
        for by, where in asked:
            one, other = (numbers.views(question(by, where)) for numbers in (ours, theirs))
            for left, right in zip(vars(one).values(), vars(other).values(), strict=True):
                assert (left is None) == (right is None)
                if left is not None:
                    assert left.published.tolist() == right.published.tolist()
            for low, high in (
                (one.shown.least, other.shown.least),
                (one.shown.most, other.shown.most),
            ):
                assert low is not None
                assert high is not None
                assert low.tolist() == high.tolist()


def test_a_shard_holds_whole_blocks_and_any_reader_of_arrow_finds_every_cell(
    tmp_path: Path,
) -> None:
    cells = population(3, "area:region")
    place = standing(tmp_path / "town", cells, 45)
    read = read_bundle(place).cells
    assert isinstance(read, ShardedCells)
    assert [s.rows for s in read.shards] == np.bincount(cells.codes[1] % 4).tolist()
    # A group that is cut ends before the next one begins.
    counts = np.zeros((2, AREAS, 3), dtype=np.int64)
    counts[:, -2], counts[0, -1, 0] = 3, 3
    codes = np.stack(np.nonzero(counts))
    few = FinestCells(land(None), codes, counts[tuple(codes)])
    parts = read_bundle(standing(tmp_path / "cut", few, 4), every_byte=True).cells
    assert isinstance(parts, ShardedCells)
    assert [one.rows for one in parts.shards] == [4, 2, 1]
    with pa.ipc.open_file(place / "cells.arrow") as file:
        table = file.read_all()
    assert table.num_rows == len(cells)
    columns = np.stack([np.asarray(table.column(n)) for n in ("sex", "area", "job", "count")])
    held = np.stack([*cells.codes, cells.counts])
    assert np.array_equal(columns[:, np.lexsort(columns[::-1])], held[:, np.lexsort(held[::-1])])


def test_a_question_reads_the_shards_that_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = read_bundle(standing(tmp_path / "town", population(5, "area:region"), 30))
    assert isinstance(read.cells, ShardedCells)
    asked: list[int] = []
    reading = read.cells.read

    def noted(number: int) -> Any:
        asked.append(number)
        return reading(number)

    monkeypatch.setattr(read.cells, "read", noted)
    engine = read.cells.engine(1)
    assert asked == []
    engine.tabulate(question(("sex",), {"area": ("a1", "a5")}))
    assert {read.cells.shards[n].groups for n in asked} == {(1, 1)}
    assert len(asked) < len(read.cells.shards) / 2


def _swapped(data: bytearray, shards: list[dict[str, Any]]) -> None:
    """Two parts change places, as far as their bytes reach."""
    one, two = shards[0], shards[1]
    length = min(one["bytes"], two["bytes"])
    first, second = (slice(s["at"], s["at"] + length) for s in (one, two))
    data[first], data[second] = data[second], data[first]


def _flipped(data: bytearray, shards: list[dict[str, Any]]) -> None:
    data[shards[1]["at"] + shards[1]["bytes"] // 2] ^= 1


def _cut(data: bytearray, shards: list[dict[str, Any]]) -> None:
    del data[shards[1]["at"] :]


def _blank(data: bytearray, shards: list[dict[str, Any]]) -> None:
    one = shards[1]
    data[one["at"] : one["at"] + one["bytes"]] = bytes(one["bytes"])


def _foreign(data: bytearray, _: list[dict[str, Any]]) -> None:
    """The cells of another bundle of the same size."""
    other = shards_of(population(8, None), 12)[0]
    data[:] = (other + bytes(len(data)))[: len(data)]


@pytest.mark.parametrize("damage", [_swapped, _flipped, _cut, _blank, _foreign])
@pytest.mark.parametrize("running", [False, True])
def test_no_number_leaves_from_a_wrong_byte(
    tmp_path: Path, damage: Callable[[bytearray, list[dict[str, Any]]], None], running: bool
) -> None:
    place = standing(tmp_path / "town", population(7, None))
    whole = (place / "cells.arrow").read_bytes()
    shards = json.loads((place / "shards.json").read_bytes())["shards"]
    before = read_bundle(place)
    data = bytearray(whole)
    damage(data, shards)
    (place / "cells.arrow").write_bytes(data)  # the same file, as a careless copy writes it

    def ask() -> None:
        numbers = BundleNumbers(before if running else read_bundle(place), workers=1)
        numbers.views(question(("area",), {}))

    with pytest.raises(DatasetError, match="is damaged"):
        ask()
    with pytest.raises(DatasetError, match=r"is damaged: cells\.arrow does not have the digest"):
        read_bundle(place, every_byte=True)
    (place / "cells.arrow").write_bytes(whole)
    assert BundleNumbers(before, workers=1).views(question(("area",), {})).shown is not None


def test_a_part_that_was_replaced_is_read_as_it_was_when_the_bundle_was_opened(
    tmp_path: Path,
) -> None:
    cells = population(7, None)
    before = read_bundle(standing(tmp_path / "town", cells))
    standing(tmp_path / "town", population(9, None))
    shown = BundleNumbers(before, workers=1).views(question(("sex", "job"), {})).shown
    assert shown.published[-1, -1] == cells.counts.sum()


def test_parts_that_do_not_fit_each_other_are_refused(tmp_path: Path) -> None:
    """Every digest is right, so that only what the files say can be refused."""
    cells = population(7, "area:region")
    place = standing(tmp_path / "town", cells)
    files = {name: (place / name).read_bytes() for name in ("cells.arrow", "shards.json")}

    def refused(change: Callable[[dict[str, Any]], Any], match: str, late: bool = False) -> None:
        words = json.loads(files["shards.json"])
        change(words)
        rewritten(place, "shards.json", json.dumps(words).encode())
        if late:
            read_bundle(place)
        with pytest.raises(DatasetError, match=match):
            read_bundle(place, every_byte=late)
        rewritten(place, "shards.json", files["shards.json"])

    other = "do not fit each other"
    refused(lambda w: w.update(cells=len(cells) + 1), other)
    refused(lambda w: w["shards"].pop(1), other)
    refused(lambda w: w["shards"].append(w["shards"][0]), other)
    refused(lambda w: w["shards"].reverse(), other)
    refused(lambda w: w["shards"][0].update(greatest=[9, 9, 9]), other)
    refused(lambda w: w["shards"][0].update(first=[0, 0]), other)
    refused(lambda w: w["shards"][1].update(first=w["shards"][0]["first"]), other)
    refused(lambda w: w["shards"][0].pop("least"), other)
    refused(lambda w: w["shards"][-1].update(bytes=1 << 40), other)
    refused(lambda w: w.update(count="float99"), other)
    refused(lambda w: w["shards"][1].update(bytes=w["shards"][1]["bytes"] - 8), "digest", late=True)
    for key in ("least", "greatest", "first"):

        def moved(words: dict[str, Any], key: str = key) -> None:
            codes = words["shards"][0][key]
            codes[2] = 1 if codes[2] != 1 else 2

        refused(moved, "not fit", late=True)
    refused(lambda w: w.update(count="uint64"), "not fit", late=True)
    assert len(read_bundle(place, every_byte=True).cells) == len(cells)
    # Counts that the method does not make are found before a number leaves.
    odd = replace(cells, counts=cells.counts + (np.arange(len(cells)) == 20))
    standing(place, odd)
    with pytest.raises(DatasetError, match="does not fit"):
        BundleNumbers(read_bundle(place), workers=1).views(question(("sex",), {}))
    (place / "cells.arrow").unlink()
    with pytest.raises(DatasetError, match=r"damaged: cells\.arrow cannot be read"):
        read_bundle(place)
    # Few cells stay in one piece.
    write_bundle(place, pack_bundle(cells, STRICT, made_by().report))
    assert isinstance(read_bundle(place).cells, FinestCells)


def test_a_server_that_starts_opens_shards_without_reading_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    service = TableService(bundles=[standing(tmp_path / "town", population(4, None))], workers=1)
    read: list[int] = []
    reading = ShardedCells.read

    def noted(cells: ShardedCells, number: int) -> Any:
        read.append(number)
        return reading(cells, number)

    monkeypatch.setattr(ShardedCells, "read", noted)
    warm_up(service)
    assert service.names() == ["town"]
    assert service.in_parts("town")
    assert read == []
    assert not caplog.records
    service.answer(question(("sex",), {}))
    assert len(read) == len(set(read)) > 1
    service.close()
