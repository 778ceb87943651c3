"""Intervals instead of blanks follow from what is published, and an unsafe pattern never leaves the house."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lustrum.audit import PublishedTable, best_bounds, from_release
from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.protect.suppression import Suppression, level_counts, with_intervals
from lustrum.sensitivity import Threshold


def table(inner: list[list[int]]) -> Table:
    values = np.array(inner)
    full = np.block([[values, values.sum(1, keepdims=True)], [values.sum(0), values.sum()]])
    axes = []
    for name, size in zip("ab", values.shape, strict=True):
        own = [Category(str(i), str(i), (i,)) for i in range(size)]
        axes.append(TableAxis(name, name, (*own, Category("_T", "all", tuple(range(size))))))
    return Table(tuple(axes), full, contributors=full.copy())


TABLE = table([[2, 40, 31], [25, 18, 50], [60, 22, 17]])


def test_stated_intervals_are_those_that_a_reader_works_out_and_tell_nothing_more() -> None:
    blank = Suppression(rule=Threshold(3)).apply(TABLE)
    stated = Suppression(rule=Threshold(3), partial=True).apply(TABLE)
    hidden = np.flatnonzero(~blank.shown.ravel())
    assert hidden.size >= 4
    assert np.array_equal(stated.stated, ~blank.shown)
    before = best_bounds(from_release(blank), hidden.tolist())
    after = best_bounds(from_release(stated), hidden.tolist())
    assert stated.low is not None
    assert stated.high is not None
    for end, stated_end in ((before.low, stated.low), (before.high, stated.high)):
        assert stated_end.ravel()[hidden].tolist() == end.tolist()
    assert (after.low.tolist(), after.high.tolist()) == (before.low.tolist(), before.high.tolist())


def test_both_ends_of_a_stated_interval_are_known_to_a_reader() -> None:
    blank = Suppression(rule=Threshold(3)).apply(TABLE)
    hidden = ~blank.shown
    low, high = np.where(hidden, 1, blank.numbers), np.where(hidden, 77, blank.numbers)
    seen = PublishedTable.of_release(replace(blank, least=low, most=high))
    assert (seen.low[hidden] == 1).all()
    assert (seen.high[hidden] == 77).all()
    # A statement never loosens what is known without it.
    loose = PublishedTable.of_release(replace(blank, least=low - 100, most=high), low=0)
    assert (loose.low[hidden] == 0).all()
    # A release that states negative ends speaks of values that can be negative.
    below = PublishedTable.of_release(replace(blank, least=low - 100, most=high))
    assert (below.low[hidden] == -99).all()


def test_a_release_without_hidden_cells_is_left_alone() -> None:
    free = Suppression(rule=Threshold(2)).apply(TABLE)
    assert free.shown.all()
    assert with_intervals(free) is free
    assert not free.stated.any()


def test_a_pattern_that_is_not_safe_makes_no_release() -> None:
    method = Suppression(rule=Threshold(3))
    pattern = method.pattern(TABLE)
    assert pattern.safe
    with pytest.raises(InputError):
        method.release(TABLE, replace(pattern, safe=False))
    kept = np.zeros(TABLE.shape, dtype=np.bool_)
    kept[:, 1:] = True
    hopeless = method.pattern(TABLE, frozen=kept)
    assert not hopeless.safe
    with pytest.raises(InputError):
        method.release(TABLE, hopeless)


def test_cells_that_are_never_published_have_a_letter_of_their_own() -> None:
    never = np.zeros(TABLE.shape, dtype=np.bool_)
    never[2, 2] = True
    method = Suppression(rule=Threshold(3), reasons=True)
    release = method.release(TABLE, method.pattern(TABLE, never=never))
    assert release.status[2, 2] == "N"
    assert release.status[0, 0] == "A"
    assert np.isnan(release.published[~release.shown]).all()


def test_every_cell_is_counted_at_one_level() -> None:
    pattern = Suppression(rule=Threshold(3)).pattern(TABLE)
    rows = level_counts(TABLE, pattern)
    assert [row.levels for row in rows] == [
        ("a codes", "b codes"),
        ("a codes", "b total"),
        ("a total", "b codes"),
        ("a total", "b total"),
    ]
    assert sum(row.cells for row in rows) == TABLE.values.size
    assert sum(row.primary for row in rows) == int(pattern.primary.sum())
    assert sum(row.secondary for row in rows) == int(pattern.secondary.sum())
