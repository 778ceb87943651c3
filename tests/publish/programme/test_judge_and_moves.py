"""Which cells of a system need protection, and when an adjusted cell has moved far enough."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lustrum.audit import Knowledge
from lustrum.model import Category, InputError, InternalError, Release, Table, TableAxis
from lustrum.numeric.structure import UNBOUNDED
from lustrum.publish.programme import audit as audit_module

# The levels of one part, against their definition.
from lustrum.publish.programme.audit import (
    AuditedSystem,
    _needed,
    audit_moves,
    audit_ranges,
    judge,
    rules_for,
)
from lustrum.publish.programme.spec import RuleFor
from lustrum.sensitivity import AnyOf, PPercent, Threshold, Unless
from lustrum.sensitivity.rule import NOTHING


@pytest.mark.parametrize(
    ("shown", "contributors", "needed"),
    [
        (True, [0, 1, 2, 9], [True, True, True, False]),
        (False, None, [True, True, True, False]),
        # One contributor is somebody: only a cell of nobody needs nothing.
        (False, [0, 1, 2, 9], [False, True, True, False]),
    ],
)
def test_a_hidden_table_protects_every_sensitive_cell_with_a_contributor(
    shown: bool, contributors: list[int] | None, needed: list[bool]
) -> None:
    number = None if contributors is None else np.array(contributors)
    part: Any = SimpleNamespace(shown=shown, true=SimpleNamespace(contributors=number))
    found: Any = SimpleNamespace(mask=np.array([True, True, True, False]))
    assert _needed(part, found).tolist() == needed


@pytest.mark.parametrize(
    ("lower", "upper", "moved", "enough"),
    [
        (3, 3, 0, False),
        (3, 3, 2, False),
        (3, 3, 3, True),
        (3, 3, -2, False),
        (3, 3, -3, True),
        (2, 5, 4, False),
        (2, 5, -2, True),
        (5, 2, -4, False),
        (1, 9, -1, True),
        # Without a lower level a cell is protected by a rise alone, not by standing still or falling.
        (0, 3, 0, False),
        (0, 3, -1, False),
        (0, 3, -9, False),
        (0, 3, 3, True),
        # Without any level it must move up by one.
        (0, 0, 0, False),
        (0, 0, 1, True),
    ],
)
def test_an_adjusted_cell_is_safe_only_if_it_moved_by_its_level(
    lower: int, upper: int, moved: int, enough: bool
) -> None:
    values = np.array([20, 30])
    system: Any = SimpleNamespace(
        values=values, parts=[None], spans=[slice(0, 2)], scale=lambda part: 1
    )
    judged: Any = SimpleNamespace(
        sensitive=np.array([True, False]), lower=np.array([lower, 0]), upper=np.array([upper, 0])
    )
    axes = (TableAxis.plain("area", ["n", "s"]),)
    release = Release(
        axes, values + np.array([moved, 0]), np.full(2, "F"), {"method": "adjustment"}
    )
    found = audit_moves(system, judged, [release])
    assert found.cells.tolist() == [0]
    assert found.enough.tolist() == [enough]
    assert found.safe is enough
    # A table in tens is compared in the units of the system.
    tens: Any = SimpleNamespace(
        values=10 * values, parts=[None], spans=[slice(0, 2)], scale=lambda part: 10
    )
    large: Any = SimpleNamespace(
        sensitive=judged.sensitive, lower=10 * judged.lower, upper=10 * judged.upper
    )
    if upper:
        assert audit_moves(tens, large, [release]).safe is enough
    # What is not published cannot be judged by moves.
    assert audit_moves(system, judged, [None]).cells.size == 0


def test_an_adjusted_table_must_add_up() -> None:
    total = Category("_T", "all", (0, 1))
    axis = TableAxis("area", "Area", (*TableAxis.plain("area", ["n", "s"]).categories, total))
    values = np.array([20, 30, 50])
    system: Any = SimpleNamespace(
        values=values, parts=[None], spans=[slice(0, 3)], scale=lambda part: 1
    )
    judged: Any = SimpleNamespace(
        sensitive=np.array([True, False, False]), lower=np.zeros(3, int), upper=np.full(3, 3)
    )
    for published, safe in (([23, 27, 50], True), ([23, 27, 51], None)):
        release = Release((axis,), np.array(published), np.full(3, "F"), {"method": "adjustment"})
        if safe is None:
            with pytest.raises(InternalError, match="does not add up"):
                audit_moves(system, judged, [release])
        else:
            assert audit_moves(system, judged, [release]).safe


def of_rules(*rules: RuleFor) -> Any:
    return SimpleNamespace(name="set", rules=rules)


def test_a_response_is_judged_by_the_rules_that_can_judge_it() -> None:
    few, much = RuleFor(Threshold(3)), RuleFor(PPercent(10))
    assert rules_for(of_rules(few, much), "count") is few.rule
    both = rules_for(of_rules(few, much), "pay")
    assert isinstance(both, AnyOf)
    assert rules_for(of_rules(RuleFor(Threshold(3), ("pay",)), much), "turnover") is much.rule
    with pytest.raises(InputError, match="no rule judges 'count'"):
        rules_for(of_rules(much), "count")
    with pytest.raises(InputError, match="which a count has none of"):
        rules_for(of_rules(RuleFor(PPercent(10), ("count",))), "count")
    # A rule that is hidden inside another one counts.
    with pytest.raises(InputError, match="which a count has none of"):
        rules_for(of_rules(RuleFor(AnyOf(Threshold(3), PPercent(10)), ("count",))), "count")


def part_of(values: list[int], *, response: str = "count", shown: bool = True) -> Any:
    table = Table.from_counts(np.array(values))
    return SimpleNamespace(response=response, true=table, shown=shown)


def system_of(*parts: Any) -> Any:
    sizes = [part.true.values.size for part in parts]
    ends = np.cumsum([0, *sizes])
    return SimpleNamespace(
        parts=parts,
        spans=[slice(a, b) for a, b in pairwise(ends)],
        values=np.concatenate([part.true.values.ravel() for part in parts]),
        scale=lambda part: 10 if part.response == "scaled" else 1,
    )


@pytest.mark.parametrize("zeros_shown", [True, False])
def test_small_counts_are_sensitive_and_are_protected_upwards(zeros_shown: bool) -> None:
    own = of_rules(RuleFor(Threshold(4)))
    system = system_of(part_of([0, 1, 3, 4, 9]))
    found = judge(own, system, NOTHING, zeros_shown=zeros_shown)
    rule = Threshold(4).judge(system.parts[0].true, NOTHING)
    assert found.sensitive.tolist() == rule.mask.tolist()
    assert found.sensitive.tolist()[1:] == [True, True, False, False]
    assert found.upper.tolist() == [
        max(int(u), 1) if m else 0 for u, m in zip(rule.upper, rule.mask, strict=True)
    ]
    # Everybody knows that a hidden count is 1 at least, if empty cells are shown.
    known = zeros_shown and not found.sensitive[0]
    assert set(found.least.tolist()) == {int(known)}
    lower = np.where(rule.mask, rule.lower, 0)
    assert found.lower.tolist() == ([0] * 5 if known else np.minimum(lower, system.values).tolist())


def test_levels_are_in_the_units_of_the_system_and_the_largest_of_all_findings() -> None:
    own = of_rules(RuleFor(Threshold(4), ("count", "scaled")))
    alone = judge(own, system_of(part_of([2, 9])), NOTHING)
    scaled = judge(own, system_of(part_of([20, 9]), part_of([2, 90], response="scaled")), NOTHING)
    assert scaled.sensitive.tolist() == [False, False, True, False]
    assert scaled.upper[2] == 10 * alone.upper[0] > 0
    assert len(scaled.findings) == 2


def test_nothing_is_known_of_a_hidden_cell_where_values_can_be_negative() -> None:
    own = of_rules(RuleFor(Threshold(4)))
    system = system_of(part_of([2, 9]))
    system.values = np.array([2, -9])
    found = judge(own, system, NOTHING, zeros_shown=True)
    assert found.least.tolist() == [-UNBOUNDED, -UNBOUNDED]


def test_a_hidden_table_leaves_open_that_a_count_is_empty() -> None:
    own = of_rules(RuleFor(Threshold(4)))
    system = system_of(part_of([2, 9]), part_of([2, 9], shown=False))
    found = judge(own, system, NOTHING, zeros_shown=True)
    assert found.least.tolist() == [1, 1, 0, 0]


class Given:
    """A rule that finds what it is given, in the units of a table."""

    name = "given"

    def __init__(self, mask: list[bool], lower: list[int], upper: list[int], sliding: list[int]):
        self.found = SimpleNamespace(
            mask=np.array(mask),
            lower=np.array(lower),
            upper=np.array(upper),
            sliding=np.array(sliding),
        )
        self.backgrounds: list[Any] = []

    def judge(self, table: Table, background: Any) -> Any:
        self.backgrounds.append(background)
        return self.found

    def to_mapping(self) -> dict[str, Any]:
        return {"rule": "given"}


def test_levels_of_sensitive_cells_alone_are_taken_and_scaled() -> None:
    rule: Any = Given([True, True, False], [3, 5, 7], [0, 6, 8], [2, 9, 4])
    system = system_of(part_of([20, 4, 9], response="scaled"))
    system.values = np.array([200, 40, 90])
    known: Any = object()
    found = judge(of_rules(RuleFor(rule, ("scaled",))), system, known)
    assert rule.backgrounds == [known]
    assert found.background is known
    assert found.sensitive.tolist() == [True, True, False]
    # A lower level never asks for less than nothing; an upper one is 1 at least.
    assert found.lower.tolist() == [30, 40, 0]
    assert found.upper.tolist() == [1, 60, 0]
    assert found.sliding.tolist() == [20, 90, 0]


def test_an_empty_sensitive_cell_leaves_open_that_others_are_empty() -> None:
    rule: Any = Given([True, True, False], [0, 1, 0], [3, 3, 0], [0, 0, 0])
    own = of_rules(RuleFor(rule, ("count",)))
    system = system_of(part_of([0, 2, 9]))
    found = judge(own, system, NOTHING, zeros_shown=True)
    assert found.least.tolist() == [0, 0, 0]
    assert found.lower.tolist() == [0, 1, 0]


def test_a_rule_inside_a_veto_counts_too() -> None:
    inside = Unless(Threshold(3), PPercent(10, coalition=4))
    with pytest.raises(InputError, match="which a count has none of"):
        rules_for(of_rules(RuleFor(inside, ("count",))), "count")


@pytest.fixture
def ranges(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An audit whose bounds are given: what is asked of them, and what follows."""
    asked: dict[str, Any] = {}

    def run(
        low: list[float],
        high: list[float],
        sharp: list[bool],
        *,
        counts: bool = True,
        **levels: Any,
    ) -> AuditedSystem:
        size = len(low)
        knowledge = Knowledge.of(tuple(range(size + 1)))
        related: Any = SimpleNamespace(known=knowledge, layouts=("layout",))
        system: Any = SimpleNamespace(
            values=np.full(size + 1, 20), counts=counts, layouts=levels.pop("layouts", ("layout",))
        )
        judged: Any = SimpleNamespace(
            sensitive=np.array([True] * size + [False]),
            **{
                name: np.array([*levels.get(name, [0] * size), 0])
                for name in ("lower", "upper", "sliding")
            },
        )

        def bounds(known: Any, cells: Any, **how: Any) -> Any:
            asked.update(how, known=known, cells=cells)
            how["progress"](SimpleNamespace(settled=1, asked=4))
            how["progress"](SimpleNamespace(settled=0, asked=0))
            return SimpleNamespace(low=np.array(low), high=np.array(high), sharp=np.array(sharp))

        monkeypatch.setattr(audit_module, "public_knowledge", lambda system, releases: related)
        monkeypatch.setattr(audit_module, "layout_key", lambda layout: layout)
        monkeypatch.setattr(audit_module, "bounds", bounds)
        steps = asked["steps"] = []
        tell: Any = lambda step, share: steps.append((step, share))  # noqa: E731
        found = audit_ranges(system, judged, [None], workers=3, progress=levels.get("tell", tell))
        asked["seen"] = related
        return found

    run.asked = asked  # type: ignore[attr-defined]
    return run


