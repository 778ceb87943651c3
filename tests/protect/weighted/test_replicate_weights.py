"""Replicate weights of a survey: clusters are recovered, and no row of factors is a person's."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from lustrum.demo import survey
from lustrum.demo.draws import described
from lustrum.model import Dataset, DescriptionError, InputError
from lustrum.model.arrays import Ints
from lustrum.model.finest import FinestCells
from lustrum.model.variable import Replicates
from lustrum.protect import ProtectedPopulation
from lustrum.protect.weighted import (
    ProtectedRespondents,
    ProtectedSurvey,
    RespondentSums,
    SurveyRecords,
)
from lustrum.protect.weighted.replicates import (
    GivenReplicates,
    ReplicateFactors,
    VarianceUnits,
    alike_clusters,
    jackknife_design,
    unit_factors,
    variance_units,
)
from lustrum.public.bundle.respondents import respondents_bytes, respondents_of
from lustrum.survey import (
    Design,
    ReplicateWeights,
    balanced_half_samples,
    bootstrap,
    estimate_totals,
    jackknife,
)

KEY = b"sixteen bytes or more"


@pytest.fixture(scope="module")
def drawn() -> tuple[Dataset, np.ndarray, Design]:
    dataset = Dataset.from_mapping(described("survey"))
    table = survey(20_000)
    codes = np.stack(
        [
            np.asarray(table.column(v.name).combine_chunks().indices).astype(np.int64)
            for v in dataset.variables
        ]
    )
    design = Design(
        table.column("weight").to_numpy(),
        table.column("stratum").to_numpy(),
        table.column("block").to_numpy(),
        lonely="centre",
    )
    return dataset, codes, design


def protected(
    drawn: tuple[Dataset, np.ndarray, Design], replicates: GivenReplicates | None
) -> ProtectedRespondents:
    dataset, codes, design = drawn
    keys = np.random.default_rng(5).integers(0, 2**64, design.records, dtype=np.uint64)
    records = SurveyRecords(dataset, codes, design, keys, replicates=replicates)
    method = ProtectedSurvey(classes=("district", "age", "sex"))
    return method.protect(records, ProtectedPopulation(base=3, sweeps=1, extra_tables=0), KEY)[0]


def test_strata_and_clusters_come_back_from_jackknife_weights() -> None:
    rng = np.random.default_rng(3)
    cluster = rng.permutation(np.repeat(np.arange(12), 5))
    stratum = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 1, 0])[cluster]
    design = Design(np.round(rng.uniform(5, 50, 60), 2), stratum, cluster)
    made = jackknife(design)
    found = jackknife_design(design.weights, made.replicates)
    for one, other in ((found.stratum, design.stratum), (found.cluster, design.cluster)):
        assert len(np.unique(np.stack([one, other]), axis=1).T) == len(np.unique(other))
    place = rng.integers(0, 3, 60)
    assert np.allclose(
        estimate_totals(found, place, 3).variances, estimate_totals(made, place, 3).variances
    )


def test_jackknife_weights_that_show_no_design_are_refused() -> None:
    weights = np.ones(4)
    with pytest.raises(InputError, match="exactly one replicate"):
        jackknife_design(weights, np.ones((4, 4)))
    blurred = np.where(np.eye(4, dtype=bool), 0.0, 1.0)
    blurred[0, 1] = 1.6
    with pytest.raises(InputError, match="share a stratum"):
        jackknife_design(weights, blurred)


def test_clusters_that_are_not_named_are_recovered_from_bootstrap_weights() -> None:
    rng = np.random.default_rng(4)
    design = Design(rng.uniform(5, 50, 60), np.repeat([0, 1], 30), np.repeat(np.arange(10), 6))
    made = bootstrap(design, 40, rng)
    found = alike_clusters(design.weights, made.replicates)
    assert len(np.unique(np.stack([found, design.cluster]), axis=1).T) == 10
    own = made.replicates * rng.uniform(0.5, 1.5, made.replicates.shape)
    with pytest.raises(InputError, match="name these with 'clusters'"):
        alike_clusters(design.weights, own)


def test_standard_errors_follow_from_shared_factors(
    drawn: tuple[Dataset, np.ndarray, Design],
) -> None:
    design = drawn[2]
    given = bootstrap(design, 200, np.random.default_rng(1))
    made = protected(drawn, GivenReplicates(given.replicates, 1 / 200))
    plain = protected(drawn, None)
    assert (made.weights == plain.weights).all()
    ratios = []
    for v, variable in enumerate(drawn[0].variables):
        part = RespondentSums(made.codes[v], len(variable.codes))
        one, other = made.totals(part), plain.totals(part)
        assert np.array_equal(one.values, other.values)
        large = one.respondents >= 50
        ratios += (one.standard_errors[large] / other.standard_errors[large]).tolist()
    # 200 replicates leave a standard error about 5 percent of chance. In a stratum of three units, of which one
    # is joined, a standard error has two degrees of freedom, and the two ways can differ by a factor of two.
    # The seed is fixed.
    assert len(ratios) > 15
    assert 0.9 < np.median(ratios) < 1.1
    assert min(ratios) > 0.5
    assert max(ratios) < 2.0


def small_clusters(rng: np.random.Generator) -> tuple[Design, VarianceUnits]:
    """A sample of persons in clusters of one to three, in strata of which one is tiny."""
    sizes = rng.integers(1, 4, 150)
    cluster = np.repeat(np.arange(sizes.size), sizes)
    stratum = np.minimum(cluster // 24, 5)
    stratum[cluster >= 146] = 6
    design = Design(rng.uniform(5, 50, cluster.size), stratum, cluster)
    return design, variance_units(design, 10, rng)


def test_nobodys_own_replicate_weight_goes_into_the_file(
    drawn: tuple[Dataset, np.ndarray, Design],
) -> None:
    """Replicate weights that differ within units and have the same sums give the same bytes."""
    dataset, codes, design = drawn
    # Every respondent is a cluster: factors of clusters would be those of persons.
    alone = replace(design, clusters=np.arange(design.records))
    given = bootstrap(alone, 20, np.random.default_rng(1)).replicates + 1.0
    seen: list[Ints] = []
    files = []
    for turn in (False, True):
        columns = given.copy()
        if turn:
            unit = seen[0]
            order = np.lexsort((np.arange(unit.size), unit))
            pairs = order[: 2 * (unit.size // 2)].reshape(-1, 2)
            pairs = pairs[unit[pairs[:, 0]] == unit[pairs[:, 1]]]
            change = 0.5 * np.minimum(given[pairs[:, 0]], given[pairs[:, 1]])
            columns[pairs[:, 0]] += change
            columns[pairs[:, 1]] -= change
            assert (np.abs(columns / given - 1).max(axis=1) > 0.1).mean() > 0.9
        with pytest.MonkeyPatch.context() as patch:

            def recorded(design: Design, least: int, rng: np.random.Generator) -> VarianceUnits:
                found = variance_units(design, least, rng)
                seen.append(found.of_records(design))
                return found

            patch.setattr("lustrum.protect.weighted.method.variance_units", recorded)
            made = protected((dataset, codes, alone), GivenReplicates(columns, 1 / 20))
        files.append(respondents_bytes(made))
    assert np.array_equal(seen[0], seen[1])
    assert np.bincount(seen[0]).min() >= 10
    assert files[0] == files[1]


def test_every_row_of_factors_is_the_mean_of_many_respondents() -> None:
    """One respondent whose replicate weights are all doubled moves a row by little, and only its stratum's."""
    rng = np.random.default_rng(8)
    design, units = small_clusters(rng)
    given = bootstrap(design, 30, rng).replicates
    unit = units.of_records(design)
    plain = unit_factors(design, units, GivenReplicates(given, 1.0)).factors
    for who in range(0, design.records, 7):
        other = given.copy()
        other[who] *= 2.0
        moved = unit_factors(design, units, GivenReplicates(other, 1.0)).factors - plain
        same = units.strata == units.strata[unit[who]]
        assert not moved[~same].any()
        # Its factor of up to 5 is raised by 5, of which a quarter of its share in its unit counts, raised by
        # the root of the number of clusters at most.
        share = design.weights[who] / design.weights[unit == unit[who]].sum()
        assert np.abs(moved).max() <= 25 * 5 * share * 4.5 + 1


