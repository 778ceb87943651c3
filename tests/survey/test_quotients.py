"""Quotients of weighted sums: published figures, plain loops, and cases that there are other ways for."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.model import InputError
from lustrum.survey import (
    Design,
    Sums,
    estimate_quotients,
    estimate_ratios,
    estimate_totals,
    jackknife,
)
from lustrum.survey import linearised as module

# The schools of one district each, drawn as 15 clusters of 757 (apiclus1 of Lumley's survey package): how many
# are elementary, high and middle schools.
DISTRICTS = [
    (8, 1, 2), (2, 1, 1), (1, 0, 1), (10, 0, 3), (2, 0, 0), (2, 1, 1), (2, 1, 1), (13, 0, 3),
    (4, 4, 1), (34, 0, 0), (16, 2, 3), (30, 3, 4), (10, 0, 3), (1, 0, 0), (9, 1, 2),
]  # fmt: skip

# Of apistrat, by stratum: schools drawn and there, and the sums of y, x, y y, x y and x x, where y are pupils
# tested and x pupils enrolled. The ratio and its error depend on nothing else.
STRATA = [
    (100, 4421, 35502.0, 41678.0, 14540460.0, 17044937.0, 20100668.0),
    (50, 1018, 34785.0, 41624.0, 30316915.0, 35464569.0, 42310204.0),
    (50, 755, 53526.0, 66035.0, 74325088.0, 88952856.0, 109279081.0),
]


def school_types() -> tuple[Design, np.ndarray]:
    kind = np.concatenate([np.repeat([0, 1, 2], row) for row in DISTRICTS])
    cluster = np.repeat(np.arange(15), [sum(row) for row in DISTRICTS])
    design = Design(np.full(183, 6194 / 183), clusters=cluster, population=np.full(183, 757.0))
    return design, kind


@pytest.mark.parametrize("how", ["linearised", "jackknife"])
def test_the_published_numbers_of_schools_by_type_are_reproduced(how: str) -> None:
    """svytotal(~stype) of dclus1 and rclus1, r-survey.r-forge.r-project.org/survey/example-summary.html."""
    design, kind = school_types()
    found = estimate_totals(design if how == "linearised" else jackknife(design), kind, 3)
    assert found.values.round(2).tolist() == [4873.97, 473.86, 846.17]
    assert found.standard_errors.round(2).tolist() == [1333.32, 158.70, 167.55]


def test_the_published_errors_of_shares_by_the_jackknife_are_reproduced() -> None:
    """svymean(~stype, rclus1) of the same page, which compares replicates with their mean."""
    design, kind = school_types()
    made = jackknife(design)
    weighted = np.stack([made.replicates[kind == k].sum(axis=0) for k in range(3)])
    shares = weighted / weighted.sum(axis=0)
    apart = (shares - shares.mean(axis=1, keepdims=True)) ** 2
    assert np.sqrt(apart @ made.rscales).round(4).tolist() == [0.0514, 0.0278, 0.0332]
    everybody = Sums(np.zeros(183, dtype=np.int64), 1)
    found = estimate_quotients(made, Sums(kind, 3), everybody, np.zeros(3, dtype=np.int64))
    # Around the full estimate, which is the cautious choice, the first one is larger by one unit.
    assert found.standard_errors.round(4).tolist() == [0.0515, 0.0278, 0.0332]


def test_the_published_shares_of_school_types_are_reproduced() -> None:
    design, kind = school_types()
    everybody = Sums(np.zeros(183, dtype=np.int64), 1)
    found = estimate_quotients(design, Sums(kind, 3), everybody, np.zeros(3, dtype=np.int64))
    assert found.values.round(6).tolist() == [0.786885, 0.076503, 0.136612]
    assert found.standard_errors.round(4).tolist() == [0.0463, 0.0268, 0.0296]


def schools() -> tuple[Design, np.ndarray, np.ndarray]:
    """Two columns with the sums, squares and products of the sample."""
    rng = np.random.default_rng(1)
    parts, weights, strata, sizes = [], [], [], []
    for number, (n, size, y, x, yy, xy, xx) in enumerate(STRATA):
        spread = np.array([[yy - y * y / n, xy - x * y / n], [xy - x * y / n, xx - x * x / n]])
        noise = rng.normal(size=(n, 2))
        noise -= noise.mean(axis=0)
        apart = np.linalg.qr(noise)[0] @ np.linalg.cholesky(spread).T
        parts.append(np.array([y / n, x / n]) + apart)
        weights += [size / n] * n
        strata += [number] * n
        sizes += [float(size)] * n
    both = np.concatenate(parts)
    design = Design(np.array(weights), np.array(strata), population=np.array(sizes))
    return design, both[:, 0], both[:, 1]


@pytest.mark.parametrize("how", ["quotients", "ratios"])
def test_the_published_ratio_of_pupils_tested_is_reproduced(how: str) -> None:
    design, tested, enrolled = schools()
    cells = np.zeros(design.records, dtype=np.int64)
    if how == "ratios":
        found = estimate_ratios(design, cells, 1, tested, enrolled)
    else:
        over, under = Sums(cells, 1, tested), Sums(cells, 1, enrolled)
        found = estimate_quotients(design, over, under, np.zeros(1, dtype=np.int64))
    assert round(float(found.values[0]), 7) == 0.8369569
    assert round(float(found.standard_errors[0]), 9) == 0.007757103


def sample(seed: int, lonely: str = "refuse") -> tuple[Design, np.random.Generator]:
    rng = np.random.default_rng(seed)
    strata = np.repeat(np.arange(4), 30)
    clusters = rng.integers(0, 6, 120)
    if lonely == "centre":
        clusters[strata == 3] = 0
    design = Design(rng.uniform(1, 9, 120), strata, clusters, lonely=lonely)  # type: ignore[arg-type]
    return design, rng


@pytest.mark.parametrize("lonely", ["refuse", "centre"])
def test_every_quotient_is_the_total_of_its_linearised_variable(
    lonely: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BLOCK", 5)  # more blocks than one
    design, rng = sample(3, lonely)
    cells, groups = rng.integers(-1, 6, 120), rng.integers(-1, 2, 120)
    y, x = rng.normal(50, 9, 120), rng.uniform(1, 5, 120)
    base = np.array([0, 1, 0, 1, 1, 0])
    found = estimate_quotients(design, Sums(cells, 6, y), Sums(groups, 2, x), base)
    for cell, under in enumerate(base):
        inside, beside = cells == cell, groups == under
        total = (design.weights * x)[beside].sum()
        ratio = (design.weights * y)[inside].sum() / total
        z = (np.where(inside, y, 0) - ratio * np.where(beside, x, 0)) / total
        right = estimate_totals(design, np.zeros(120, dtype=np.int64), 1, z)
        assert found.values[cell] == pytest.approx(ratio)
        assert found.variances[cell] == pytest.approx(right.variances[0])
        assert found.respondents[cell] == inside.sum()


def test_a_mean_is_the_ratio_within_each_cell() -> None:
    design, rng = sample(4)
    cells, y = rng.integers(0, 5, 120), rng.normal(50, 9, 120)
    mine = estimate_quotients(design, Sums(cells, 5, y), Sums(cells, 5), np.arange(5))
    right = estimate_ratios(design, cells, 5, y)
    assert mine.values == pytest.approx(right.values)
    assert mine.variances == pytest.approx(right.variances)


def test_replicates_agree_with_linearisation_where_quotients_are_nearly_linear() -> None:
    design, rng = sample(5)
    cells = rng.integers(0, 3, 120)
    everybody = Sums(np.zeros(120, dtype=np.int64), 1)
    base = np.zeros(3, dtype=np.int64)
    linear = estimate_quotients(design, Sums(cells, 3), everybody, base)
    replicated = estimate_quotients(jackknife(design), Sums(cells, 3), everybody, base)
    assert replicated.values == pytest.approx(linear.values)
    assert replicated.standard_errors == pytest.approx(linear.standard_errors, rel=0.1)


def test_nothing_is_estimated_over_nobody() -> None:
    design, _ = sample(6)
    cells = np.full(120, -1)
    cells[:60] = 0
    found = estimate_quotients(design, Sums(cells, 2), Sums(cells, 2), np.array([0, 1]))
    assert np.isnan(found.values[1])
    assert np.isnan(found.variances[1])
    with pytest.raises(InputError, match="one cell of the denominator"):
        estimate_quotients(design, Sums(cells, 2), Sums(cells, 2), np.array([0]))


def test_joined_clusters_are_compared_with_as_many_means() -> None:
    """The formula by a plain loop, for totals and for quotients."""
    rng = np.random.default_rng(12)
    cluster = np.repeat(np.arange(9), 6)
    stratum = np.where(cluster < 4, 0, 1)
    joined = np.array([1, 3, 1, 2, 1, 1, 4, 1, 2])
    weights, y = rng.uniform(5, 20, 54), rng.gamma(2.0, 3.0, 54)
    design = Design(weights, stratum, cluster, joined=joined[cluster])
    assert design.drawn_in_stratum.tolist() == [7.0, 9.0]

    def variance(z: np.ndarray) -> float:
        found = 0.0
        for one in (0, 1):
            own = np.unique(cluster[stratum == one])
            total = [z[cluster == c].sum() for c in own]
            n = joined[own].sum()
            mean = sum(total) / n
            parts = [(t - k * mean) ** 2 / k for t, k in zip(total, joined[own], strict=True)]
            found += n / (len(own) - 1) * sum(parts)
        return found

    everybody = np.zeros(54, dtype=np.int64)
    total = estimate_totals(design, everybody, 1, y)
    assert total.variances[0] == pytest.approx(variance(weights * y))
    mean = estimate_quotients(design, Sums(everybody, 1, y), Sums(everybody, 1), np.zeros(1, int))
    z = weights * (y - mean.values[0]) / weights.sum()
    assert mean.variances[0] == pytest.approx(variance(z))
    for wrong in (np.zeros(54), np.arange(54) + 1):
        with pytest.raises(InputError, match="one number of 1 or more for each cluster"):
            estimate_totals(Design(weights, stratum, cluster, joined=wrong), everybody, 1)
    with pytest.raises(InputError, match="not of joined ones"):
        jackknife(design)
