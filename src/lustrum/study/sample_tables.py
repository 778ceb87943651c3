"""Disclosure risk of sample based tables (Antal, Shlomo and Elliot 2015), computed again.

The population is a table of 10 output areas by 9 religions of the census of 2001, 2,449 people. From it,
or from tables generated after it, simple random samples are drawn. For each sample ``R2`` (equation 4) is
computed with the true population, which the paper calls the original risk, and with populations drawn
from a model of the sample, the estimated risk. The paper prints the mean over samples, and the standard
deviation over samples of the mean over draws.

Every figure but ``R1`` depends on chance, in the paper and here. A tolerance covers both: it is the
half width that two such means (or standard deviations) of independent runs exceed once in a thousand, plus
the rounding of print. Where the paper draws samples from one generated table, its figure also depends on
that table; here there are many such tables, and the tolerance comes from the spread between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.model.workers import workers as available
from lustrum.numeric.arithmetic import normal_quantile, student_quantile
from lustrum.risk.batch import risks_of_many
from lustrum.risk.population import (
    KnownProbabilities,
    LogLinear,
    PolyaUrn,
    PopulationModel,
    simple_random_samples,
)
from lustrum.risk.r1 import r1
from lustrum.study.result import Line, Panel, Progress, Study

# Simulated figures: their means and spreads, and how far two such runs may lie apart by chance.

_PAPER_SAMPLES = 1000
_ALARM = 0.001
"""How often a tolerance is exceeded by chance alone."""


@dataclass(frozen=True, eq=False)
class SampleFigures:
    """One figure per sample: its value, and the variance of a mean over draws that hides in it."""

    value: Floats
    noise: Floats
    populations: int

    @property
    def groups(self) -> Ints:
        return np.arange(self.value.size) % self.populations

    @property
    def mean(self) -> float:
        return float(self.value.mean())

    @property
    def sd(self) -> float:
        """Between samples of one population, as it would be with the paper's number of draws."""
        squares = float(((self.value - self._centres()[self.groups]) ** 2).sum())
        variance = squares / (self.value.size - self.populations)
        return float(np.sqrt(max(variance - float(self.noise.mean()), 0.0)))

    @property
    def mean_tolerance(self) -> float:
        """How far two means may lie apart: ours, and one of a single population as in the paper."""
        size, most = self.value.size, 1.0 - _ALARM / 2
        if self.populations > 1:
            between = float(self._centres().std(ddof=1))
            factor = student_quantile(most, self.populations - 1)
            return factor * between * float(np.sqrt(1.0 + 1.0 / self.populations)) + 5e-5
        spread = float(self.value.std(ddof=1))
        factor = student_quantile(most, size - 1)
        return factor * spread * float(np.sqrt(1.0 / size + 1.0 / _PAPER_SAMPLES)) + 5e-5

    @property
    def sd_tolerance(self) -> float:
        """The same for standard deviations, whose error grows with the fourth moment."""
        centred = self.value - self._centres()[self.groups]
        square = centred * centred
        mean = float(square.mean())
        kurtosis = max(3.0, float((square * square).mean()) / (mean * mean))
        # The variance of a standard deviation from one sample, to be divided by their number.
        single = mean * (kurtosis - 1.0) / 4.0
        variance = single * (1.0 / self.value.size + 1.0 / _PAPER_SAMPLES)
        if self.populations > 1:
            counts = np.bincount(self.groups, minlength=self.populations)
            squares = np.bincount(self.groups, square, self.populations)
            deviations = np.sqrt(squares / np.maximum(counts - 1, 1))
            # What the populations' own values differ by, less what they do by chance.
            variance += max(0.0, float(deviations.var(ddof=1)) - single / float(counts.mean()))
        return float(normal_quantile(1.0 - _ALARM / 2) * np.sqrt(variance)) + 5e-5

    def less(self, other: SampleFigures) -> SampleFigures:
        return SampleFigures(self.value - other.value, self.noise + other.noise, self.populations)

    def _centres(self) -> Floats:
        sums = np.bincount(self.groups, self.value, self.populations)
        return np.asarray(sums / np.bincount(self.groups, minlength=self.populations))


