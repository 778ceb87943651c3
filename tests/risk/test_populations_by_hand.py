"""Models of populations: exact tables of chances, and figures that can be worked out on paper."""

from __future__ import annotations

from math import comb, exp, factorial, lgamma, log

import numpy as np
import pytest

from lustrum.model import InputError, Table
from lustrum.risk.counts import cells_of
from lustrum.risk.population import (
    KnownPopulation,
    KnownProbabilities,
    LogLinear,
    simple_random_samples,
)
from lustrum.risk.population import kernels as kernels_module
from lustrum.risk.population.kernels import (
    LARGEST,
    alias_table,
    bits_of,
    count_tables,
    draw_multinomials,
    draw_urns,
)
from lustrum.risk.population.model import fitting_mask, grown


def chances(entries: np.ndarray) -> np.ndarray:
    """The distribution that an alias table stands for: own count to stay, the other one otherwise."""
    size = entries.size
    out = np.zeros(size)
    for own, entry in enumerate(entries.tolist()):
        stay = (entry >> 16) / 2**48
        out[own] += stay / size
        out[entry & 0xFFFF] += (1 - stay) / size
    return out


@pytest.mark.parametrize(
    "weights",
    [[1, 2, 3], [1, 2, 1], [0.2, 0.8], [5], [1, 1, 1, 1, 1], [0, 1, 0, 9], [1e-9, 1, 1, 1]],
)
def test_an_alias_table_stands_for_its_weights(weights):
    entries = alias_table(np.array(weights, dtype=np.float64))
    assert entries.size == 2 ** int(bits_of(len(weights)))
    found = chances(entries)
    wanted = np.zeros(entries.size)
    wanted[: len(weights)] = np.array(weights) / sum(weights)
    assert found == pytest.approx(wanted, abs=1e-12)
    # What has no weight never comes.
    assert not found[wanted == 0].any()


def test_an_entry_is_named_by_enough_bits():
    assert [int(bits_of(n)) for n in (1, 2, 3, 4, 5, 8, 9, 65536)] == [1, 1, 2, 2, 3, 3, 4, 16]
    assert LARGEST == 65536


def table_of(tables, t: int) -> dict[int, float]:
    start, bits = int(tables.offset[t]), int(tables.bits[t])
    found = chances(tables.entries[start : start + 2**bits])
    return {int(tables.lowest[t]) + k: p for k, p in enumerate(found.tolist()) if p}


def test_tables_of_poisson_counts_are_exact():
    means = np.array([0.3, 1.0, 2.5, 7.5, 2000.0])
    tables = count_tables(0.0, means, 10**6)
    for t, mean in enumerate(means.tolist()):
        found = table_of(tables, t)
        wanted = {k: exp(k * log(mean) - mean - lgamma(k + 1)) for k in found}
        assert found == pytest.approx(wanted, abs=1e-12)
        assert sum(wanted.values()) == pytest.approx(1, abs=1e-12)
        # Nothing that is not negligible is left out on either side.
        for beyond in (min(found) - 1, max(found) + 1):
            if beyond >= 0:
                assert exp(beyond * log(mean) - mean - lgamma(beyond + 1)) < 1e-15
    assert int(tables.lowest[0]) == 0
    assert int(tables.lowest[4]) > 0


def test_tables_of_negative_binomial_counts_are_exact():
    a, shapes = 0.6, np.array([0.5, 3.0, 20.0])
    tables = count_tables(a, a * shapes, 10**6)
    for t, r in enumerate(shapes.tolist()):
        found = table_of(tables, t)
        wanted = {
            k: exp(lgamma(k + r) - lgamma(r) - lgamma(k + 1) + r * log(1 - a) + k * log(a))
            for k in found
        }
        assert found == pytest.approx(wanted, abs=1e-12)
        assert sum(wanted.values()) == pytest.approx(1, abs=1e-11)


def test_tables_end_at_the_people_there_are():
    found = table_of(count_tables(0.0, np.array([2.0]), 3), 0)
    weights = [2.0**k / factorial(k) for k in range(4)]
    assert found == pytest.approx({k: w / sum(weights) for k, w in enumerate(weights)})
    for most in (2, 4, 5, 8):
        found = table_of(count_tables(0.0, np.array([2.0]), most), 0)
        weights = [2.0**k / factorial(k) for k in range(most + 1)]
        assert found == pytest.approx({k: w / sum(weights) for k, w in enumerate(weights)})
    single = table_of(count_tables(0.0, np.array([50.0]), 1), 0)
    assert single == pytest.approx({0: 1 / 51, 1: 50 / 51})


