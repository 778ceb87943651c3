"""The report of an audit: the same ranges as enumeration, and reasons that suffice."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.audit import PublishedTable
from lustrum.audit.report import audit_tables
from lustrum.model import Category, TableAxis


def axis(name: str, size: int) -> TableAxis:
    parts = tuple(Category(str(i), str(i), (i,)) for i in range(size))
    return TableAxis(name, name, (*parts, Category("_T", "Total", tuple(range(size)))))


def with_totals(inner: np.ndarray) -> np.ndarray:
    for position in range(inner.ndim):
        inner = np.concatenate([inner, inner.sum(axis=position, keepdims=True)], axis=position)
    return inner


@settings(deadline=None, max_examples=examples(13, 100))
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.sets(st.integers(0, 8), min_size=1))
def test_the_report_has_the_range_of_all_tables_that_fit(
    values: list[int], hidden: set[int]
) -> None:
    true = with_totals(np.array(values).reshape(2, 2))
    mask = np.zeros(9, dtype=bool)
    mask[list(hidden)] = True
    shown = ~mask.reshape(3, 3)
    if not shown[2, 2]:
        shown[2, 2] = True  # a shown grand total keeps the enumeration finite
    fits = [
        table
        for inner in itertools.product(range(int(true[2, 2]) + 1), repeat=4)
        if np.array_equal((table := with_totals(np.array(inner).reshape(2, 2)))[shown], true[shown])
    ]
    report = audit_tables([PublishedTable.exact([axis("a", 2), axis("b", 2)], true, ~shown)])
    assert len(report.cells) == int((~shown).sum())
    for cell in report.cells:
        seen = [int(table[cell.position]) for table in fits]
        assert (cell.low, cell.high) == (min(seen), max(seen))
        assert cell.disclosed == (len(set(seen)) == 1)


def test_the_reason_of_a_disclosure_is_enough_to_repeat_it() -> None:
    true = with_totals(np.array([[9, 4], [3, 5]]))
    mask = np.zeros((3, 3), dtype=bool)
    mask[0, 0] = mask[1, 1] = True
    report = audit_tables([PublishedTable.exact([axis("a", 2), axis("b", 2)], true, mask)])
    cell = report.cells[0]
    assert cell.disclosed
    assert cell.follows == ("a=0, b=1", "a=0, b=Total") or cell.follows == (
        "a=1, b=0",
        "a=Total, b=0",
    )


def test_two_tables_together_tell_what_neither_tells() -> None:
    b = axis("b", 2)
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


def test_risk_is_infinite_only_where_one_value_is_left() -> None:
    report = audit_tables([PublishedTable.rounded([axis("a", 2)], [3, 3, 6], 3, "adjacent")])
    assert all(np.isfinite(cell.risk) for cell in report.cells)
    assert report.cells[0].risk == pytest.approx(1 / np.log2(report.cells[0].count))
    telling = audit_tables([PublishedTable.rounded([axis("a", 2)], [3, 3, 0], 3, "adjacent")])
    assert [cell.risk for cell in telling.cells] == [float("inf")] * 3