@pytest.mark.parametrize("counts", [True, False])
def test_a_range_is_enough_where_it_reaches_all_levels_and_is_sharp(
    ranges: Any, counts: bool
) -> None:
    def enough(low: float, high: float, sharp: bool = True, **levels: int) -> bool:
        given = {name: [level] for name, level in levels.items()}
        found = ranges([low], [high], [sharp], counts=counts, **given)
        assert found.safe is bool(found.enough[0])
        return bool(found.enough[0])

    assert enough(15, 27, lower=5, upper=7)
    assert enough(15, 27, lower=5, upper=7, sliding=12)
    assert not enough(15, 27, sharp=False, lower=5, upper=7)
    assert not enough(16, 27, lower=5, upper=7)
    assert not enough(15, 26, lower=5, upper=7)
    assert not enough(15, 27, lower=5, upper=7, sliding=13)
    assert not enough(16, 26, lower=5, upper=7)
    # Numbers of a solver are near the ends of sums; counts are exact.
    assert enough(15 + 5e-7, 27, lower=5, upper=7) is not counts
    assert enough(15, 27 - 5e-7, lower=5, upper=7) is not counts
    assert enough(15, 27 - 1.5e-6, lower=5, upper=6, sliding=12) is not counts
    assert not enough(15, 27 - 2.5e-6, lower=5, upper=6, sliding=12)
    assert not enough(15.5, 27, lower=5, upper=7)


