"""Draws of populations: exact distributions on tiny cases, the urn's equation, known populations."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lustrum.model import InputError
from lustrum.risk.population import (
    KnownPopulation,
    KnownProbabilities,
    LogLinear,
    PolyaUrn,
    simple_random_samples,
)
from lustrum.risk.population import kernels as kernels_module
from lustrum.risk.population.kernels import draw_multinomials, draw_urns
from lustrum.risk.population.polya import new_colours, solve_theta
from lustrum.study.sample_tables import AREAS_BY_RELIGION

relaxed = settings(deadline=None)  # the first call of a kernel compiles it

FALSE_ALARM = 1e-4
"""How often a test of a distribution below would fail by chance alone; the seeds are fixed."""


def agrees(rows: np.ndarray, exact: dict[tuple[int, ...], float]) -> bool:
    """A chi-square test of drawn rows against their exact distribution, rare outcomes pooled."""
    seen = Counter(map(tuple, rows.tolist()))
    assert set(seen) <= {row for row, p in exact.items() if p > 0}
    assert sum(exact.values()) == pytest.approx(1)
    observed, expected = [0.0], [0.0]
    for row, p in exact.items():
        if p * len(rows) >= 8:
            observed.append(seen[row])
            expected.append(p * len(rows))
        else:
            observed[0] += seen[row]
            expected[0] += p * len(rows)
    start = 0 if expected[0] >= 5 else 1
    scale = sum(observed[start:]) / sum(expected[start:])
    result = stats.chisquare(observed[start:], np.array(expected[start:]) * scale)
    return bool(result.pvalue > FALSE_ALARM)


def exact_urn(
    sample: tuple[int, ...], unseen: tuple[int, ...], theta: float, people: int
) -> dict[tuple[int, ...], float]:
    """Every course of the urn, with new colours placed on free unseen cells, or any when full."""
    states = {(sample, 0): 1.0}
    for _ in range(people):
        after: dict[tuple[tuple[int, ...], int], float] = defaultdict(float)
        for (counts, colours), p in states.items():
            total = sum(counts) + theta
            for cell, count in enumerate(counts):
                if count:
                    grown = (*counts[:cell], count + 1, *counts[cell + 1 :])
                    after[grown, colours] += p * count / total
            if theta > 0:
                free = [c for c in unseen if counts[c] == 0] or list(unseen)
                for cell in free:
                    grown = (*counts[:cell], counts[cell] + 1, *counts[cell + 1 :])
                    after[grown, colours + 1] += p * theta / total / len(free)
        states = after
    exact: dict[tuple[int, ...], float] = defaultdict(float)
    for (counts, _), p in states.items():
        exact[counts] += p
    return exact


URNS = [
    ((2, 1, 0), (2,), 0.7, 5),
    ((2, 1, 0, 0), (2, 3), 1.5, 5),
    ((1, 0, 0, 0), (1, 2, 3), 3.0, 4),
    ((3, 2, 1), (), 0.0, 6),
    ((4, 0, 0), (2,), 40.0, 4),
]


@pytest.mark.parametrize(("sample", "unseen", "theta", "people"), URNS)
def test_urns_by_tables_have_the_exact_distribution(
    sample: tuple[int, ...], unseen: tuple[int, ...], theta: float, people: int
) -> None:
    rows = draw_urns(
        np.array(sample), np.array(unseen, dtype=np.int64), theta, people, 60_000,
        np.random.default_rng(4),
    )  # fmt: skip
    assert agrees(rows, exact_urn(sample, unseen, theta, people))


@pytest.mark.parametrize("long", [1 << 18, 0])
@pytest.mark.parametrize(("sample", "unseen", "theta", "people"), URNS[:4])
def test_urns_person_by_person_and_by_bars_have_the_exact_distribution(
    sample: tuple[int, ...],
    unseen: tuple[int, ...],
    theta: float,
    people: int,
    long: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernels_module, "_LONG", long)
    start, free, rng = np.array(sample), np.array(unseen, dtype=np.int64), np.random.default_rng(5)
    rows = [draw_urns(start, free, theta, people, 60, rng) for _ in range(500)]
    assert agrees(np.concatenate(rows), exact_urn(sample, unseen, theta, people))


@pytest.mark.parametrize("draws", [60_000, 60])
def test_multinomials_have_the_exact_distribution(draws: int) -> None:
    p, people, rng = np.array([0.5, 0.0, 0.3, 0.2]), 6, np.random.default_rng(6)
    sample = np.array([1, 0, 0, 2])
    rows = np.concatenate(
        [draw_multinomials(sample, 3 * p, people, draws, rng) for _ in range(30_000 // draws + 1)]
    )
    exact = {
        tuple(np.add(x, sample).tolist()): float(stats.multinomial.pmf(x, people, p))
        for x in product(range(7), repeat=4)
        if sum(x) == people
    }
    assert agrees(rows, {x: pr for x, pr in exact.items() if pr > 0})


def test_large_tables_have_the_moments_of_a_multinomial() -> None:
    p = LogLinear().predictive(AREAS_BY_RELIGION).ravel()
    rows = draw_multinomials(
        np.zeros(90, dtype=np.int64), p, 2204, 40_000, np.random.default_rng(7)
    )
    # 90 cells at 5 standard errors each: false alarm less than once in 10,000.
    error = np.sqrt(2204 * p * (1 - p) / 40_000)
    assert np.all(np.abs(rows.mean(axis=0) - 2204 * p) < 5 * error)
    covariance = np.cov(rows[:, 0], rows[:, 7])
    assert covariance[0, 0] == pytest.approx(2204 * p[0] * (1 - p[0]), rel=0.04)
    # The error of a covariance of nearly independent counts.
    slack = 5 * 2204 * np.sqrt(p[0] * p[7] / 40_000)
    assert covariance[0, 1] == pytest.approx(-2204 * p[0] * p[7], abs=slack)


def test_large_urns_have_the_moments_of_their_distribution() -> None:
    sample = np.array([30, 12, 5, 1, 0, 0, 0, 0])
    theta, people = 4.0, 900
    total = 48 + theta
    rows = draw_urns(sample, np.arange(4, 8), theta, people, 40_000, np.random.default_rng(8))
    weights = np.array([30, 12, 5, 1]) / total
    mean = people * weights
    variance = people * weights * (1 - weights) * (people + total) / (1 + total)
    gained = rows[:, :4] - sample[:4]
    assert np.all(np.abs(gained.mean(axis=0) - mean) < 5 * np.sqrt(variance / 40_000))
    assert gained.var(axis=0) == pytest.approx(variance, rel=0.08)
    # Unseen cells are treated alike.
    fresh = rows[:, 4:].mean(axis=0)
    error = rows[:, 4:].std(axis=0) / np.sqrt(40_000)
    assert np.all(np.abs(fresh - people * theta / total / 4) < 5 * error)


def test_the_number_of_new_colours_is_what_theta_was_solved_for() -> None:
    sample = np.zeros(4000, dtype=np.int64)
    sample[:20] = 5
    theta = solve_theta(100, 900, wanted=25.0)
    rows = draw_urns(sample, np.arange(20, 4000), theta, 800, 3000, np.random.default_rng(9))
    new = (rows[:, 20:] > 0).sum(axis=1)
    assert new.mean() == pytest.approx(25.0, abs=4.5 * new.std() / np.sqrt(3000))


def test_counts_too_wide_for_tables_are_drawn_otherwise() -> None:
    rng = np.random.default_rng(10)
    rows = draw_multinomials(np.array([0, 0]), np.array([0.5, 0.5]), 10**7, 100, rng)
    assert rows[:, 0].mean() == pytest.approx(5e6, abs=5 * np.sqrt(2.5e6 / 100))
    assert set(rows.sum(axis=1).tolist()) == {10**7}
    # Two balls: either colour's share of a long urn is uniform, so a count spreads over all.
    urns = draw_urns(np.array([1, 1]), np.array([], dtype=np.int64), 0.0, 50_000, 300, rng)
    share = (urns[:, 0] - 1) / 50_000
    assert stats.kstest(share, "uniform").pvalue > FALSE_ALARM


def test_same_generator_same_populations() -> None:
    sample = AREAS_BY_RELIGION // 10
    for model in (LogLinear(), PolyaUrn()):
        one, other = (model.draw(sample, 2449, np.random.default_rng(3), 200) for _ in range(2))
        assert np.array_equal(one, other)
        assert one.shape == (200, 10, 9)
        assert not np.array_equal(one[0], one[1])


def test_a_sample_of_everybody_is_the_population() -> None:
    sample = np.array([[3, 0], [2, 1]])
    for model in (LogLinear(), PolyaUrn(), KnownPopulation(sample)):
        drawn = model.draw(sample, 6, np.random.default_rng(1), 100)
        assert np.all(drawn == sample)
        assert model.expected(sample, 6) == pytest.approx(sample)


@relaxed
@given(st.integers(1, 200), st.integers(1, 500), st.floats(1e-6, 1e12))
def test_the_closed_form_is_the_sum_of_the_paper(n: int, more: int, theta: float) -> None:
    terms = theta / (n + theta + np.arange(more))
    assert new_colours(theta, n, n + more) == pytest.approx(terms.sum(), rel=1e-6)


@relaxed
@given(st.integers(1, 300), st.integers(1, 3000), st.floats(1e-4, 0.999))
def test_theta_brings_as_many_colours_as_wanted(n: int, more: int, share: float) -> None:
    wanted = share * more
    theta = solve_theta(n, n + more, wanted)
    terms = theta / (n + theta + np.arange(more))
    assert terms.sum() == pytest.approx(wanted, rel=1e-6)


def test_no_new_colours_are_wanted_where_the_sample_has_no_more_zeros() -> None:
    assert solve_theta(3, 5, 2.0) == solve_theta(3, 5, 3.0) == 5e6
    # So few that theta is nearly as small as it can be: wanted * n / (N - n).
    assert solve_theta(3, 4, 1e-12) == pytest.approx(3e-12, rel=1e-3)
    assert solve_theta(10, 100, 0.0) == solve_theta(10, 100, -3.0) == solve_theta(10, 10, 2.0) == 0
    full = np.array([[4, 5], [6, 7]])
    assert PolyaUrn().theta(full, 200) == 0
    assert PolyaUrn().draw(full, 200, np.random.default_rng(1), 100).min() >= 4


def test_all_new_people_are_of_new_colours_where_there_must_be_as_many() -> None:
    sample = np.array([5, 0, 0, 0])
    theta = PolyaUrn(zeros=1).theta(sample, 7)
    assert theta == 7e6
    drawn = PolyaUrn(zeros=1).draw(sample, 7, np.random.default_rng(1), 100)
    assert set((drawn > 0).sum(axis=1).tolist()) == {3}


def test_empty_cells_are_estimated_by_independence() -> None:
    sample = np.array([[8, 2], [1, 0]])
    p = np.outer([10, 1], [9, 2]) / 121
    assert PolyaUrn().empty_cells(sample, 60) == pytest.approx(((1 - p) ** 60).sum())
    assert PolyaUrn(zeros=1).empty_cells(sample, 60) == 1
    details = PolyaUrn().details(sample, 60)
    assert details["theta"] == PolyaUrn().theta(sample, 60)
    # With an impossible cell the shares of independence take several rounds.
    three, free = np.array([[9, 3, 0], [2, 5, 4], [1, 0, 6]]), np.zeros((3, 3), bool)
    free[0, 2] = True
    p = LogLinear(structural=free).predictive(three)[~free]
    guessed = PolyaUrn(structural=free).empty_cells(three, 40)
    assert guessed == pytest.approx(((1 - p) ** 40).sum(), rel=1e-6)


def test_structural_zeros_never_get_a_colour() -> None:
    sample = np.array([[8, 0, 0], [1, 0, 3]])
    structural = np.array([[False, True, False], [False, False, False]])
    urn = PolyaUrn(zeros=0, structural=structural)
    drawn = urn.draw(sample, 300, np.random.default_rng(1), 200)
    assert not drawn[:, 0, 1].any()
    assert drawn[:, 0, 2].any()
    assert urn.predictive(sample, 300)[0, 1] == 0


def test_the_mean_urn_is_the_sample_and_the_rest_by_its_weights() -> None:
    sample = np.array([[8, 2, 0], [4, 6, 0]])
    urn = PolyaUrn(zeros=0)
    drawn = urn.draw(sample, 200, np.random.default_rng(2), 20_000)
    expected = urn.expected(sample, 200)
    assert expected.sum() == pytest.approx(200)
    assert np.all(
        np.abs(drawn.mean(axis=0) - expected) <= 4.4 * drawn.std(axis=0) / np.sqrt(20_000)
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda rng: PolyaUrn(zeros=-1), "0 or more"),
        (lambda rng: PolyaUrn(zeros=3).theta([[4, 0], [1, 2]], 90), "more empty cells"),
        (lambda rng: PolyaUrn().theta([0, 0], 90), "nobody"),
        (lambda rng: PolyaUrn().draw([3, 4], 6, rng), "larger than the population"),
        (lambda rng: KnownPopulation([3, 4]).draw([4, 1], 7, rng), "more people than the pop"),
        (lambda rng: KnownPopulation([3, 4]).draw([1, 1], 8, rng), "differs from"),
        (lambda rng: KnownPopulation([3, 4]).draw([1, 1, 0], 7, rng), "different shapes"),
        (lambda rng: KnownProbabilities([0.5, 0.6]), "add up to 1"),
        (lambda rng: KnownProbabilities([1.5, -0.5]), "add up to 1"),
        (lambda rng: KnownProbabilities([0.5, 0.5]).draw([1, 1, 0], 8, rng), "different shapes"),
        (lambda rng: simple_random_samples([3, 4], 0.0, rng), "above 0"),
        (lambda rng: simple_random_samples([3, 4], 1.2, rng), "at most 1"),
        (lambda rng: simple_random_samples([3, 4], float("nan"), rng), "above 0"),
        (lambda rng: simple_random_samples([3, 4], 0.05, rng), "leaves nobody"),
    ],
)
def test_mistakes_are_named(make, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=words):
        make(np.random.default_rng(1))
