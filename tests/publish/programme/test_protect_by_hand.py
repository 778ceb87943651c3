"""Tiny systems protected by each method: every array of the problem, and every number of the releases."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.model import InputError
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.rounding.controlled.method import ControlledRounding
from lustrum.protect.suppression import Suppression
from lustrum.publish.programme import protect as protect_module
from lustrum.publish.programme import suppress as suppress_module
from lustrum.publish.programme.audit import audit_moves, audit_ranges, judge

# Chance, attackers and the problem before anything is solved: what a pattern shows does not tell them apart.
from lustrum.publish.programme.protect import _chance, method_of, protect_system
from lustrum.publish.programme.suppress import _joint_views, _problem
from lustrum.publish.programme.system import systems_of
from lustrum.sensitivity import Background
from lustrum.sensitivity.rule import NOTHING, ranks_of
from publish.programme.tiny import (
    BY_BOTH,
    EVEN,
    FIRMS,
    PAY,
    PERCENT,
    RULES,
    SECRET,
    firms,
    judged,
    programme,
    records,
    systems,
    table,
)

AREA = 'by = [{variable = "area", total = true}]'
SEX = 'by = ["area", "sex"]\ntotals = true'
WORDS = {"method": "suppression", "rules": ["threshold"]}


def places(system: Any) -> dict[str, slice]:
    return {part.name: span for part, span in zip(system.parts, system.spans, strict=True)}


def codes_of(part: Any) -> list[tuple[str, ...]]:
    return list(product(*(axis.codes for axis in part.true.axes)))


# The problem of several tables


@pytest.mark.parametrize("measures", [(), ("pay",)])
def test_a_system_needs_no_cell_more_than_one_square_around_a_small_one(
    measures: tuple[str, ...],
) -> None:
    """Every line through the small cell needs a second hidden one, and these a fourth."""
    _, _, made = protected(table("one", BY_BOTH, *measures), table("two", SEX, *measures))
    hidden = ~made.releases[0].shown
    assert hidden[0, 0]
    assert int(hidden.sum()) == 4
    assert made.releases[1].shown.all()


@pytest.mark.parametrize("others", [(), (table("two", SEX),)])
def test_a_sensitive_cell_that_must_be_published_is_refused(others: tuple[str, ...]) -> None:
    held = 'frozen = [{area = "n", job = "a"}]'
    own, system, found = judged(table("one", f"{BY_BOTH}\n{held}"), *others)
    with pytest.raises(InputError, match="must be published and must not be published"):
        _problem(own, Suppression(attacker="outsider"), system, found)


@pytest.mark.parametrize("others", [(), (table("two", SEX),)])
@pytest.mark.parametrize("zeros", ["true", "false"])
@pytest.mark.parametrize("keep", ["nothing", "totals", "grand-total"])
def test_what_must_be_published_is_and_what_must_not_is_hidden(
    keep: str, zeros: str, others: tuple[str, ...]
) -> None:
    held = 'frozen = [{area = "s", job = "b"}]\nnever = [{area = "s", job = "c"}]'
    rows = firms(EVEN | {("n", "b", s): 0 for s in "mf"} | {("n", "a", "m"): 1, ("n", "a", "f"): 0})
    system, found, made = protected(
        table("one", f"{BY_BOTH}\n{held}"),
        *others,
        rows=rows,
        zeros_shown=zeros == "false",
        method=f'{{method = "suppression", keep = "{keep}", zeros = {zeros}}}',
    )
    shown = dict(zip(codes_of(system.parts[0]), made.releases[0].shown.ravel(), strict=True))
    assert not shown["n", "a"]
    assert not shown["s", "c"]
    kept = {
        "nothing": [],
        "totals": [cell for cell in shown if "_T" in cell],
        "grand-total": [("_T", "_T")],
    }[keep]
    assert all(shown[cell] for cell in [("s", "b"), *kept])
    assert zeros == "true" or shown["n", "b"]
    assert audit_ranges(system, found, made.releases, workers=1).safe


@pytest.mark.parametrize("zeros", [True, False])
def test_an_empty_cell_of_linked_tables_stays_unless_the_method_hides_some(zeros: bool) -> None:
    rows = firms(EVEN | {("n", "b", s): 0 for s in "mf"} | {("n", "a", "m"): 1, ("n", "a", "f"): 0})
    own, system, found = judged(
        table("one", BY_BOTH), table("two", SEX), rows=rows, zeros_shown=not zeros
    )
    problem = _problem(own, Suppression(attacker="outsider", zeros=zeros), system, found)
    frozen = np.flatnonzero(problem.frozen[system.spans[0]]).tolist()
    assert frozen == ([] if zeros else [codes_of(system.parts[0]).index(("n", "b"))])


def test_a_search_over_linked_tables_knows_what_an_attacker_knows() -> None:
    """No audit looks for contributors afterwards, so that the problem itself must be right."""
    tables = table("one", BY_BOTH, "tips"), table("two", SEX, "tips")
    for sign, known in ((1, True), (1, False), (-1, True)):
        rows = [dict(row, tips=sign * row["tips"] if row["area"] == "n" else 5) for row in FIRMS]
        own, system, found = judged(*tables, rows=rows, rules=RULES)
        levels = {
            name: np.where(found.sensitive, size, 0)
            for name, size in (("lower", 2), ("upper", 10**6), ("sliding", 4))
        }
        found = replace(found, least=found.least if known else None, **levels)
        problem = _problem(own, Suppression(attacker="outsider"), system, found)
        assert found.sensitive.any()
        assert all(getattr(problem, name).tolist() == levels[name].tolist() for name in levels)
        top = int(np.abs(system.values).max())
        assert set(problem.low.tolist()) == ({0} if sign > 0 and known else {-2 * top})
        # There is room beyond every level.
        assert set(problem.high.tolist()) == {top + 10**6}
        assert problem.whole is False
    own, system, found = judged(table("one", BY_BOTH), table("two", SEX))
    problem = _problem(own, Suppression(attacker="outsider"), system, found)
    shown = np.concatenate([np.full(p.true.values.size, p.shown) for p in system.parts])
    assert problem.low[: shown.size].tolist() == shown.astype(int).tolist()
    assert problem.whole


@pytest.mark.parametrize("others", [(), (table("two", SEX, "pay"),)])
@pytest.mark.parametrize("cost", ["value", "unity", "count", "distance", "box-cox"])
def test_a_pattern_costs_what_the_method_counts(cost: str, others: tuple[str, ...]) -> None:
    system, found, made = protected(
        table("one", BY_BOTH, "pay"),
        *others,
        method=f'{{method = "suppression", cost = "{cost}", power = 0.25, algorithm = "quick"}}',
    )
    wanted = 0.0
    for part, span, release in zip(system.parts, system.spans, made.releases, strict=True):
        if release is None:
            continue
        sensitive = np.argwhere(found.sensitive[span].reshape(release.shape))
        secondary = ~release.shown & ~found.sensitive[span].reshape(release.shape)
        for at in map(tuple, np.argwhere(secondary)):
            value = int(part.true.values[at])
            wanted += {
                "value": value,
                "unity": 1,
                "count": int(part.true.contributors[at]),
                "distance": 1 + min(np.abs(sensitive - at).sum(axis=1), default=0),
                "box-cox": (value + 1.0) ** 0.25,
            }[cost]
    assert made.pattern.cost == pytest.approx(wanted)


def test_unions_are_judged_in_a_set_of_one_table() -> None:
    spec = Suppression(unions=True, attacker="outsider")
    own, system, found = judged(table("one", BY_BOTH, "pay"), rules=PERCENT + RULES)
    waived = replace(found, background=Background(waived=[7]))
    assert _problem(own, spec, system, waived).unions.background is waived.background  # type: ignore[union-attr]
    assert _problem(own, replace(spec, unions=False), system, found).unions is None
    own, system, found = judged(table("one", BY_BOTH), table("two", SEX))
    with pytest.raises(InputError, match="Set 'one': 'unions' is for a set of one table"):
        _problem(own, spec, system, found)


# Contributors as attackers


def alone_and_pair() -> list[dict[str, Any]]:
    """One firm alone in n, a; two of one holding in n, b; holdings of their own elsewhere."""
    rows = firms(
        EVEN | {("n", "a", "m"): 1, ("n", "a", "f"): 0, ("n", "b", "m"): 1, ("n", "b", "f"): 1}
    )
    for row in rows:
        if (row["area"], row["job"]) == ("n", "b"):
            row["firm"] = "two"
    return rows


def test_a_contributor_knows_its_contributions_to_all_tables_in_the_units_of_the_system() -> None:
    rows = alone_and_pair()
    tables = (table("one", BY_BOTH, "pay", "tips"),)
    _, system, found = judged(*tables, one=PAY, rows=rows, rules=PERCENT + RULES)
    views = _joint_views(system, found, alone_only=False, pairs=False)
    where = places(system)
    first = [row for row in rows if (row["area"], row["job"]) == ("n", "a")]
    pay, tips = where["one, pay"].start, where["one, tips"].start
    base = where["base"].start
    known = {
        pay: round(first[0]["pay"] * 10),
        tips: first[0]["tips"] * 10,
        base: round(first[0]["base"] * 10),
    }
    mine = [v for v in views if set(known) <= set(v.cells[v.low == v.high].tolist())]
    assert len(mine) == 1
    (view,) = mine
    exact = dict(zip(view.cells.tolist(), view.low.tolist(), strict=True))
    assert {cell: exact[cell] for cell in known} == known
    # Of the total it knows its own part, in tenths as all of the system is.
    every = where["one, tips"].stop - 1
    own = {row["firm"]: 0 for row in rows}
    for row in rows:
        own[row["firm"]] += row["tips"]
    largest = max(own.values())
    shares = {v.low[v.cells == every][0] for v in views if (v.cells == every).any()}
    assert max(shares) == largest * 10
    # The two firms of one holding are one contributor, who knows n, b exactly.
    both = [row for row in rows if row["firm"] == "two"]
    total = round(sum(row["pay"] for row in both) * 10)
    assert any(
        (v.cells[v.low == v.high] == pay + 1).any() and total in v.low.tolist() for v in views
    )
    # Of those that are alone nowhere nothing is kept if only sole contributors attack.
    sole = _joint_views(system, found, alone_only=True, pairs=False)
    assert len(sole) == 2
    assert all((view.low == view.high).any() for view in sole)
    pairs = _joint_views(system, found, alone_only=True, pairs=True)
    assert len(pairs) == 3
    assert len(pairs[-1].members) == 2


@pytest.mark.parametrize(
    ("attacker", "views"), [("outsider", 0), ("singletons", 2), ("pairs", -1), ("holdings", -1)]
)
def test_the_attackers_of_the_method_stand_in_the_problem(attacker: Any, views: int) -> None:
    rows = alone_and_pair()
    own, system, found = judged(
        table("one", BY_BOTH, "pay"), table("two", SEX, "pay"), rows=rows, rules=PERCENT + RULES
    )
    problem = _problem(own, Suppression(attacker=attacker), system, found)
    if views >= 0:
        assert len(problem.views) == views
    else:
        assert len(problem.views) > 2
    assert any(len(view.members) > 1 for view in problem.views) is (attacker == "pairs")
    alone = judged(table("one", BY_BOTH, "pay"), rows=rows, rules=PERCENT + RULES)
    single = _problem(alone[0], Suppression(attacker=attacker), *alone[1:])
    assert bool(single.views) is (attacker != "outsider")


def test_levels_against_a_contributor_are_those_of_what_others_contribute() -> None:
    rows = alone_and_pair()
    tables = table("one", BY_BOTH, "pay"), table("two", SEX, "pay")
    _, system, found = judged(*tables, rows=rows, rules=PERCENT + RULES)
    total = system.spans[0].stop - 1
    every = np.zeros(system.values.size, dtype=bool)
    every[total] = True
    given = replace(
        found,
        sensitive=every,
        lower=np.where(every, 20, 0),
        upper=np.where(every, 30, 0),
        sliding=np.where(every, 40, 0),
    )
    views = [
        view
        for view in _joint_views(system, given, alone_only=False, pairs=False)
        if (view.cells == total).any()
    ]
    assert views
    for view in views:
        at = int(np.flatnonzero(view.cells == total)[0])
        assert view.levels[:, at].tolist() == [20, 30, 40]


def test_two_that_share_a_cell_know_it_together() -> None:
    rows = firms(EVEN | {("n", "a", "m"): 1, ("n", "a", "f"): 1})
    _, system, found = judged(
        table("one", BY_BOTH, "pay"), table("two", SEX, "pay"), rows=rows, rules=PERCENT + RULES
    )
    views = _joint_views(system, found, alone_only=False, pairs=True)
    cell = places(system)["one, pay"].start
    value = int(system.values[cell])
    pooled = [
        view
        for view in views
        if len(view.members) > 1 and (view.low[view.cells == cell] == value).any() and value > 0
    ]
    assert pooled
    for view in pooled:
        assert (view.high[view.cells == cell] == value).all()
    # Nobody alone knows it.
    assert not any((v.high[v.cells == cell] == value).any() for v in views if len(v.members) < 2)


# Releases


def protected(*tables: str, method: str = "", previous: Any = None, **words: Any) -> Any:
    one = words.pop("one", "")
    said = f"method = {method}\n{one}" if method else one
    own, system, found = judged(*tables, one=said, **words)
    made = protect_system(own, system, found, description=WORDS, previous=previous, workers=1)
    return system, found, made


HELD = 'never = [{area = "s", job = "c"}, {area = "n", job = "a"}]'


def test_releases_show_true_values_or_nothing_and_letters_say_why() -> None:
    system, found, made = protected(table("one", f"{BY_BOTH}\n{HELD}"), table("two", SEX))
    assert made.pattern is not None
    assert made.changes is None
    for part, span, release in zip(system.parts, system.spans, made.releases, strict=True):
        hidden = made.pattern.suppressed[span]
        assert release.shown.ravel().tolist() == (~hidden).tolist()
        true = system.values[span]
        flat = release.published.ravel()
        assert flat[~hidden].tolist() == true[~hidden].tolist()
        assert np.isnan(flat[hidden]).all()
        assert release.least.ravel()[hidden].tolist() == [1] * int(hidden.sum())
        assert set(release.most.ravel()[hidden].tolist()) <= {UNBOUNDED}
        assert release.least.ravel()[~hidden].tolist() == true[~hidden].tolist()
        assert release.most.ravel()[~hidden].tolist() == true[~hidden].tolist()
        assert dict(release.method) == WORDS
        assert (release.decimals, release.unit) == (part.true.decimals, part.true.unit)
        assert len(release.notes) == (2 if hidden.any() else 0)
    letters = dict(zip(codes_of(system.parts[0]), made.releases[0].status.ravel(), strict=True))
    assert letters["n", "a"] == "A"
    assert letters["s", "c"] == "N"
    hidden = set(letters.values()) - {"F"}
    assert hidden == {"A", "N", "D"}
    audited = audit_ranges(system, found, made.releases, workers=1)
    assert audited.safe


def test_a_part_that_no_table_shows_has_no_release() -> None:
    some = 'by = ["area"]\nwhere = {job = ["a", "b"]}'
    system, _, made = protected(table("all", AREA), table("some", some))
    assert [release is None for release in made.releases] == [
        not part.shown for part in system.parts
    ]
    assert sum(release is None for release in made.releases) == 1
    rounding = '{method = "controlled-rounding", base = 5}'
    own = programme(table("all", AREA), table("some", BY_BOTH), one=f"method = {rounding}").sets[0]
    assert isinstance(method_of(own), ControlledRounding)


def test_intervals_of_a_measure_are_in_its_own_units() -> None:
    rows = firms(EVEN | {("n", "a", "m"): 1, ("n", "a", "f"): 1})
    system, _, made = protected(
        table("one", BY_BOTH, "pay", "tips"),
        one=PAY,
        rows=rows,
        rules=RULES,
        method='{method = "suppression", partial = true}',
    )
    for part, release in zip(system.parts, made.releases, strict=True):
        if release is None:
            continue
        hidden = ~release.shown
        assert hidden.any()
        true = part.true.values
        # A whole unit of tips is ten of the system: ends are rounded inwards, and hold the true value.
        assert (release.least <= true).all()
        assert (true <= release.most).all()
        total = true[-1, -1]
        assert (release.most[hidden] <= total).all()
        assert release.least[hidden].min() >= 0
    negative = [dict(row, tips=-row["tips"] if row["job"] == "c" else row["tips"]) for row in rows]
    system, _, made = protected(
        table("one", BY_BOTH, "tips"),
        rows=negative,
        rules=RULES,
        method='{method = "suppression", partial = true}',
    )
    (release,) = made.releases
    hidden = ~release.shown
    assert set(release.least[hidden].tolist()) == {-UNBOUNDED}
    assert set(release.most[hidden].tolist()) == {UNBOUNDED}


def test_a_change_is_reported_among_the_cells_that_are_shown() -> None:
    own, system, found = judged(table("one", BY_BOTH), table("two", SEX))
    previous = np.ones(system.values.size, dtype=bool)
    made = protect_system(own, system, found, description=WORDS, previous=previous, workers=1)
    shown = np.zeros(system.values.size, dtype=bool)
    for part, span in zip(system.parts, system.spans, strict=True):
        shown[span] = part.shown
    again = np.flatnonzero(shown & ~made.pattern.suppressed)
    assert [one.cell for one in made.changes.cells] == again.tolist()
    assert {one.change for one in made.changes.cells} == {"published again"}
    none = np.zeros(system.values.size, dtype=bool)
    made = protect_system(own, system, found, description=WORDS, previous=none, workers=1)
    # Cells of the cube, which no table shows, are no news.
    added = np.flatnonzero(shown & made.pattern.suppressed)
    assert [one.cell for one in made.changes.cells] == added.tolist()


def test_a_search_that_found_nothing_safe_publishes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def nothing(*given: Any) -> Any:
        asked.append(given[-1])
        return SimpleNamespace(safe=False, unprotectable=())

    monkeypatch.setattr(suppress_module, "pattern_of_tables", nothing)
    with pytest.raises(InputError, match="so nothing is published"):
        protected(table("one", BY_BOTH))
    assert asked == [1]


def test_cells_that_cannot_be_protected_are_not_published() -> None:
    # Both cells of the line must be published, so nothing hides the third.
    held = 'frozen = [{area = "s"}]'
    few = firms({("n", "a", "m"): 1, ("s", "a", "m"): 9})
    words = table("one", f"{AREA}\n{held}")
    with pytest.raises(InputError, match="no pattern protects all sensitive cells") as error:
        protected(words, rows=few, method='{method = "suppression", keep = "totals"}')
    assert str(error.value).startswith("Set 'one': ")
    # It is said which cell, and not how many it holds.
    assert "area=N cannot be protected" in str(error.value)


# Rounding and adjustment


def keyed(*tables: str, method: str, rows: Any = FIRMS, one: str = "", rules: str = RULES) -> Any:
    own = programme(*tables, one=f"method = {method}\n{one}", rules=rules).sets[0]
    (system,) = systems_of(
        own, records(rows, secret=SECRET), ranks_of(*(one.rule for one in own.rules))
    )
    return own, system, judge(own, system, NOTHING)


@pytest.mark.parametrize("number", [1, 2])
def test_rounded_tables_agree_and_tell_the_method_alone(number: int) -> None:
    method = '{method = "controlled-rounding", base = 5}'
    tables = [table("one", BY_BOTH), table("two", SEX)][:number]
    own, system, found = keyed(*tables, method=method)
    said = {"method": "controlled-rounding", "base": 5, "rules": ["threshold"]}
    made = protect_system(own, system, found, description=said)
    again = protect_system(own, system, found, description=said)
    totals = []
    for part, release, second in zip(system.parts, made.releases, again.releases, strict=True):
        assert (release.published % 5 == 0).all()
        assert (np.abs(release.published - part.true.values) < 5).all()
        assert release.published.tolist() == second.published.tolist()
        inner = release.published[:-1, :-1]
        assert release.published[-1, :-1].tolist() == inner.sum(axis=0).tolist()
        assert release.published[:-1, -1].tolist() == inner.sum(axis=1).tolist()
        totals.append(release.published[:, -1].tolist())
        assert dict(release.method) == said
        assert dict(release.provenance) == {}
    assert all(line == totals[0] for line in totals)


def test_chance_is_of_the_records_the_secret_and_the_set() -> None:
    method = '{method = "controlled-rounding", base = 5}'
    own, system, _ = keyed(table("one", BY_BOTH), table("two", SEX), method=method)

    def drawn(set_: Any, parts: Any) -> list[int]:
        return _chance(set_, parts).integers(0, 2**60, 4).tolist()

    first = drawn(own, system.parts)
    assert drawn(own, system.parts) == first
    assert drawn(replace(own, name="other"), system.parts) != first
    assert drawn(own, system.parts[:1]) != first
    bare = systems(table("one", BY_BOTH))[1][0]
    with pytest.raises(InputError, match="Set 'one': the method draws by chance"):
        _chance(own, bare.parts)
    with pytest.raises(InputError, match="name a secret file"):
        _chance(own, [*system.parts, *bare.parts])


@pytest.mark.parametrize(
    "method",
    [
        '{method = "controlled-rounding", base = 5, unbiased = true}',
        '{method = "controlled-adjustment", directions = "random"}',
    ],
)
def test_what_is_shown_is_drawn_by_the_chance_of_the_set(method: str) -> None:
    own, system, found = keyed(table("one", BY_BOTH), method=method)

    def shown(name: str) -> str:
        made = protect_system(replace(own, name=name), system, found, description={})
        return str([release.published.tolist() for release in made.releases])

    assert shown("one") == shown("one")
    assert len({shown(f"set {k}") for k in range(6)}) > 1


def test_what_cannot_be_rounded_is_refused() -> None:
    method = '{method = "controlled-rounding", base = 5}'
    own, system, found = keyed(table("one", BY_BOTH, "tips"), method=method)
    with pytest.raises(InputError, match="Set 'one': controlled rounding is for counts"):
        protect_system(own, system, found, description={})
    some = 'by = ["area"]\nwhere = {job = ["a", "b"]}'
    own, system, found = keyed(table("one", some), method=method)
    with pytest.raises(InputError, match="for tables without 'where'"):
        protect_system(own, system, found, description={})
    own, system, found = keyed(table("all", AREA), table("one", some), method=method)
    with pytest.raises(InputError, match="for tables without 'where'"):
        protect_system(own, system, found, description={})


def test_adjusted_tables_move_sensitive_cells_and_nothing_that_is_kept() -> None:
    method = '{method = "controlled-adjustment", keep = "grand-total"}'
    tables = table("one", BY_BOTH, "pay"), table("two", SEX, "pay")
    own, system, found = keyed(*tables, method=method)
    made = protect_system(own, system, found, description={"method": "controlled-adjustment"})
    for part, release in zip(system.parts, made.releases, strict=True):
        assert release.published[-1, -1] == part.true.values[-1, -1]
        assert set(release.status.ravel().tolist()) == {"F"}
        assert (release.decimals, release.unit) == (1, "EUR")
        kept = release.least == release.most
        assert np.argwhere(kept).tolist() == [[release.shape[0] - 1, release.shape[1] - 1]]
        assert release.least[0, 0] == -UNBOUNDED
        assert any("The grand total is as counted" in str(note) for note in release.notes)
    assert audit_moves(system, found, made.releases).safe


def test_adjusted_sums_are_in_their_own_units_or_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, system, found = keyed(
        table("one", AREA, "pay", "tips"), method='"controlled-adjustment"', one=PAY
    )
    moved = system.values.copy()
    monkeypatch.setattr(protect_module, "adjust", lambda *_, **__: SimpleNamespace(values=moved))
    tips = places(system)["one, tips"]
    moved[tips.start] += 10
    releases = protect_system(own, system, found, description={}).releases
    by_name = dict(zip((part.name for part in system.parts), releases, strict=True))
    true = {part.name: part.true.values.tolist() for part in system.parts}
    assert by_name["base"] is None
    # A whole unit of tips is ten of the system.
    first, *others = true["one, tips"]
    assert by_name["one, tips"].published.tolist() == [first + 1, *others]
    assert by_name["one, pay"].published.tolist() == true["one, pay"]
    moved[tips.start] += 3
    with pytest.raises(InputError, match="adjusted values of 'tips' need more decimals"):
        protect_system(own, system, found, description={})


def test_half_of_a_sliding_level_is_moved_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    own, system, found = keyed(
        table("one", BY_BOTH, "tips"), method='{method = "controlled-adjustment", weights = "unit"}'
    )
    asked: list[Any] = []

    def stopped(values: Any, *places: Any, **words: Any) -> Any:
        asked.append((places, words))
        raise InputError("enough")

    monkeypatch.setattr(protect_module, "adjust", stopped)
    cells = np.zeros(system.values.size, dtype=bool)
    cells[:4] = True
    given = replace(
        found,
        sensitive=cells,
        lower=np.array([2, 0, 9, 1, *[0] * (cells.size - 4)]),
        upper=np.array([3, 1, 1, 0, *[0] * (cells.size - 4)]),
        sliding=np.array([7, 8, 4, 0, *[0] * (cells.size - 4)]),
    )
    with pytest.raises(InputError, match="enough"):
        protect_system(own, system, given, description={})
    (((_, sensitive, lower, upper), words),) = asked
    assert sensitive.tolist() == cells.tolist()
    assert lower.tolist() == [4, 0, 9, 1]
    assert upper.tolist() == [4, 4, 2, 1]
    assert set(words["weights"].tolist()) == {1.0}


def test_suppression_is_the_method_of_a_set_that_names_none() -> None:
    own = programme(table("one", BY_BOTH)).sets[0]
    assert method_of(own) == Suppression()
    named = programme(table("one", BY_BOTH), one='method = {method = "suppression", work = 3}')
    assert method_of(named.sets[0]) == Suppression(work=3)
