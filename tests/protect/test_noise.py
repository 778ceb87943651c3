"""Noise on counts and magnitudes: right on average, true bounds, exact channels, keyed."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from lustrum.model import Category, Dataset, InputError, Table, TableAxis
from lustrum.model.records import Records
from lustrum.model.table import Contributions
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.noise.additive import AdditiveNoise, NoiseChannel
from lustrum.protect.noise.multiplicative import (
    MultiplicativeNoise,
    balanced_directions,
    shares_away,
)
from small import described

DISTRIBUTIONS = ("normal", "laplace", "uniform")

SMALL = 1e-6  # false alarm rate of every test by distribution
counts = st.lists(st.integers(0, 500), min_size=1, max_size=30)


def magnitudes(values: Any, **more: Any) -> Table:
    array = np.asarray(values, dtype=np.int64)
    return Table(Table.from_counts(np.abs(array)).axes, array, kind="magnitude", **more)


def words(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, size, dtype=np.uint64)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize(
    ("sd", "relative", "clamp", "value"),
    [(1.3, False, False, 7), (2.2, False, True, 2), (0.2, True, False, 20), (0.3, False, False, 4)],
)
def test_noise_follows_its_channel_keyed_where_empty_cells_stay_empty(
    distribution: Any, sd: float, relative: bool, clamp: bool, value: int
) -> None:
    table = Table.from_counts(np.full(40_000, value), keys=words(40_000, 3))
    rng = None if relative else np.random.default_rng(9)
    release = AdditiveNoise(sd, distribution, relative, clamp).apply(table, rng)
    rows = release.channel.transitions(np.array([value]))
    assert rows.probability.sum() == pytest.approx(1)
    large = rows.probability * 40_000 > 5
    seen = np.array([np.count_nonzero(release.published == p) for p in rows.published])
    assert seen.sum() == 40_000
    pair = [np.append(a[large], a[~large].sum()) for a in (seen, rows.probability * 40_000)]
    kept = pair[1] > 0.5
    pair = [a[kept] for a in pair]
    assert stats.chisquare(pair[0], pair[1] * pair[0].sum() / pair[1].sum()).pvalue > SMALL


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("relative", [False, True])
def test_rounded_noise_has_no_bias(distribution: str, relative: bool) -> None:
    true = np.array([0, 1, 5, 40])
    rows = NoiseChannel(distribution, 0.4, relative).transitions(true)
    mean = np.bincount(rows.origin, weights=rows.probability * rows.published, minlength=4)
    assert np.allclose(mean, true, atol=1e-12)


def test_the_standard_deviation_is_the_one_asked_for() -> None:
    """Rounding adds the variance of a rounding error, one twelfth, to smooth noise."""
    for distribution in ("normal", "laplace"):
        rows = NoiseChannel(distribution, 6.0).transitions(np.array([100]))
        variance = float(rows.probability @ (rows.published - 100) ** 2)
        assert variance == pytest.approx(36 + 1 / 12, rel=2e-3)


@given(
    values=counts,
    distribution=st.sampled_from(DISTRIBUTIONS),
    sd=st.floats(0.05, 0.5),
    relative=st.booleans(),
    clamp=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_public_bounds_of_additive_noise_hold_the_truth(
    values: list[int], distribution: Any, sd: float, relative: bool, clamp: bool, seed: int
) -> None:
    sd = sd if relative else 20 * sd
    table = Table.from_counts(values)
    release = AdditiveNoise(sd, distribution, relative, clamp).apply(
        table, np.random.default_rng(seed)
    )
    assert (release.least <= table.values).all()
    assert (table.values <= release.most).all()
    if distribution != "uniform":
        assert (release.most == UNBOUNDED).all()


@given(
    sd=st.floats(0.02, 0.5), relative=st.booleans(), clamp=st.booleans(), value=st.integers(0, 40)
)
def test_uniform_noise_never_leaves_the_support_that_is_told(
    sd: float, relative: bool, clamp: bool, value: int
) -> None:
    channel = NoiseChannel("uniform", sd if relative else 10 * sd, relative, clamp)
    rows = channel.transitions(np.array([value]))
    low, high = channel.support(rows.published)
    assert ((low <= value) & (value <= high)).all()


def test_decimals_totals_and_negative_magnitudes_are_noisy_too() -> None:
    values = np.array([-5000, 12_345, 7345])
    cats = (Category("a", "a", (0,)), Category("b", "b", (1,)), Category("t", "t", (0, 1)))
    axes = (TableAxis("v", "v", cats),)
    table = Table(axes, values, kind="magnitude", decimals=2, keys=words(3, 1))
    release = AdditiveNoise(1.0, "uniform").apply(table, np.random.default_rng(5))
    assert release.channel is None
    assert (release.least <= values).all()
    assert (values <= release.most).all()
    assert (np.abs(release.published - values) <= 174).all()
    assert (np.abs(release.published - values) > 3).any()
    share = AdditiveNoise(0.1, "uniform", relative=True).apply(table)
    assert (share.low <= values).all()
    assert (values <= share.high).all()


def test_endless_noise_has_no_bounds_even_where_totals_add_up() -> None:
    """Noise far below a unit leaves all numbers as they are, so all totals add up."""
    cats = [Category(str(i), str(i), (i,)) for i in range(6)]
    axes = (TableAxis("v", "v", (*cats, Category("t", "t", tuple(range(6))))),)
    values = np.array([1, 2, 3, 4, 5, 6, 21])
    for kind, low in (("count", 0), ("magnitude", -UNBOUNDED)):
        table = Table(axes, values, kind=kind)  # type: ignore[arg-type]
        release = AdditiveNoise(0.01).apply(table, np.random.default_rng(1))
        assert np.array_equal(release.published, values)
        assert release.least is not None
        assert release.most is not None
        assert (release.least == low).all()
        assert (release.most == UNBOUNDED).all()


def test_empty_cells_have_no_keys_and_are_not_told_by_a_noise_they_share() -> None:
    table = Table.from_counts(np.zeros(20, dtype=int), keys=np.zeros(20, dtype=np.uint64))
    with pytest.raises(InputError, match="have no record keys"):
        AdditiveNoise(3.0).apply(table)
    assert not AdditiveNoise(0.2, relative=True).apply(table).published.any()
    drawn = AdditiveNoise(3.0).apply(table, np.random.default_rng(1)).published
    assert len(set(drawn.tolist())) > 3


def test_the_same_keys_give_the_same_noise_and_other_parameters_other_noise() -> None:
    table = Table.from_counts(np.full(50, 20), keys=words(50, 2))
    once, again = (AdditiveNoise(0.2, relative=True).apply(table).published for _ in range(2))
    other = AdditiveNoise(0.25, relative=True).apply(table).published
    assert once.tobytes() == again.tobytes()
    assert not np.array_equal(once, other)
    spec = AdditiveNoise(2, "laplace", clamp=True)
    assert AdditiveNoise(**{k: v for k, v in spec.to_mapping().items() if k != "method"}) == spec


def test_chances_to_stay_agree_with_the_rows() -> None:
    channel = NoiseChannel("laplace", 1.5, clamp=True)
    rows = channel.transitions(np.arange(3))
    kept = rows.probability[rows.published == np.arange(3)[rows.origin]]
    assert channel.stay(0, 2) == pytest.approx(kept.mean())
    assert channel.stay(1, None) == pytest.approx(kept[1])
    assert NoiseChannel("normal", 0.1, relative=True).stay(1, None) == 0
    with pytest.raises(InputError, match="must not be below its lowest"):
        channel.stay(3, 2)


@given(
    values=st.lists(st.integers(0, 10**9), min_size=1, max_size=20),
    ends=st.tuples(st.floats(0, 0.4).map(lambda low: round(low, 9)), st.floats(0.01, 0.5)),
    shape=st.sampled_from(["uniform", "triangular"]),
    seed=st.integers(0, 2**32),
)
def test_public_bounds_of_multiplied_cells_hold_the_truth(
    values: list[int], ends: tuple[float, float], shape: Any, seed: int
) -> None:
    low, high = min(ends), max(ends)
    method = MultiplicativeNoise(low, high, shape, level="cell")
    release = method.apply(magnitudes(values), np.random.default_rng(seed))
    assert (release.least <= values).all()
    assert (np.array(values) <= release.most).all()
    assert (release.least <= release.published).all()
    assert (release.published <= release.most).all()


def test_multipliers_keep_away_from_one_on_both_sides_alike() -> None:
    """Chi-square over 40 classes of 40,000 multipliers, for both shapes."""
    for shape in ("uniform", "triangular"):
        away, sign = shares_away(words(40_000, 5), 0.05, 0.15, shape)
        assert away.min() >= 0.05
        assert away.max() <= 0.15
        place = (away - 0.05) / 0.1
        uniform = place if shape == "uniform" else 1 - (1 - place) ** 2
        classes = np.minimum((uniform * 20).astype(int), 19) + 20 * (sign > 0)
        assert stats.chisquare(np.bincount(classes, minlength=40)).pvalue > SMALL


def held(values: list[list[int]], holdings: list[list[int]], totals: list[int]) -> Table:
    own = Contributions(np.array(values, dtype=np.int64), np.array(holdings, dtype=np.int64))
    return magnitudes(totals, contributions=own)


def test_a_holding_has_one_multiplier_in_all_cells() -> None:
    table = held([[10_000, 0], [30_000, 500]], [[7, -1], [7, 8]], [10_000, 30_500])
    method = MultiplicativeNoise()
    release = method.apply(table, np.random.default_rng(3))
    share = (release.published[0] - 10_000) / 10_000
    assert 0.05 - 1e-3 <= abs(share) <= 0.15
    assert abs(release.published[1] - 30_500 - share * 30_000) <= 500 * 0.15 + 3
    again = method.apply(table, np.random.default_rng(3))
    assert release.published.tobytes() == again.published.tobytes()


def test_cells_of_many_holdings_move_less_and_what_is_left_over_moves_too() -> None:
    """Over 2,000 seeds the mean stays within 5.3 standard errors (one in a million)."""
    table = held(
        [[1000, 0, 0, 0], [250, 250, 250, 250], [100, 0, 0, 0]],
        [[1, -1, -1, -1], [2, 3, 4, 5], [6, -1, -1, -1]],
        [1000, 1000, 1000],
    )
    made = np.stack(
        [
            MultiplicativeNoise().apply(table, np.random.default_rng(seed)).published
            for seed in range(2000)
        ]
    )
    assert made.std(axis=0)[1] < 0.6 * made.std(axis=0)[0]
    assert made.std(axis=0)[2] > 50
    assert (np.abs(made.mean(axis=0) - 1000) < 5.3 * made.std(axis=0) / np.sqrt(2000)).all()


def dataset() -> Dataset:
    return described(
        "firms",
        {"trade": "abc"},
        head={"identifiers": ["firm"]},
        measures=[{"name": "turnover", "holding": "firm"}],
    )


def records(seed: int, size: int = 300) -> Records:
    rng = np.random.default_rng(seed)
    firm = rng.integers(0, size // 2, size)
    trade = (firm % 3).astype(np.uint8)
    turnover = rng.integers(0, 10**6, size)
    return Records(dataset(), {"trade": trade}, {"turnover": turnover}, {"firm": firm})


def test_noise_on_records_is_one_multiplier_a_holding_within_its_ends() -> None:
    before = records(1)
    after = MultiplicativeNoise(measure="turnover").apply_records(before, np.random.default_rng(2))
    old, new = before.numbers["turnover"], after.numbers["turnover"]
    assert (np.abs(new - old) <= 0.15 * old).all()
    sides = np.sign(new - old)
    for firm in np.unique(before.ids["firm"]):
        own = sides[(before.ids["firm"] == firm) & (old > 100)]
        assert np.unique(own).size <= 1
    assert np.array_equal(before.codes["trade"], after.codes["trade"])


def test_balanced_noise_cancels_within_cells_and_stays_without_bias() -> None:
    before = records(4)
    old = before.numbers["turnover"]
    trade = before.codes["trade"]
    true = np.bincount(trade, weights=old)
    sums = {}
    for balance in ((), ("trade",)):
        method = MultiplicativeNoise(measure="turnover", balance=balance)
        sums[balance] = np.stack(
            [
                np.bincount(
                    trade,
                    weights=method.apply_records(before, np.random.default_rng(s)).numbers[
                        "turnover"
                    ],
                )
                for s in range(400)
            ]
        )
    spread = {b: s.std(axis=0) for b, s in sums.items()}
    assert (spread[("trade",)] < 0.1 * spread[()]).all()
    for b, s in sums.items():
        assert (np.abs(s.mean(axis=0) - true) < 5.3 * spread[b] / 20).all()


def test_turning_every_random_direction_turns_every_balanced_one() -> None:
    rng = np.random.default_rng(5)
    values, owner = rng.integers(0, 1000, 80), rng.integers(0, 30, 80)
    owner[:30] = np.arange(30)
    cell = rng.integers(0, 4, 80)
    away, sign = rng.uniform(0.05, 0.15, 30), rng.choice([-1, 1], 30)
    one = balanced_directions(values, owner, cell, away, sign)
    other = balanced_directions(values, owner, cell, away, -sign)
    assert np.array_equal(one, -other)
    assert balanced_directions(*(a[:0] for a in (values, owner, cell, away, sign))).size == 0


def test_a_table_of_noisy_records_is_published_with_true_bounds() -> None:
    before = records(6)
    method = MultiplicativeNoise(measure="turnover", balance=("trade",))
    after = method.apply_records(before, np.random.default_rng(1))
    trade = before.codes["trade"]
    true, noisy = (np.bincount(trade, weights=r.numbers["turnover"]) for r in (before, after))
    release = method.publish(magnitudes(noisy))
    assert (release.least <= true).all()
    assert (true <= release.most).all()
    count = method.publish(Table.from_counts([3, 4]))
    assert count.published.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: AdditiveNoise(0.6, "uniform", relative=True), "below 0.577"),
        (lambda: AdditiveNoise(clamp=True).apply(magnitudes([1])), "is for counts"),
        (lambda: MultiplicativeNoise(0.2, 0.1), "low <= high"),
        (lambda: MultiplicativeNoise().apply(Table.from_counts([1])), "this table holds counts"),
        (lambda: MultiplicativeNoise().apply(magnitudes([1])), "largest contributions"),
        (lambda: MultiplicativeNoise().apply(magnitudes([-1])), "0 or more in every cell"),
        (lambda: MultiplicativeNoise().apply(held([[5]], [[1]], [5])), "random generator"),
        (
            lambda: MultiplicativeNoise().apply(held([[9]], [[1]], [5]), np.random.default_rng(1)),
            "contributions of 0 or more",
        ),
        (
            lambda: MultiplicativeNoise().apply_records(records(1), np.random.default_rng(1)),
            "name of a 'measure'",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


def test_weights_and_negative_values_are_refused() -> None:
    rng = np.random.default_rng(1)
    own = Contributions(np.array([[5]]), np.array([[1]]), weight=np.ones((1, 1)))
    with pytest.raises(InputError, match="without weights"):
        MultiplicativeNoise().apply(magnitudes([5], contributions=own), rng)
    some = records(1)
    below = Records(some.dataset, some.codes, {"turnover": -some.numbers["turnover"]}, some.ids)
    with pytest.raises(InputError, match="0 or more in 'turnover'"):
        MultiplicativeNoise(measure="turnover").apply_records(below, rng)