AREAS_BY_RELIGION: Ints = np.array(
    [
        [181, 0, 0, 1, 17, 1, 1, 83, 18],
        [138, 2, 4, 2, 0, 0, 1, 36, 16],
        [130, 0, 0, 0, 22, 4, 1, 61, 40],
        [173, 0, 0, 1, 14, 4, 1, 97, 22],
        [142, 2, 5, 0, 15, 6, 1, 37, 21],
        [129, 0, 0, 0, 0, 0, 1, 69, 20],
        [118, 2, 0, 2, 24, 9, 1, 38, 20],
        [130, 0, 0, 0, 34, 1, 1, 82, 32],
        [148, 3, 0, 0, 0, 2, 1, 38, 21],
        [136, 1, 2, 0, 13, 0, 0, 55, 16],
    ],
    dtype=np.int64,
)
"""Table 1 of the paper: output area by religion."""

_PEOPLE = int(AREAS_BY_RELIGION.sum())
_GENERATED = 40
"""Tables generated for each line of the paper that has one; each gives as many samples."""

_PAPER_DRAWS = 1000
_SAMPLES_A_TASK = 10


@dataclass(frozen=True, eq=False)
class Population:
    """A population's table, and what is to be known about it by the models."""

    table: Ints
    models: tuple[PopulationModel, ...]


@dataclass(frozen=True, eq=False)
class Scenario:
    """One line of the paper's table: where samples come from and how large they are."""

    key: str
    fraction: float
    populations: tuple[Population, ...]


@dataclass(frozen=True, eq=False)
class ScenarioOutcome:
    """The risks of one scenario: with the true population, and under each model."""

    original: SampleFigures
    first: tuple[SampleFigures, ...]
    second: tuple[SampleFigures, ...]


def sample_tables(
    samples: int = 1000,
    draws: int = 1000,
    seed: int = 2015,
    progress: Progress | None = None,
    workers: int | None = None,
) -> Study:
    """Both simulation studies: six lines of Table 2, and the three fractions of the short paper.

    Every sample has a random stream of its own, so the figures do not depend on ``workers``.

    >>> study = sample_tables(samples=20, draws=20)
    >>> round(study.panels[0].lines[0].ours, 4)
    0.2315
    """
    if samples < 10 or draws < 2:
        raise InputError("The study needs 10 samples or more and 2 draws or more.")
    if workers is not None and workers < 1:
        raise InputError("The study needs one worker or more.")
    scenarios = _scenarios(samples, seed)
    outcomes = _run(scenarios, samples, draws, seed, progress, workers)
    return Study(
        name="sample-tables",
        title="Risk of sample based frequency tables by entropy",
        source=(
            "Antal, Shlomo and Elliot (2015), Disclosure Risk Measurement with Entropy in "
            "Two-Dimensional Sample Based Frequency Tables; and their earlier short paper"
        ),
        panels=(_table_one(), _table_two(outcomes), _short_paper(outcomes)),
        settings={"samples": samples, "draws": draws, "seed": seed, "generated": _GENERATED},
    )


def _scenarios(samples: int, seed: int) -> tuple[Scenario, ...]:
    real = (Population(AREAS_BY_RELIGION, (LogLinear(), PolyaUrn())),)
    # For the smallest fraction the papers print the log-linear model only.
    smallest = (Population(AREAS_BY_RELIGION, (LogLinear(),)),)
    count = min(_GENERATED, max(2, samples // 5))
    scenarios = []
    for number, fraction in enumerate((0.1, 0.05)):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0, number)))
        scenarios += [
            Scenario("log-linear", fraction, _log_linear_populations(count, rng)),
            Scenario("urn", fraction, _urn_populations(count, fraction, rng)),
        ]
    scenarios += [Scenario("real", fraction, real) for fraction in (0.1, 0.05)]
    return (*scenarios, Scenario("real", 0.01, smallest))


