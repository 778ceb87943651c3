"""A search among parameters: near the whole grid with fewer trials, the same for any number of workers."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import lustrum as lu
from lustrum.model import InputError, Table
from lustrum.rumap import Span, dominated_area, find_frontier, grid, rumap, space

RNG = np.random.default_rng(5)
TABLE = Table.from_counts(RNG.poisson(RNG.gamma(0.7, 6.0, (6, 5))))
SPACES = [
    space("conventional-rounding", base=Span(2, 40)),
    space("markov-perturbation", theta=Span(0.01, 0.5)),
]


def area(found: lu.rumap.RUMap) -> float:
    points = [p for p in found.points if not p.is_corner]
    return dominated_area([p.risk for p in points], [p.utility for p in points])


def test_the_frontier_of_a_search_is_near_that_of_a_dense_grid() -> None:
    dense = [
        *grid("conventional-rounding", base=list(range(2, 41))),
        *grid("markov-perturbation", theta=[i / 100 for i in range(1, 51)]),
    ]
    whole = rumap(TABLE, dense, replications=4)
    found = find_frontier(TABLE, SPACES, trials=40)
    assert len(found.labels) <= 40 < len(dense)
    assert area(found) > 0.97 * area(whole)
    for method in found.sweep.methods:
        value = method.base if method.name == "conventional-rounding" else method.theta
        low, high = (2, 40) if method.name == "conventional-rounding" else (0.01, 0.5)
        assert low <= value <= high


def test_more_trials_never_lose_a_point_of_the_frontier() -> None:
    few, more = (find_frontier(TABLE, SPACES, trials=n, seed=3) for n in (12, 20))
    words = [m.to_mapping() for m in more.sweep.methods]
    assert [m.to_mapping() for m in few.sweep.methods] == words[: len(few.sweep.methods)]
    assert area(more) >= area(few)


def test_a_search_is_the_same_for_any_number_of_workers() -> None:
    one, two = (find_frontier(TABLE, SPACES, trials=16, workers=n) for n in (1, 2))
    assert one.to_arrow().equals(two.to_arrow())
    other = find_frontier(TABLE, SPACES, trials=16, seed=1)
    assert not one.to_arrow().equals(other.to_arrow())


@pytest.mark.parametrize("limit", [0.05, 0.1, 0.2])
def test_a_search_for_the_best_finds_what_brute_force_finds(limit: float) -> None:
    whole = lu.best(TABLE, limit, grid("conventional-rounding", base=list(range(2, 41))))
    found = lu.best(TABLE, limit, SPACES[:1], search="bayes", trials=30)
    assert found.point.risk <= limit
    assert found.point.utility >= whole.point.utility - 0.01


def test_the_chosen_one_is_drawn_in_full() -> None:
    found = lu.best(TABLE, 0.2, SPACES[1:], search="bayes", trials=12, replications=10)
    if found.point is not None:
        assert found.point.draws == 10
        assert found.point.risk_range[1] <= 0.2
    drawn = {p.draws for p in found.map.points if not p.is_corner}
    assert drawn == {4, 10}


def test_a_method_without_a_span_can_stand_among_spaces() -> None:
    found = find_frontier(TABLE, [*SPACES[:1], *grid("none")], trials=12)
    assert "none" in found.labels
    assert {p.draws for p in found.points} == {1}  # no chance in any of them


def test_spans_and_trials_are_checked() -> None:
    with pytest.raises(InputError, match="lower end"):
        Span(3, 3)
    with pytest.raises(InputError, match="above 0"):
        Span(0, 3, log=True)
    with pytest.raises(InputError, match="no parameter 'bases'"):
        space("random-rounding", bases=Span(2, 3))
    with pytest.raises(InputError, match="one trial or more"):
        find_frontier(TABLE, SPACES, trials=0)
    with pytest.raises(InputError, match="one method or more"):
        find_frontier(TABLE, [])
    with pytest.raises(InputError, match="needs methods"):
        lu.best(TABLE, 0.1, search="bayes")


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"lustrum\[search\]"):
        find_frontier(TABLE, SPACES, trials=4)
