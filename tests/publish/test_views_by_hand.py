"""What leaves the room of the records: protected views, open bounds after a protected input, nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from answer.conftest import SECRET
from lustrum.model import InputError, Release, Table, TableQuery
from lustrum.numeric.structure import UNBOUNDED
from lustrum.policy import Before, Policy, PolicyMethod
from lustrum.protect.abilities import Abilities
from lustrum.protect.unchanged import IdentityChannel
from lustrum.public.numbers import CannotProtectError
from lustrum.publish.records import EngineNumbers, ProtectedInput, protected_input
from lustrum.publish.records import views as views_module
from lustrum.publish.records.protected_input import prepared
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
        assert not view.published[~view.shown].any()
        assert view.provenance == {}
    assert np.array_equal(views.shown.published, np.where(true > 400, true, 0))
    assert views.everybody.published.sum() > views.shown.published.sum()


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
        for name in ("published", "status", "low", "high", "structural"):
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


def test_weighted_counts_are_protected_counts_times_mean_weights_and_weighted_sums_are_refused(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, policy = ProtectedInput(engine), made(sums=SUMS)
    given: list[Any] = []

    def weighted(query: TableQuery, counted: Release, own: Any, mean: Any) -> Release:
        given.append((query, own, mean))
        return replace(counted, published=7 * counted.published)

    monkeypatch.setattr(views_module, "weighted_release", weighted)
    monkeypatch.setattr(views_module, "mean_weights", lambda *words: ("made", words))
    plain = counted_views(asked(), source, policy).shown
    found = counted_views(replace(asked(), weight="w"), source, policy)
    assert found.everybody is found.shown
    assert found.selected is None
    assert np.array_equal(found.shown.published, 7 * plain.published)
    assert given.pop() == (asked(), source, ("made", (source, policy)))
    kept: Any = "kept"
    counted_views(replace(asked(), weight="w"), source, policy, kept)
    assert given.pop() == (asked(), source, "kept")
    with pytest.raises(CannotProtectError, match="Record keys protect counts"):
        counted_views(replace(asked(measure="income"), weight="w"), source, policy)
    assert given == []


def test_sums_take_as_many_largest_contributions_as_their_method_needs(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks: list[int] = []
    counted = EmbeddedEngine.tabulate

    def tabulate(self: Any, query: TableQuery, **words: Any) -> Table:
        ranks.append(words["ranks"])
        return counted(self, query, **words)

    monkeypatch.setattr(EmbeddedEngine, "tabulate", tabulate)
    for own, expected in ((1, 2), (2, 2), (3, 3)):
        spec = {**SUMS, "ranks": own, "extra": 1.0, "small": 0.1}
        counted_views(asked(measure="income"), ProtectedInput(engine), made(sums=spec))
        assert ranks.pop() == expected


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
    assert release.low is not None
    assert release.high is not None
    assert not release.low.any()
    assert (release.high == UNBOUNDED).all()
    assert np.array_equal(release.published, table.values)
    assert release.method["before"] == [rounding.spec.to_mapping()]
    assert release.channel is None
    assert "protected beforehand by random-rounding" in str(release.notes[0])
    assert (table.values % 5 == 0).all()
    plain = ProtectedInput(engine).protect(
        engine.tabulate(asked()), PolicyMethod.model_validate({"method": "none"})
    )
    assert plain.low is not None
    assert np.array_equal(plain.low, plain.published)
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


def test_a_method_that_leaves_no_counts_cannot_stand_before_others(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = step(method="random-rounding", base=3)
    monkeypatch.setattr(PolicyMethod, "spec", property(lambda _: Hides()))
    with pytest.raises(InputError, match="does not leave counts"):
        protected_input.prepared(engine, [before], SECRET)


@pytest.mark.parametrize("bounded", [False, True])
def test_what_a_step_leaves_exact_keeps_the_bounds_of_the_method(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch, bounded: bool
) -> None:
    table = engine.tabulate(asked())
    exact = np.arange(table.values.size).reshape(table.shape) % 2 == 0
    near = np.where(table.values > 0, table.values - 1, 0)

    def published(step: Before, own: Table) -> Release:
        """Exact in every other cell; elsewhere one end is the number and the other is not."""
        low = np.where(exact, own.values, near)
        return replace(Hides().apply(own), low=low, high=own.values, channel=IdentityChannel())

    monkeypatch.setattr(protected_input, "_published", published)
    method = "random-rounding" if bounded else "hides"
    if not bounded:
        monkeypatch.setattr(PolicyMethod, "spec", property(lambda _: Hides()))
    source = ProtectedInput(engine, (Before.model_construct(method="random-rounding"),))
    release = source.protect(table, PolicyMethod.model_construct(method=method))
    own = PolicyMethod.model_construct(method=method).spec.apply(table)
    low, high = (own.low, own.high) if bounded else (table.values, table.values)
    changed = exact | (table.values == near)
    assert release.low is not None
    assert release.high is not None
    assert np.array_equal(release.low, np.where(changed, low, 0))
    assert np.array_equal(release.high, np.where(changed, high, UNBOUNDED))
    assert (release.channel is None) == (not bounded)


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