def _log_linear_populations(count: int, rng: np.random.Generator) -> tuple[Population, ...]:
    """Multinomial tables with the main effects of Table 1, which the model then knows."""
    p = LogLinear().predictive(AREAS_BY_RELIGION)
    tables = rng.multinomial(_PEOPLE, p.ravel(), size=count).reshape(-1, *p.shape)
    return tuple(Population(table, (KnownProbabilities(p),)) for table in tables)


def _urn_populations(
    count: int, fraction: float, rng: np.random.Generator
) -> tuple[Population, ...]:
    """An urn grown from a sample of Table 1; the model then knows the number of empty cells."""
    urn = PolyaUrn(zeros=int((AREAS_BY_RELIGION == 0).sum()))
    populations = []
    for sample in simple_random_samples(AREAS_BY_RELIGION, fraction, rng, count):
        table = urn.draw(sample, _PEOPLE, rng, draws=1)[0]
        populations.append(Population(table, (PolyaUrn(zeros=int((table == 0).sum())),)))
    return tuple(populations)


def _run(
    scenarios: Sequence[Scenario],
    samples: int,
    draws: int,
    seed: int,
    progress: Progress | None,
    workers: int | None,
) -> dict[tuple[str, float], ScenarioOutcome]:
    """All scenarios, some samples a task; the compiled loops let threads run side by side."""
    starts = range(0, samples, _SAMPLES_A_TASK)
    rows: dict[int, list[Floats]] = {s: [np.empty(0)] * len(starts) for s in range(len(scenarios))}
    threads = workers or available()
    with ThreadPoolExecutor(threads) as pool:
        tasks = {
            pool.submit(
                _samples, scenario, range(start, min(start + _SAMPLES_A_TASK, samples)),
                draws, (seed, number + 1),
            ): (number, batch)
            for number, scenario in enumerate(scenarios)
            for batch, start in enumerate(starts)
        }  # fmt: skip
        for done, task in enumerate(as_completed(tasks), start=1):
            number, batch = tasks[task]
            rows[number][batch] = task.result()
            if progress is not None:
                progress(done / len(tasks))
    return {
        (scenario.key, scenario.fraction): _outcome(
            np.concatenate(rows[number]), len(scenario.populations), draws
        )
        for number, scenario in enumerate(scenarios)
    }


def _samples(scenario: Scenario, which: range, draws: int, key: tuple[int, int]) -> Floats:
    """For each sample one row: the original risk, then for each model the mean and variance of R1, R2."""
    rows = []
    for i in which:
        stream = np.random.SeedSequence(key[0], spawn_key=(key[1], i))
        rng = np.random.default_rng(stream)
        population = scenario.populations[i % len(scenario.populations)]
        sample = simple_random_samples(population.table, scenario.fraction, rng)[0]
        flat = sample.ravel()
        row = [float(risks_of_many(population.table.reshape(1, -1), flat)[1][0])]
        for model in population.models:
            drawn = model.draw(sample, _PEOPLE, rng, draws).reshape(draws, -1)
            for risks in risks_of_many(drawn, flat):
                row += [float(risks.mean()), float(risks.var(ddof=1))]
        rows.append(row)
    return np.array(rows)


def _outcome(rows: Floats, populations: int, draws: int) -> ScenarioOutcome:
    # What a mean over our draws adds to the spread beyond what the paper's number of draws adds.
    share = 1.0 / draws - 1.0 / _PAPER_DRAWS
    means, variances = rows[:, 1::2], rows[:, 2::2]
    figures = tuple(
        SampleFigures(means[:, k], variances[:, k] * share, populations)
        for k in range(means.shape[1])
    )
    original = SampleFigures(rows[:, 0], np.zeros(len(rows)), populations)
    return ScenarioOutcome(original, figures[0::2], figures[1::2])


def _table_one() -> Panel:
    ours = r1(AREAS_BY_RELIGION)
    line = Line("R1 of the population", 0.2315, ours, 5e-5, 0.23146, "no chance in it")
    return Panel("Table 1: output area by religion, 10 x 9 cells, 2,449 people", (line,))


def _both(
    what: str, figures: SampleFigures, mean: float, sd: float, note: str
) -> tuple[Line, Line]:
    return (
        Line(f"{what}, mean", mean, figures.mean, figures.mean_tolerance, note=note),
        Line(f"{what}, sd", sd, figures.sd, figures.sd_tolerance, note=note),
    )