def test_one_cell_that_is_not_safe_makes_the_system_unsafe(ranges: Any) -> None:
    found = ranges([15.0, 18.0], [25.0, 22.0], [True, True], lower=[5, 5], upper=[5, 5])
    assert found.enough.tolist() == [True, False]
    assert not found.safe


def test_an_audit_of_other_cells_or_of_impossible_tables_is_our_mistake(ranges: Any) -> None:
    with pytest.raises(InternalError, match="other cells"):
        ranges([15.0], [25.0], [True], layouts=("another",))


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([20, 20], [20, 20], None),
        ([0, 0], [20, 99], None),
        ([21, 0], [30, 99], "rule the true tables out"),
        ([0, 0], [19, 99], "rule the true tables out"),
        ([21, 21], [30, 30], "rule the true tables out"),
        ([20], [20], "other cells"),
    ],
)
def test_the_true_table_must_be_possible(
    low: list[int], high: list[int], message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_module, "layout_key", lambda layout: layout)

    class Known:
        def __len__(self) -> int:
            return len(low)

    known: Any = Known()
    known.low, known.high = np.array(low), np.array(high)
    system: Any = SimpleNamespace(values=np.array([20, 20]), layouts=("a",))
    seen: Any = SimpleNamespace(known=known, layouts=("a",))
    if message is None:
        audit_module._check_same_cells(system, seen)
    else:
        with pytest.raises(InternalError, match=message):
            audit_module._check_same_cells(system, seen)