def test_a_table_is_never_wider_than_its_entries_can_name():
    # A Poisson count with a mean of 10**9 spreads over more counts than 16 bits can name.
    tables = count_tables(0.0, np.array([1e9]), 2 * 10**9)
    mode = 10**9 - 1
    assert int(tables.bits[0]) == 16
    assert tables.entries.size == 2**16
    found = table_of(tables, 0)
    assert (min(found), max(found)) == (mode - 2**15, mode + 2**15 - 1)
    ratio = found[mode + 20_000] / found[mode]
    wanted = 20_000 * log(1e9) - lgamma(mode + 20_001) + lgamma(mode + 1)
    assert log(ratio) == pytest.approx(wanted, abs=1e-4)


# Populations that are drawn


@pytest.fixture
def plain():
    """Words of 64 bits wrap round without a warning where nothing is compiled."""
    with np.errstate(over="ignore"):
        yield


@pytest.mark.usefixtures("plain")
def test_the_same_seed_draws_the_same_populations_in_every_version():
    sample, unseen = np.array([2, 0, 1, 0]), np.array([1, 3])
    p = np.array([0.5, 0.2, 0.2, 0.1])
    rows = draw_multinomials(sample, p, 12, 64, np.random.default_rng(7))
    assert rows[0].tolist() == [9, 2, 4, 0]
    assert rows[1].tolist() == [5, 2, 7, 1]
    assert rows[63].tolist() == [6, 2, 4, 3]
    # By tables, and person by person where too few are drawn for tables.
    rows = draw_urns(sample, unseen, 0.8, 12, 64, np.random.default_rng(7))
    assert rows[0].tolist() == [8, 3, 4, 0]
    assert rows[40].tolist() == [12, 0, 2, 1]
    assert rows[63].tolist() == [4, 0, 8, 3]
    rows = draw_urns(sample, unseen, 0.8, 12, 63, np.random.default_rng(7))
    assert rows[0].tolist() == [7, 2, 6, 0]
    assert rows[40].tolist() == [4, 0, 10, 1]
    assert rows[62].tolist() == [5, 3, 7, 0]


@pytest.mark.parametrize("theta", [0.0, 3.0])
def test_bars_hold_everybody_over_many_words_of_places(theta, monkeypatch):
    monkeypatch.setattr(kernels_module, "_LONG", 0)
    sample, unseen = np.array([900, 0, 1, 63, 64, 2, 0, 70]), np.array([1, 6])
    rows = draw_urns(sample, unseen, theta, 20_000, 60, np.random.default_rng(3))
    assert set(rows.sum(axis=1).tolist()) == {sample.sum() + 20_000}
    assert (rows >= sample).all()
    assert rows[:, unseen].any() == (theta > 0)
    # An urn is a martingale; the deviation of a count is at most 20,000 / sqrt(4 * 1100).
    weights = sample + (sample == 0) * theta / 2
    wanted = sample + 20_000 * weights / weights.sum()
    assert rows.mean(axis=0) == pytest.approx(wanted, abs=5 * 302 / np.sqrt(60))


# The urn's own figures


# Log-linear models


def test_models_are_named_by_margins_or_order():
    table = Table.from_counts(np.ones((2, 2, 2), int), names=["a", "b", "c"])
    assert LogLinear().generators(table) == ((0,), (1,), (2,))
    assert LogLinear("two-way").generators(table) == ((0, 1), (0, 2), (1, 2))
    assert LogLinear(order=2).generators(table) == ((0, 1), (0, 2), (1, 2))
    assert LogLinear(order=9).generators(table) == ((0, 1, 2),)
    assert LogLinear(order=1).generators(table) == ((0,), (1,), (2,))
    named = LogLinear([("c", "a"), (1,), ("a",)])
    assert {frozenset(g) for g in named.generators(table)} == {frozenset((0, 2)), frozenset((1,))}
    assert named.label == "log-linear, c x a + 1 + a"
    assert LogLinear(order=2).label == "log-linear, order 2"
    assert LogLinear("two-way").label == "log-linear, two-way"
    for wrong in (
        lambda: LogLinear("three-way"),
        lambda: LogLinear([]),
        lambda: LogLinear([()]),
        lambda: LogLinear(["ab"]),
        lambda: LogLinear([(1.5,)]),
        lambda: LogLinear([(0, 1.5)]),
        lambda: LogLinear([3]),
        lambda: LogLinear(3),
        lambda: LogLinear("two-way", order=2),
        lambda: LogLinear(order=0),
        lambda: LogLinear(order=True),
        lambda: LogLinear(tolerance=0.0),
        lambda: LogLinear(tolerance=1.0),
        lambda: LogLinear(rounds=0),
        lambda: LogLinear([("d",)]).generators(table),
        lambda: LogLinear([(3,)]).generators(table),
        lambda: LogLinear([(-1,)]).generators(table),
        lambda: LogLinear().predictive([[0, 0], [0, 0]]),
        lambda: LogLinear(order=2, rounds=1).predictive([[[1, 2], [3, 1]], [[4, 1], [1, 7]]]),
        lambda: LogLinear().expected([[8, 2], [4, 6]], 19),
    ):
        with pytest.raises(InputError):
            wrong()
    assert LogLinear([(2,)]).generators(table) == ((2,),)


