"""Can anybody tell two datasets apart that differ in one record, better than rho allows? Tried from outside.

The best test of two datasets adds up, over all measured cells, how much each noisy number speaks for one of
them; noise that is missing, or the same in two tables, decides at once. For Gaussian noise the sums lie
``sqrt(2 rho)`` standard deviations apart. From how often the test is right a lower bound of rho follows, false
with a chance below 1 in 10,000; it must lie below the rho that is stated, and above it for noise that is too
small, for noise used twice, and for a table that was not measured but copied. Faults are planted below the
function that the command calls.

Through the command every run tells many pairs of datasets apart: one person in each pair of areas is in the one
or in the other, and the reader knows all people but this one. Tables with the area have noise of their own for
each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import beta, norm
from tests.examples import examples
from tests.protect.test_proven import described
from typer.testing import CliRunner

from lustrum.cli import app
from lustrum.model import Dataset
from lustrum.model.finest import FinestCells
from lustrum.model.records import Records
from lustrum.policy.presets import preset
from lustrum.protect.privacy.mechanism import Measured, measure
from lustrum.protect.proven import measure as measuring
from lustrum.protect.proven.domain import Domain, laid_out
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.noisy import NoisySums, NoisyTables
from lustrum.protect.proven.sums import ProvenSums
from lustrum.tabulate import FrameSource, Store, ingest

RHO = 2.56
DRAWS = examples(200, 10_000)
PAIRS, RUNS = 200, examples(2, 20)
Fault = Callable[..., Measured]
Noise = dict[tuple[int, ...], np.ndarray]


def honest(values: np.ndarray, mechanism: str, **cost: float) -> Measured:
    return measure(values, mechanism, **cost)  # type: ignore[arg-type]


def half_the_noise(values: np.ndarray, mechanism: str, **cost: float) -> Measured:
    drawn = honest(values, mechanism, **cost)
    return replace(drawn, values=values + np.rint((drawn.values - values) / 2).astype(np.int64))


def noise_used_twice(values: np.ndarray, mechanism: str, **cost: float) -> Measured:
    """The second of two tables of one size gets the noise of the first."""
    drawn = honest(values, mechanism, **cost)
    if FIRST and FIRST[-1].size == values.size:
        return replace(drawn, values=values + FIRST.pop())
    FIRST[:] = [drawn.values - values]
    return drawn


def true_table(values: np.ndarray, mechanism: str, **cost: float) -> Measured:
    """The table of all variables is copied."""
    drawn = honest(values, mechanism, **cost)
    return replace(drawn, values=values) if values.size in (8, 8 * PAIRS) else drawn


FIRST: list[np.ndarray] = []
FAULTS = [half_the_noise, noise_used_twice, true_table]


def domain_of(pairs: int) -> Domain:
    return Domain.of(described({"area": 2 * pairs, "sex": 2, "age": 2}, []))


def people(domain: Domain, sides: Sequence[int]) -> FinestCells:
    """One person in each pair of areas, who differs in all variables between the sides."""
    side = np.asarray(sides)
    codes = np.array([2 * np.arange(side.size) + side, side, 1 - side])
    return FinestCells(domain.dataset, codes, np.ones(side.size, dtype=int))


ONE_PAIR, MANY = domain_of(1), domain_of(PAIRS)
COUNTS = [laid_out(ONE_PAIR, people(ONE_PAIR, [side])) for side in (0, 1)]
TABLES = {s: [ONE_PAIR.table(c, s) for c in COUNTS] for s in ONE_PAIR.subsets(3)}


def told(noisy: NoisyTables, sides: Sequence[int]) -> list[tuple[int, bool]]:
    """The true side of each pair, and whether the noisy tables speak for the other one than the first."""
    truth = laid_out(noisy.domain, people(noisy.domain, sides))
    noise = {s: table - noisy.domain.table(truth, s) for s, table in noisy.tables.items()}
    said = []
    for pair, side in enumerate(sides):
        of_pair = {s: n[2 * pair : 2 * pair + 2] for s, n in noise.items() if 0 in s}
        if len(sides) == 1:
            of_pair = noise
        speaks = [
            _weight({s: n + TABLES[s][side] - TABLES[s][other] for s, n in of_pair.items()}, noisy)
            for other in (0, 1)
        ]
        said.append((side, speaks[1] > speaks[0]))
    return said


def _weight(noise: Noise, noisy: NoisyTables | NoisySums) -> float:
    """How likely this noise is; noise that is missing, or the same in two tables, was planted."""
    large = [one.ravel() for one in noise.values() if one.size > 2]
    planted = sum(not one.any() for one in large)
    planted += sum(np.array_equal(*two) for two in combinations(large, 2))
    squares = sum(float((one**2).sum()) * noisy.scales[s] ** -2 for s, one in noise.items())
    return 1000 * planted - squares / 2


def least_rho(said: Sequence[tuple[int, bool]]) -> float:
    """A rho that is certainly needed for how well the test tells both sides apart: of the true side and what it
    said."""
    ones, others = ([says for side, says in said if side == which] for which in (1, 0))
    low = beta.ppf(5e-5, sum(ones), len(ones) - sum(ones) + 1) if any(ones) else 0.0
    high = beta.ppf(1 - 5e-5, sum(others) + 1, len(others) - sum(others)) if not all(others) else 1
    return max(float(norm.ppf(low) - norm.ppf(high)), 0.0) ** 2 / 2


def in_one_process(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> float:
    monkeypatch.setattr(measuring, "measure", fault)
    plan, said = ProvenPopulation(RHO).plan(ONE_PAIR), []
    for side in (0, 1):
        cells = people(ONE_PAIR, [side])
        for _ in range(DRAWS):
            said += told(measuring.measure_tables(ONE_PAIR, plan, cells), [side])
    return least_rho(said)


def through_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault) -> float:
    monkeypatch.setattr(measuring, "measure", fault)
    rng, said = np.random.default_rng(3), []
    for run in range(RUNS):
        data, sides = folder / str(run), rng.integers(2, size=PAIRS).tolist()
        cells = people(MANY, sides)
        columns = {
            v.name: c.astype(str) for v, c in zip(cells.dataset.variables, cells.codes, strict=True)
        }
        ingest(FrameSource(pa.table(columns)), cells.dataset, Store(data))
        (data / "policies").mkdir()
        (data / "policies" / "town.toml").write_text(preset("proven", "town"))
        for words in (
            ["budget", "limit", "merrow", "2.56", "--because", "audit"],
            ["protect", "--dataset", "town"],
        ):
            done = CliRunner().invoke(app, [*words, "--data", str(data)])
            assert done.exit_code == 0, done.output
        written = (data / "reports" / "town" / "noisy-tables.json").read_bytes()
        noisy = NoisyTables.from_bytes(written, cells.dataset)
        said += told(noisy, sides)
    return least_rho(said)


BOUND, SUMS = 100, ProvenSums(rho=RHO, bounds={"pay": 10.0}, max_variables=2)
PAID = Dataset.from_mapping(
    {
        **ONE_PAIR.dataset.source,
        "measures": [{"name": "pay", "label": "Pay", "unit": "euros", "decimals": 1}],
    }
)


SUM_DRAWS = examples(200, 10_000)
PLANNED = SUMS.shares(Domain.of(PAID))


def true_sums(values: np.ndarray, mechanism: str, **cost: float) -> Measured:
    """A table of two variables is copied."""
    drawn = honest(values, mechanism, **cost)
    return replace(drawn, values=values) if values.size == 4 else drawn


def noise_for_one(values: np.ndarray, mechanism: str, **cost: float) -> Measured:
    """The noise is for a record that counts one, and not the bound."""
    drawn = honest(values, mechanism, **{**cost, "records": 1})
    return replace(drawn, scale=drawn.scale * BOUND)


def of_sums(monkeypatch: pytest.MonkeyPatch, fault: Fault, clip: Callable[..., object]) -> float:
    """One person has ten times the bound, in the one area or in the other."""
    monkeypatch.setattr(measuring, "measure", fault)
    monkeypatch.setattr(ProvenSums, "shares", lambda *_: PLANNED)  # as it is, every time
    domain, said = Domain.of(PAID), []
    for side in (0, 1):
        codes = people(ONE_PAIR, [side]).codes.astype(int)
        named = dict(zip((v.name for v in PAID.variables), codes, strict=True))
        records = Records(PAID, named, {"pay": np.array([10 * BOUND])})
        for _ in range(SUM_DRAWS):
            with monkeypatch.context() as patch:
                patch.setattr(measuring.np, "clip", clip)
                sums = measuring.measure_sums(domain, SUMS, records)["pay"]
            speaks = [
                _weight({s: t - BOUND * TABLES[s][one] for s, t in sums.tables.items()}, sums)
                for one in (0, 1)
            ]
            said.append((side, speaks[1] > speaks[0]))
    return least_rho(said)


def test_nobody_tells_sums_of_neighbours_apart_better_than_rho_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Of 200 draws a side, this test says less than a tenth of rho in fewer than two of 10 million runs.
    assert 0.1 * RHO < of_sums(monkeypatch, honest, np.clip) <= RHO


@pytest.mark.parametrize(
    "fault", [half_the_noise, noise_used_twice, true_sums, noise_for_one, "not clipped"]
)
def test_planted_faults_of_sums_are_found(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    clipped = fault != "not clipped"
    found = of_sums(
        monkeypatch, fault if clipped else honest, np.clip if clipped else lambda given, *_: given
    )
    assert found > RHO


def test_nobody_tells_neighbours_apart_better_than_rho_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert in_one_process(monkeypatch, honest) <= RHO


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(monkeypatch: pytest.MonkeyPatch, fault: Fault) -> None:
    assert in_one_process(monkeypatch, fault) > RHO


def test_nor_do_they_after_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert through_the_command(tmp_path, monkeypatch, honest) <= RHO


@pytest.mark.parametrize(
    "fault", [FAULTS[0], *(pytest.param(fault, marks=pytest.mark.deep) for fault in FAULTS[1:])]
)
def test_planted_faults_are_found_after_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    assert through_the_command(tmp_path, monkeypatch, fault) > RHO
