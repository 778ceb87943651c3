"""The public rates of errors: measured over the cells of a kind, coarse, never zero, and close to the truth."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from lustrum.audit.belief.posterior import weighted
from lustrum.audit.belief.priors import Uniform
from lustrum.protect.population.cells import FinestCells
from lustrum.protect.population.channel import (
    ERROR_ENDS,
    SMALL,
    PopulationChannel,
    coarse_rates,
    error_class,
    normal_rates,
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
    normal = PopulationChannel(3, 3, normal_rates(3, 3, result.public.error(ways)))
    gaps, normal_gaps = [], []
    for number in (0, 3, 6):
        values = np.arange(number + 16)
        chance = np.array(
            [np.mean(shown[true == v] == number) if (true == v).any() else 0 for v in values]
        )
        exact = chance / chance.sum()
        for found, out in ((channel, gaps), (normal, normal_gaps)):
            belief = weighted(
                np.array([0]), np.array([values[-1]]), Uniform(), np.array([number]), found
            )
            held = np.zeros(values.size)
            held[belief.values.astype(int)] = belief.probabilities
            out.append(float(np.abs(held - exact).sum() / 2))
    assert max(gaps) < 0.3
    assert np.mean(gaps) < np.mean(normal_gaps)


def test_no_rate_is_zero_and_few_cells_are_not_told_apart() -> None:
    few = np.zeros((5, len(ERROR_ENDS)), dtype=np.int64)
    few[:, 0] = FEWEST_BY_CLASS - 1
    one, two = (reported(cells) for cells in (few, few[:, ::-1]))
    assert one == two  # too few: taken for normal
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
