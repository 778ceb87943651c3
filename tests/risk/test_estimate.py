"""Estimated risk of a sample, and the choice of a model."""

from __future__ import annotations

import numpy as np
import pytest

import lustrum as lu
from lustrum.model import InputError, Table
from lustrum.risk import SampleRisk
from lustrum.risk.counts import NotMeasurableError
from lustrum.risk.estimate import choose_model, estimate_risk
from lustrum.risk.population import KnownPopulation, LogLinear, PolyaUrn, simple_random_samples
from lustrum.risk.r1 import R1, r1
from lustrum.risk.r2 import r2
from lustrum.rumap import grid
from lustrum.study.sample_tables import AREAS_BY_RELIGION

SAMPLE = simple_random_samples(AREAS_BY_RELIGION, 0.1, np.random.default_rng(5))[0]


def test_a_known_population_gives_the_risk_itself() -> None:
    known = KnownPopulation(AREAS_BY_RELIGION)
    second = estimate_risk(SAMPLE, 2449, [known], draws=5, rng=1)
    assert second.models[0].mean == pytest.approx(r2(AREAS_BY_RELIGION, SAMPLE))
    assert second.models[0].sd == pytest.approx(0, abs=1e-12)
    first = estimate_risk(SAMPLE, 2449, [known], R1(), draws=1, rng=1)
    assert first.models[0].mean == pytest.approx(r1(AREAS_BY_RELIGION))
    assert (first.measure, second.measure) == ("R1", "R2")


def test_each_model_gives_what_its_draws_give() -> None:
    estimate = estimate_risk(SAMPLE, 2449, draws=1000, rng=7)
    for model, found in zip((LogLinear(), PolyaUrn()), estimate.models, strict=True):
        drawn = model.draw(SAMPLE, 2449, np.random.default_rng(8), 300)
        risks = np.array([r2(population, SAMPLE) for population in drawn])
        error = np.sqrt(found.sd**2 / 1000 + risks.var() / 300)
        assert found.mean == pytest.approx(risks.mean(), abs=4 * error)  # 1 in 15,000
        assert [level for level, _ in found.quantiles] == [0.05, 0.25, 0.5, 0.75, 0.95]
        values = [value for _, value in found.quantiles]
        assert values == sorted(values)
        assert found.standard_error == found.sd / np.sqrt(1000)


def test_a_seed_repeats_an_estimate_and_models_do_not_disturb_each_other() -> None:
    both = estimate_risk(SAMPLE, 2449, [LogLinear(), PolyaUrn()], draws=200, rng=3)
    again = estimate_risk(SAMPLE, 2449, [LogLinear(), PolyaUrn()], draws=200, rng=3)
    alone = estimate_risk(SAMPLE, 2449, [LogLinear()], draws=200, rng=3)
    assert both == again
    assert both.models[0] == alone.models[0]
    assert both.provenance["seed"] == 3
    assert both.provenance["sample_sha256"] == alone.provenance["sample_sha256"]


def test_structural_zeros_of_a_table_are_not_measured() -> None:
    structural = np.zeros((10, 9), dtype=bool)
    structural[:, 2] = True
    counts = np.where(structural, 0, SAMPLE)
    table = Table.from_counts(counts)
    marked = Table(axes=table.axes, values=table.values, structural=structural)
    without = np.delete(counts, 2, axis=1)
    expected = estimate_risk(without, 2449, [LogLinear()], draws=4000, rng=1).models[0]
    found = estimate_risk(marked, 2449, [LogLinear()], draws=4000, rng=2).models[0]
    error = np.hypot(found.standard_error, expected.standard_error)
    assert found.mean == pytest.approx(expected.mean, abs=4 * error)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: estimate_risk([3, 4], 6), "larger than the population"),
        (lambda: estimate_risk([3, 4], 60, []), "no model"),
        (lambda: estimate_risk([3, 4], 60, draws=0), "1 or more"),
        (lambda: estimate_risk([3, 4], 60, measure="r2"), "R1 or R2"),
        (lambda: estimate_risk([3.5, 4], 60), "fraction"),
        (lambda: choose_model([3, 4], []), "no model"),
        (lambda: choose_model([3, 4], [LogLinear()], "bic"), "'aic' or 'cv'"),
        (lambda: choose_model([3, 4], [PolyaUrn()]), "choose by 'cv'"),
        (lambda: choose_model([3, 4], [PolyaUrn()], "cv", folds=2), "population size"),
        (lambda: choose_model([3, 4], [LogLinear()], "cv", folds=8), "folds"),
        (lambda: choose_model([3, 4], [LogLinear()], "cv", folds=1), "folds"),
        (lambda: choose_model([3, 4], [LogLinear()], N=5), "larger than the population"),
        (
            lambda: choose_model([[[9, 1], [2, 7]], [[3, 8], [6, 1]]],
                                 [LogLinear("two-way", tolerance=1e-12, rounds=1)]),
            "did not converge",
        ),
    ],
)  # fmt: skip
def test_mistakes_are_named(call, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=words):
        call()


