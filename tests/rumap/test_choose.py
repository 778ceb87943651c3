"""The choice: against brute force, under a limit, by losses, and by successive halving."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lustrum as lu
from lustrum.model import InputError, Table
from lustrum.risk import EntropyRisk
from lustrum.rumap import RUMap, decide, grid, rumap
from lustrum.rumap.choose import best_of

COUNTS = np.random.default_rng(11).negative_binomial(1, 0.08, size=(7, 6))
TABLE = Table.from_counts(COUNTS)
GRID = [
    *grid("random-rounding", base=[2, 3, 5, 8]),
    *grid("conventional-rounding", base=[2, 3, 5, 8]),
    *grid("markov-perturbation", theta=[0.05, 0.2, 0.4]),
    *grid("differential-privacy", epsilon=[0.5, 2.0]),
]


@cache
def found() -> RUMap:
    """The map of the grid, made when a test first needs it."""
    return rumap(TABLE, GRID, replications=8)


@cache
def whole_map() -> RUMap:
    """The same with more draws."""
    return rumap(TABLE, GRID, replications=12)


@given(st.floats(0.0, 0.5))
@settings(max_examples=60)
def test_the_choice_is_the_best_of_all_that_are_under_the_limit(limit: float) -> None:
    choice = best_of(found(), limit)
    safe = [p for p in found().of() if not p.is_corner and p.risk_range[1] <= limit]
    if not safe:
        assert choice.method is None
        assert "No method" in choice.reason
        return
    assert choice.point.utility == max(p.utility for p in safe)
    assert choice.method.to_mapping() == choice.point.method
    assert len(choice.others) == len(GRID) - 1


@given(st.floats(0.01, 100.0), st.floats(0.01, 100.0))
@settings(max_examples=60)
def test_the_least_expected_loss_is_least_and_on_the_frontier(a: float, b: float) -> None:
    choice = decide(found(), disclosure=a, withheld=b)
    losses = {p.label: a * p.risk + b * (1 - p.utility) for p in found().of()}
    least = min(losses.values())
    if choice.point is None:
        assert min(losses["no data"], losses["original data"]) == least
        assert "data has the least" in choice.reason
    else:
        assert losses[choice.point.label] == pytest.approx(least)
        assert choice.point.label in [p.label for p in found().frontier()]


@pytest.mark.parametrize("limit", [0.08, 0.12, 0.2])
def test_halving_finds_what_the_whole_grid_finds_with_fewer_draws(limit: float) -> None:
    whole = best_of(whole_map(), limit)
    halved = lu.best(TABLE, limit, GRID, replications=12, search="halving")
    assert halved.point.label == whole.point.label
    assert len(halved.map.draws) < 0.7 * len(whole.map.draws)


def test_the_worst_table_decides_unless_the_mean_is_asked_for() -> None:
    easy = Table.from_counts(np.full((4, 4), 500))
    tables = {"hard": TABLE, "easy": easy}
    methods = grid("conventional-rounding", base=[2, 3, 5])
    worst = lu.best(tables, 0.13, methods)
    mean = lu.best(tables, 0.13, methods, over="mean")
    assert mean.point.utility >= worst.point.utility
    assert max(p.risk for p in worst.map.points if p.label == worst.point.label) <= 0.13


def test_a_risk_that_may_be_above_the_limit_is_not_chosen() -> None:
    point = next(p for p in found().of() if p.label == "random-rounding base 3")
    assert point.risk < point.risk_range[1]
    choice = best_of(found(), (point.risk + point.risk_range[1]) / 2)
    assert choice.point is None or choice.point.label != point.label
    why = dict(choice.others)[point.label]
    assert "may be above the limit" in why


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(InputError, match="limit of risk"):
        lu.best(TABLE, -1.0, GRID)
    with pytest.raises(InputError, match="'grid', 'halving' or 'bayes'"):
        lu.best(TABLE, 0.1, GRID, search="luck")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="Losses"):
        decide(found(), disclosure=-1, withheld=1)


def test_a_limit_that_the_original_data_keep_is_called_so() -> None:
    table = lu.Table.from_counts([[1, 14, 3, 0], [17, 83, 2, 9], [5, 0, 31, 4]])
    methods = grid("conventional-rounding", base=[3, 5])
    original = EntropyRisk().before(table)
    wide = lu.best(table, max_risk=original + 0.01, methods=methods)
    assert "which is under the limit too" in wide.reason
    tight = lu.best(table, max_risk=original - 1e-6, methods=methods)
    assert tight.point is not None
    assert "under the limit too" not in tight.reason
