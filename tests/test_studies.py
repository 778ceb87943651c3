"""A seed never reaches a published file: what it changed is a study, whatever is done with it afterwards."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from lustrum.formats.write import format_of, write_release
from lustrum.model import InputError, Release, SeededRelease, Table, TableQuery
from lustrum.model.chance import Chance
from lustrum.model.dataset import Dataset
from lustrum.model.plugins import load, names
from lustrum.model.query import Axis
from lustrum.model.records import Records
from lustrum.protect import (
    CellKey,
    DifferentialPrivacy,
    MultiplicativeNoise,
    PoissonSampling,
    PostRandomisation,
    RandomRounding,
    RecordSwapping,
    SimpleSampling,
    StratifiedSampling,
    Suppression,
    Unchanged,
)
from lustrum.protect.method import MethodSpec, Stage, released
from lustrum.tabulate import HypercubeEngine, RecordsEngine, Secret
from lustrum.tabulate.hypercube import aggregate

SECRET = Secret(bytes(range(16)))
FIRMS = Dataset.from_mapping(
    {
        "dataset": {"name": "firms", "title": "Firms", "record_id": "id"},
        "variables": [
            {"name": name, "label": name, "codes": [str(k) for k in range(size)]}
            for name, size in (("area", 6), ("trade", 3))
        ],
        "measures": [{"name": "sales", "label": "Sales"}],
    }
)
ON_RECORDS = [
    MultiplicativeNoise(measure="sales"),
    PoissonSampling(0.5),
    PostRandomisation("trade", stay=0.6),
    RecordSwapping("area", rate=0.4, same_size=False, household=None),
    SimpleSampling(0.5),
    StratifiedSampling("trade", fraction=0.5),
]


def firms(count: int = 300) -> Records:
    rng = np.random.default_rng(8)
    return Records(
        FIRMS,
        codes={
            "area": rng.integers(0, 6, count).astype(np.uint8),
            "trade": rng.integers(0, 3, count).astype(np.uint8),
        },
        numbers={"sales": rng.integers(1, 1000, count)},
        ids={"id": np.arange(count)},
        keys=rng.integers(0, 2**64, count, dtype=np.uint64),
    )


def refused_everywhere(release: Release, folder: Path) -> bool:
    """Whether no writer of any format takes the release."""
    endings = [load("lustrum.formats", name).ending for name in names("lustrum.formats")]
    for ending in endings:
        path = folder / f"table.{ending}"
        for write in (write_release, lambda r, p: format_of(p)().write(r, "A title")):
            with pytest.raises(InputError, match="made with a seed"):
                write(release, path)
        assert not path.exists()
    return True


def test_every_method_on_records_is_among_the_examples() -> None:
    kinds = [load("lustrum.methods", name) for name in names("lustrum.methods")]
    assert {kind for kind in kinds if hasattr(kind, "change")} == {type(m) for m in ON_RECORDS}


@pytest.mark.parametrize("method", ON_RECORDS, ids=lambda m: m.name)
def test_records_that_a_seed_changed_stay_a_study_on_every_way_to_a_table(
    method: Any, tmp_path: Path
) -> None:
    query = TableQuery("firms", (Axis("area"), Axis("trade")))
    for seed in (3, np.random.default_rng(3)):
        engine = RecordsEngine(method.apply_records(firms(), rng=seed))
        cube = HypercubeEngine(aggregate(engine, ["area", "trade"]), engine.dataset)
        measured = engine.tabulate(replace(query, measure="sales"))
        ways = [method.publish(engine.tabulate(query)), method.publish(measured)]
        for table in (
            engine.tabulate(query),
            cube.tabulate(query),
            engine.tabulate(query).take([range(3), range(3)]),
        ):
            assert isinstance(table, Table)
            ways += [
                Unchanged().apply(table),
                Suppression().apply(table),
                RandomRounding().apply(table),
                CellKey().apply(table, secret=SECRET),
            ]
        for release in ways:
            assert isinstance(release, SeededRelease)
    assert refused_everywhere(ways[0], tmp_path)


@pytest.mark.parametrize("method", ON_RECORDS, ids=lambda m: m.name)
def test_records_that_a_secret_changed_can_be_published_and_follow_from_it_alone(
    method: Any, tmp_path: Path
) -> None:
    def made(secret: Secret) -> tuple[Records, Release]:
        records = method.apply_records(firms(), secret=secret)
        table = RecordsEngine(records).tabulate(
            TableQuery("firms", (Axis("area"), Axis("trade")), measure="sales")
        )
        return records, method.publish(table)

    (first, release), (again, _), (other, _) = map(made, (SECRET, SECRET, Secret(bytes(16))))

    def columns(records: Records) -> list[Any]:
        return [c.tolist() for c in (*records.codes.values(), *records.numbers.values())]

    assert columns(first) == columns(again) != columns(other)
    assert not isinstance(release, SeededRelease)
    write_release(release, tmp_path / "table.csv")
    with pytest.raises(InputError, match="not both"):
        method.apply_records(firms(), rng=1, secret=SECRET)
    with pytest.raises(InputError, match="A seed is needed"):
        method.apply_records(firms())


def test_noise_that_can_be_repeated_is_a_study(tmp_path: Path) -> None:
    table = Table.from_counts([[5, 9], [7, 1]])
    rehearsed = DifferentialPrivacy(epsilon=1.0).rehearse(table, np.random.default_rng(1))
    assert refused_everywhere(rehearsed, tmp_path)


@dataclass(frozen=True)
class Doing(MethodSpec):
    """A method of somebody else, which does with the generator what it is given."""

    name: ClassVar[str] = "doing"
    stages: ClassVar[tuple[Stage, ...]] = ("table",)
    do: ClassVar[Callable[[Any], object]] = staticmethod(lambda rng: None)

    def draw(self, table: Table, rng: Chance) -> Release:
        type(self).do(rng)
        return released(table, self, table.values)


@pytest.mark.parametrize(
    "do",
    [
        lambda rng: rng.integers(5),
        lambda rng: rng.bit_generator.random_raw(),
        lambda rng: rng.spawn(1)[0].random(),
        lambda rng: copy.deepcopy(rng).random(),
        lambda rng: pickle.loads(pickle.dumps(rng)).random(),
        lambda rng: np.random.default_rng(rng).random(),
        lambda rng: np.random.Generator(rng.bit_generator).random(),
    ],
)
def test_whatever_draws_from_the_generator_makes_a_study(
    do: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = Table.from_counts([4, 5])
    assert not isinstance(Doing().apply(table, rng=1), SeededRelease)
    monkeypatch.setattr(Doing, "do", staticmethod(do))
    assert isinstance(Doing().apply(table, rng=1), SeededRelease)


def test_the_seeds_of_an_attacker_make_no_published_table(tmp_path: Path) -> None:
    """Who knows the true table and tries seeds finds none that leads to what was written."""
    table = Table.from_counts(np.random.default_rng(4).integers(1, 9, (6, 5)))
    for method in (RandomRounding(), CellKey()):
        assert refused_everywhere(method.apply(table, rng=1), tmp_path)
        written = method.apply(table, secret=SECRET)
        write_release(written, tmp_path / "published.csv")
        tried = (method.apply(table, rng=seed).published for seed in range(300))
        assert not any(np.array_equal(written.published, guess) for guess in tried)
