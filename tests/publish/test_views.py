"""What leaves the room of the records: protected views, open bounds after a protected input, nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from answer.conftest import SECRET
from lustrum.model import InputError, Release, Table, TableQuery
from lustrum.model.channel import ComposedChannel
from lustrum.numeric.structure import UNBOUNDED
from lustrum.policy import Before, Policy, PolicyMethod
from lustrum.protect.abilities import Abilities
from lustrum.protect.rounding.cells import RoundingChannel
from lustrum.public.numbers import CannotProtectError
from lustrum.publish.records import EngineNumbers, protected_input
from lustrum.publish.records import views as views_module
from lustrum.publish.records.protected_input import ProtectedInput, prepared
from lustrum.publish.records.views import counted_views
from lustrum.tabulate import EmbeddedEngine

SUMS = {"method": "cell-key-magnitude", "p_percent": 5.0, "extra": 1.0, "large": 0.05, "small": 0.2}


def asked(**words: Any) -> TableQuery:
    return TableQuery.from_mapping({"dataset": "town", "by": ["sex", "job"], **words})


def made(**parts: Any) -> Policy:
    return Policy.model_validate(parts)


@dataclass(frozen=True)
class Hides:
    """A method that shows all cells but those of one, and tells where its numbers came from."""

    name: ClassVar[str] = "hides"
    stages: ClassVar[tuple[str, ...]] = ("hypercube", "table")
    abilities: ClassVar[Abilities] = Abilities(
        repeatable=True, one_number=True, changed=1.0, entropy=1.0
    )

    def apply(self, table: Table, rng: Any = None) -> Release:
        status = np.where(table.values > 400, "F", "D")
        return Release(
            table.axes, table.values, status, {"method": "hides"}, provenance={"from": "records"}
        )

    def to_mapping(self) -> dict[str, Any]:
        return {"method": "hides"}


def test_a_number_that_is_not_shown_does_not_leave_the_room(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PolicyMethod, "spec", property(lambda _: Hides()))
    views = counted_views(asked(where={"area": ["n"]}), ProtectedInput(engine), made())
    true = engine.tabulate(asked(where={"area": ["n"]})).values
    assert ((true > 0) & (true <= 400)).any()
    assert views.selected is not None
    for view in (views.everybody, views.selected, views.shown):
        assert not view.numbers[~view.shown].any()
        assert view.provenance == {}
    assert np.array_equal(views.shown.numbers, np.where(true > 400, true, 0))
    assert views.everybody.numbers.sum() > views.shown.numbers.sum()


@pytest.mark.parametrize("by", [["sex", "job"], [{"variable": "sex", "codes": ["1"]}, "job"], []])
@pytest.mark.parametrize("where", [{}, {"area": ["n"]}])
def test_views_of_the_same_people_are_protected_once_and_are_those_protected_apart(
    engine: EmbeddedEngine, by: list[Any], where: dict[str, Any]
) -> None:
    source, policy, query = ProtectedInput(engine), made(), asked(by=by, where=where)
    views = counted_views(query, source, policy)
    cube = engine.cube(query, unfiltered=True)
    for view, release in (
        ("unfiltered", views.everybody),
        ("widened", views.selected),
        ("shown", views.shown),
    ):
        if release is None:
            assert view == "widened"
            assert not where
            continue
        apart = views_module._protected(cube, view, source, policy.protect)  # type: ignore[arg-type]
        assert release.axes == apart.axes
        assert release.notes == apart.notes
        assert release.method == apart.method
        for name in ("numbers", "status", "least", "most", "structural"):
            assert np.array_equal(getattr(release, name), getattr(apart, name)), name
    chosen = bool(by) and by[0] != "sex"
    assert (views.everybody is views.shown) == (not chosen and not where)
    assert (views.selected is views.shown) == (not chosen and bool(where))


@pytest.mark.parametrize("chosen", [("sex",), ("job",), ("sex", "job"), ()])
def test_parts_of_a_total_that_were_not_asked_for_are_protected_with_it_and_do_not_leave(
    engine: EmbeddedEngine, chosen: tuple[str, ...]
) -> None:
    codes = {name: engine.dataset.variable(name).codes for name in ("sex", "job")}
    by = [
        {"variable": name, "total": True, **({"codes": [codes[name][0]]} if name in chosen else {})}
        for name in codes
    ]
    source, query = ProtectedInput(engine), asked(by=by)
    shown = counted_views(query, source, made()).shown
    for axis in shown.axes:
        own = codes[axis.name][:1] if axis.name in chosen else codes[axis.name]
        assert [category.code for category in axis.categories] == [*own, "_T"]
    whole = asked(by=[{"variable": name, "total": True} for name in codes])
    every = counted_views(whole, source, made()).shown
    places = [[0, -1] if name in chosen else range(len(codes[name]) + 1) for name in codes]
    assert np.array_equal(shown.published, every.published[np.ix_(*places)])


def test_what_record_keys_do_not_protect_is_refused(engine: EmbeddedEngine) -> None:
    source, with_sums = ProtectedInput(engine), made(sums=SUMS)
    for query in (asked(statistics=["mean:income"]), replace(asked(), weight="w")):
        with pytest.raises(CannotProtectError):
            counted_views(query, source, with_sums)
    with pytest.raises(CannotProtectError, match="does not say how sums"):
        counted_views(asked(measure="income"), source, made())
    views = counted_views(asked(measure="income"), source, with_sums)
    assert views.selected is None
    assert views.everybody is views.shown
    true = engine.tabulate(asked(measure="income")).values
    near = np.abs(views.shown.published - true) <= 0.5 * true + 1
    assert near.all()
    assert not np.array_equal(views.shown.published, true)
    assert counted_views(asked(), source, with_sums).selected is None
    assert EngineNumbers(engine, with_sums).measures == ("income",)
    numbers = EngineNumbers(engine, made())
    assert (numbers.measures, numbers.weights, numbers.weighted_measures) == ((), (), ())
    assert numbers.quotients(asked(), asked(), None) is None
    assert numbers.sum_noise("income") is None
    assert EngineNumbers(engine, with_sums).sum_noise("income") is not None


def step(**words: Any) -> Before:
    return Before.model_validate(words)


def test_bounds_after_a_change_of_the_input_are_open_and_its_words_are_told(
    engine: EmbeddedEngine,
) -> None:
    rounding = step(method="random-rounding", base=5)
    source = prepared(engine, [rounding], SECRET)
    assert source.before == (rounding,)
    table = source.engine.tabulate(asked())
    release = source.protect(table, PolicyMethod.model_validate({"method": "none"}))
    assert release.most is not None
    assert not release.least.any()
    assert (release.most == UNBOUNDED).all()
    assert np.array_equal(release.published, table.values)
    assert release.method["before"] == [rounding.spec.to_mapping()]
    assert release.channel is None
    assert "protected beforehand by random-rounding" in str(release.notes[0])
    assert (table.values % 5 == 0).all()
    plain = ProtectedInput(engine).protect(
        engine.tabulate(asked()), PolicyMethod.model_validate({"method": "none"})
    )
    assert plain.least is not None
    assert np.array_equal(plain.least, plain.published)
    assert "before" not in plain.method


def test_each_step_has_chance_of_its_own_which_the_secret_repeats(engine: EmbeddedEngine) -> None:
    swap = step(method="post-randomisation", variable="job", stay=0.6)

    def counts(*steps: Before, secret: Any = SECRET) -> Any:
        return prepared(engine, steps, secret).engine.tabulate(asked()).values.tolist()

    once = counts(swap)
    assert once == counts(swap)
    assert once != counts(swap, secret=type(SECRET)(bytes(32)))
    assert once != engine.tabulate(asked()).values.tolist()
    twice = counts(swap, swap)
    assert twice != once
    other = step(method="post-randomisation", variable="job", stay=0.61)
    assert counts(other) != once
    with pytest.raises(InputError, match="works on records, and those before it left cells"):
        prepared(engine, [step(method="random-rounding", base=3), swap], SECRET)
    assert prepared(engine, [], SECRET).engine is engine


class Negative(Hides):
    """A method that shows everything, and one number below 0."""

    def apply(self, table: Table, rng: Any = None) -> Release:
        values = np.where(np.arange(table.values.size).reshape(table.shape) == 1, -1, table.values)
        return replace(super().apply(table), numbers=values, status=np.full(table.shape, "F"))


@pytest.mark.parametrize("method", [Hides(), Negative()])
def test_a_method_that_leaves_no_counts_cannot_stand_before_others(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, method: Hides
) -> None:
    before = step(method="random-rounding", base=3)
    monkeypatch.setattr(PolicyMethod, "spec", property(lambda _: method))
    with pytest.raises(InputError, match="does not leave counts"):
        protected_input.prepared(engine, [before], SECRET)


def test_empty_cells_get_keys_from_the_secret(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[bytes, Any]] = []

    class Keyed(Hides):
        def with_zeros(self, secret: bytes, dataset: Any) -> Hides:
            given.append((secret, dataset))
            return Hides()

    monkeypatch.setattr(PolicyMethod, "spec", property(lambda _: Keyed()))
    table = engine.tabulate(asked())
    ProtectedInput(engine).protect(table, PolicyMethod.model_construct())
    assert given == []
    ProtectedInput(engine, secret=SECRET).protect(table, PolicyMethod.model_construct())
    assert given == [(SECRET.derive("lustrum empty cells"), engine.dataset)]
    assert prepared(engine, [], SECRET).secret is SECRET


def test_a_hypercube_of_records_is_protected_by_their_keys(engine: EmbeddedEngine) -> None:
    by = [v.name for v in engine.dataset.variables]
    every = asked(by=by)
    rounding = step(method="random-rounding", base=5)
    expected = rounding.spec.apply(engine.tabulate(every)).published
    found = prepared(engine, [rounding], SECRET).engine.tabulate(every).values
    assert np.array_equal(found, expected)


TABLE = Table.from_counts([4, 0, 9])


def released(values: Any, **words: Any) -> Release:
    numbers = np.array(values)
    return Release(TABLE.axes, numbers, np.full(numbers.shape, "F"), {"method": "last"}, **words)


def method(release: Release, **more: Any) -> Any:
    """A method for tables that gives this release."""
    spec = SimpleNamespace(apply=lambda table: release, **more)
    return SimpleNamespace(spec=spec)


def records_step(name: str, *, low: Any = None, high: Any = None, channel: Any = None) -> Any:
    """A method for records, with bounds of the tables counted afterwards or without."""
    bounds = {
        name: np.array(end) for name, end in (("least", low), ("most", high)) if end is not None
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
        [3, 0, 9], least=np.array([2, 0, 7]), most=np.array([5, 2, 11]), notes=("note of last",)
    )
    source = ProtectedInput(
        None,
        (
            records_step("one", low=[4, 0, 9], high=[4, 3, 9]),
            records_step("two", low=[4, 0, 8], high=[4, 0, 9]),
        ),
    )  # type: ignore[arg-type]
    found = source.protect(TABLE, method(last))
    # Exact after both steps is the first cell alone.
    assert found.least.tolist() == [2, 0, 0]
    assert found.most.tolist() == [5, UNBOUNDED, UNBOUNDED]
    assert found.notes == ("note of one", "note of two", "note of last")
    assert found.method == {"method": "last", "before": [{"method": "one"}, {"method": "two"}]}
    assert found.channel is None


def test_a_release_without_bounds_has_those_of_its_channel_or_of_its_numbers() -> None:
    exact = records_step("one", low=[4, 0, 9], high=[4, 0, 9])
    for words in ({}, {"least": np.array([1, 0, 1])}, {"most": np.array([9, 9, 9])}):
        found = ProtectedInput(None, (exact,)).protect(TABLE, method(released([3, 0, 9], **words)))  # type: ignore[arg-type]
        assert found.least.tolist() == found.most.tolist() == [3, 0, 9]
    rounded = released([3, 0, 9], channel=RoundingChannel(3))
    found = ProtectedInput(None, (exact,)).protect(TABLE, method(rounded))  # type: ignore[arg-type]
    assert (found.least.tolist(), found.most.tolist()) == ([1, 0, 7], [5, 2, 11])
    unknown = ProtectedInput(None, (records_step("one"),)).protect(TABLE, method(rounded))  # type: ignore[arg-type]
    assert unknown.least.tolist() == [0, 0, 0]
    assert unknown.most.tolist() == [UNBOUNDED] * 3


def test_a_step_with_one_bound_alone_says_nothing() -> None:
    last = released([3, 0, 9], least=np.array([2, 0, 7]), most=np.array([5, 2, 11]))
    for words in ({"low": [4, 0, 9]}, {"high": [4, 0, 9]}):
        found = ProtectedInput(None, (records_step("one", **words),)).protect(TABLE, method(last))  # type: ignore[arg-type]
        assert found.least.tolist() == [0, 0, 0]
        assert found.most.tolist() == [UNBOUNDED] * 3


def test_channels_follow_each_other_from_the_first_step_on() -> None:
    first, second, last = RoundingChannel(2), RoundingChannel(3), RoundingChannel(5)
    steps = (records_step("one", channel=first), records_step("two", channel=second))
    found = ProtectedInput(None, steps).protect(TABLE, method(released([5, 0, 10], channel=last)))  # type: ignore[arg-type]
    assert found.channel == ComposedChannel(first, ComposedChannel(second, last))
    gap = (records_step("one", channel=first), records_step("two"))
    found = ProtectedInput(None, gap).protect(TABLE, method(released([5, 0, 10], channel=last)))  # type: ignore[arg-type]
    assert found.channel is None
