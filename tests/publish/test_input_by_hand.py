"""What is said of a table that was counted from protected input: bounds, channels, notes and chance."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.model import InputError, Release, Table
from lustrum.model.channel import ComposedChannel
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.rounding.cells import RoundingChannel
from lustrum.publish.records import protected_input as module
from lustrum.publish.records.protected_input import ProtectedInput, prepared

TABLE = Table.from_counts([4, 0, 9])


def released(values: Any, **words: Any) -> Release:
    numbers = np.array(values)
    return Release(TABLE.axes, numbers, np.full(numbers.shape, "F"), {"method": "last"}, **words)


def method(release: Release, **more: Any) -> Any:
    """A method for tables that gives this release."""
    spec = SimpleNamespace(apply=lambda table: release, **more)
    return SimpleNamespace(spec=spec)


def step(name: str, *, low: Any = None, high: Any = None, channel: Any = None) -> Any:
    """A method for records, with bounds of the tables counted afterwards or without."""
    bounds = {
        name: np.array(end) for name, end in (("low", low), ("high", high)) if end is not None
    }
    release = released(TABLE.values, channel=channel, notes=(f"note of {name}",), **bounds)
    spec = SimpleNamespace(
        name=name, publish=lambda table: release, to_mapping=lambda: {"method": name}
    )
    return SimpleNamespace(method=name, on_records=True, spec=spec)


def test_without_steps_a_release_stays_as_it_is() -> None:
    release = released([3, 0, 9])
    assert ProtectedInput(None).protect(TABLE, method(release)) is release  # type: ignore[arg-type]


def test_bounds_hold_only_where_a_step_left_the_truth() -> None:
    last = released(
        [3, 0, 9], low=np.array([2, 0, 7]), high=np.array([5, 2, 11]), notes=("note of last",)
    )
    source = ProtectedInput(
        None,
        (step("one", low=[4, 0, 9], high=[4, 3, 9]), step("two", low=[4, 0, 8], high=[4, 0, 9])),
    )  # type: ignore[arg-type]
    found = source.protect(TABLE, method(last))
    assert found.low is not None
    assert found.high is not None
    # Exact after both steps is the first cell alone.
    assert found.low.tolist() == [2, 0, 0]
    assert found.high.tolist() == [5, UNBOUNDED, UNBOUNDED]
    assert found.notes == ("note of one", "note of two", "note of last")
    assert found.method == {"method": "last", "before": [{"method": "one"}, {"method": "two"}]}
    assert found.channel is None


def test_a_release_without_bounds_has_those_of_its_channel_or_of_its_numbers() -> None:
    exact = step("one", low=[4, 0, 9], high=[4, 0, 9])
    for words in ({}, {"low": np.array([1, 0, 1])}, {"high": np.array([9, 9, 9])}):
        found = ProtectedInput(None, (exact,)).protect(TABLE, method(released([3, 0, 9], **words)))  # type: ignore[arg-type]
        assert found.low is not None
        assert found.high is not None
        assert found.low.tolist() == found.high.tolist() == [3, 0, 9]
    rounded = released([3, 0, 9], channel=RoundingChannel(3))
    found = ProtectedInput(None, (exact,)).protect(TABLE, method(rounded))  # type: ignore[arg-type]
    assert found.low is not None
    assert found.high is not None
    assert (found.low.tolist(), found.high.tolist()) == ([1, 0, 7], [5, 2, 11])
    unknown = ProtectedInput(None, (step("one"),)).protect(TABLE, method(rounded))  # type: ignore[arg-type]
    assert unknown.low is not None
    assert unknown.high is not None
    assert unknown.low.tolist() == [0, 0, 0]
    assert unknown.high.tolist() == [UNBOUNDED] * 3


def test_a_step_with_one_bound_alone_says_nothing() -> None:
    last = released([3, 0, 9], low=np.array([2, 0, 7]), high=np.array([5, 2, 11]))
    for words in ({"low": [4, 0, 9]}, {"high": [4, 0, 9]}):
        found = ProtectedInput(None, (step("one", **words),)).protect(TABLE, method(last))  # type: ignore[arg-type]
        assert found.low is not None
        assert found.high is not None
        assert found.low.tolist() == [0, 0, 0]
        assert found.high.tolist() == [UNBOUNDED] * 3


def test_channels_follow_each_other_from_the_first_step_on() -> None:
    first, second, last = RoundingChannel(2), RoundingChannel(3), RoundingChannel(5)
    steps = (step("one", channel=first), step("two", channel=second))
    found = ProtectedInput(None, steps).protect(TABLE, method(released([5, 0, 10], channel=last)))  # type: ignore[arg-type]
    assert found.channel == ComposedChannel(first, ComposedChannel(second, last))
    gap = (step("one", channel=first), step("two"))
    found = ProtectedInput(None, gap).protect(TABLE, method(released([5, 0, 10], channel=last)))  # type: ignore[arg-type]
    assert found.channel is None


def test_empty_cells_follow_from_the_secret_where_there_is_one() -> None:
    asked: list[Any] = []
    moved, still = released([3, 3, 9]), released([3, 0, 9])
    other = SimpleNamespace(apply=lambda table: moved)

    def with_zeros(key: bytes, dataset: Any) -> Any:
        asked.append((key, dataset))
        return other

    keyed = method(still, with_zeros=with_zeros)
    engine: Any = SimpleNamespace(dataset="the dataset")
    secret: Any = SimpleNamespace(derive=lambda purpose: purpose.encode())
    assert ProtectedInput(engine, (), secret).protect(TABLE, keyed) is moved
    assert asked == [(b"lustrum empty cells", "the dataset")]
    assert ProtectedInput(engine).protect(TABLE, keyed) is still
    assert ProtectedInput(engine, (), secret).protect(TABLE, method(still)) is still


class Drawn:
    """A step whose records are noted with the chance that it was given."""

    def __init__(self, name: str, on_records: bool = True) -> None:
        self.method, self.on_records = name, on_records
        self.chance: list[int] = []

    @property
    def spec(self) -> Any:
        def apply_records(records: Any, rng: np.random.Generator) -> Any:
            self.chance.append(int(rng.integers(2**62)))
            return (*records, self.method)

        return SimpleNamespace(
            to_mapping=lambda: {"method": self.method, "b": 1}, apply_records=apply_records
        )


def test_every_step_has_chance_of_its_own_that_follows_from_the_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "records_of", lambda engine: engine.records)
    monkeypatch.setattr(
        module,
        "RecordsEngine",
        lambda records: SimpleNamespace(records=records, chunks=[SimpleNamespace(counts=None)]),
    )
    engine: Any = SimpleNamespace(
        records=("true",),
        chunks=[SimpleNamespace(counts=None)],
        dataset=SimpleNamespace(name="town"),
    )
    asked: list[str] = []

    def derive(purpose: str) -> bytes:
        asked.append(purpose)
        return len(purpose).to_bytes(8, "big") + bytes([len(asked)])

    secret: Any = SimpleNamespace(derive=derive)
    one, two = Drawn("swap"), Drawn("swap")
    found = prepared(engine, [one, two], secret)  # type: ignore[list-item]
    assert found.engine.records == ("true", "swap", "swap")  # type: ignore[attr-defined]
    assert found.before == (one, two)
    assert found.secret is secret
    words = json.dumps({"b": 1, "method": "swap"})
    assert asked == [f"lustrum before {place} town {words}" for place in (0, 1)]
    for number, done in enumerate((one, two), start=1):
        key = int.from_bytes(len(asked[0]).to_bytes(8, "big") + bytes([number]), "big")
        assert done.chance == [int(np.random.Generator(np.random.Philox(key=key)).integers(2**62))]
    assert prepared(engine, [], secret).engine is engine
    cells: Any = SimpleNamespace(
        chunks=[SimpleNamespace(counts=None), SimpleNamespace(counts=np.ones(2))],
        dataset=engine.dataset,
    )
    with pytest.raises(InputError, match="put it first"):
        prepared(cells, [one], secret)  # type: ignore[list-item]


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize(
    ("values", "status", "good"),
    [([3, 0, 9], "FFF", True), ([3, 0, 9], "FDF", False), ([3, -1, 9], "FFF", False)],
)
def test_a_hypercube_is_protected_as_one_table_and_must_be_counts(
    keyed: bool, values: list[int], status: str, good: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    keys = np.array([5, 0, 7], dtype=np.uint64) if keyed else None
    table = Table(axes=TABLE.axes, values=TABLE.values, keys=keys)

    def tabulate(query: Any) -> Table:
        asked.append([axis.variable for axis in query.by])
        return table

    release = Release(TABLE.axes, np.array(values), np.array(list(status)), {"method": "m"})

    def apply(given: Table, rng: Any) -> Release:
        assert given is table
        asked.append(rng)
        return release

    spec = SimpleNamespace(to_mapping=lambda: {"method": "m"}, apply=apply, name="m")
    one: Any = SimpleNamespace(method="m", on_records=False, spec=spec)
    dataset = SimpleNamespace(
        name="town", variables=[SimpleNamespace(name="age"), SimpleNamespace(name="sex")]
    )
    engine: Any = SimpleNamespace(dataset=dataset, tabulate=tabulate)
    secret: Any = SimpleNamespace(derive=lambda purpose: b"key")
    monkeypatch.setattr(module, "cells_of", lambda table, published: published.tolist())
    monkeypatch.setattr(module, "HypercubeEngine", lambda cells, dataset: (cells, dataset))
    if good:
        assert prepared(engine, [one], secret).engine == (values, dataset)
    else:
        with pytest.raises(InputError, match="does not leave counts"):
            prepared(engine, [one], secret)
    assert asked[0] == ["age", "sex"]
    assert (asked[1] is None) is keyed


def test_cells_that_were_protected_beforehand_are_named_and_open() -> None:
    spec = SimpleNamespace(name="rounding", to_mapping=lambda: {"method": "rounding"})
    one: Any = SimpleNamespace(method="rounding", on_records=False, spec=spec)
    found = ProtectedInput(None, (one,)).protect(TABLE, method(released([3, 0, 9])))  # type: ignore[arg-type]
    assert found.low is not None
    assert found.high is not None
    assert found.low.tolist() == [0, 0, 0]
    assert found.high.tolist() == [UNBOUNDED] * 3
    assert "protected beforehand by rounding" in str(found.notes[0])