@pytest.mark.parametrize("kind", ["bootstrap", "half-samples"])
def test_joined_clusters_keep_the_variance(kind: str) -> None:
    """Small clusters, joined at random: the variance is that of the design, in the mean over cells and draws.

    200 cells and 12 divisions leave the mean ratio a standard error of about 2 percent; a mean of factors that
    is not raised would give less than a half.
    """
    rng = np.random.default_rng(2)
    stratum = np.repeat(np.arange(60), 6)
    cluster = np.repeat(np.arange(120), 3)
    design = Design(rng.uniform(20, 30, 360), stratum, cluster)
    made = (
        bootstrap(design, 400, rng) if kind == "bootstrap" else balanced_half_samples(design, 0.3)
    )
    place = rng.integers(0, 20, (10, 360))
    wanted, found = [], []
    for cells in place:
        wanted.append(estimate_totals(made, cells, 20).variances)
        for _ in range(12):
            units = variance_units(design, 10, rng)
            public = unit_factors(design, units, GivenReplicates(made.replicates, made.scale))
            factors = public.of_units(units.of_records(design))
            sample = ReplicateWeights(
                design.weights, design.weights[:, None] * factors, public.scale
            )
            found.append(estimate_totals(sample, cells, 20).variances)
    assert 0.93 < np.mean(found) / np.mean(wanted) < 1.07
    assert np.median(np.bincount(units.of_cluster)) >= 4


