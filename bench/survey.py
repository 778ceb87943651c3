"""Estimates of a protected survey: how far they are from the plain ones, and how often their intervals hold.

    python bench/survey.py [--persons 150000] [--sweeps 1] [--keys 5]

The demo survey is drawn from a frame that is known, so the true count of every cell is too. For cells with 30
respondents or more of all tables of one, two and three variables this states how far protected estimates are
from unprotected ones, and how many 95 % intervals hold the true count: with the bootstrap weights of the
survey, with the strata and clusters alone, and without protection. Figures are means over keys.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pyarrow as pa
from parts.figures import record

from lustrum.demo.draws import described
from lustrum.demo.labour_force import REPLICATES, frame, survey
from lustrum.model import Dataset
from lustrum.protect import ProtectedPopulation
from lustrum.protect.weighted import (
    ProtectedRespondents,
    ProtectedSurvey,
    RespondentSums,
    SurveyRecords,
)
from lustrum.protect.weighted.replicates import GivenReplicates
from lustrum.survey import Design, Estimates, ReplicateWeights, estimate_totals

LARGE = 30


@dataclass
class Found:
    """What the cells of tables with so many variables say."""

    cells: int
    away: float
    inside: dict[str, float]


def positions(table: pa.Table, dataset: Dataset) -> np.ndarray:
    columns = [table.column(v.name).combine_chunks() for v in dataset.variables]
    return np.stack([np.asarray(c.indices).astype(np.int64) for c in columns])


def measured(
    number: int,
    dataset: Dataset,
    everybody: np.ndarray,
    codes: np.ndarray,
    plain: dict[str, Design | ReplicateWeights],
    protected: dict[str, ProtectedRespondents],
) -> Found:
    away: list[float] = []
    inside: dict[str, list[bool]] = {name: [] for name in (*protected, *plain)}
    for picks in combinations(range(len(dataset.variables)), number):
        sizes = [len(dataset.variables[v].codes) for v in picks]
        count = int(np.prod(sizes))

        def cells(held: np.ndarray, picks=picks, sizes=sizes) -> np.ndarray:  # type: ignore[no-untyped-def]
            return np.ravel_multi_index(tuple(held[v] for v in picks), sizes)

        true = np.bincount(cells(everybody), minlength=count)
        own = {n: estimate_totals(s, cells(codes), count) for n, s in plain.items()}
        first = next(iter(own.values()))
        large = first.respondents >= LARGE
        shown: dict[str, Estimates] = {
            n: made.totals(RespondentSums(cells(made.codes), count), number)
            for n, made in protected.items()
        }
        values = next(iter(shown.values())).values
        away += np.abs(values[large] / first.values[large] - 1.0).tolist()
        for name, found in (*shown.items(), *own.items()):
            near = np.abs(found.values - true) <= 1.96 * found.standard_errors
            inside[name] += near[large].tolist()
    return Found(
        len(away), float(np.median(away)), {n: float(np.mean(v)) for n, v in inside.items()}
    )


def mean_of(found: list[Found]) -> Found:
    inside = {n: float(np.mean([f.inside[n] for f in found])) for n in found[0].inside}
    return Found(found[0].cells, float(np.mean([f.away for f in found])), inside)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--persons", type=int, default=150_000)
    arguments.add_argument(
        "--sweeps", type=int, default=1, help="sweeps of the protected population"
    )
    arguments.add_argument("--keys", type=int, default=5, help="keys to protect with")
    asked = arguments.parse_args()
    dataset = Dataset.from_mapping(described("survey"))
    table, whole = survey(asked.persons), frame(asked.persons)
    codes = positions(table, dataset)
    design = Design(
        table.column("weight").to_numpy(),
        table.column("stratum").to_numpy(),
        table.column("block").to_numpy(),
        lonely="centre",
    )
    columns = np.stack([table.column(name).to_numpy() for name in REPLICATES], axis=1)
    scale = 1.0 / len(REPLICATES)
    keys = np.random.default_rng(5).integers(0, 2**64, design.records, dtype=np.uint64)
    method = ProtectedSurvey(classes=("district", "age", "sex"))
    population = ProtectedPopulation(base=3, sweeps=asked.sweeps)
    plain = {
        "unprotected, bootstrap weights": ReplicateWeights(design.weights, columns, scale),
        "unprotected, linearisation": design,
    }
    everybody = positions(whole, dataset)
    spent, every = 0.0, []
    for key in range(asked.keys):
        begun = time.process_time()
        protected = {}
        for name, given in (
            ("protected, bootstrap weights", GivenReplicates(columns, scale)),
            ("protected, linearisation", None),
        ):
            records = SurveyRecords(dataset, codes, design, keys, whole.num_rows, replicates=given)
            protected[name] = method.protect(records, population, bytes([key]) * 16)[0]
        spent += time.process_time() - begun
        every.append([measured(n, dataset, everybody, codes, plain, protected) for n in (1, 2, 3)])
    found = [mean_of(list(column)) for column in zip(*every, strict=True)]
    print(
        f"{design.records:,} respondents, protected {2 * asked.keys} times in {spent:.1f} CPU seconds"
    )
    rows = {f"cells with {LARGE} respondents or more": [float(f.cells) for f in found]}
    rows["median distance (%)"] = [100 * f.away for f in found]
    for name in found[0].inside:
        rows[f"{name}: intervals that hold the truth (%)"] = [100 * f.inside[name] for f in found]
    for name, figures in rows.items():
        columns = ("one variable", "two variables", "three variables")
        row = {"what": name, **dict(zip(columns, figures, strict=True))}
        record("Protected estimates beside plain ones", row)


if __name__ == "__main__":
    main()
