"""Sampling: draws follow their design, channels are exact, estimates and their errors are unbiased."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from math import comb
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from lustrum.model import Dataset, InputError, Records, Table, TableQuery
from lustrum.model.hierarchy import Category
from lustrum.model.table import TableAxis
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.sampling import (
    BinomialThinning,
    HypergeometricChannel,
    PoissonSampling,
    SimpleSampling,
    StratifiedSampling,
    allocate,
    horvitz_thompson,
    proportional_to_size,
)
from lustrum.protect.sampling.estimates import poisson, simple, stratified
from lustrum.tabulate import RecordsEngine
from small import described

PEOPLE = described(
    "people",
    {"area": "nsw", "job": "abc"},
    head={"record_id": "person"},
    measures=[{"name": "size"}],
)


def people(number: int, seed: int = 1, keyed: bool = True) -> Records:
    rng = np.random.default_rng(seed)
    return Records(
        PEOPLE,
        codes={
            "area": rng.choice(3, number, p=[0.6, 0.3, 0.1]).astype(np.uint8),
            "job": rng.choice(3, number, p=[0.5, 0.4, 0.1]).astype(np.uint8),
        },
        numbers={"size": rng.integers(1, 20, number)},
        ids={"person": rng.permutation(number)},
        keys=rng.integers(0, 2**64, number, dtype=np.uint64) if keyed else None,
    )


def counted(records: Records, *by: Any, **words: Any) -> Table:
    query = {"dataset": "people", "by": list(by)} | words
    return RecordsEngine(records, workers=1).tabulate(TableQuery.from_mapping(query))


DESIGNS = [
    SimpleSampling(0.3),
    StratifiedSampling("area", 0.3, "equal", 2),
    StratifiedSampling(("area", "job"), 0.3),
    PoissonSampling(0.3),
    PoissonSampling(0.3, size="size"),
]


def as_matrix(channel: Any, most: int) -> np.ndarray:
    rows = channel.transitions(np.arange(most + 1))
    out = np.zeros((most + 1, most + 1))
    out[rows.origin, rows.published] = rows.probability
    return out


@pytest.mark.parametrize(("N", "n"), [(6, 3), (5, 1), (7, 6), (4, 4), (5, 0)])
def test_the_channel_of_a_simple_sample_is_what_all_samples_say(N: int, n: int) -> None:
    found = as_matrix(HypergeometricChannel(N, n), N)
    for F in range(N + 1):
        seen = Counter(sum(i < F for i in sample) for sample in itertools.combinations(range(N), n))
        for f in range(N + 1):
            assert found[F, f] == pytest.approx(seen[f] / comb(N, n), abs=1e-12)


@pytest.mark.parametrize("fraction", [0.25, 0.9, 1.0])
def test_the_channel_of_independent_draws_is_what_all_draws_say(fraction: float) -> None:
    found = as_matrix(BinomialThinning(fraction), 5)
    p = Fraction(fraction)
    for F in range(6):
        for f in range(6):
            exact = sum(
                np.prod([p if d else 1 - p for d in drawn], initial=Fraction(1))
                for drawn in itertools.product((0, 1), repeat=F)
                if sum(drawn) == f
            )
            assert found[F, f] == pytest.approx(float(exact), abs=1e-12)


@pytest.mark.parametrize(
    "channel",
    [BinomialThinning(0.1), BinomialThinning(1.0), HypergeometricChannel(2_000_000, 90_000)],
)
def test_rows_of_large_counts_are_whole(channel: Any) -> None:
    true = np.array([0, 1, 1000, 1_500_000])
    rows = channel.transitions(true)
    total = np.bincount(rows.origin, weights=rows.probability)
    mean = np.bincount(rows.origin, weights=rows.probability * rows.published)
    share = getattr(channel, "fraction", 0.045)
    assert np.allclose(total, 1, atol=1e-7)
    assert np.allclose(mean, share * true, rtol=1e-6)
    low, high = channel.support(rows.published)
    assert np.all((low <= true[rows.origin]) & (true[rows.origin] <= high))


def test_support_is_what_the_channel_can_reach() -> None:
    for N, n in [(6, 3), (5, 1), (4, 4)]:
        channel = HypergeometricChannel(N, n)
        matrix = as_matrix(channel, N)
        for f in range(n + 1):
            reaching = np.flatnonzero(matrix[:, f])
            low, high = channel.support(np.array([f]))
            assert (low[0], high[0]) == (reaching.min(), reaching.max())
    low, high = BinomialThinning(0.5).support(np.array([0, 3]))
    assert low.tolist() == [0, 3]
    assert high.tolist() == [UNBOUNDED] * 2


def test_what_stays_is_the_mean_of_the_diagonal() -> None:
    for channel in (BinomialThinning(0.6), HypergeometricChannel(12, 7)):
        diagonal = np.diagonal(as_matrix(channel, 12))
        for low, high in [(0, 0), (1, 5), (3, 12)]:
            assert channel.stay(low, high) == pytest.approx(diagonal[low : high + 1].mean())
    assert HypergeometricChannel(12, 7).stay(0, None) == pytest.approx(diagonal.mean())
    assert HypergeometricChannel(12, 7).stay(20, None) == 1.0
    assert BinomialThinning(0.6).stay(1, None) == 0.0
    assert BinomialThinning(1.0).stay(1, None) == 1.0


@pytest.mark.parametrize("stage", ["records", "table"])
@pytest.mark.parametrize("spec", [SimpleSampling(0.4, population=25), PoissonSampling(0.4)])
def test_draws_follow_their_channel_on_records_and_on_tables(spec: Any, stage: str) -> None:
    """Chi-square of each cell over 400 draws; false alarm rate one in a million each."""
    records = people(25, 4)
    table = counted(records, "area", "job")
    rng = np.random.default_rng(6)
    draws = 400
    seen = np.zeros((table.values.size, 26))
    for _ in range(draws):
        if stage == "records":
            sample = spec.apply_records(records, rng)
            cell = sample.codes["area"].astype(np.int64) * 3 + sample.codes["job"]
            shown = np.bincount(cell, minlength=9)
        else:
            shown = spec.apply(table, rng).published.ravel()
        seen[np.arange(9), shown] += 1
    expected = as_matrix(spec.channel(), 25)[table.values.ravel()]
    for row, p in zip(seen, expected, strict=True):
        assert not row[p == 0].any()
        likely = p * draws >= 5
        one = np.append(row[likely], row[~likely].sum())
        mean = np.append(p[likely], p[~likely].sum()) * draws
        some = mean > 0
        if some.sum() > 1:
            assert stats.chisquare(one[some], mean[some] * one.sum() / mean.sum()).pvalue > 1e-6


@pytest.mark.parametrize("spec", DESIGNS)
def test_nobody_is_drawn_twice_and_weights_add_up_on_average(spec: Any) -> None:
    """Mean total weight of 300 samples; false alarm rate below one in a million."""
    records = people(400)
    totals = []
    for seed in range(300):
        sample = spec.apply_records(records, np.random.default_rng(seed))
        assert len(set(sample.ids["person"].tolist())) == len(sample)
        totals.append(sample.numbers["weight"].sum() / 1e6)
    error = np.std(totals) / np.sqrt(300)
    assert abs(np.mean(totals) - 400) < 5.2 * error + 0.001


@pytest.mark.parametrize("spec", DESIGNS)
def test_a_sample_is_a_dataset_with_a_weight(spec: Any) -> None:
    records = people(400)
    sample = spec.apply_records(records, np.random.default_rng(0))
    assert [w.name for w in sample.dataset.weights] == ["weight"]
    again = Dataset.from_mapping(sample.dataset.source)
    assert again.weights == sample.dataset.weights
    assert again == sample.dataset
    table = counted(sample, "job", weight="weight")
    assert table.decimals == 6
    assert int(table.values.sum()) == int(sample.numbers["weight"].sum())
    release = spec.publish(table)
    assert release.channel is None
    assert np.all(release.least == 0)
    with pytest.raises(InputError, match="a weight 'weight' already"):
        spec.apply_records(sample, np.random.default_rng(0))
    bare = Records(
        Dataset("bare", "bare", PEOPLE.variables, PEOPLE.measures, record_id="person"),
        records.codes,
        records.numbers,
        records.ids,
    )
    assert spec.apply_records(bare, np.random.default_rng(0)).dataset.source == {}


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("spec", DESIGNS)
def test_the_order_of_records_is_no_matter(spec: Any, keyed: bool) -> None:
    records = people(500, 3, keyed)
    turn = np.random.default_rng(0).permutation(500)

    def drawn(given: Records) -> dict[int, int]:
        sample = spec.apply_records(given, np.random.default_rng(9))
        return dict(
            zip(sample.ids["person"].tolist(), sample.numbers["weight"].tolist(), strict=True)
        )

    assert drawn(records) == drawn(records) == drawn(records.take(turn))


@pytest.mark.parametrize("spec", DESIGNS)
def test_bounds_hold_the_truth(spec: Any) -> None:
    records = people(300)
    for seed in range(20):
        sample = spec.apply_records(records, np.random.default_rng(seed))
        true, shown = counted(records, "area", "job"), counted(sample, "area", "job")
        release = spec.publish(shown)
        assert np.all((release.least <= true.values) & (true.values <= release.most))
        assert np.array_equal(release.least, shown.values)
        sums = spec.publish(counted(sample, "area", measure="size"))
        assert np.all(sums.least == -UNBOUNDED)
        assert sums.channel is None


def test_a_public_population_bounds_from_above() -> None:
    release = SimpleSampling(0.25, population=100).publish(Table.from_counts([5, 20]))
    assert release.most.tolist() == [80, 95]
    assert release.channel == HypergeometricChannel(100, 25)
    assert SimpleSampling(0.25).publish(Table.from_counts([5])).channel is None
    with pytest.raises(InputError, match="does not match"):
        SimpleSampling(0.25, population=99).apply_records(people(100), np.random.default_rng(0))


def with_total(values: np.ndarray, parts: int, keys: np.ndarray | None = None) -> Table:
    axis = TableAxis.plain("a", [str(i) for i in range(parts)])
    whole = (*axis.categories, Category("_T", "Total", tuple(range(3))))
    return Table((TableAxis("a", "a", whole),), values, keys=keys)


@pytest.mark.parametrize("spec", [SimpleSampling(0.5), PoissonSampling(0.5)])
def test_totals_of_a_sampled_table_are_those_of_the_sample(spec: Any) -> None:
    keys = np.array([11, 22, 33, 66], np.uint64)
    table = with_total(np.array([40, 20, 1, 61]), 3, keys)
    for release in (spec.apply(table), spec.apply(table, np.random.default_rng(2))):
        assert release.published[3] == release.published[:3].sum()
        assert np.all((release.least <= table.values) & (table.values <= release.most))
    assert spec.apply(table).published.tobytes() == spec.apply(table).published.tobytes()
    with pytest.raises(InputError, match="sums of inner categories"):
        spec.apply(with_total(np.array([40, 20, 61]), 2), np.random.default_rng(0))
    with pytest.raises(InputError, match="give a random generator"):
        spec.apply(Table.from_counts([1, 2]))


def test_keyed_thinning_follows_its_channel_and_is_the_same_in_every_table() -> None:
    """Chi-square over 40,000 keyed cells; false alarm rate one in a million."""
    keys = np.random.default_rng(2).integers(0, 2**64, (200, 200), dtype=np.uint64)
    table = Table.from_counts(np.full((200, 200), 6), keys=keys)
    published = PoissonSampling(0.3).apply(table).published
    expected = as_matrix(BinomialThinning(0.3), 6)[6]
    assert (
        stats.chisquare(np.bincount(published.ravel(), minlength=7), expected * 40_000).pvalue
        > 1e-6
    )
    part = PoissonSampling(0.3).apply(table.take([[3, 5], [7, 1]])).published
    assert np.array_equal(part, published[np.ix_([3, 5], [7, 1])])


def test_estimates_of_a_simple_sample_are_unbiased_over_all_samples() -> None:
    """All 210 samples of 4 out of 10, of whom 3 are counted."""
    found = [simple([sum(i < 3 for i in s)], 10, 4) for s in itertools.combinations(range(10), 4)]
    values = np.array([f.values[0] for f in found])
    assert values.mean() == pytest.approx(3)
    assert np.mean([f.standard_error[0] ** 2 for f in found]) == pytest.approx(values.var())


def test_estimates_of_a_stratified_sample_are_unbiased_over_all_samples() -> None:
    one, other = (list(itertools.combinations(range(N), n)) for N, n in ((5, 2), (6, 3)))
    found = [
        stratified([[sum(i < 2 for i in a)], [sum(i < 3 for i in b)]], [5, 6], [2, 3])
        for a in one
        for b in other
    ]
    values = np.array([f.values[0] for f in found])
    assert values.mean() == pytest.approx(5)
    assert np.mean([f.standard_error[0] ** 2 for f in found]) == pytest.approx(values.var())


def test_estimates_of_independent_draws_are_unbiased_over_all_draws() -> None:
    p = np.array([0.5, 0.25, 0.8, 0.5])
    cells = np.array([0, 0, 1, 1])
    mean, square, claimed = np.zeros(2), np.zeros(2), np.zeros(2)
    for drawn in itertools.product((False, True), repeat=4):
        chance = np.prod(np.where(drawn, p, 1 - p))
        found = horvitz_thompson(cells[list(drawn)], 2, p[list(drawn)])
        mean += chance * found.values
        square += chance * found.values**2
        claimed += chance * found.standard_error**2
    assert np.allclose(mean, [2, 2])
    assert np.allclose(claimed, square - mean**2)
    same = horvitz_thompson(np.array([0, 0, 1]), 2, np.full(3, 0.4))
    plain = poisson([2, 1], 0.4)
    assert np.allclose(same.values, plain.values)
    assert np.allclose(same.standard_error, plain.standard_error)


def test_specs_estimate_from_their_own_tables() -> None:
    records = people(5000)
    true = counted(records, "job").values
    strata = counted(records, {"variable": "area", "total": True})
    found = SimpleSampling(0.2, population=5000).estimates(
        counted(SimpleSampling(0.2).apply_records(records, np.random.default_rng(1)), "job")
    )
    assert np.all(np.abs(found.values - true) < 5.2 * found.standard_error)
    spec = StratifiedSampling("area", 0.2, "root")
    sample = spec.apply_records(records, np.random.default_rng(1))
    table = counted(sample, "job", {"variable": "area", "total": True})
    found = spec.estimates(table, strata)
    assert found.values.shape == (3,)
    assert found.values.sum() == pytest.approx(5000)
    assert np.all(np.abs(found.values - true) < 5.2 * found.standard_error)
    weighted = counted(sample, "job", weight="weight").values / 1e6
    assert np.allclose(found.values, weighted, rtol=1e-5)
    thin = PoissonSampling(0.2)
    found = thin.estimates(counted(thin.apply_records(records, np.random.default_rng(1)), "job"))
    assert np.all(np.abs(found.values - true) < 5.2 * found.standard_error)


def test_a_sample_of_one_says_nothing_of_its_error() -> None:
    assert np.isnan(simple([1], 10, 1).standard_error[0])
    assert simple([1], 1, 1).standard_error[0] == 0.0
    assert simple([3], 7, 7).standard_error[0] == 0.0


populations = st.lists(st.integers(0, 50), min_size=1, max_size=8)


@given(N=populations, share=st.floats(0, 1), minimum=st.integers(0, 5))
@pytest.mark.parametrize("how", ["proportional", "equal", "root"])
def test_allocations_add_up_and_fit(how: Any, N: list[int], share: float, minimum: int) -> None:
    sizes = np.array(N)
    total = round(share * sum(N))
    n = allocate(sizes, total, how, minimum)
    least = np.minimum(sizes, minimum)
    assert np.all((least <= n) & (n <= sizes))
    assert n.sum() == max(total, least.sum())
    if how == "proportional" and minimum == 0 and sum(N):
        assert np.all(np.abs(n - total * sizes / sum(N)) < 1 + 1e-6)


def test_strata_get_the_sizes_that_they_are_given() -> None:
    spec = StratifiedSampling("area", sizes={"n": 7, "w": 10_000})
    records = people(300)
    sample = spec.apply_records(records, np.random.default_rng(0))
    there = np.bincount(records.codes["area"], minlength=3)
    assert np.bincount(sample.codes["area"], minlength=3).tolist() == [7, 0, there[2]]
    with pytest.raises(InputError, match="no stratum 'x'"):
        StratifiedSampling("area", sizes={"x": 7}).apply_records(records, np.random.default_rng(0))


@given(sizes=st.lists(st.integers(1, 10**6), min_size=1, max_size=20), share=st.floats(0.01, 1))
def test_probabilities_by_size_add_up(sizes: list[int], share: float) -> None:
    x = np.array(sizes)
    p = proportional_to_size(x, share * x.size)
    assert np.all((p > 0) & (p <= 1))
    assert p.sum() == pytest.approx(share * x.size)
    below = p < 1
    assert np.allclose(p[below] / x[below], (p[below] / x[below])[:1])


MISTAKES: list[tuple[Any, dict[str, Any], str]] = [
    (BinomialThinning, {"fraction": 0}, "at most 1"),
    (HypergeometricChannel, {"population": 3, "sample": 4}, "at most as large"),
    (StratifiedSampling, {"by": ()}, "needs a variable"),
    (StratifiedSampling, {"by": "area", "sizes": {"n": -1}}, "a whole number of 0 or more"),
    (StratifiedSampling, {"by": ("area", "job"), "sizes": {"n": 1}}, "one variable"),
]


@pytest.mark.parametrize(("kind", "words", "said"), MISTAKES)
def test_a_wrong_parameter_is_one_sentence(kind: Any, words: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        kind(**words)


def test_what_cannot_be_done_is_one_sentence() -> None:
    rng, table = np.random.default_rng(0), Table.from_counts([1, 2])
    by_size = PoissonSampling(0.5, size="size")
    for call, said in [
        (lambda: by_size.apply(table, rng), "needs records"),
        (lambda: by_size.estimates(table), "'horvitz_thompson'"),
        (lambda: PoissonSampling(0.5, size="x").apply_records(people(5), rng), "no measure 'x'"),
        (lambda: proportional_to_size(np.array([0, 1]), 1.0), "above 0"),
        (lambda: SimpleSampling().estimates(table), "size of the population"),
        (lambda: StratifiedSampling("area").estimates(table, table), "by area"),
        (lambda: simple([5], 10, 4), "no cell is larger"),
        (lambda: stratified([[1]], [5, 5], [1, 1]), "for each stratum"),
        (lambda: stratified([[0]], [5], [0]), "no sample"),
        (lambda: poisson([1], 0.0), "at most 1"),
        (lambda: horvitz_thompson(np.array([0]), 1, [0.0]), "above 0"),
        (
            lambda: HypergeometricChannel(3, 1).transitions(np.array([4])),
            "larger than the population",
        ),
        (lambda: BinomialThinning(0.5).transitions(np.array([-1])), "0 or more"),
    ]:
        with pytest.raises(InputError, match=said):
            call()