def test_calibrated_totals_of_strata_stay_without_error() -> None:
    """Replicates that always sum to a stratum's total have no error there, joined or not."""
    rng = np.random.default_rng(9)
    design, units = small_clusters(rng)
    given = bootstrap(design, 30, rng).replicates
    number = len(design.clusters_in_stratum)
    whole = np.bincount(design.stratum, weights=design.weights, minlength=number)
    for r, column in enumerate(given.T):
        held = np.bincount(design.stratum, weights=column, minlength=number)
        given[:, r] = column * (whole / held)[design.stratum]
    public = unit_factors(design, units, GivenReplicates(given, 1 / 30))
    unit = units.of_records(design)
    sample = ReplicateWeights(
        design.weights, design.weights[:, None] * public.of_units(unit), public.scale
    )
    found = estimate_totals(sample, units.strata[unit], int(units.strata.max()) + 1)
    # Hundredths leave a rest.
    assert found.relative_errors.max() < 0.02


def test_the_file_keeps_its_replicates_and_damaged_ones_are_refused(
    drawn: tuple[Dataset, np.ndarray, Design],
) -> None:
    given = bootstrap(drawn[2], 10, np.random.default_rng(1))
    made = protected(drawn, GivenReplicates(given.replicates, 0.1))
    codes, counts = np.unique(made.codes, axis=1, return_counts=True)
    order = np.lexsort(made.codes[::-1])
    assert np.array_equal(made.codes[:, order], np.repeat(codes, counts, axis=1))
    ordered = replace(
        made,
        codes=made.codes[:, order],
        weights=made.weights[order],
        strata=made.strata[order],
        clusters=made.clusters[order],
    )
    shown = FinestCells(drawn[0], codes, counts)
    again = respondents_of(respondents_bytes(ordered), shown)
    assert np.array_equal(again.replicates.factors, made.replicates.factors)
    assert again.replicates.scale == 1.6
    part = RespondentSums(again.codes[1], 2)
    assert np.allclose(again.totals(part).variances, ordered.totals(part).variances)
    short = ReplicateFactors(made.replicates.factors[:-1], 0.1)
    with pytest.raises(ValueError, match="do not fit"):
        respondents_of(respondents_bytes(replace(ordered, replicates=short)), shown)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"method": "BBR", "columns": ["a", "b"]}, "use one of jackknife, BRR, Fay, bootstrap"),
        ({"method": "BRR", "columns": ["a"]}, "two or more columns"),
        ({"method": "BRR", "columns": "a"}, "a list of names"),
        ({"method": "Fay", "columns": ["a", "b"]}, "'fay' goes with the method 'Fay'"),
        ({"method": "BRR", "columns": ["a", "b"], "fay": 0.3}, "'fay' goes with"),
        ({"method": "Fay", "columns": ["a", "b"], "fay": 1.5}, "between 0 and 1"),
        ({"method": "Fay", "columns": ["a", "b"], "fay": "x"}, "is a number"),
        ({"method": "BRR", "columns": ["a", "a"]}, "described twice"),
        ({"method": "BRR", "columns": ["weight", "a"]}, "described twice"),
        ("BRR", "write a table"),
    ],
)
def test_wrong_descriptions_of_replicates_are_one_sentence(words: object, said: str) -> None:
    raw = deepcopy(described("survey"))
    raw["weights"][0]["replicates"] = words
    with pytest.raises(DescriptionError, match=said) as error:
        Dataset.from_mapping(raw)
    assert "\n" not in str(error.value)


def test_the_scale_follows_from_the_method() -> None:
    names = tuple("abcd")
    assert Replicates("BRR", names).scale == 0.25
    assert Replicates("bootstrap", names).scale == 0.25
    assert Replicates("Fay", names, 0.5).scale == 1.0
