"""Simulated tables: draws from the exact distribution given margins, compared with whole fibres."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats
from scipy.special import gammaln

from examples import examples
from lustrum.audit.fibre import FibreMargins, enumerate_fibre
from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.numeric.loglinear import LogLinearFit, fit_generators
from lustrum.protect import simulated
from lustrum.protect.simulated import (
    SimulatedTables,
    draw_decomposable,
    draw_table,
    draw_two_way,
    fits,
)
from lustrum.protect.totals.inner_table import InnerTable

SMALL = 1e-6  # false alarm rate of every test by distribution
TREES = [
    ((2, 3), [(0,), (1,)]),
    ((2, 2, 2), [(0,), (1,), (2,)]),
    ((2, 2, 2), [(0, 1), (1, 2)]),
    ((2, 2, 2), [(0, 1), (2,)]),
]


def chi_square(drawn: np.ndarray, margins: FibreMargins, target: str) -> float:
    """How well drawn tables fit the whole fibre; rare tables are pooled."""
    fibre = enumerate_fibre(margins)
    assert fibre.complete
    logs = -gammaln(fibre.tables + 1.0).sum(axis=1) if target == "hypergeometric" else 0.0
    weights = np.exp(logs - np.max(logs)) * np.ones(len(fibre))
    expected = weights / weights.sum() * len(drawn)
    number = {tuple(t): k for k, t in enumerate(fibre.tables.tolist())}
    seen = np.bincount([number[tuple(d.ravel().tolist())] for d in drawn], minlength=len(fibre))
    order = np.argsort(expected)
    group = np.cumsum(expected[order]) // 20
    pooled = [np.bincount(group.astype(int), a[order]) for a in (seen, expected)]
    kept = pooled[1] > 0
    if pooled[1][kept][-1] < 5:  # what is left over joins the group before it
        last = np.flatnonzero(kept)[-2:]
        for p in pooled:
            p[last[0]] += p[last[1]]
        kept[last[1]] = False
    return float(stats.chisquare(pooled[0][kept], pooled[1][kept]).pvalue)


@pytest.mark.parametrize(("shape", "cliques"), TREES)
def test_trees_of_margins_are_drawn_from_the_exact_distribution(
    shape: tuple[int, ...], cliques: list[tuple[int, ...]]
) -> None:
    rng = np.random.default_rng(3)
    margins = FibreMargins.of(rng.poisson(2, shape) + 1, cliques)
    drawn = np.stack([draw_decomposable(margins, rng) for _ in range(1200)])
    assert chi_square(drawn, margins, "hypergeometric") > SMALL


def test_four_variables_in_a_chain_are_drawn_from_the_exact_distribution() -> None:
    rng = np.random.default_rng(9)
    margins = FibreMargins.of(rng.poisson(0.6, (2, 2, 2, 2)), [(0, 1), (1, 2), (2, 3)])
    drawn = np.stack([draw_decomposable(margins, rng) for _ in range(4000)])
    assert chi_square(drawn, margins, "hypergeometric") > SMALL


@pytest.mark.parametrize("target", ["uniform", "hypergeometric"])
def test_margins_without_a_tree_are_drawn_from_their_list(target: str) -> None:
    rng = np.random.default_rng(2)
    margins = FibreMargins.of(rng.poisson(3, (3, 3, 2)), [(0, 1), (0, 2), (1, 2)])
    drawn = np.stack([draw_table(margins, target, rng) for _ in range(300)])
    assert len(np.unique(drawn.reshape(300, -1), axis=0)) > 3
    assert chi_square(drawn, margins, target) > SMALL


def test_structural_zeros_stay_empty() -> None:
    rng = np.random.default_rng(4)
    counts = rng.poisson(3, (3, 3))
    counts[[0, 1, 2], [0, 1, 2]] = 0
    table = Table.from_counts(counts)
    structural = np.eye(3, dtype=bool)
    table = Table(axes=table.axes, values=counts, structural=structural)
    for target in ("uniform", "hypergeometric"):
        made = [SimulatedTables(target).apply(table, rng).published for _ in range(10)]
        assert not np.stack(made)[:, structural].any()
    possible = FibreMargins.of(counts, [(0,), (1,)], ~structural)
    drawn = np.stack([draw_table(possible, "hypergeometric", rng) for _ in range(400)])
    assert chi_square(drawn, possible, "hypergeometric") > SMALL


def test_a_chain_that_never_saw_the_table_reaches_the_whole_fibre(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simulated, "_WIDE", 0)
    rng = np.random.default_rng(5)
    margins = FibreMargins.of([[3, 1], [2, 4]], [(0,), (1,)])
    drawn = np.stack([draw_table(margins, "uniform", rng, burn=20) for _ in range(200)])
    assert chi_square(drawn, margins, "uniform") > SMALL


@settings(max_examples=examples(20, 160))
@given(
    counts=st.lists(st.integers(0, 6), min_size=12, max_size=12),
    seed=st.integers(0, 2**32),
    keep=st.sampled_from([(), (("a", "b"), ("b", "c")), (("a",), ("b",), ("c",))]),
)
def test_the_release_keeps_its_margins_and_its_bounds_hold_the_truth(
    counts: list[int], seed: int, keep: tuple[tuple[str, ...], ...]
) -> None:
    values = np.array(counts).reshape(2, 3, 2)
    table = Table.from_counts(values, ["a", "b", "c"])
    release = SimulatedTables(keep=keep).apply(table, np.random.default_rng(seed))
    assert (release.least <= values).all()
    assert (values <= release.most).all()
    inner = InnerTable.of(table.axes, "A test")
    for clique in inner.cliques(keep):
        rest = tuple(a for a in range(3) if a not in clique)
        assert np.array_equal(release.published.sum(axis=rest), values.sum(axis=rest))


def test_bounds_of_a_tree_are_the_narrowest_there_are() -> None:
    rng = np.random.default_rng(7)
    for shape, cliques in TREES:
        counts = rng.poisson(2, shape)
        table = Table.from_counts(counts)
        inner = InnerTable.of(table.axes, "A test")
        low, high = inner.ends(counts, cliques)
        fibre = enumerate_fibre(FibreMargins.of(counts, cliques)).tables
        assert np.array_equal(low.ravel(), fibre.min(axis=0))
        assert np.array_equal(high.ravel(), fibre.max(axis=0))


def test_totals_and_subtotals_are_added_up_and_kept_ones_are_true() -> None:
    rows = (
        Category("all", "all", (0, 1, 2, 3)),
        Category("r1", "r1", (0,)),
        Category("r2", "r2", (1,)),
        Category("south", "south", (2, 3)),
        Category("r3", "r3", (2,)),
        Category("r4", "r4", (3,)),
    )
    columns = (*(Category(c, c, (i,)) for i, c in enumerate("xyz")), Category("t", "t", (0, 1, 2)))
    axes = (TableAxis("area", "area", rows), TableAxis("faith", "faith", columns))
    inner = InnerTable.of(axes, "A test")
    rng = np.random.default_rng(1)
    table = Table(axes=axes, values=inner.added_up(rng.poisson(4, (4, 3))))
    release = SimulatedTables().apply(table, rng)
    assert np.array_equal(release.published[:, 3], table.values[:, 3])
    assert np.array_equal(release.published[0], table.values[0])
    assert np.array_equal(release.published[3], release.published[4] + release.published[5])
    assert np.array_equal(release.least[0], release.most[0])
    assert (release.least <= table.values).all()
    assert (table.values <= release.most).all()
    assert (release.least[3, :3] < release.most[3, :3]).all()


def test_the_same_records_give_the_same_simulated_table() -> None:
    rng = np.random.default_rng(6)
    counts, keys = rng.poisson(5, (4, 3)), rng.integers(0, 2**64, (4, 3), dtype=np.uint64)
    once, again = (
        SimulatedTables().apply(Table.from_counts(counts, ["a", "b"], keys=keys)) for _ in range(2)
    )
    turned = SimulatedTables().apply(Table.from_counts(counts.T, ["b", "a"], keys=keys.T))
    assert once.published.tobytes() == again.published.tobytes()
    assert np.array_equal(turned.published.T, once.published)


def test_two_way_draws_have_the_sums_they_were_given() -> None:
    rng = np.random.default_rng(8)
    counts = rng.poisson(0.5, (60, 40))
    made = draw_two_way(counts.sum(axis=1), counts.sum(axis=0), rng)
    assert np.array_equal(made.sum(axis=0), counts.sum(axis=0))
    assert np.array_equal(made.sum(axis=1), counts.sum(axis=1))


def test_wrong_parameters_are_one_sentence() -> None:
    table, rng = Table.from_counts(np.ones((2, 2), int)), np.random.default_rng(1)
    with pytest.raises(InputError, match="each variable in a margin"):
        SimulatedTables(keep=(("v1",),)).apply(table, rng)
    with pytest.raises(InputError, match="decomposable"):
        draw_decomposable(FibreMargins.of(np.ones((2, 2, 2), int), [(0, 1), (0, 2), (1, 2)]), rng)
    with pytest.raises(InputError, match="one billion"):
        draw_two_way([10**9], np.array([10**9]), rng)


def fitted(counts: np.ndarray, *generators: tuple[int, ...]) -> LogLinearFit:
    return fit_generators(counts, np.ones(counts.shape, dtype=bool), generators)


def test_a_draw_is_retained_only_if_it_fits_the_richer_model() -> None:
    """Two strongly associated variables: a draw given the one-way margins alone is near independence."""
    counts = np.array([[[40, 2], [3, 35]], [[30, 4], [2, 44]]])
    table = Table.from_counts(counts, names=["a", "b", "c"])
    keep = (("a",), ("b",), ("c",))
    rng = np.random.default_rng(3)
    with pytest.raises(InputError, match="consistent with the richer model"):
        SimulatedTables(keep=keep, consistent=(("b", "c"), ("a",)), tries=20).apply(table, rng=rng)
    nearer = SimulatedTables(
        keep=(("b", "c"), ("a",)), consistent=(("b", "c"), ("a", "b"), ("a", "c"))
    )
    model = fitted(counts, (0, 1), (0, 2), (1, 2))
    for _ in range(20):
        made = nearer.apply(table, rng=rng).published
        assert fits(made, model, 0.05)
        assert np.array_equal(made.sum(axis=0), counts.sum(axis=0))
    with pytest.raises(InputError, match="out of 3 was consistent"):
        replace(nearer, level=0.9999, tries=3).apply(table, rng=rng)
    free = SimulatedTables(keep=(("b", "c"), ("a",)))
    some = [fits(free.apply(table, rng=rng).published, model, 0.05) for _ in range(200)]
    assert not all(some)


def test_counts_far_from_a_model_are_told_by_the_textbook_statistic() -> None:
    """Independence in a 2 x 3 table: G2 by hand and (2 - 1)(3 - 1) degrees of freedom."""
    counts = np.array([[10, 20, 30], [25, 15, 20]])
    model = fitted(counts, (0,), (1,))
    other = np.array([[20, 15, 25], [20, 15, 25]])
    expected = model.probabilities * other.sum()
    assert model.deviance_of(other) == pytest.approx(2 * (other * np.log(other / expected)).sum())
    assert model.degrees == 2
    assert not fits(np.array([[60, 0, 0], [0, 30, 30]]), model, 0.05)
    saturated = fitted(counts, (0, 1))
    assert fits(counts, saturated, 0.05)
    assert not fits(other, saturated, 0.05)
    empty = fitted(np.array([[5, 0], [7, 0]]), (0,), (1,))
    assert empty.deviance_of(np.array([[4, 1], [7, 0]])) == np.inf
