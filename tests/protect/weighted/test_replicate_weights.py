"""Replicate weights of a survey: clusters are recovered, and respondents of a cluster share their factors."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import numpy as np
import pytest

from lustrum.demo.labour_force.description import LABOUR_FORCE
from lustrum.demo.labour_force.survey import survey
from lustrum.model import Dataset, DescriptionError, InputError
from lustrum.model.finest import FinestCells
from lustrum.model.variable import Replicates
from lustrum.protect import ProtectedPopulation
from lustrum.protect.weighted import Part, ProtectedRespondents, ProtectedSurvey, SurveyRecords
from lustrum.protect.weighted.replicates import (
    ReplicateFactors,
    alike_clusters,
    jackknife_design,
    shared_factors,
)
from lustrum.release.bundle.respondents import respondents_bytes, respondents_of
from lustrum.survey import Design, bootstrap, estimate_totals, jackknife

KEY = b"sixteen bytes or more"


@pytest.fixture(scope="module")
def drawn() -> tuple[Dataset, np.ndarray, Design]:
    dataset = Dataset.from_mapping(tomllib.loads(LABOUR_FORCE.to_toml()))
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
    drawn: tuple[Dataset, np.ndarray, Design], replicates: ReplicateFactors | None
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
    factors = shared_factors(design, given.replicates)
    made = protected(drawn, ReplicateFactors(factors, 1 / 200))
    plain = protected(drawn, None)
    assert (made.weights == plain.weights).all()
    ratios = []
    for v, variable in enumerate(drawn[0].variables):
        part = Part(made.codes[v], len(variable.codes))
        one, other = made.totals(part), plain.totals(part)
        assert np.array_equal(one.values, other.values)
        large = one.respondents >= 50
        ratios += (one.standard_errors[large] / other.standard_errors[large]).tolist()
    # 200 replicates leave a standard error about 5 percent of chance; the seed is fixed.
    assert len(ratios) > 15
    assert 0.9 < np.median(ratios) < 1.1
    assert min(ratios) > 0.7
    assert max(ratios) < 1.4


def test_nobodys_own_replicate_weight_goes_into_the_file(
    drawn: tuple[Dataset, np.ndarray, Design],
) -> None:
    """Replicate weights that differ within clusters and have the same sums give the same bytes."""
    design = drawn[2]
    given = bootstrap(design, 20, np.random.default_rng(1)).replicates
    order = np.lexsort((np.arange(design.records), design.cluster))
    other = given.copy()
    pairs = order[: 2 * (design.records // 2)].reshape(-1, 2)
    pairs = pairs[design.cluster[pairs[:, 0]] == design.cluster[pairs[:, 1]]]
    change = 0.25 * np.minimum(given[pairs[:, 0]], given[pairs[:, 1]])
    other[pairs[:, 0]] += change
    other[pairs[:, 1]] -= change
    assert not np.array_equal(given, other)
    files = [
        respondents_bytes(
            protected(drawn, ReplicateFactors(shared_factors(design, columns), 1 / 20))
        )
        for columns in (given, other)
    ]
    assert files[0] == files[1]


def test_the_file_keeps_its_replicates_and_damaged_ones_are_refused(
    drawn: tuple[Dataset, np.ndarray, Design],
) -> None:
    given = bootstrap(drawn[2], 10, np.random.default_rng(1))
    made = protected(drawn, ReplicateFactors(shared_factors(drawn[2], given.replicates), 0.1))
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
    assert made.replicates is not None
    assert again.replicates is not None
    assert np.array_equal(again.replicates.factors, made.replicates.factors)
    assert again.replicates.scale == 0.1
    part = Part(again.codes[1], 2)
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
    raw = tomllib.loads(LABOUR_FORCE.to_toml())
    raw["weights"][0]["replicates"] = words
    with pytest.raises(DescriptionError, match=said) as error:
        Dataset.from_mapping(raw)
    assert "\n" not in str(error.value)


def test_the_scale_follows_from_the_method() -> None:
    names = tuple("abcd")
    assert Replicates("BRR", names).scale == 0.25
    assert Replicates("bootstrap", names).scale == 0.25
    assert Replicates("Fay", names, 0.5).scale == 1.0
