"""Replicate weights: against published figures, and against the linearised variance they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.model import InputError
from lustrum.survey import (
    Design,
    ReplicateWeights,
    balanced_half_samples,
    bootstrap,
    estimate_ratios,
    estimate_totals,
    jackknife,
)
from lustrum.survey.design import draw_times

# The stratified sample of Californian schools (apistrat of Lumley's survey package): for each stratum the
# schools drawn, the schools there are, and the sums and sums of squares of two columns. Estimates and standard
# errors of totals and means depend on nothing else.
SCHOOLS = {
    "E": (100, 4421, (67443.0, 47038637.0), (41678.0, 20100668.0)),
    "M": (50, 1018, (31830.0, 20940396.0), (41624.0, 42310204.0)),
    "H": (50, 755, (31291.0, 20167941.0), (66035.0, 109279081.0)),
}


def schools(corrected: bool = True) -> tuple[Design, np.ndarray, np.ndarray]:
    """Two values a stratum with the sums and sums of squares of the sample."""
    weights, strata, sizes, columns = [], [], [], ([], [])
    for number, (n, size, *moments) in enumerate(SCHOOLS.values()):
        weights += [size / n] * n
        strata += [number] * n
        sizes += [float(size)] * n
        for column, (total, squares) in zip(columns, moments, strict=True):
            mean = total / n
            apart = np.sqrt(squares / n - mean**2)
            column += [mean + apart, mean - apart] * (n // 2)
    design = Design(
        np.array(weights),
        strata=np.array(strata),
        population=np.array(sizes) if corrected else None,
    )
    return design, np.array(columns[0]), np.array(columns[1])


@pytest.mark.parametrize("how", ["linearised", "jackknife"])
def test_the_published_errors_of_the_school_sample_are_reproduced(how: str) -> None:
    design, index, enrolled = schools()
    sample = design if how == "linearised" else jackknife(design)
    cells = np.zeros(design.records, dtype=np.int64)
    mean = estimate_ratios(sample, cells, 1, index)
    total = estimate_totals(sample, cells, 1, enrolled)
    assert round(float(mean.values[0]), 2) == 662.29
    assert round(float(mean.standard_errors[0]), 4) == 9.4089
    assert round(float(total.values[0])) == 3687178
    assert round(float(total.standard_errors[0])) == 114642


def test_without_finite_populations_the_published_error_is_larger() -> None:
    design, index, _ = schools(corrected=False)
    cells = np.zeros(design.records, dtype=np.int64)
    for sample in (design, jackknife(design)):
        error = estimate_ratios(sample, cells, 1, index).standard_errors[0]
        assert round(float(error), 4) == 9.5361


def clustered(seed: int, strata: int = 6, clusters: int = 2) -> tuple[Design, np.ndarray]:
    rng = np.random.default_rng(seed)
    stratum = np.repeat(np.arange(strata), clusters * 5)
    cluster = np.repeat(np.arange(strata * clusters), 5)
    value = rng.gamma(2.0, 3.0, stratum.size) + rng.normal(0, 2, strata * clusters)[cluster]
    return Design(rng.uniform(5, 20, stratum.size), stratum, cluster), value


@pytest.mark.parametrize("fay", [0.0, 0.3, 0.5])
def test_half_samples_with_any_factor_give_the_linearised_variance_of_a_total(fay: float) -> None:
    design, value = clustered(4)
    cells = np.arange(design.records) % 3
    made = estimate_totals(balanced_half_samples(design, fay), cells, 3, value)
    np.testing.assert_allclose(
        made.standard_errors, estimate_totals(design, cells, 3, value).standard_errors
    )


def test_fays_factor_keeps_ratios_of_small_cells_defined() -> None:
    design, value = clustered(4)
    cells = np.where(design.cluster == 0, 0, 1)
    with np.errstate(invalid="ignore"):
        plain = estimate_ratios(balanced_half_samples(design), cells, 2, value)
    assert np.isnan(plain.standard_errors[0])
    assert np.isfinite(
        estimate_ratios(balanced_half_samples(design, 0.5), cells, 2, value).standard_errors
    ).all()


def test_the_bootstrap_comes_close_to_the_linearised_variance() -> None:
    # 4000 replicates: the relative error of a standard error is about 1 percent, so 6 percent fails less than
    # once in a million.
    design, value = clustered(7, strata=3, clusters=8)
    cells = np.zeros(design.records, dtype=np.int64)
    made = bootstrap(design, 4000, np.random.default_rng(11))
    found = estimate_totals(made, cells, 1, value).standard_errors[0]
    wanted = estimate_totals(design, cells, 1, value).standard_errors[0]
    assert abs(found / wanted - 1.0) < 0.06


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda d: balanced_half_samples(d, 1.0), "Fay's factor is at least 0 and below 1"),
        (
            lambda d: balanced_half_samples(clustered(1, clusters=3)[0]),
            "two clusters in every stratum",
        ),
        (lambda d: bootstrap(d, 1, np.random.default_rng(1)), "2 replicates or more"),
        (lambda d: jackknife(Design(np.ones(1), lonely="certainty")), "two clusters or more"),
    ],
)
def test_a_design_that_does_not_fit_is_one_sentence(make, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=said):
        make(clustered(2)[0])


def test_balanced_half_samples_of_cardiac_arrests() -> None:
    """Levy and Lemeshow's ambulances, the example of replicate weights in R's survey package, by hand."""
    arrests = np.array([120.0, 78, 185, 228, 670, 530])
    alive = np.array([25.0, 24, 30, 49, 80, 70])
    halves = np.array(
        [[1, 0, 1, 0, 1, 0], [1, 0, 0, 1, 0, 1], [0, 1, 1, 0, 0, 1], [0, 1, 0, 1, 1, 0]]
    )
    sample = ReplicateWeights(np.ones(6), 2.0 * halves.T, 1 / 4)
    found = estimate_ratios(sample, np.zeros(6, dtype=np.int64), 1, alive, arrests)
    assert found.values[0] == pytest.approx(278 / 1811)
    own = [h @ alive / (h @ arrests) for h in halves]
    # The package compares replicates with their mean unless it is told otherwise: 0.009418401.
    assert np.std(own) == pytest.approx(0.009418401, abs=1e-9)
    assert found.standard_errors[0] == pytest.approx(0.0094266, abs=1e-7)


@pytest.mark.parametrize("n", [2, 3, 8, 60, 400])
def test_clusters_are_drawn_again_as_numpy_draws_them(n: int) -> None:
    ours, theirs = np.random.default_rng(n), np.random.default_rng(n)
    times = np.zeros((40, n), dtype=np.int64)
    draw_times(times, ours)
    assert times.tolist() == theirs.multinomial(n - 1, np.full(n, 1.0 / n), size=40).tolist()
    assert ours.random() == theirs.random()