_ONE_TABLE = "the paper's samples come from one generated table, ours from {} of them".format
_LONG_RUN = "8,000 samples give {:.4f}".format


def _table_two(outcomes: dict[tuple[str, float], ScenarioOutcome]) -> Panel:
    lines: list[Line] = []
    printed: dict[tuple[str, float], tuple[float, float, float, float]] = {
        ("log-linear", 0.1): (0.1538, 0.0043, 0.1568, 0.0039),
        ("log-linear", 0.05): (0.1427, 0.0059, 0.1416, 0.0054),
        ("urn", 0.1): (0.1694, 0.0049, 0.1758, 0.0053),
        ("urn", 0.05): (0.1535, 0.0061, 0.1640, 0.0057),
    }
    for (key, fraction), (mean, sd, estimate, estimate_sd) in printed.items():
        outcome = outcomes[key, fraction]
        estimated = outcome.second[0]
        what = f"table generated by the {key} model, {fraction:g}"
        note = _ONE_TABLE(outcome.original.populations)
        lines += _both(f"{what}: original", outcome.original, mean, sd, note)
        lines += _both(f"{what}: estimated", estimated, estimate, estimate_sd, note)
        gap = estimated.less(outcome.original)
        lines.append(
            Line(
                f"{what}: estimated less original",
                round(estimate - mean, 4),
                gap.mean,
                gap.mean_tolerance + 5e-5,
                note="the paper's figure is a difference of two printed ones",
            )
        )
    lines += _real_lines(outcomes)
    return Panel("Table 2: R2 with the original and with the estimated population", tuple(lines))


def _real_lines(outcomes: dict[tuple[str, float], ScenarioOutcome]) -> list[Line]:
    tenth, twentieth = outcomes["real", 0.1], outcomes["real", 0.05]
    rows = (
        ("real table, 0.1: original", tenth.original, 0.1697, 0.0048, 0.1696),
        ("real table, 0.1: log-linear", tenth.second[0], 0.1715, 0.0173, 0.1716),
        ("real table, 0.1: urn", tenth.second[1], 0.1764, 0.0186, 0.1767),
        ("real table, 0.05: original", twentieth.original, 0.1535, 0.0061, 0.1534),
        ("real table, 0.05: log-linear", twentieth.second[0], 0.1731, 0.0254, 0.1719),
        ("real table, 0.05: urn", twentieth.second[1], 0.1821, 0.0283, 0.1816),
    )
    return [
        line
        for what, figures, mean, sd, long in rows
        for line in _both(what, figures, mean, sd, f"mean: {_LONG_RUN(long)}")
    ]


def _short_paper(outcomes: dict[tuple[str, float], ScenarioOutcome]) -> Panel:
    """Table 1 of the short paper: the same by the log-linear model, for three fractions."""
    take: dict[str, Callable[[ScenarioOutcome], SampleFigures]] = {
        "R1, estimated": lambda outcome: outcome.first[0],
        "R2, original": lambda outcome: outcome.original,
        "R2, estimated": lambda outcome: outcome.second[0],
    }
    printed = {
        "R1, estimated": {0.1: (0.2299, 0.2294), 0.05: (0.2417, 0.2418), 0.01: (0.3106, 0.3114)},
        "R2, original": {0.1: (0.1695, 0.1696), 0.05: (0.1533, 0.1534), 0.01: (0.0955, 0.0952)},
        "R2, estimated": {0.1: (0.1720, 0.1716), 0.05: (0.1711, 0.1719), 0.01: (0.1881, 0.1906)},
    }
    lines = []
    for what, by_fraction in printed.items():
        for fraction, (paper, long) in by_fraction.items():
            figures = take[what](outcomes["real", fraction])
            lines.append(
                Line(
                    f"{what}, {fraction:g}",
                    paper,
                    figures.mean,
                    figures.mean_tolerance,
                    note=_LONG_RUN(long),
                )
            )
    return Panel("Short paper, Table 1: three sampling fractions, log-linear model", tuple(lines))
