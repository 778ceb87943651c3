"""Stochastic perturbation: drawn as the matrix says, controlled, invariant, and honest about bounds."""

from __future__ import annotations

import itertools
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

from examples import examples
from lustrum.model import InputError, Table, TableAxis
from lustrum.model.channel import SHLOMO_2015, MatrixChannel
from lustrum.protect.additive.apportion import apportioned, spread_words
from lustrum.protect.perturbation import (
    PerturbationDesign,
    StochasticPerturbation,
    calibrated,
    perturb_by_words,
)
from lustrum.protect.perturbation.lookup import frequencies_of, invariant, invariant_reach, lookup
from lustrum.protect.perturbation.spec import controlled_words, total_kept
from protect.plain_perturbation import plain_draw
from small import summed

SMALL = MatrixChannel([[1, 0, 0], [0.25, 0.5, 0.25], [0, 0.375, 0.625]])
DESIGN = {"largest_change": 2, "variance": 1.08, "blocked": [1]}
tables = arrays(np.int64, (3, 4), elements=st.integers(0, 40))


# Lookup


@settings(max_examples=examples(25, 200))
@given(
    values=st.lists(st.integers(0, 100), min_size=1, max_size=30),
    seed=st.integers(0, 2**32),
    which=st.integers(0, 2),
)
def test_the_compiled_draw_is_the_plain_one(values: list[int], seed: int, which: int) -> None:
    channel = [SHLOMO_2015, PerturbationDesign(3, 1.5).channel(), MatrixChannel(np.eye(101))][which]
    words = np.random.default_rng(seed).integers(0, 2**64, len(values), dtype=np.uint64)
    words[: len(words) // 4] = 2**64 - 1
    words[len(words) // 4 : len(words) // 3] = 0
    counts = np.array(values)
    made = lookup(channel)
    base = channel.residue_base or 1
    plain = plain_draw(counts, words, channel.cap, base, made.first, made.steps, made.thresholds)
    assert perturb_by_words(counts, channel, words).tolist() == plain.tolist()
    rows = channel.transitions(counts)
    possible = {(int(o), int(p)) for o, p in zip(rows.origin, rows.published, strict=True)}
    assert set(enumerate(plain.tolist())) <= possible


def test_a_tiny_probability_at_the_end_of_a_row_does_not_overflow() -> None:
    channel = MatrixChannel([[1 - 2**-53, 2**-53], [0, 1]])
    words = np.array([0, 2**64 - 2**12, 2**64 - 1], dtype=np.uint64)
    assert perturb_by_words([0, 0, 0], channel, words).tolist() == [0, 0, 1]


# Plain and keyed


def test_the_same_cell_is_the_same_in_overlapping_tables() -> None:
    rng = np.random.default_rng(2)
    keys = rng.integers(0, 2**64, (6, 5), dtype=np.uint64)
    values = rng.integers(0, 30, (6, 5))
    for method in (StochasticPerturbation(), StochasticPerturbation(matrix=DESIGN)):  # type: ignore[arg-type]
        whole = method.apply(Table.from_counts(values, keys=keys)).published
        part = method.apply(Table.from_counts(values[1:4, ::2], keys=keys[1:4, ::2])).published
        assert np.array_equal(whole[1:4, ::2], part)
        assert not np.array_equal(whole, values)


@settings(max_examples=examples(30, 240))
@given(
    inner=tables,
    version=st.sampled_from(["plain", "invariant", "calibrated"]),
    controlled=st.booleans(),
    totals=st.sampled_from(["sums", "perturbed"]),
    keep=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_public_bounds_hold_the_true_values(
    inner: np.ndarray, version: str, controlled: bool, totals: str, keep: bool, seed: int
) -> None:
    if keep:
        totals = "sums"
    table = summed(inner)
    method = StochasticPerturbation(
        version=version,  # type: ignore[arg-type]
        controlled=controlled,
        totals=totals,  # type: ignore[arg-type]
        keep_total=keep,
    )
    release = method.apply(table, np.random.default_rng(seed))
    assert np.all((release.least <= table.values) & (table.values <= release.most))
    assert np.all(release.published >= 0)
    if totals == "sums":
        shown = release.published[:3, :4]
        assert release.published[:3, 4].tolist() == shown.sum(axis=1).tolist()
        assert release.published[3, 4] == shown.sum()
    assert (release.channel is None) == (keep or version != "plain")


# Controlled


def test_spread_words_are_uniform_and_even() -> None:
    """With words of 64 bits the shift cannot be enumerated; its extremes and the formula can."""
    for cells in (1, 2, 3, 7, 1000):
        for shift in (0, 1, 2**63 + 12345, 2**64 - 1):
            exact = [(k * 2**64 + shift) // cells for k in range(cells)]
            assert spread_words(np.arange(cells), cells, shift).tolist() == exact
            assert max(exact) < 2**64


def test_controlled_cells_change_with_exactly_their_probabilities() -> None:
    """All orders of the cells, and all shifts in steps that split no threshold."""
    values = np.array([1, 2, 1, 1, 2])
    expected = {1: SMALL.matrix[1], 2: SMALL.matrix[2]}
    # The thresholds are multiples of 2**61; times the number of cells (3 and 2), shifts on multiples of
    # 2**61 cover every position of a word between two thresholds equally often.
    seen = np.zeros((values.size, 3), dtype=np.int64)
    ways = 0
    shifts = [k << 61 for k in range(8)]
    for order in itertools.permutations(range(values.size)):
        for one, two in itertools.product(shifts, repeat=2):
            words = controlled_words(
                values,
                np.array(order, dtype=np.uint64),
                lambda cells, one=one, two=two: one if values[cells[0]] == 1 else two,
            )
            shown = perturb_by_words(values, SMALL, words)
            for value in (1, 2):
                own = np.bincount(shown[values == value], minlength=3)
                cells = np.count_nonzero(values == value)
                assert np.all(np.abs(own - cells * expected[value]) < 1)
            seen[np.arange(values.size), shown] += 1
            ways += 1
    for cell, value in enumerate(values.tolist()):
        assert (seen[cell] / ways).tolist() == expected[value].tolist()


@given(moved=st.lists(st.integers(0, 30), min_size=1, max_size=12), off=st.integers(-40, 40))
def test_a_total_is_kept_as_nearly_as_the_large_cells_allow(moved: list[int], off: int) -> None:
    out = np.array(moved)
    true = out.copy()
    true[0] = max(true[0] + off, 0)
    kept = total_kept(true, out, SHLOMO_2015)
    large = out > 15
    assert np.array_equal(kept[~large], out[~large])
    assert np.all(kept[large] > 15)
    missed = int(kept.sum() - true.sum())
    if missed > 0:
        assert np.all(kept[large] == 16)
    elif missed < 0:
        assert not large.any()


@given(total=st.integers(0, 10_000), sizes=st.lists(st.integers(0, 100), min_size=1, max_size=20))
def test_apportioned_parts_add_up_and_are_next_to_their_share(total: int, sizes: list[int]) -> None:
    if not sum(sizes):
        with pytest.raises(InputError, match="all sizes are 0"):
            apportioned(total + 1, sizes)
        return
    for scale in (1, 10**13):  # products that fit 64 bits, and some that do not
        parts = apportioned(total * scale, sizes)
        assert parts.sum() == total * scale
        for part, size in zip(parts.tolist(), sizes, strict=True):
            assert abs(part - Fraction(total * scale * size, sum(sizes))) < 1
    shares = apportioned(total, np.array(sizes) / 7)
    assert shares.sum() == total
    assert np.all(np.abs(shares - total * np.array(sizes) / sum(sizes)) < 1 + 1e-6)


def test_what_cannot_be_shared_is_one_sentence() -> None:
    with pytest.raises(InputError, match="0 or more"):
        apportioned(-1, [1])
    with pytest.raises(InputError, match="0 or more"):
        apportioned(1, [1.0, np.nan])
    with pytest.raises(InputError, match=r"below 2\*\*31"):
        apportioned(2**31, [0.5])
    with pytest.raises(InputError, match="1 to 2"):
        spread_words(np.arange(0), 0, 0)
    assert apportioned(0, [0, 0]).tolist() == [0, 0]


# Invariant


@given(weights=st.lists(st.integers(0, 1_000_000), min_size=16, max_size=16).filter(any))
def test_an_invariant_matrix_keeps_the_frequencies(weights: list[int]) -> None:
    t = np.array(weights, dtype=np.float64)
    for made in (invariant(SHLOMO_2015.matrix, t), calibrated(SHLOMO_2015.matrix, t)):
        assert np.allclose(made.sum(axis=1), 1, atol=1e-12)
        assert np.all(made >= 0)
        assert np.allclose(t @ made, t, rtol=1e-12, atol=1e-12 * t.sum())
        reach = invariant_reach(SHLOMO_2015).matrix > 0
        assert not np.any((made > 0) & ~reach)
    diagonal = np.diagonal(calibrated(SHLOMO_2015.matrix, t))
    assert diagonal.mean() >= np.diagonal(SHLOMO_2015.matrix).mean() - 1e-12


def test_a_calibrated_matrix_moves_as_much_as_the_given_one() -> None:
    values = np.random.default_rng(1).geometric(0.15, 3_000) - 1
    t = frequencies_of(SHLOMO_2015, values)
    made = calibrated(SHLOMO_2015.matrix, t)
    mean = np.diagonal(made).mean()
    assert mean == pytest.approx(np.diagonal(SHLOMO_2015.matrix).mean())
    assert np.allclose(t @ made, t)
    assert not np.allclose(t @ SHLOMO_2015.matrix, t, rtol=1e-3)


def test_controlled_invariant_perturbation_keeps_the_distribution_of_counts() -> None:
    """For counts that stay inside the matrix every value is held by as many cells as before, nearly."""
    rng = np.random.default_rng(12)
    values = np.minimum(rng.geometric(0.3, 20_000) - 1, 12)
    table = Table.from_counts(values)
    before = np.bincount(values, minlength=16)
    misses = {}
    for version in ("plain", "invariant"):
        method = StochasticPerturbation(version=version, controlled=True)  # type: ignore[arg-type]
        after = np.bincount(method.apply(table, rng).published, minlength=16)
        misses[version] = np.abs(after - before).max()
    assert misses["invariant"] <= 16  # one cell at most for each of the 16 rows
    assert misses["plain"] > 200


def test_a_secret_matrix_is_not_in_the_release_and_does_not_shape_its_bounds() -> None:
    """Two tables with other frequencies but the same published values get the same bounds."""
    few, many = np.array([1, 2, 5, 9]), np.array([1, 2, 5, 9] * 50 + [3] * 400)
    method = StochasticPerturbation(version="invariant")
    releases = [method.apply(Table.from_counts(v), np.random.default_rng(4)) for v in (few, many)]
    bounds: dict[int, set[tuple[int, int]]] = {}
    for release in releases:
        assert release.channel is None
        for shown, low, high in zip(release.published, release.least, release.most, strict=True):
            bounds.setdefault(int(shown), set()).add((int(low), int(high)))
    assert all(len(found) == 1 for found in bounds.values())
    assert "frequencies" not in releases[0].method


def test_matrices_and_frequencies_that_do_not_fit_are_one_sentence() -> None:
    with pytest.raises(InputError, match="square"):
        invariant([[0.5, 0.25, 0.25], [0, 0.5, 0.5]], [1, 1])
    with pytest.raises(InputError, match="not all of them 0"):
        calibrated(np.eye(2), [0, 0])
    table = Table(
        axes=(TableAxis.plain("v", ["a"]),),
        values=np.zeros(1, dtype=np.int64),
        structural=np.array([True]),
    )
    method = StochasticPerturbation(version="invariant")
    assert not method.apply(table, np.random.default_rng(1)).published.any()
