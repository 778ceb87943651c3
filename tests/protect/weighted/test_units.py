"""Variance units: enough respondents in each, two or more a stratum, and secret thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import InputError
from lustrum.protect.weighted.replicates import variance_units
from lustrum.survey import Design, estimate_totals


@given(
    st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=8), min_size=1, max_size=6),
    st.integers(3, 12),
    st.integers(0, 50),
)
def test_units_hold_enough_respondents_of_whole_clusters_of_joined_strata(
    strata: list[list[int]], least: int, seed: int
) -> None:
    sizes = [size for stratum in strata for size in stratum]
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    of_cluster = np.repeat(np.arange(len(strata)), [len(s) for s in strata])
    design = Design(np.ones(cluster.size), of_cluster[cluster], cluster, lonely="centre")
    try:
        found = variance_units(design, least, np.random.default_rng(seed))
    except InputError:
        # Refused only if no two groups of clusters have enough respondents.
        assert sum(sizes) < 4 * least or max(sizes) >= least
        return
    assert np.bincount(found.of_records(design)).min() >= least
    assert np.bincount(found.strata).min() >= 2
    assert (np.diff(found.strata) >= 0).all()
    # Strata are joined and never divided.
    joined = found.strata[found.of_cluster]
    for one in range(len(strata)):
        assert len(set(joined[of_cluster == one].tolist())) == 1


def test_nobody_can_tell_at_which_size_a_cluster_stands_alone() -> None:
    """A cluster of 12 and one of 13, where 10 are enough: both stand alone by some keys and not by others."""
    alone = []
    for size in (12, 13):
        cluster = np.repeat(np.arange(8), [size, 1, 40, 40, 40, 40, 40, 40])
        design = Design(np.ones(cluster.size), None, cluster)
        found = [variance_units(design, 10, np.random.default_rng(k)) for k in range(400)]
        alone.append(np.mean([(u.of_cluster == u.of_cluster[0]).sum() == 1 for u in found]))
    # Thresholds from 10 to 19: of ten keys three let 12 stand alone, and four 13, a few less where the single
    # respondent joins it.
    assert 0.15 < alone[0] < 0.35
    assert 0.25 < alone[1] < 0.45


def test_random_groups_of_clusters_have_the_variance_of_the_clusters() -> None:
    rng = np.random.default_rng(3)
    stratum = np.repeat([0, 1], 150)
    cluster = np.repeat(np.arange(100), 3)
    design = Design(rng.uniform(20, 30, 300), stratum, cluster)
    cells = rng.integers(0, 15, 300)
    wanted = estimate_totals(design, cells, 15).variances
    found = []
    for _ in range(60):
        units = variance_units(design, 10, rng)
        unit = units.of_records(design)
        joined = np.bincount(units.of_cluster)[unit]
        grouped = Design(design.weights, units.strata[unit], unit, joined=joined)
        found.append(estimate_totals(grouped, cells, 15).variances)
    # 900 cells leave the mean a standard error of about 1.5 percent.
    assert 0.94 < np.mean(found) / np.mean(wanted) < 1.06


def test_one_small_cluster_that_joins_another_does_not_hide_the_spread_of_the_stratum() -> None:
    """Clusters of 39, 43, 36 and 6: joined to 39, 43 and 42 they would look alike."""
    cluster = np.repeat(np.arange(4), [39, 43, 36, 6])
    design = Design(np.ones(124), None, cluster)
    everybody = np.zeros(124, dtype=np.int64)
    wanted = estimate_totals(design, everybody, 1).standard_errors[0]
    unit = np.where(cluster == 3, 2, cluster)
    for joined, low, high in ((np.where(unit == 2, 2, 1), 0.7, 1.3), (None, 0.0, 0.2)):
        found = estimate_totals(Design(np.ones(124), None, unit, joined=joined), everybody, 1)
        assert low < found.standard_errors[0] / wanted < high


def test_a_survey_with_one_unit_is_refused() -> None:
    with pytest.raises(InputError, match="fewer than two groups"):
        variance_units(Design(np.ones(15)), 10, np.random.default_rng(1))
