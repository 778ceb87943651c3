"""The report of an audit: the same ranges as enumeration, and reasons that suffice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.fibres import QUICK
from audit.fibres import axis as sets_axis
from audit.worlds import World, worlds
from lustrum.audit import Protection, ProtectionVerdict, PublishedTable
from lustrum.audit.report import AuditedCell, AuditReport, TableFact, audit_tables, known_and_places
from lustrum.model import Category, InputError, Release, TableAxis
from lustrum.numeric.structure import UNBOUNDED
from small import with_total, with_totals


@QUICK
@given(worlds(), st.data())
def test_a_report_has_the_range_of_all_cubes_that_fit(world: World, data: st.DataObject) -> None:
    """Every open cell of every table once, in order, beside a plain recomputation of all that is said."""
    shapes = [t.layout.shape for t in world.tables]
    places = [(i, p) for i, shape in enumerate(shapes) for p in np.ndindex(*shape)]
    low = np.concatenate([t.low.ravel() for t in world.tables])
    high = np.concatenate([t.high.ravel() for t in world.tables])
    every, facts = world.every, []
    if data.draw(st.booleans()):
        one, two = (data.draw(st.integers(0, world.cells - 1)) for _ in range(2))
        sums = every[:, one] - 2 * every[:, two]
        least = int(data.draw(st.sampled_from(sorted(set(sums.tolist())))))
        facts = [TableFact(((*places[one], 1), (*places[two], -2)), low=least, high=least + 2)]
        every = every[(least <= sums) & (sums <= least + 2)]
    explain = data.draw(st.integers(0, 3))
    report = audit_tables(world.tables, facts=facts, explain=explain)
    open_cells = np.flatnonzero(low < high)
    assert [(c.table, c.position) for c in report.cells] == [places[c] for c in open_cells]
    assert report.published == world.cells - open_cells.size
    least, most = every[:, open_cells].min(axis=0), every[:, open_cells].max(axis=0)
    assert [(c.low, c.high, c.sharp) for c in report.cells] == [
        (a, b, True) for a, b in zip(least, most, strict=True)
    ]
    counts = most - least + 1
    assert [c.count for c in report.cells] == counts.tolist()
    assert [c.name for c in report.cells] == [world.known.names[c] for c in open_cells]
    assert len(report.disclosed) == (counts == 1).sum()
    assert len(report.narrow(3)) == ((counts > 1) & (counts <= 3)).sum()
    for cell, count in zip(report.cells, counts, strict=True):
        assert cell.risk == (float("inf") if count == 1 else pytest.approx(1 / np.log2(count)))
        middle, reach = (cell.low + cell.high) / 2, (cell.high - cell.low) / 2
        assert cell.within(20.0) == (reach <= 0.2 * middle + 1e-9)
        assert (cell in report.close(20.0)) == (cell.within(20.0) and count > 1)
        assert not cell.follows or cell.disclosed
    said = str(report)
    assert (f"{len(report.disclosed)} of them are" in said) == (len(report.cells) != 1)
    left = [c for c in counts.tolist() if c > 1]
    assert ("closest" in said) == bool(left)
    assert not left or f"leaves {min(left)} values open" in said


def test_the_reason_of_a_disclosure_is_enough_to_repeat_it() -> None:
    true = with_totals(np.array([[9, 4], [3, 5]]))
    mask = np.zeros((3, 3), dtype=bool)
    mask[0, 0] = mask[1, 1] = True
    report = audit_tables(
        [PublishedTable.exact([with_total("a", 2), with_total("b", 2)], true, mask)]
    )
    cell = report.cells[0]
    assert cell.disclosed
    assert cell.follows == ("a=0, b=1", "a=0, b=Total") or cell.follows == (
        "a=1, b=0",
        "a=Total, b=0",
    )


def test_two_tables_together_tell_what_neither_tells() -> None:
    b = with_total("b", 2)
    whole = PublishedTable.exact([b], [7, 3, 10])
    part = Category("0", "0", (0,)), Category("1", "1", (1,))
    a = TableAxis("a", "a", (*part, Category("_T", "Total", (0, 1))))
    cross = np.array([[5, 1, 6], [0, 0, 4], [0, 0, 10]])
    hidden = np.array([[False, False, False], [True, True, False], [True, True, False]])
    alone = audit_tables([PublishedTable.exact([a, b], cross, hidden)])
    assert not alone.disclosed
    together = audit_tables([PublishedTable.exact([a, b], cross, hidden), whole])
    assert {(c.name, c.low) for c in together.disclosed if c.table == 0} >= {
        ("a=1, b=0", 2.0), ("a=1, b=1", 2.0),
    }  # fmt: skip


LINE, THREE = with_total("x", 2), with_total("x", 3)


def test_what_is_not_known_stands_in_words() -> None:
    def cell(low, high, *, sharp=True, protection=ProtectionVerdict.NOT_ASKED):
        return AuditedCell(0, (0,), "x=0", low, high, sharp, (), protection)

    found = AuditReport((cell(0, 4, sharp=False), cell(3, 3), cell(0, float("inf"))), 4, 0, 0)
    assert "leaves 5 values open: x=0. For 1 the range may be narrower still." in str(found)
    assert cell(0, float("inf")).risk == 0.0
    assert not cell(float("-inf"), float("inf")).within(50.0)
    judged = [
        cell(3, 3, protection=verdict)
        for verdict in (ProtectionVerdict.TOO_NARROW, *[ProtectionVerdict.UNKNOWN] * 2)
    ]
    assert str(AuditReport((*judged, cell(3, 3)), 4, 0, 0)).endswith(
        " Of 3 that need protection, 1 can be estimated more closely than their protection intervals "
        "allow, and of 2 it is not known."
    )


def test_cells_that_only_bounds_disclose_are_left_out_where_equations_are_asked_for() -> None:
    # 0 beside two hidden cells: both are 0, because neither can be negative; that is no equation.
    zeros = PublishedTable.exact([THREE], [4, 0, 0, 4], [0, 1, 1, 0], decimals=2)
    assert [(c.low, c.high) for c in audit_tables([zeros]).cells] == [(0, 0), (0, 0)]
    assert audit_tables([zeros]).decimals == 2
    assert audit_tables([zeros], equations_only=True).cells == ()
    plain = PublishedTable.exact([LINE], [3, 0, 8], [False, True, False])
    assert [c.low for c in audit_tables([plain], equations_only=True).cells] == [5]


def test_protection_is_judged_cell_by_cell_and_table_by_table() -> None:
    open_two = PublishedTable.exact([THREE], [1, 0, 0, 9], [0, 1, 1, 0])
    closed = PublishedTable.exact([sets_axis("x", [0], [1, 2])], [1, 8])
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


def test_only_disclosed_cells_have_reasons_and_only_as_many_as_were_asked_for() -> None:
    # 0 + 1 is 8, of which 3 is shown; of 2 and 3 only the sum is known.
    parts = sets_axis("x", [0], [1], [0, 1], [2], [3], [2, 3], [4], [5], [4, 5])
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
    release = Release((THREE,), shown, status, {"name": "suppression"})
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
        for tables in (wrong, [wrong]):
            with pytest.raises(InputError, match=named):
                audit_tables(tables)
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
    turnover = PublishedTable.exact([sets_axis("x", [0], [1])], [20, 30])
    tables = [
        PublishedTable.exact([sets_axis("x", [0, 1], [k])], own) for k, own in enumerate(shown, 2)
    ]
    names = ["turnover", "profit", "profit"]
    known, places = known_and_places([turnover, *tables], names, ["turnover >= profit"])
    profit = [known.names.index(f"profit: x={k}") for k in (0, 1)]
    assert known.low[profit].tolist() == [least] * 2
    assert known.low[places[0]].tolist() == [20, 30]