def test_impossible_cells_stay_empty():
    cells = cells_of([[3, 0], [2, 5]], "sample")
    assert fitting_mask(cells, None) is cells
    mask = np.array([[False, True], [False, False]])
    marked = fitting_mask(cells, mask)
    assert marked.possible.tolist() == [[True, False], [True, True]]
    assert (
        fitting_mask(marked, np.zeros((2, 2), bool)).possible.tolist() == marked.possible.tolist()
    )
    assert LogLinear(structural=mask).predictive([[3, 0], [2, 5]])[0, 1] == 0.0
    for wrong in (mask.astype(int), mask[0], np.array([[True, False], [False, False]])):
        with pytest.raises(InputError):
            fitting_mask(cells, wrong)
    assert grown(cells, np.array([[0.5, 0], [0.5, 0]]), 14).tolist() == [[5, 0], [4, 5]]


# Known populations


def test_a_known_population_leaves_nothing_to_chance():
    people, sample = [[8, 2], [4, 6]], [[1, 0], [1, 1]]
    known = KnownPopulation(people)
    assert known.draw(sample, 20, np.random.default_rng(1), 2).tolist() == [people] * 2
    assert known.expected(sample, 20).tolist() == people
    assert known.predictive(sample, 20) == pytest.approx(np.array([[7, 2], [3, 5]]) / 17)
    assert known.predictive([[8, 0], [1, 1]], 20) == pytest.approx(np.array([[0, 2], [3, 5]]) / 10)
    assert known.predictive(people, 20) == pytest.approx(np.array(people) / 20)
    assert known.details(sample, 20) == {}
    for wrong in (
        lambda: known.draw(sample, 21, np.random.default_rng(1), 2),
        lambda: known.expected([[9, 0], [1, 1]], 20),
        lambda: known.expected([[1, 0, 1], [1, 1, 1]], 20),
    ):
        with pytest.raises(InputError):
            wrong()


def test_known_probabilities_are_kept():
    shares = [[0.4, 0.1], [0.2, 0.3]]
    model = KnownProbabilities(shares)
    assert model.expected([[1, 0], [1, 0]], 12) == pytest.approx(np.array([[5, 1], [3, 3]]))
    assert model.predictive([[1, 0], [1, 0]], 12).tolist() == shares
    rows = model.draw([[1, 0], [1, 0]], 12, np.random.default_rng(1), 4)
    assert rows.shape == (4, 2, 2)
    assert set(rows.sum(axis=(1, 2)).tolist()) == {12}
    assert model.details([[1, 0], [1, 0]], 12) == {}
    with pytest.raises(ValueError, match="read-only"):
        model.probabilities[0, 0] = 1
    for wrong in (
        lambda: KnownProbabilities([0.5, 0.4]),
        lambda: KnownProbabilities([1.5, -0.5]),
        lambda: KnownProbabilities([np.nan, 1.0]),
        lambda: KnownProbabilities([np.inf, 1.0]),
        lambda: model.expected([1, 0], 12),
        lambda: model.predictive([[1, 0], [1, 0]], 1),
    ):
        with pytest.raises(InputError):
            wrong()
    KnownProbabilities([0.5, 0.5 + 5e-10])


def test_samples_have_the_size_of_their_fraction():
    people = [[80, 20], [40, 60]]
    rows = simple_random_samples(people, 0.1, np.random.default_rng(1), 5)
    assert rows.shape == (5, 2, 2)
    assert set(rows.sum(axis=(1, 2)).tolist()) == {20}
    assert (rows <= np.array(people)).all()
    assert simple_random_samples(people, 1, np.random.default_rng(1)).tolist() == [people]
    for fraction in (0, 1.1, -0.1, 0.002):
        with pytest.raises(InputError):
            simple_random_samples(people, fraction, np.random.default_rng(1))
    # 7 of 8 possible samples of one person out of two in each cell: hypergeometric, not binomial.
    pair = simple_random_samples([2, 2], 0.5, np.random.default_rng(3), 6000)[:, 0]
    share = np.bincount(pair, minlength=3) / 6000
    wanted = [comb(2, k) * comb(2, 2 - k) / comb(4, 2) for k in range(3)]
    assert share == pytest.approx(wanted, abs=5 * 0.5 / np.sqrt(6000))
