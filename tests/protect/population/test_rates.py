"""The public rates of errors: measured over the cells of a kind, coarse, never zero, and close to the truth."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from lustrum.audit.belief.posterior import Uniform, weighted
from lustrum.protect.population.cells import FinestCells
from lustrum.protect.population.channel import (
    ERROR_ENDS,
    SMALL,
    PopulationChannel,
    coarse_rates,
    error_class,
    nearest_rates,
    size_class,
)
from lustrum.protect.population.measure import (
    FEWEST,
    FEWEST_BY_CLASS,
    MeasuredTable,
    report_of,
    tables_of_a_kind,
)
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.protect.population.public import PublicReport
from lustrum.protect.population.search.layout import plan_tables
from lustrum.protect.population.support import Support
from protect.population.worlds import KEY, cells_of, dense, town

SIZES = (12, 8, 6, 4)


@pytest.fixture(scope="module")
def world() -> tuple[np.ndarray, PopulationResult]:
    """Some cells empty, some with a few, some with many people."""
    rng = np.random.default_rng(11)
    means = rng.gamma(0.3, 3.0, SIZES)
    counts = rng.poisson(means)
    method = ProtectedPopulation(sweeps=6, empty_share=0.2)
    return counts, method.protect(cells_of(town(SIZES, zeros=False), counts), KEY)


def tables(true: np.ndarray, shown: np.ndarray, ways: int) -> tuple[np.ndarray, np.ndarray]:
    """All cells of all tables of so many variables, at finest levels."""
    kept = [tuple(set(range(4)) - set(c)) for c in combinations(range(4), ways)]
    return tuple(np.concatenate([a.sum(axis=k).ravel() for k in kept]) for a in (true, shown))  # type: ignore[return-value]


def test_classes_have_the_ends_that_are_stated() -> None:
    assert size_class([0, 1, 2, 3, 8, 9, 29, 30, 10**6], 3).tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4]
    errors = [0, -1, 2, 3, -5, 6, 9, 14, 15, 24, 39, 62, 63, 10**6]
    assert error_class(errors, 3).tolist() == [0, 1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 7, 7, 7]


def test_what_is_measured_is_what_the_tables_say() -> None:
    """One variable of three codes beside one that cannot vary: every drawn table can be worked out by hand."""
    dataset = town((2, 3), zeros=False)
    true = np.array([[0, 1, 40], [0, 3, 2]])
    shown = np.array([[3, 0, 45], [0, 3, 6]])
    grid = np.indices(true.shape).reshape(2, -1)
    every, memory = (FinestCells(dataset, grid, a.ravel()) for a in (true, shown))
    wanted = np.zeros((5, len(ERROR_ENDS)), dtype=np.int64)
    for n, s in zip(true.ravel(), shown.ravel(), strict=True):
        wanted[size_class(n, 3), error_class(s - n, 3)] += 1
    for found in tables_of_a_kind(plan_tables(dataset), every, memory, 3, 2):
        assert found.squares == ((true - shown) ** 2).sum()
        assert found.seen == 5
        assert found.transitions is not None
        assert found.transitions.tolist() == wanted.tolist()


@pytest.mark.parametrize(("base", "step", "close"), [(3, 1, 1e-9), (3, 3, 0.07), (5, 5, 0.07)])
def test_the_channel_gives_each_class_of_errors_its_rate(
    base: int, step: int, close: float
) -> None:
    """To the last digit where every number can be shown; rows without an error of 0 are raised otherwise."""
    rates = ((4, 1, 2, 3, 3, 4, 5, 6),) * 5
    channel = PopulationChannel(base, step, rates)
    true = np.arange(40 * base, 52 * base)
    rows = channel.transitions(true)
    classes = error_class(rows.published - true[rows.origin], base)
    shares = np.bincount(classes, rows.probability) / true.size
    wanted = 0.5 ** np.array(rates[4])
    assert np.abs(shares - wanted / wanted.sum()).max() < close
    assert (shares > 0).all()


def test_beliefs_from_coarse_rates_are_close_to_those_from_all_cells(
    world: tuple[np.ndarray, PopulationResult],
) -> None:
    """Bayes with the true frequencies of every cell of every table, against Bayes with the public rates."""
    counts, result = world
    ways = 3
    true, shown = tables(counts, dense(result.cells), ways)
    channel = result.public.channel(ways)
    gaps = []
    for number in (0, 3, 6):
        values = np.arange(number + 16)
        chance = np.array(
            [np.mean(shown[true == v] == number) if (true == v).any() else 0 for v in values]
        )
        exact = chance / chance.sum()
        belief = weighted(
            np.array([0]), np.array([values[-1]]), Uniform(), np.array([number]), channel
        )
        held = np.zeros(values.size)
        held[belief.values.astype(int)] = belief.probabilities
        gaps.append(float(np.abs(held - exact).sum() / 2))
    assert max(gaps) < 0.3


@pytest.mark.parametrize("variables", [2, 3])
def test_stated_rates_of_small_counts_are_the_true_ones(
    world: tuple[np.ndarray, PopulationResult], variables: int
) -> None:
    """Over all tables of a kind, the stated share of each class of errors, within the coarseness of a power of
    one half: shares of one third and more are stated within a factor of two, others stay small."""
    counts, result = world
    true, shown = tables(counts, dense(result.cells), variables)
    channel = result.public.channel(variables)
    for size in (0, 1):
        chosen = size_class(true, 3) == size
        if chosen.sum() < 100:
            continue
        found = np.bincount(error_class((shown - true)[chosen], 3), minlength=8) / chosen.sum()
        counts_of_class = np.unique(true[chosen])
        rows = channel.transitions(counts_of_class)
        errors = error_class(rows.published - counts_of_class[rows.origin], 3)
        stated = np.bincount(errors, rows.probability, minlength=8) / counts_of_class.size
        large = found >= 1 / 3
        assert (stated[large] > found[large] / 2).all()
        assert (stated[large] < found[large] * 2).all()
        assert np.abs(stated - found).sum() / 2 < 0.25


def test_where_few_cells_are_measured_risk_is_not_understated() -> None:
    """Few large errors must not make a reader's belief about small counts wide."""
    few = np.zeros((5, len(ERROR_ENDS)), dtype=np.int64)
    few[1, 7] = FEWEST_BY_CLASS - 1
    stated = reported(few)
    assert stated.rates == stated.free_rates == nearest_rates(3, 3)
    few[1, 7] //= 3
    # Tables of another kind, of which enough are measured, stand in: those that the search controls err less.
    enough = np.zeros_like(few)
    enough[:, 1] = FEWEST_BY_CLASS
    kinds = {1: [MeasuredTable(9.0, FEWEST, enough)], 4: [MeasuredTable(9.0, FEWEST, few)]}
    made = report_of({"max_variables": 3}, Support(3), 0.5, kinds, {1: kinds[4]}, b"s" * 16)
    for rates in (made.rates, made.free_rates):
        assert [row[0] for row in rates] == [6] * 5
        assert all(row[1] in (0, 1) and row[2:] == SMALL[2:] for row in rates)


