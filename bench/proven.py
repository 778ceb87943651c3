"""A population with a proof: errors, seconds and memory of people who are made up from noisy tables alone.

    python bench/proven.py                         # the demo census of 1.5 million, rho 2.56, one draw of noise
    python bench/proven.py --draws 5               # the mean of five draws
    python bench/proven.py --rho 0.5               # also 1 and 0.1: error against rho
    python bench/proven.py --persons 15000000

Beside the errors of the people stand those of the linear estimate of the same noisy tables, in closed form.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from math import prod

import numpy as np
from parts.figures import record

from lustrum.demo.census import people
from lustrum.demo.descriptions import description_path
from lustrum.model import Category, Dataset
from lustrum.model.finest import FinestCells
from lustrum.protect.population.support import Combinations
from lustrum.protect.proven.domain import Domain
from lustrum.protect.proven.estimate import LinearEstimate
from lustrum.protect.proven.measure import measure_tables
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.places import laid_out
from lustrum.tabulate import FrameEngine, Secret, finest_cells, read_description

FOUR_WAY = 60
Axes = tuple[tuple[str, Sequence[Category]], ...]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--persons", type=int, default=1_500_000)
    options.add_argument("--seed", type=int, default=2001, help="of the people who are invented")
    options.add_argument("--rho", type=float, default=2.56)
    options.add_argument("--draws", type=int, default=1)
    given = options.parse_args()
    dataset = read_description(description_path("demo"))
    engine = FrameEngine(people(given.persons, given.seed), dataset, Secret(b"bench" * 8))
    cells = finest_cells(engine)
    draws = [errors_of(ProvenPopulation(rho=given.rho), cells) for _ in range(given.draws)]
    for kind in draws[0]:
        means, largest = zip(*(draw[kind] for draw in draws), strict=True)
        mean = sum(means) / given.draws
        record(
            f"A population with a proof: errors, {given.persons:,} people, rho {given.rho:g}",
            {"tables": kind, "draws": given.draws, "mean": mean, "largest": max(largest)},
        )


def errors_of(method: ProvenPopulation, cells: FinestCells) -> dict[str, tuple[float, float]]:
    """Mean and largest errors over all cells that can exist, by kind of table."""
    dataset = cells.dataset
    domain = Domain.of(dataset)
    start = time.process_time()
    noisy = measure_tables(domain, method.plan(domain), cells)
    measured = time.process_time()
    made = method.population(noisy)
    seconds = {"measure (CPU s)": measured - start, "fit (CPU s)": time.process_time() - measured}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    case = f"{noisy.people:,} people, rho {method.rho:g}"
    record("A population with a proof: time", {"case": case, **seconds, "peak (GiB)": peak})
    possible = Combinations.of(dataset)
    errors = {}
    for kind, tables in kinds(dataset):
        apart = [
            np.abs(counted(cells, axes) - counted(made, axes))[possible.within(axes) > 0]
            for axes in tables
        ]
        errors[kind] = _mean_and_largest(apart)
    estimate, truth = (
        LinearEstimate(noisy.plan, noisy.tables, noisy.people),
        laid_out(domain, cells),
    )
    for number in (1, 2, 3):
        apart = [
            np.abs(estimate.table(subset) - domain.table(truth, subset))[
                domain.possible_table(subset)
            ]
            for subset in domain.subsets(3)
            if len(subset) == number
        ]
        errors[f"linear estimate, {number}-way"] = _mean_and_largest(apart)
    zeros = [np.concatenate(part) for part in zip(*_zeros(dataset, cells, made), strict=True)]
    errors["true zeros shown as 0, three-way (share)"] = (float((zeros[1] == 0).mean()), 0.0)
    return errors


def _zeros(
    dataset: Dataset, cells: FinestCells, made: FinestCells
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    possible = Combinations.of(dataset)
    for axes in dict(kinds(dataset))["three-way, finest"]:
        true = counted(cells, axes)
        empty = (true == 0) & (possible.within(axes) > 0)
        yield true[empty], counted(made, axes)[empty]


def kinds(dataset: Dataset) -> Iterator[tuple[str, list[Axes]]]:
    """Tables by the kinds in which errors are stated; the region is a level of the area."""
    variables = [v for v in dataset.variables if v.name != "region"]
    finest = {v.name: v.finest for v in variables}

    def tables(number: int) -> list[Axes]:
        return [tuple((n, finest[n]) for n in names) for names in combinations(finest, number)]

    for number, word in ((1, "one"), (2, "two"), (3, "three")):
        yield f"{word}-way, finest", tables(number)
    levels = {v.name: [v.finest, *(x.categories for x in v.levels)] for v in variables}
    yield (
        "three-way, all levels",
        [
            tuple(zip(names, chosen, strict=True))
            for names in combinations(levels, 3)
            for chosen in product(*(levels[n] for n in names))
        ],
    )
    four = sorted(tables(4), key=str)
    yield f"{FOUR_WAY} four-way, finest", random.Random(4).sample(four, FOUR_WAY)


def counted(cells: FinestCells, axes: Axes) -> np.ndarray:
    """The table of these categories, from finest cells."""
    columns, index = cells.columns(), np.zeros(len(cells), dtype=np.int64)
    for name, categories in axes:
        group = np.zeros(len(cells.dataset.variable(name).codes), dtype=np.int64)
        for number, category in enumerate(categories):
            group[list(category.members)] = number
        index = index * len(categories) + group[columns[name]]
    shape = [len(categories) for _, categories in axes]
    return np.bincount(index, cells.counts, prod(shape)).reshape(shape)


def _mean_and_largest(errors: Sequence[np.ndarray]) -> tuple[float, float]:
    every = np.concatenate(errors)
    return float(every.mean()), float(every.max())


if __name__ == "__main__":
    main()
