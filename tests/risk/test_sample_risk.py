"""The risk of what is published where only a sample is known: the mean of R2 over populations behind it."""

from __future__ import annotations

import numpy as np
import pytest

import lustrum as lu
from lustrum.model import InputError, Table
from lustrum.protect import ConventionalRounding
from lustrum.risk import KnownPopulation, LogLinear, PolyaUrn, SampleRisk, estimate_risk, r2
from lustrum.risk.r2 import r2_values
from lustrum.rumap import grid

RNG = np.random.default_rng(4)
POPULATION = RNG.poisson(RNG.gamma(0.8, 60.0, (5, 6)))
SAMPLE = RNG.binomial(POPULATION, 0.1)
TABLE = Table.from_counts(SAMPLE)
FRACTION = SAMPLE.sum() / POPULATION.sum()


def test_with_the_population_known_it_is_r2() -> None:
    measure = SampleRisk(fraction=FRACTION, model=KnownPopulation(POPULATION), draws=3)
    assert measure.before(TABLE) == pytest.approx(r2(POPULATION, SAMPLE))
    release = ConventionalRounding(base=5).apply(TABLE)
    assert measure.after(TABLE, release) == pytest.approx(r2(POPULATION, release.published))


@pytest.mark.parametrize(
    ("word", "model"), [("polya-urn", PolyaUrn()), ("log-linear", LogLinear())]
)
def test_it_is_the_mean_over_populations_of_the_model(word: str, model: PolyaUrn) -> None:
    measure = SampleRisk(fraction=FRACTION, model=word, draws=60, seed=9)  # type: ignore[arg-type]
    people = round(SAMPLE.sum() / FRACTION)
    drawn = model.draw(TABLE, people, np.random.default_rng(9), 60)
    release = ConventionalRounding(base=3).apply(TABLE)
    wanted = [float(r2_values(F.ravel(), release.published.ravel())) for F in drawn]
    assert measure.after(TABLE, release) == pytest.approx(np.mean(wanted))
    # Another stream of chance, so only near: four standard errors fail once in ten thousand runs.
    other = estimate_risk(TABLE, people, [model], draws=120, rng=1).models[0]
    error = other.sd * np.sqrt(1 / 60 + 1 / 120)
    assert abs(measure.before(TABLE) - other.mean) < 4 * error


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