def test_no_rate_is_zero_and_few_cells_are_not_told_apart() -> None:
    few = np.zeros((5, len(ERROR_ENDS)), dtype=np.int64)
    few[:, 0] = FEWEST_BY_CLASS - 1
    one, two = (reported(cells) for cells in (few, few[:, ::-1]))
    assert one == two  # too few: taken for the least that there can be
    three = reported(few * 100)
    assert three.rates != one.rates
    assert all(0 <= rate <= max(SMALL) for row in three.rates for rate in row)
    rows = three.channel(1).transitions(np.arange(100))
    assert (rows.probability > 0).all()


def reported(cells: np.ndarray) -> PublicReport:
    kinds = {1: [MeasuredTable(9.0, FEWEST, cells)]}
    return report_of({"max_variables": 3}, Support(3), 0.5, kinds, kinds, b"s" * 16)


def test_no_rate_says_how_rare_an_error_is() -> None:
    """One in a hundred cells of any class may err by any amount without another byte in the report."""
    reports = []
    for erring in (0, 1, 5, 10, 100):
        cells = np.full((5, len(ERROR_ENDS)), erring, dtype=np.int64)
        cells[:, 0] = FEWEST_BY_CLASS - 7 * erring
        reports.append([row[1:] for row in reported(cells).rates])
    assert all(rates == reports[0] for rates in reports[:4])
    assert reports[4] != reports[0]


def test_the_key_decides_where_the_steps_of_a_rate_begin() -> None:
    shares = [0.3, 0.7, 0, 0, 0, 0, 0, 0]
    found = {coarse_rates(shares, shift)[0] for shift in np.linspace(0, 0.999, 50)}
    assert found == {1, 2}
