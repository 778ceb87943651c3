"""Estimates from samples: against all samples that could have been drawn, and against plain loops."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError
from lustrum.survey import Design, Reliability, ReplicateWeights, estimate_ratios, estimate_totals


def plain_variance(z, strata, clusters, correction=None):
    """The formula of the docstring as a loop over strata and clusters."""
    total = 0.0
    for stratum in np.unique(strata):
        inside = strata == stratum
        sums = [z[inside & (clusters == c)].sum() for c in np.unique(clusters[inside])]
        n = len(sums)
        factor = 1.0 if correction is None else correction[stratum]
        total += factor * n / (n - 1) * sum((s - sum(sums) / n) ** 2 for s in sums)
    return total


def test_the_variance_of_a_stratified_total_is_right_on_average_over_all_samples():
    first, second = [3.0, 5.0, 4.0, 9.0], [1.0, 0.0, 7.0, 2.0, 2.0]
    cells_first, cells_second = [0, 1, 0, 0], [1, 0, 0, 1, 0]
    estimates, variances = [], []
    for a, b in product(combinations(range(4), 2), combinations(range(5), 3)):
        design = Design(
            np.array([2.0] * 2 + [5 / 3] * 3),
            strata=np.array([0, 0, 1, 1, 1]),
            population=np.array([4.0] * 2 + [5.0] * 3),
        )
        values = [first[i] for i in a] + [second[i] for i in b]
        cells = np.array([cells_first[i] for i in a] + [cells_second[i] for i in b])
        found = estimate_totals(design, cells, 2, values)
        estimates.append(found.values)
        variances.append(found.variances)
    true = [3.0 + 4.0 + 9.0 + 0.0 + 7.0 + 2.0, 5.0 + 1.0 + 2.0]
    assert np.mean(estimates, axis=0) == pytest.approx(true)
    assert np.mean(variances, axis=0) == pytest.approx(np.var(estimates, axis=0))


@given(st.integers(0, 2**32 - 1))
def test_every_cell_agrees_with_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    strata = np.repeat(np.arange(3), 12)
    clusters = np.tile(np.repeat(np.arange(4), 3), 3)
    weights = rng.uniform(0.5, 9, 36)
    cells = rng.integers(-1, 4, 36)
    y, x = rng.normal(5, 3, 36), rng.uniform(1, 4, 36)
    design = Design(weights, strata, clusters, population=np.repeat([10.0, 4.0, 7.0], 12))
    correction = {0: 0.6, 1: 0.0, 2: 3 / 7}
    totals = estimate_totals(design, cells, 4, y)
    ratios = estimate_ratios(design, cells, 4, y, x)
    for cell in range(4):
        mine = cells == cell
        z = np.where(mine, weights * y, 0)
        assert totals.values[cell] == pytest.approx(z.sum())
        assert totals.variances[cell] == pytest.approx(
            plain_variance(z, strata, clusters, correction)
        )
        if not mine.any():
            assert np.isnan(ratios.values[cell])
            continue
        below = (weights * x)[mine].sum()
        ratio = z.sum() / below
        assert ratios.values[cell] == pytest.approx(ratio)
        linear = np.where(mine, weights * (y - ratio * x) / below, 0)
        assert ratios.variances[cell] == pytest.approx(
            plain_variance(linear, strata, clusters, correction)
        )
        assert totals.respondents[cell] == mine.sum()


def test_the_delete_one_jackknife_of_a_total_is_the_linearised_variance():
    rng = np.random.default_rng(7)
    weights, values = rng.uniform(1, 5, 9), rng.normal(10, 2, 9)
    replicates = np.repeat(weights[:, None], 9, axis=1) * 9 / 8
    np.fill_diagonal(replicates, 0.0)
    cells = np.array([0, 0, 1, 1, 0, 1, 0, 0, 1])
    by_jackknife = estimate_totals(
        ReplicateWeights(weights, replicates, scale=8 / 9), cells, 2, values
    )
    by_formula = estimate_totals(Design(weights), cells, 2, values)
    assert by_jackknife.variances == pytest.approx(by_formula.variances)


def test_balanced_half_samples_of_a_total_give_the_linearised_variance():
    hadamard = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])
    weights, values = np.array([3.0, 3, 2, 2, 4, 4]), np.array([5.0, 8, 1, 6, 2, 9])
    strata = np.repeat(np.arange(3), 2)
    signs = hadamard[:, 1:]
    first = np.tile([True, False], 3)
    replicates = np.stack(
        [np.where((row[strata] > 0) == first, 2 * weights, 0.0) for row in signs], axis=1
    )
    cells = np.zeros(6, dtype=int)
    found = estimate_totals(ReplicateWeights(weights, replicates, scale=1 / 4), cells, 1, values)
    expected = estimate_totals(Design(weights, strata), cells, 1, values)
    assert found.variances == pytest.approx(expected.variances)


def test_a_stratum_of_one_cluster_is_refused_counted_as_certain_or_centred():
    weights, strata = np.ones(5), np.array([0, 0, 0, 0, 1])
    with pytest.raises(InputError, match="single cluster"):
        Design(weights, strata)
    values, cells = [1.0, 3.0, 2.0, 6.0, 8.0], np.zeros(5, dtype=int)
    certain = estimate_totals(Design(weights, strata, lonely="certainty"), cells, 1, values)
    centred = estimate_totals(Design(weights, strata, lonely="centre"), cells, 1, values)
    assert certain.variances[0] == pytest.approx(4 * np.var([1, 3, 2, 6], ddof=1))
    assert centred.variances[0] == pytest.approx(certain.variances[0] + (8 - 20 / 5) ** 2)


def test_a_lonely_stratum_outside_a_cell_still_counts_when_centred():
    design = Design(np.ones(3), np.array([0, 0, 1]), lonely="centre")
    found = estimate_totals(design, np.array([0, 0, -1]), 1, [2.0, 4.0, 0.0])
    assert found.variances[0] == pytest.approx(2 * 2.0 + (0 - 6 / 3) ** 2)


def test_clusters_of_the_same_name_in_two_strata_are_two():
    design = Design(np.ones(4), np.array([0, 0, 1, 1]), np.array(["a", "b", "a", "b"]))
    assert design.clusters_in_stratum.tolist() == [2, 2]


def test_few_respondents_and_large_errors_are_flagged():
    design = Design(np.full(40, 10.0))
    cells = np.array([0] * 30 + [1] * 10)
    found = estimate_totals(design, cells, 3)
    assert found.flagged(Reliability(respondents=20, unreliable=0.2)).tolist() == [
        False,
        True,
        True,
    ]
    wider = found.with_noise(np.array([1e6, 0, 0]))
    assert wider.flagged(Reliability(20, 0.2))[0]
    assert wider.variances[0] == found.variances[0] + 1e6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Design(np.array([1.0, -2.0])), "negative"),
        (lambda: Design(np.array([1.0, np.nan])), "missing or not a number"),
        (lambda: Design(np.ones(3), strata=np.array([0, 1])), "one of each for every record"),
        (lambda: Design(np.ones(2), lonely="drop"), "'lonely' is one of"),
        (lambda: Design(np.ones(2), population=np.array([1.0, 1.0])).correction, "more clusters"),
        (lambda: Design(np.ones(2), population=np.array([5.0, 6.0])).correction, "differs within"),
        (lambda: ReplicateWeights(np.ones(2), np.ones((2, 1)), 1.0), "two or more"),
        (lambda: ReplicateWeights(np.ones(2), np.ones((2, 2)), 0.0), "above 0"),
        (lambda: estimate_totals(Design(np.ones(2)), np.array([0, 2]), 2), "from 0 to 1"),
        (lambda: estimate_totals(Design(np.ones(2)), np.array([0]), 2), "a cell for each"),
        (
            lambda: estimate_totals(Design(np.ones(2)), np.array([0, 1]), 2, [1.0, np.nan]),
            "missing or not a number",
        ),
    ],
)
def test_bad_input_is_one_clear_sentence(make, words):
    with pytest.raises(InputError, match=words):
        make()
