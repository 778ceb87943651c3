"""Contradictions, piece by piece: which facts are asked about, which are blamed, and how they are worded."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from lustrum.audit import Knowledge
from lustrum.audit.knowledge import conflicts
from lustrum.audit.knowledge.conflicts import (
    Conflict,
    ConflictError,
    Fact,
    _added,
    _Items,
    _listed,
    _shrunk,
    conflict,
)
from lustrum.numeric.solve import Outcome
from lustrum.numeric.structure import UNBOUNDED

INF = float("inf")


def mixed() -> Knowledge:
    """A cell with both ends, a known one, one with an upper and one with a lower end, and three sums."""
    known = Knowledge.of("abcd", low=-UNBOUNDED)
    known = known.bound("a", 0, 5).bound("b", 3, 3).bound("c", high=4).bound("d", low=2)
    known = known.fact({"a": 1, "b": 1}, 7, 7).fact({"c": 1, "d": -1}, low=1)
    return known.fact({"a": 1, "d": 2}, -1, 9)


def test_every_end_is_a_fact_and_an_equation_is_one():
    items = _Items(mixed(), 99)
    words = [items.fact(i).sentence for i in range(items.count)]
    assert words == [
        "a is not negative",
        "a is at most 5",
        "b is 3",
        "c is at most 4",
        "d is at least 2",
        "a + b = 7",
        "c - d >= 1",
        "a + 2 d >= -1",
        "a + 2 d <= 9",
    ]
    ends = [(f.low, f.high) for f in map(items.fact, range(items.count))]
    assert ends == [
        (0, None),
        (None, 5),
        (3, 3),
        (None, 4),
        (2, None),
        (7, 7),
        (1, None),
        (-1, None),
        (None, 9),
    ]
    places = [(f.cell, f.row) for f in map(items.fact, range(items.count))]
    assert places == [(c, None) for c in (0, 0, 1, 2, 3)] + [(None, r) for r in (0, 1, 2, 2)]


def test_a_problem_holds_the_facts_that_are_kept_and_no_others():
    items = _Items(mixed(), 99)
    problem, places = items.problem(np.arange(items.count))
    assert places.tolist() == list(range(7))
    assert problem.low.tolist() == [0, 3, -INF, 2]
    assert problem.high.tolist() == [5, 3, 4, INF]
    assert problem.row_low.tolist() == [7, 1, -1]
    assert problem.row_high.tolist() == [7, INF, 9]
    # The upper end of a, the lower one of d, and the upper one of the last sum, with the cells of that sum.
    problem, places = items.problem(np.array([1, 4, 8]))
    assert places.tolist() == [0, 3, 6]
    assert (problem.low.tolist(), problem.high.tolist()) == ([-INF, 2], [5, INF])
    assert (problem.row_low.tolist(), problem.row_high.tolist()) == ([-INF], [9])
    assert problem.matrix.toarray().tolist() == [[1, 2]]
    # An upper end alone.
    problem, places = items.problem(np.array([3]))
    assert (places.tolist(), problem.high.tolist()) == ([2], [4])
    # A lower end alone, and a cell that only a sum names.
    problem, places = items.problem(np.array([0, 6]))
    assert places.tolist() == [0, 2, 3, 5]
    assert (problem.low.tolist(), problem.high.tolist()) == ([0, -INF, -INF], [INF] * 3)
    assert (problem.row_low.tolist(), problem.row_high.tolist()) == ([1], [INF])


def test_the_multipliers_blame_the_ends_that_clash():
    known = Knowledge.of("xyzw").bound("x", 3, 8).bound("y", 4, 9).bound("z", 0, 9).bound("w", 1, 1)
    items = _Items(known.fact({"x": 1, "y": 1}, -4, 5).fact({"z": 1, "w": 1}, 0, 20), 99)
    blamed = [items.fact(int(i)).sentence for i in items.blamed()]
    assert blamed == ["x is at least 3", "y is at least 4", "x + y <= 5"]
    items = _Items(known.fact({"x": 1, "y": 1}, 18, 30).fact({"w": 1, "z": 1}, 0, 20), 99)
    blamed = [items.fact(int(i)).sentence for i in items.blamed()]
    assert blamed == ["x is at most 8", "y is at most 9", "x + y >= 18"]
    small = known.fact({"x": 1, "w": 1000}, 1, 5)
    blamed = [_Items(small, 99).fact(int(i)).sentence for i in _Items(small, 99).blamed()]
    assert blamed == ["x is at least 3", "w is 1", "x + 1000 w <= 5"]
    assert _Items(known, 99).blamed() is None


def answered(outcome, multipliers=None):
    """A solver that always gives one answer."""
    found = SimpleNamespace(outcome=outcome, multipliers=multipliers)
    solver = SimpleNamespace()
    solver.load = lambda problem: solver
    solver.minimise = lambda *args, **rest: found
    return lambda: solver


def test_without_multipliers_all_facts_are_suspects(monkeypatch):
    items = _Items(mixed(), 99)
    monkeypatch.setattr(conflicts, "Highs", answered(Outcome.INFEASIBLE))
    assert items.blamed().tolist() == list(range(9))


def test_a_search_that_was_cut_short_leaves_a_doubt(monkeypatch):
    items = _Items(mixed(), 99)
    assert not items.undecided
    monkeypatch.setattr(conflicts, "Highs", answered(Outcome.CUT_SHORT))
    assert not items.is_infeasible(np.array([0]), True)
    assert items.undecided
    monkeypatch.setattr(conflicts, "Highs", answered(Outcome.OPTIMAL))
    assert not items.is_infeasible(np.array([0]), True)
    assert items.undecided


def test_facts_that_are_blamed_wrongly_do_not_hide_a_conflict(monkeypatch):
    known = Knowledge.of("xy").bound("x", 3, 3).bound("y", 0, 9).fact({"x": 2}, 5, 5)
    monkeypatch.setattr(_Items, "blamed", lambda self: np.array([1, 2]))
    assert str(conflict(known)) == "x is 3 and 2 x = 5"


def never() -> bool:
    return False


def test_every_question_counts_and_large_ones_count_for_more(monkeypatch):
    monkeypatch.setattr(conflicts, "Highs", answered(Outcome.INFEASIBLE))
    items = _Items(mixed(), 99)
    items.is_infeasible(np.arange(9), False)
    assert items.work == 98
    monkeypatch.setattr(conflicts, "_EACH", 4)
    items.is_infeasible(np.arange(9), True)
    assert items.work == 95
    items.is_infeasible(np.arange(0), True)
    assert items.work == 95


def test_a_search_among_whole_numbers_is_cut_short_after_steps_that_are_counted(monkeypatch):
    asked = []
    solver = answered(Outcome.CUT_SHORT)()
    solver.minimise = lambda *_, **words: (
        asked.append(words) or SimpleNamespace(outcome=Outcome.CUT_SHORT)
    )
    monkeypatch.setattr(conflicts, "Highs", lambda: solver)
    _Items(mixed(), 99).is_infeasible(np.arange(9), True)
    _Items(mixed(), 99).is_infeasible(np.arange(9), False)
    assert asked == [
        {"whole": True, "steps": conflicts._LOOKS},
        {"whole": False, "steps": None},
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13])
def test_facts_are_left_out_until_none_can_be_spared(size):
    suspects = np.arange(10, 10 + size)
    for needed in ({10}, {10, 9 + size}, {10 + size // 2}, set(suspects.tolist())):
        kept, done = _shrunk(
            suspects, lambda left, needed=needed: needed <= set(left.tolist()), never
        )
        assert (set(kept.tolist()), done) == (needed, True)
    # Any two of three are enough: what is left cannot spare one.
    if size >= 3:
        kept, _ = _shrunk(suspects, lambda left: len({10, 11, 12} & set(left.tolist())) >= 2, never)
        assert kept.size == 2
    kept, done = _shrunk(suspects, lambda left: True, lambda: True)
    assert (kept.tolist(), done) == (suspects.tolist(), False)


def test_the_effort_has_limits(monkeypatch):
    known = Knowledge.of("xy").bound("x", 3, 3).fact({"x": 2, "y": 1}, 5, 5)
    monkeypatch.setattr(conflicts, "_MOST_CELLS", 2)
    assert conflict(known) is not None
    monkeypatch.setattr(conflicts, "_MOST_CELLS", 1)
    assert conflict(known) is None
    monkeypatch.setattr(conflicts, "_MOST_CELLS", 9)
    # Over whole numbers alone: x and y are not negative, and twice their sum is 3.
    odd = Knowledge.of("xy").fact({"x": 2, "y": 2}, 3, 3)
    assert _Items(odd, 99).count == 3
    monkeypatch.setattr(conflicts, "_MOST_SUSPECTS", 3)
    assert conflict(odd).whole
    monkeypatch.setattr(conflicts, "_MOST_SUSPECTS", 2)
    assert conflict(odd) is None
    # Facts that clash over real numbers are not so many.
    assert not conflict(known).whole


def worded(weights, decimals=0, **ends) -> str:
    known = Knowledge.of("abcdefgh", decimals=decimals, low=-UNBOUNDED)
    items = _Items(known.fact(weights, **ends), 99)
    assert items.count == 1
    return items.fact(0).sentence


def test_sums_in_words():
    assert worded({"a": 1, "b": 1, "c": -1}, low=0, high=0) == "a + b = c"
    assert worded({"a": -1, "b": -1, "c": 1}, low=0, high=0) == "a + b = c"
    assert worded({"a": 1, "b": -1}, low=0) == "a - b >= 0"
    assert worded({"a": 1, "b": -1}, high=0) == "a - b <= 0"
    assert worded({"a": 1, "b": -2, "c": -1}, high=4) == "a - (2 b + c) <= 4"
    assert worded({"a": -1}, low=-3) == "0 - a >= -3"
    assert worded({"a": 1, "b": 1}, low=0, high=0) == "a + b = 0"
    assert worded({"a": 1, "b": -1}, low=2, high=2) == "a - b = 2"
    assert worded({"a": 1, "b": 1}, decimals=2, low=-105) == "a + b >= -1.05"
    assert worded({"a": 1, "b": 1}, decimals=3, high=20) == "a + b <= 0.020"
    six = dict.fromkeys("abcdef", 1)
    assert worded(six, high=9) == "a + b + c + d + e + f <= 9"
    assert worded(six | {"g": 1, "h": 1}, high=9) == "a + b + c + d + e + 3 more cells <= 9"


def test_lists_in_words():
    assert _listed(list("abcdef")) == "a, b, c, d, e and f"
    assert _listed(list("abcdefgh")) == "a, b, c, d, e and 3 more"
    assert _listed(["a"]) == "a"
    assert _listed(list("abcd"), 3) == "a, b and 2 more"
    assert _added([(1, "a"), (3, "b")]) == "a + 3 b"
    many = Conflict(tuple(Fact(c, c, 0) for c in "abcdefgh"), False, True)
    assert str(many) == "a, b, c, d, e, f, g and h"


def test_a_message_names_cells_and_no_value():
    shown = Fact("x is 3", "x", cell=0, low=3, high=3)
    least = Fact("y is at least 4", "y", cell=1, low=4)
    total = Fact("x + y = z", "x + y = z", row=0, low=0, high=0)
    limit = Fact("x - y >= 9", "x - y", row=1, low=9)
    start = "The published cells contradict each other: "
    for facts, whole, end in (
        ((shown,), False, "no table fits the values of x."),
        ((shown, total), False, "no table fits the values of x, given x + y = z."),
        ((least, limit), True, "no table of whole numbers fits the sum x - y and the bounds of y."),
    ):
        found = Conflict(facts, whole, True)
        assert found.message == start + end
        assert str(ConflictError(found)) == found.message
        assert ConflictError(found).conflict is found
