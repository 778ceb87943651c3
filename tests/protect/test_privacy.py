"""Differential privacy: noise of the stated distribution, budgets that add up, counts that add up.

OpenDP takes no seed, so the tests by distribution see fresh noise each time: each of them fails by chance
once in a million runs.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import opendp.prelude as opendp
import pytest
from hypothesis import given, settings
from scipy import optimize, stats

from examples import examples
from lustrum.model import InputError, Table
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.privacy import (
    Budget,
    BudgetSpentError,
    Cost,
    DifferentialPrivacy,
    DiscreteNoiseChannel,
    epsilon_of_rho,
    rho_of,
)
from lustrum.protect.privacy.mechanism import measure
from lustrum.protect.privacy.spec import fitted, rounded_down_the_tree
from lustrum.protect.totals.inner_table import InnerTable
from small import summed

SMALL = 1e-6


def fit(seen: np.ndarray, rows: Any, size: int) -> float:
    """Chi-square of published values against a row of the channel, rare ones pooled."""
    found = np.array([np.count_nonzero(seen == p) for p in rows.published])
    expected = rows.probability * size
    large = expected > 5
    pair = [np.append(a[large], a[~large].sum()) for a in (found, expected)]
    pair[0][-1] += size - found.sum()  # beyond the ends that were written down
    if pair[1][-1] < 1:
        pair = [np.append(a[:-2], a[-2:].sum()) for a in pair]
    return float(stats.chisquare(pair[0], pair[1] * size / pair[1].sum()).pvalue)


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"epsilon": 0.7, "post": "none"}, 9),
        ({"epsilon": 1.5}, 1),
        ({"mechanism": "gaussian", "rho": 0.05, "post": "none"}, 9),
        ({"mechanism": "gaussian", "epsilon": 2.0, "delta": 1e-6}, 3),
    ],
)
def test_published_counts_follow_the_exact_channel(options: dict[str, Any], value: int) -> None:
    size = 10_000
    release = DifferentialPrivacy(**options).apply(Table.from_counts(np.full(size, value)))
    rows = release.channel.transitions(np.array([value]))
    assert rows.probability.sum() == pytest.approx(1)
    assert fit(release.published, rows, size) > SMALL
    assert release.least is not None
    assert release.most is not None
    assert (release.least == 0).all()
    assert (release.most == UNBOUNDED).all()


def test_channels_are_the_textbook_formulas() -> None:
    scale = 2.5
    t = math.exp(-1 / scale)
    rows = DiscreteNoiseChannel("laplace", scale).transitions(np.array([10]))
    wanted = (1 - t) / (1 + t) * t ** np.abs(rows.published - 10)
    assert np.allclose(rows.probability, wanted, rtol=1e-12, atol=0)
    rows = DiscreteNoiseChannel("gaussian", scale).transitions(np.array([10]))
    total = sum(math.exp(-(k**2) / (2 * scale**2)) for k in range(-100, 101))
    wanted = np.exp(-((rows.published - 10) ** 2) / (2 * scale**2)) / total
    assert np.allclose(rows.probability, wanted, rtol=1e-12, atol=0)


@given(mechanism=st.sampled_from(["laplace", "gaussian"]), scale=st.floats(0.3, 9))
def test_clamping_moves_what_is_below_0_to_0(mechanism: str, scale: float) -> None:
    free, held = (DiscreteNoiseChannel(mechanism, scale, clamp) for clamp in (False, True))
    for value in (0, 2):
        a, b = (c.transitions(np.array([value])) for c in (free, held))
        assert b.published.min() == 0
        assert b.probability.sum() == pytest.approx(1)
        assert b.probability[0] == pytest.approx(a.probability[a.published <= 0].sum())
        assert np.allclose(b.probability[1:], a.probability[a.published > 0])
    assert held.stay(0, 0) > free.stay(0, 0)
    assert held.stay(1, None) == free.stay(7, 7)


def test_the_ratio_of_neighbouring_counts_is_at_most_e_to_the_epsilon() -> None:
    """A record is in 4 cells of a table with all totals: the noise of each cell is 4 times as wide."""
    release = DifferentialPrivacy(epsilon=0.8, post="none").apply(summed(np.ones((2, 2), int)))
    assert isinstance(release.channel, DiscreteNoiseChannel)
    assert release.channel.scale == pytest.approx(4 / 0.8)
    a, b = (release.channel.transitions(np.array([v])) for v in (5, 6))
    common = np.intersect1d(a.published, b.published)[1:-1]
    p = a.probability[np.isin(a.published, common)]
    q = b.probability[np.isin(b.published, common)]
    # Four such cells change by one record.
    assert 4 * np.abs(np.log(p / q)).max() == pytest.approx(0.8, rel=1e-9)


def test_gaussian_noise_grows_with_the_root_of_the_cells_and_with_the_records() -> None:
    table = summed(np.ones((2, 2), int))
    options: dict[str, Any] = {"mechanism": "gaussian", "rho": 0.5, "post": "none"}
    one, three = (DifferentialPrivacy(**options, records=r).apply(table).channel for r in (1, 3))
    assert isinstance(one, DiscreteNoiseChannel)
    assert isinstance(three, DiscreteNoiseChannel)
    assert one.scale == pytest.approx(2.0)
    assert three.scale == pytest.approx(6.0)


def test_opendp_itself_says_that_the_noise_costs_no_more() -> None:
    for cells, records, cost in [(1, 1, 0.1), (3, 1, 0.7), (7, 2, 1.3)]:
        scale = measure(np.zeros(1, np.int64), "laplace", cells, records, cost).scale
        domain = opendp.vector_domain(opendp.atom_domain(T="i64"))
        noise = opendp.m.make_laplace(domain, opendp.l1_distance(T="i64"), scale=scale)
        assert 0.999 * cost < noise.map(cells * records) <= cost
        scale = measure(np.zeros(1, np.int64), "gaussian", cells, records, cost).scale
        noise = opendp.m.make_gaussian(domain, opendp.l2_distance(T="f64"), scale=scale)
        assert 0.999 * cost < noise.map(records * math.sqrt(cells)) <= cost


@pytest.mark.parametrize(("rho", "delta"), [(0.001, 1e-6), (0.1, 1e-6), (0.5, 1e-10), (2.0, 1e-3)])
def test_the_conversion_from_rho_is_that_of_opendp_and_below_the_simple_one(
    rho: float, delta: float
) -> None:
    ours = epsilon_of_rho(rho, delta)
    space = opendp.atom_domain(T=float, nan=False), opendp.absolute_distance(T=float)
    noise = opendp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho))
    theirs = opendp.c.make_zCDP_to_approxDP(noise).map(1.0).epsilon(delta)
    assert ours == pytest.approx(theirs, rel=1e-9)
    assert ours < rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert rho_of(ours, delta) == pytest.approx(rho, rel=1e-9)
    grid = 1 + np.exp(np.linspace(-12, 12, 20_001))
    bounds = grid * rho + np.log1p(-1 / grid) - np.log(delta * grid) / (grid - 1)
    assert ours <= bounds.min() + 1e-12


def test_costs_add_up_exactly_and_the_budget_refuses_the_next() -> None:
    budget = Budget(epsilon=1.0)
    for k in range(10):
        budget.spend(Cost(epsilon=0.1), f"table {k}")
    assert budget.left == 0
    with pytest.raises(BudgetSpentError, match="0 of 1 is left"):
        budget.spend(Cost(epsilon=1e-12), "one more")
    assert len(budget.entries) == 10
    with pytest.raises(InputError, match="pure mechanisms only"):
        budget.spend(Cost(rho=0.1), "gaussian")


def test_a_rho_budget_pays_for_pure_mechanisms_at_half_their_square() -> None:
    budget = Budget(rho=1.0)
    budget.spend(Cost(epsilon=1.0), "laplace")
    budget.spend(Cost(rho=0.3), "gaussian")
    assert budget.entries == (("laplace", 0.5), ("gaussian", 0.3))
    assert budget.left == pytest.approx(0.2)
    assert budget.price(Cost(epsilon=0.2)) == pytest.approx(0.02)
    again = Budget.from_mapping(budget.to_mapping())
    assert repr(again) == repr(budget) == "Budget(rho 1, spent 0.8 on 2 releases)"
    with pytest.raises(BudgetSpentError):
        again.spend(Cost(rho=0.2000001), "more")
    again.spend(Cost(rho=0.2), "the rest")


def test_a_release_is_charged_before_its_noise_and_not_published_without_budget() -> None:
    table, method = Table.from_counts([5, 6]), DifferentialPrivacy(epsilon=0.6)
    budget = Budget(epsilon=1.0)
    method.apply(table, budget=budget)
    assert budget.entries == (("v1", 0.6),)
    with pytest.raises(BudgetSpentError):
        method.apply(table, budget=budget)
    assert budget.spent == 0.6
    with pytest.raises(InputError, match="named twice"):
        DifferentialPrivacy(epsilon=0.1, margins=(("v1",), ()), shares=(0.5, 0.5)).apply(
            table, budget=budget
        )
    assert budget.spent == 0.6


def test_shares_of_the_cost_set_the_noise_of_each_margin() -> None:
    table = summed(np.full((40, 30), 50))
    method = DifferentialPrivacy(
        epsilon=1.0,
        post="none",
        margins=["a,b", "a", "b", ""],  # type: ignore[arg-type]
        shares=[0.5, 0.2, 0.2, 0.1],  # type: ignore[arg-type]
    )
    release = method.apply(table)
    assert release.channel is None
    assert "scale 2, 5, 5, 10" in release.notes[0]
    error = (release.published - table.values)[:-1, :-1]
    rows = DiscreteNoiseChannel("laplace", 2.0).transitions(np.array([0]))
    assert fit(error, rows, error.size) > SMALL
    words = method.to_mapping()
    assert DifferentialPrivacy(**{k: v for k, v in words.items() if k != "method"}) == method
    with pytest.raises(InputError, match="grand total"):
        DifferentialPrivacy(
            epsilon=1.0, post="none", margins=(("a", "b"), ("a",), ("b",)), shares=(0.5, 0.3, 0.2)
        ).apply(table)


@settings(max_examples=examples(8, 60))
@given(
    counts=st.lists(st.integers(0, 9), min_size=12, max_size=12),
    mechanism=st.sampled_from(["laplace", "gaussian"]),
)
def test_consistent_counts_are_whole_not_negative_and_add_up(
    counts: list[int], mechanism: Any
) -> None:
    table = summed(np.array(counts).reshape(2, 3, 2))
    cost: dict[str, Any] = {"epsilon": 0.5} if mechanism == "laplace" else {"rho": 0.1}
    release = DifferentialPrivacy(mechanism, post="consistent", **cost).apply(table)
    assert release.channel is None
    inner = InnerTable.of(table.axes, "A test")
    assert (release.published >= 0).all()
    assert np.array_equal(inner.added_up(inner.take(release.published)), release.published)


def test_well_measured_totals_correct_their_parts() -> None:
    """Over 200 releases without a seed. Without any gain 4.9 standard errors have one chance in a million; the
    gain is some 11.6 of them, so that less than 4.9 is as unlikely."""
    counts = np.full((6, 6), 30)
    table = summed(counts)
    margins = ["a,b", "a", "b", ""]
    errors = {}
    for post in ("none", "consistent"):
        method = DifferentialPrivacy(
            epsilon=1.0,
            post=post,
            margins=margins,
            shares=[0.1, 0.4, 0.4, 0.1],  # type: ignore[arg-type]
        )
        made = np.stack([method.apply(table).published for _ in range(200)])
        errors[post] = ((made - table.values)[:, :6, :6] ** 2).mean(axis=(1, 2))
    gap = errors["none"] - errors["consistent"]
    assert gap.mean() / (gap.std() / np.sqrt(200)) > 4.9


def test_the_fit_is_the_least_squares_of_a_second_solver() -> None:
    rng = np.random.default_rng(1)
    table = summed(rng.poisson(2, (3, 4)))
    inner = InnerTable.of(table.axes, "A test")
    noisy = table.values + rng.integers(-6, 7, table.shape)
    scale = rng.uniform(1, 4, table.shape)
    found = fitted(inner, noisy, np.ones(table.shape, dtype=bool), scale)

    def loss(x: np.ndarray) -> float:
        full = np.zeros(table.shape)
        full[:3, :4] = x.reshape(3, 4)
        full[3, :4], full[:3, 4], full[3, 4] = full[:3, :4].sum(0), full[:3, :4].sum(1), x.sum()
        return float((((full - noisy) / scale) ** 2).sum())

    other = optimize.minimize(loss, np.ones(12), bounds=[(0, None)] * 12, tol=1e-14)
    assert loss(found.ravel()) <= other.fun + 1e-6
    large = summed(rng.poisson(3, (21, 20)))
    inner = InnerTable.of(large.axes, "A test")
    exact = fitted(inner, large.values, np.ones(large.shape, dtype=bool), np.ones(large.shape))
    assert np.abs(exact - inner.take(large.values)).max() < 1e-4


@given(values=st.lists(st.floats(0, 20), min_size=12, max_size=12))
def test_rounding_down_the_tree_stays_within_one(values: list[float]) -> None:
    array = np.array(values).reshape(2, 3, 2)
    whole = rounded_down_the_tree(array)
    assert (whole >= 0).all()
    for axes in ((), (2,), (1, 2)):
        assert (np.abs(whole.sum(axis=axes) - array.sum(axis=axes)) < 1 + 1e-6).all()
    assert abs(whole.sum() - array.sum()) <= 0.5 + 1e-6
    integers = np.floor(array)
    assert np.array_equal(rounded_down_the_tree(integers), integers)


def test_a_generator_is_refused_because_the_noise_has_no_seed() -> None:
    with pytest.raises(InputError, match="no random generator"):
        DifferentialPrivacy(epsilon=1.0).apply(Table.from_counts([1]), np.random.default_rng(1))


def test_without_opendp_one_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("opendp"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    budget = Budget(epsilon=1.0)
    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(InputError, match=r"lustrum\[privacy\]"):
        DifferentialPrivacy(epsilon=1.0).apply(Table.from_counts([1]), budget=budget)
    assert budget.spent == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "needs epsilon"),
        ({"rho": 0.1}, "needs epsilon"),
        ({"mechanism": "gaussian", "epsilon": 1.0}, "rho or epsilon and delta"),
        ({"mechanism": "gaussian", "rho": 0.1, "delta": 1e-6}, "rho or epsilon and delta"),
        ({"epsilon": 1.0, "margins": ["a"]}, "a share of its cost"),
        ({"epsilon": 1.0, "margins": ["a"], "shares": [0.5]}, "add up to 1"),
    ],
)
def test_wrong_parameters_are_one_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        DifferentialPrivacy(**options)


def test_wrong_budgets_are_one_sentence() -> None:
    for options in ({}, {"epsilon": 1.0, "rho": 1.0}, {"epsilon": 0.0}, {"rho": math.inf}):
        with pytest.raises(InputError, match="an epsilon or a rho"):
            Budget(**options)
    with pytest.raises(InputError, match="between 0 and 1"):
        epsilon_of_rho(0.1, 1.0)
    with pytest.raises(InputError, match="above 0"):
        rho_of(0.0, 1e-6)


def test_a_rehearsal_can_be_repeated_and_follows_the_channel() -> None:
    """50,000 rehearsed cells against the exact channel; chi-square beyond its 1e-6 quantile fails."""
    table = Table.from_counts(np.full(50_000, 7))
    for method in (
        DifferentialPrivacy(epsilon=1.0, post="none"),
        DifferentialPrivacy(mechanism="gaussian", rho=0.5, post="none"),
    ):
        first, second = (method.rehearse(table, np.random.default_rng(4)) for _ in range(2))
        assert np.array_equal(first.published, second.published)
        assert "must not be published" in first.notes[0]
        rows = first.channel.transitions(np.array([7]))
        wanted = dict(zip(rows.published.tolist(), rows.probability.tolist(), strict=True))
        values = [v for v, p in wanted.items() if p * 50_000 > 20]
        seen = np.array([(first.published == v).sum() for v in values])
        expected = np.array([wanted[v] for v in values]) * 50_000
        statistic = ((seen - expected) ** 2 / expected).sum()
        assert statistic < stats.chi2.ppf(1 - 1e-6, len(values))


def test_a_split_budget_adds_up_to_the_whole() -> None:
    assert DifferentialPrivacy(epsilon=1.0).split(4).cost.epsilon == 0.25
    whole = DifferentialPrivacy(mechanism="gaussian", epsilon=1.0, delta=1e-6)
    part = whole.split(5)
    assert 5 * part.rho == pytest.approx(whole.cost.rho)
