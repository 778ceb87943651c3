"""Reports of audits on tables so small that every sentence and range can be checked by hand."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pytest

from audit.fibres import axis
from lustrum.audit import Knowledge, Protection, ProtectionVerdict, PublishedTable, from_margins
from lustrum.audit.best import best_bounds
from lustrum.audit.report import (
    AuditedCell,
    AuditReport,
    TableFact,
    _follows,
    audit_tables,
    known_and_places,
)
from lustrum.model import InputError, Release
from lustrum.numeric.structure import UNBOUNDED

LINE = axis("x", [0], [1], [0, 1])
THREE = axis("x", [0], [1], [2], [0, 1, 2])
INF = float("inf")


def cell(low, high, *, sharp=True, name="x=0", protection=ProtectionVerdict.NOT_ASKED):
    return AuditedCell(0, (0,), name, low, high, sharp, (), protection)


def report(*cells):
    return AuditReport(cells, 4, 0, 0)


def test_risk_is_one_over_the_bits_of_the_feasible_values():
    assert (cell(3, 3).disclosed, cell(3, 3).risk, cell(3, 3).count) == (True, INF, 1)
    assert (cell(0, 1).disclosed, cell(0, 1).risk, cell(0, 1).count) == (False, 1.0, 2)
    assert (cell(2, 17).risk, cell(2, 17).count) == (0.25, 16)
    assert (cell(0, INF).risk, cell(0, INF).count) == (0.0, INF)


def test_narrow_cells_have_few_values_and_more_than_one():
    found = report(cell(3, 3), cell(0, 1), cell(0, 2), cell(0, INF))
    assert [c.high for c in found.narrow(2)] == [1]
    assert [c.high for c in found.narrow(3)] == [1, 2]
    assert [c.high for c in found.disclosed] == [3]
    assert [c.high for c in found.unprotected] == []


def test_a_report_in_words():
    assert str(report(cell(3, 3))) == (
        "1 cell was not published as it is; it is exactly disclosed."
    )
    assert str(report(cell(0, 1))) == (
        "1 cell was not published as it is; it is not exactly disclosed. The closest range leaves 2 "
        "values open: x=0."
    )
    both = report(cell(3, 3), cell(0, 4, name="b"), cell(0, 2, name="c", sharp=False), cell(0, INF))
    assert str(both) == (
        "4 cells were not published as they are; 1 of them are exactly disclosed. The closest range leaves "
        "3 values open: c. For 1 the range may be narrower still."
    )
    assert str(report(cell(0, INF))) == (
        "1 cell was not published as it is; it is not exactly disclosed."
    )
    judged = report(
        cell(3, 3, protection=ProtectionVerdict.TOO_NARROW),
        cell(3, 3, protection=ProtectionVerdict.ENOUGH),
        cell(3, 3),
    )
    assert str(judged).endswith(
        " Of 2 that need protection, 1 can be estimated more closely than their protection intervals allow."
    )
    doubt = report(cell(3, 3, protection=ProtectionVerdict.UNKNOWN), cell(3, 3))
    assert str(doubt).endswith(
        " Of 1 that need protection, 0 can be estimated more closely than their protection intervals "
        "allow, and of 1 it is not known."
    )


def test_open_cells_are_reported_with_their_places_and_reasons():
    first = PublishedTable.exact([LINE], [3, 0, 8], [False, True, False])
    second = PublishedTable.exact(
        [LINE, axis("y", [0], [1])], [[1, 0], [2, 0], [3, 5]], [[0, 1], [0, 1], [0, 0]]
    )
    found = audit_tables([first, second])
    seen = [(c.table, c.position, c.name, c.low, c.high) for c in found.cells]
    assert seen == [
        (0, (1,), "x=1", 5, 5),
        (1, (0, 1), "x=0, y=1", 2, 2),
        (1, (1, 1), "x=1, y=1", 3, 3),
    ]
    assert found.published == 9 - 3
    assert all(c.sharp and c.protection is ProtectionVerdict.NOT_ASKED for c in found.cells)
    assert found.cells[0].follows == ("x=0", "x=01")
    assert all(len(c.follows) >= 2 for c in found.cells)
    # Only so many are explained, and none of those that are not disclosed.
    assert [bool(c.follows) for c in audit_tables([first, second], explain=1).cells] == [
        True,
        False,
        False,
    ]
    loose = PublishedTable.exact([THREE], [1, 0, 0, 9], [0, 1, 1, 0])
    open_two = audit_tables([loose])
    assert [(c.low, c.high, c.follows) for c in open_two.cells] == [(0, 8, ()), (0, 8, ())]
    assert open_two.decimals == 0


def test_cells_that_only_bounds_disclose_are_left_out_where_equations_are_asked_for():
    # 0 beside two hidden cells: both are 0, because neither can be negative; that is no equation.
    zeros = PublishedTable.exact([THREE], [4, 0, 0, 4], [0, 1, 1, 0])
    assert [(c.low, c.high) for c in audit_tables([zeros]).cells] == [(0, 0), (0, 0)]
    assert audit_tables([zeros], equations_only=True).cells == ()
    plain = PublishedTable.exact([LINE], [3, 0, 8], [False, True, False])
    assert [c.low for c in audit_tables([plain], equations_only=True).cells] == [5]


def test_protection_is_judged_cell_by_cell_and_table_by_table():
    open_two = PublishedTable.exact([THREE], [1, 0, 0, 9], [0, 1, 1, 0])
    closed = PublishedTable.exact([axis("x", [0], [1, 2])], [1, 8])
    asked = [
        Protection.of([1, 4, 4, 9], [0, 4, 5, 0], [0, 4, 4, 0], [False, True, True, False]),
        Protection.of([1, 8], [0, 0], [0, 0]),
    ]
    found = audit_tables([open_two, closed], protection=asked)
    assert [c.protection for c in found.cells] == [
        ProtectionVerdict.ENOUGH,
        ProtectionVerdict.TOO_NARROW,
    ]
    assert [c.name for c in found.unprotected] == ["x=2"]
    # A true value outside its range belongs to another table, unless nobody asks about it.
    for needed in (True, False):
        wrong = Protection.of([1, 9, 4, 9], [0] * 4, [0] * 4, [False, needed, False, False])
        if needed:
            with pytest.raises(InputError, match="do not belong together"):
                audit_tables([open_two], protection=[wrong])
        else:
            assert audit_tables([open_two], protection=[wrong]).unprotected == ()


def test_each_cell_is_reported_in_its_own_table():
    hidden = PublishedTable.exact([axis("x", [0], [1])], [0, 0], [True, True])
    totals = PublishedTable.exact([axis("x", [0, 1], [0])], [9, 0], [False, True])
    found = audit_tables([hidden, totals, hidden])
    assert [(c.table, c.position) for c in found.cells] == [
        (0, (0,)),
        (0, (1,)),
        (1, (1,)),
        (2, (0,)),
        (2, (1,)),
    ]


def test_a_report_works_as_its_caller_asks(monkeypatch):
    module = importlib.import_module("lustrum.audit.report")
    plain, asked = module.best_bounds, []

    def noted(known, cells, **rest):
        asked.append(rest)
        return plain(known, cells)

    monkeypatch.setattr(module, "best_bounds", noted)
    tables = [
        PublishedTable.exact([LINE], [9, 5, 14]),
        PublishedTable.exact([LINE], [9, 0, 0], [False, True, True]),
    ]
    found = audit_tables(
        tables, responses=["a", "b"], relations=["a = b"], seconds=9.0, progress=repr
    )
    assert asked == [{"seconds": 9.0, "progress": repr}]
    assert [(c.low, c.high) for c in found.cells] == [(5, 5), (14, 14)]
    found = audit_tables(tables, responses=["a", "b"], relations=["a >= b"])
    assert [(c.low, c.high) for c in found.cells] == [(0, 5), (9, 14)]


def test_units_and_the_work_done_stand_in_a_report():
    cents = PublishedTable.exact([THREE], [100, 0, 0, 900], [0, 1, 1, 0], decimals=2)
    assert audit_tables([cents]).decimals == 2
    # Two overlapping ranges that neither a formula nor narrowing settles.
    ranges = PublishedTable.rounded([THREE], [3, 3, 3, 9], 3)
    found = audit_tables([ranges])
    assert found.programs >= 0
    assert found.published == 0
    assert len(found.cells) == 4


def test_tables_of_responses_keep_their_own_places():
    tables = [
        PublishedTable.exact([LINE], [9, 5, 14]),
        PublishedTable.exact([LINE], [6, 0, 0], [False, True, True]),
        PublishedTable.rounded([LINE], [9, 6, 15], 3),
    ]
    known, places = known_and_places(tables, ["a", "b", "a"], ["a >= b"])
    assert [known.names[p.start] for p in places] == ["a: x=0", "b: x=0", "a: x=0"]
    assert places[0] == places[2]
    with pytest.raises(InputError, match="Relations are between responses"):
        known_and_places(tables, None, ["a = b"])
    with pytest.raises(InputError, match="3 tables but 2 responses"):
        known_and_places(tables, ["a", "b"])
    alone, spans = known_and_places(tables[:2])
    assert [alone.names[s.start] for s in spans] == ["x=0", "x=0"]
    assert len(spans) == 2


def test_a_cell_follows_from_published_cells_and_not_from_hidden_ones():
    # 5 follows from 8 - 3; the second sum, with a cell that nobody published, is not needed.
    known = Knowledge.of("abcd").fact({"a": 1, "b": 1, "c": -1}, 0, 0)
    known = known.bound("a", 3, 3).bound("c", 8, 8).fact({"b": 1, "d": 1}, low=0)
    assert _follows(known, 1) == ("a", "c")
    assert _follows(known, 1, most=1) == ("a",)
    # A cell without an upper end was not published, though it takes part.
    wide = Knowledge.of("abc").fact({"a": 1, "b": 1, "c": 1}, 0, 0)
    assert _follows(wide, 1) == ()
    wide = wide.bound("a", 0, 7)
    assert _follows(wide, 1) == ("a",)
    assert _follows(Knowledge.of("a").bound("a", 4, 4), 0) == ()
    # The cell itself is no reason, whatever bounds it has, nor is a cell without a lower end.
    assert _follows(known.bound("b", 0, 10), 1) == ("a", "c")
    below = Knowledge.of("abd", low=-UNBOUNDED).bound("a", 7, 7).bound("d", high=7)
    below = below.fact({"b": 1, "a": -1}, low=0).fact({"d": 1, "b": -1}, low=0)
    assert _follows(below, 1) == ("a",)
    # One fact for the lower end and another for the upper one.
    between = Knowledge.of("xab").fact({"x": 1, "a": -1}, low=0).fact({"b": 1, "x": -1}, low=0)
    assert _follows(between.bound("a", 3, 3).bound("b", 3, 3), 0) == ("a", "b")
    # Three times x and twice y are 7, so that x is odd, which no sum of facts proves without cases.
    odd = Knowledge.of("xy").fact({"x": 3, "y": 2}, 7, 7).bound("x", 0, 2).bound("y", 0, 3)
    assert _follows(odd, 0) == ("y",)


def test_the_best_bounds_take_a_formula_or_what_the_caller_allows(monkeypatch):
    module = importlib.import_module("lustrum.audit.best")
    plain, asked = module.bounds, []

    def noted(known, cells, **rest):
        asked.append(rest)
        return plain(known, cells)

    monkeypatch.setattr(module, "bounds", noted)
    with pytest.raises(InputError):
        best_bounds([1, 2, 3])
    pairs = {p: np.ones((2, 2), int) for p in ("AB", "BC", "AC")}
    formula = from_margins(dict.fromkeys("ABC", 2), pairs)
    found = best_bounds(formula, slice(0, 8))
    assert (found.low.tolist(), found.high.tolist()) == ([0] * 8, [1] * 8)
    assert not asked
    wanted = {"seconds": 5.0, "workers": 1, "progress": repr, "stop": print}
    # Real numbers have no formula of whole ones, and bounds that a formula does not reach are searched.
    best_bounds(formula.relaxed(), slice(0, 8), **wanted)
    chain = from_margins(
        dict.fromkeys("ABCD", 2),
        {p: [[2, 1], [1, 2]] for p in ("AB", "BC", "CD")},
        hidden=["AD"],
    )
    best_bounds(chain, slice(16, 20), **wanted)
    best_bounds(Knowledge.of("x").bound("x", 0, 3), **wanted)
    assert asked == [{"integer": True, **wanted}] * 3


@pytest.mark.parametrize(
    ("low", "high", "percent", "known"),
    [
        (95.0, 105.0, 5.0, True),  # the middle is 100, and 5 from both ends
        (95.0, 105.0, 4.99, False),
        (94.0, 106.0, 5.0, False),
        (-105.0, -95.0, 5.0, True),
        (-5.0, 5.0, 99.0, False),  # the middle is 0, of which no percentage is far enough
        (0.0, 8.0, 100.0, True),
        (0.0, 8.0, 99.0, False),
        (-np.inf, 5.0, 1e9, False),
        (5.0, np.inf, 1e9, False),
        (np.inf, np.inf, 1e9, False),
        (0.0, float(UNBOUNDED), 1e9, False),
        (4096.0, float(UNBOUNDED), 1e9, True),
        (float(UNBOUNDED) - 4.0, float(UNBOUNDED) + 4.0, 1.0, True),
    ],
)
def test_a_cell_is_known_to_within_a_percentage_of_the_middle_of_its_range(
    low: float, high: float, percent: float, known: bool
) -> None:
    assert AuditedCell(0, (0,), "a", low, high, True).within(percent) is known


def test_cells_that_are_known_closely_are_not_those_that_are_known_exactly() -> None:
    exact, near, far = (
        AuditedCell(0, (i,), str(i), 100.0 - i * i, 100.0 + i * i, True) for i in (0, 2, 6)
    )
    report = AuditReport((exact, near, far), 0, 0, 0)
    assert report.close(10.0) == (near,)
    assert report.close(40.0) == (near, far)
    assert report.close(1.0) == ()


def test_only_disclosed_cells_have_reasons_and_only_as_many_as_were_asked_for() -> None:
    # 0 + 1 is 8, of which 3 is shown; of 2 and 3 only the sum is known.
    parts = axis("x", [0], [1], [0, 1], [2], [3], [2, 3], [4], [5], [4, 5])
    shown = [3, 0, 8, 0, 0, 7, 0, 2, 6]
    hidden = [0, 1, 0, 1, 1, 0, 1, 0, 0]
    table = PublishedTable.exact([parts], shown, hidden)
    reasons = {
        most: {c.position[0]: c.follows for c in audit_tables(table, explain=most).cells}
        for most in (0, 1, 2)
    }
    nothing = dict.fromkeys((1, 3, 4, 6), ())
    assert reasons[0] == nothing
    assert reasons[1] == nothing | {1: ("x=0", "x=01")}
    assert reasons[2] == nothing | {1: ("x=0", "x=01"), 6: ("x=5", "x=45")}
    assert audit_tables([table, table]).published == 2 * 9 - 2 * 4


def test_an_audit_takes_one_table_or_several_and_releases_as_what_they_show() -> None:
    hidden = np.array([False, True, True, False])
    shown = np.where(hidden, 0, [4, 1, 2, 7])
    status = np.where(hidden, "A", "F")
    release = Release((THREE,), shown, status, {"name": "by hand"})
    tables = PublishedTable.exact([THREE], [4, 0, 0, 7], hidden)
    said = [[(c.position, c.low, c.high) for c in audit_tables(t).cells] for t in (release, tables)]
    assert said == [[((1,), 0.0, 3.0), ((2,), 0.0, 3.0)]] * 2
    assert audit_tables(iter([release])).cells == audit_tables(release).cells
    # A cell that cannot hold anybody is 0 to everybody, so that the other one is disclosed.
    empty = np.array([False, False, True, False])
    (left,) = audit_tables(replace(release, structural=empty)).cells
    assert (left.position, left.low, left.high) == ((1,), 3.0, 3.0)
    with pytest.raises(
        InputError, match="the status 'published'; a status is one of the letters F, A"
    ):
        audit_tables(replace(release, status=np.where(hidden, "A", "published")))
    with pytest.raises(InputError, match=r"A release of 4 cells got status of shape \(3,\)"):
        replace(release, status=status[:3])
    for wrong in ("x", b"x", {"a": 1}, 5):
        named = f"tables or releases, not of an? {type(wrong).__name__};"
        for given in (wrong, [wrong]):
            with pytest.raises(InputError, match=named):
                audit_tables(given)
    with pytest.raises(InputError, match="There is no table to audit"):
        audit_tables([])


@pytest.mark.parametrize(
    ("shown", "least"),
    [
        ([[9, 2], [5, 5]], 0),
        ([[9, 0], [5, 5]], 0),
        ([[9, -1], [5, 5]], -UNBOUNDED),
        ([[9, 2], [5, -5]], -UNBOUNDED),
    ],
)
def test_cells_that_no_table_of_a_response_shows_may_be_negative_where_another_is(
    shown: list[list[int]], least: int
) -> None:
    """Of profit only sums of x = 0 and 1 are shown, of turnover each."""
    turnover = PublishedTable.exact([axis("x", [0], [1])], [20, 30])
    tables = [PublishedTable.exact([axis("x", [0, 1], [k])], own) for k, own in enumerate(shown, 2)]
    names = ["turnover", "profit", "profit"]
    known, places = known_and_places([turnover, *tables], names, ["turnover >= profit"])
    profit = [known.names.index(f"profit: x={k}") for k in (0, 1)]
    assert known.low[profit].tolist() == [least] * 2
    assert known.low[places[0]].tolist() == [20, 30]


def test_hidden_cells_that_may_be_negative_leave_others_of_the_response_open() -> None:
    turnover = PublishedTable.exact([axis("x", [0], [1])], [20, 30])
    profit = PublishedTable.hidden([axis("x", [0, 1])], low=-1)
    known, _ = known_and_places([turnover, profit], ["turnover", "profit"])
    at = [known.names.index(f"profit: x={k}") for k in (0, 1)]
    assert known.low[at].tolist() == [-UNBOUNDED] * 2


def test_a_further_fact_is_about_the_cells_that_it_names() -> None:
    first = PublishedTable.exact([THREE], [0, 0, 0, 12], [True, True, True, False])
    second = PublishedTable.exact([axis("y", [0], [1], [0, 1])], [0, 0, 12], [True, True, False])

    def ranges(*facts: TableFact) -> list[tuple[float, float]]:
        return [(c.low, c.high) for c in audit_tables([first, second], facts=facts).cells]

    wide = (0.0, 12.0)
    assert ranges() == [wide] * 5
    most = TableFact(((0, (1,), 1),), high=4)
    least = TableFact(((0, (0,), 1), (1, (1,), 1)), low=20)
    double = TableFact(((0, (2,), 2), (0, (1,), -1)), low=1, high=3)
    assert ranges(most) == [wide, (0.0, 4.0), wide, wide, wide]
    assert ranges(least) == [(8.0, 12.0), (0.0, 4.0), (0.0, 4.0), (0.0, 4.0), (8.0, 12.0)]
    # Twice the third less the second lies between 1 and 3, the second is at most 4.
    assert ranges(most, double) == [(5.0, 11.0), (0.0, 4.0), (1.0, 3.0), wide, wide]
