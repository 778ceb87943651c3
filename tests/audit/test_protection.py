"""Protection intervals: the verdict is that of the definition, and true values stay inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.fibres import QUICK, axis
from audit.test_bounds_sweep import two_way_margins
from lustrum.audit import Protection, ProtectionVerdict, PublishedTable, bounds
from lustrum.audit.report import audit_tables
from lustrum.model import InputError

ROWS = axis("r", [0], [1], [2], [0, 1, 2])
COLUMNS = axis("c", [0], [1], [2], [0, 1, 2])


@QUICK
@given(
    st.lists(st.integers(0, 9), min_size=9, max_size=9),
    st.sets(st.integers(0, 8)),
    st.integers(0, 60),
)
def test_a_verdict_is_that_of_the_definition(values, hidden, percent):
    inner = np.array(values).reshape(3, 3)
    true = np.zeros((4, 4), dtype=np.int64)
    true[:3, :3] = inner
    true[3, :3], true[:3, 3], true[3, 3] = inner.sum(0), inner.sum(1), inner.sum()
    mask = np.zeros((4, 4), dtype=np.bool_)
    mask[:3, :3] = np.isin(np.arange(9), list(hidden)).reshape(3, 3)
    seen = PublishedTable.exact([ROWS, COLUMNS], np.where(mask, 0, true), mask)
    report = audit_tables([seen], protection=[Protection.within(true, percent)], explain=0)
    for cell in report.cells:
        level = -(-int(true[cell.position]) * percent // 100)
        reaches = (
            cell.low <= true[cell.position] - level and cell.high >= true[cell.position] + level
        )
        assert cell.protection is (
            ProtectionVerdict.ENOUGH if reaches else ProtectionVerdict.TOO_NARROW
        )
    assert len(report.unprotected) == sum(c.protection == "too narrow" for c in report.cells)
    assert (str(len(report.unprotected)) in str(report)) or not report.cells


def test_a_range_that_is_not_sharp_proves_no_protection():
    wanted = Protection.of([10], [5], [5])
    assert wanted.verdict((0,), 0, 20, sharp=False) is ProtectionVerdict.UNKNOWN
    assert wanted.verdict((0,), 6, 20, sharp=False) is ProtectionVerdict.TOO_NARROW
    known = two_way_margins((3, 3, 3), 1)
    assert not bounds(known, stop=lambda: True).sharp.all()


def test_a_truth_that_cannot_be_is_refused_without_its_value():
    mask = np.array([True, False, False, False])
    seen = PublishedTable.exact([ROWS], [0, 4, 5, 20], mask)
    with pytest.raises(InputError, match="do not belong together") as caught:
        audit_tables([seen], protection=[Protection.within([12345, 4, 5, 20], 10)])
    assert "12345" not in str(caught.value)


def test_true_values_are_not_in_the_repr_and_levels_are_checked():
    assert "77" not in repr(Protection.of([77], [7], [7]))
    with pytest.raises(InputError, match="negative"):
        Protection.of([5], [-1], [0])
    with pytest.raises(InputError, match="shape"):
        Protection.of([5, 6], [1], [1])
    with pytest.raises(InputError, match="percent"):
        Protection.within([5], -3)


def test_a_range_fits_where_it_holds_the_true_value():
    wanted = Protection.of([10], [5], [5])
    ranges = [(9, 11), (10, 11), (9, 10), (10, 10), (11, 12), (8, 9)]
    assert [wanted.fits((0,), *ends) for ends in ranges] == [True] * 4 + [False] * 2


def test_protection_asks_for_its_own_level_on_each_side_of_each_cell():
    wanted = Protection.of([10, 10], lower=[2, 0], upper=[5, 0], needed=[True, False])
    for ends, said in {(8, 15): "enough", (9, 15): "too narrow", (8, 14): "too narrow"}.items():
        assert wanted.verdict((0,), *ends, sharp=True) == said
        assert wanted.verdict((1,), *ends, sharp=True) is ProtectionVerdict.NOT_ASKED
    Protection.of([5, 5], [-1, 0], [0, 0], needed=[False, True])
    with pytest.raises(InputError, match="negative"):
        Protection.of([5, 5], [0, 0], [0, -1])


@QUICK
@given(st.integers(-2000, 2000), st.integers(0, 120))
def test_protection_within_percent_is_rounded_up_to_whole_units(value, percent):
    found = Protection.within([value, 3], percent, needed=[True, False])
    level = -(-abs(value) * percent // 100)
    assert (found.low[0], found.high[0]) == (value - level, value + level)
    assert found.verdict((1,), 3, 3, sharp=True) is ProtectionVerdict.NOT_ASKED
    for wrong in (-1, np.inf, np.nan):
        with pytest.raises(InputError, match="0 or more"):
            Protection.within([value], wrong)