def test_a_sample_of_nobody_has_no_scale() -> None:
    with pytest.raises(NotMeasurableError):
        estimate_risk([0, 0], 60)


@pytest.mark.parametrize("by", ["aic", "cv"])
def test_the_model_that_made_the_data_is_chosen(by: str) -> None:
    rng = np.random.default_rng(12)
    rows = rng.dirichlet(np.full(4, 3.0))
    pairs = rng.dirichlet(np.full(9, 0.5)).reshape(3, 3)
    counts = rng.multinomial(3000, np.einsum("i,jk->ijk", rows, pairs).ravel()).reshape(4, 3, 3)
    candidates = [
        LogLinear(),
        LogLinear([(0,), (1, 2)]),
        LogLinear([(0, 1), (1, 2)]),
        LogLinear("two-way"),
        LogLinear(order=3),
    ]
    choice = choose_model(counts, candidates, by, rng=1)  # type: ignore[arg-type]
    assert choice.best is candidates[1]
    assert min(choice.scores, key=lambda s: s[1])[0] == candidates[1].label
    assert f"{candidates[1].label}: " in str(choice)
    assert str(choice).count("*") == 1


def test_cross_validation_compares_urns_with_log_linear_models() -> None:
    choice = choose_model(SAMPLE, [LogLinear(), PolyaUrn()], "cv", rng=2, N=2449)
    assert choice.best.label == "log-linear, independence"
    assert choose_model(SAMPLE, [LogLinear()], "cv", rng=2).scores[0] == choice.scores[0]


def test_cross_validation_is_the_mean_loss_over_everybody() -> None:
    # Ten alike in one cell of two: each fold of five is predicted from the other five.
    score = choose_model([10, 0], [LogLinear()], "cv", rng=1, folds=2).scores[0][1]
    assert score == pytest.approx(-np.log((5 + 0.5) / 6))


RNG = np.random.default_rng(4)
POPULATION = RNG.poisson(RNG.gamma(0.8, 60.0, (5, 6)))
TABLE = Table.from_counts(RNG.binomial(POPULATION, 0.1))


def test_a_map_of_a_sample_orders_rounding_bases() -> None:
    methods = grid("conventional-rounding", base=[2, 5, 20])
    found = lu.rumap(TABLE, methods, ["sample-r2:fraction=0.1:draws=50"])
    assert found.risk == "sample-r2"
    _, original, two, five, twenty = found.points
    assert min(original.risk, two.risk) > five.risk > twenty.risk
    again = lu.rumap(TABLE, methods, ["sample-r2:fraction=0.1:draws=50"], workers=1)
    assert [p.risk for p in again.points] == [p.risk for p in found.points]


def test_suppressed_cells_have_no_figure_and_a_sentence() -> None:
    found = lu.rumap(TABLE, grid("suppression"), ["sample-r2:fraction=0.1:draws=20"])
    point = found.points[-1]
    assert np.isnan(point.risk)
    assert "suppressed" in point.note


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(InputError, match="share of the population"):
        SampleRisk()
    with pytest.raises(InputError, match="'polya-urn' or 'log-linear'"):
        SampleRisk(fraction=0.1, model="urn")  # type: ignore[arg-type]
    with pytest.raises(InputError):
        SampleRisk(fraction=0.0)
    with pytest.raises(InputError, match="not a measure with values"):
        lu.rumap(TABLE, grid("none"), ["sample-r2:fraction"])
