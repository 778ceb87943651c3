"""A population with a proof: errors, seconds and memory of people who are made up from noisy tables alone.

    python bench/proven.py                         # the demo census of 1.5 million, rho 2.56, one draw of noise
    python bench/proven.py --draws 5               # the mean of five draws
    python bench/proven.py --rho 0.5               # also 1 and 0.1: error against rho
    python bench/proven.py --persons 15000000
    python bench/proven.py --coverage --persons 6000 --draws 20    # of stated margins; also 60000

Beside the errors of the people stand those of tables as they are measured, with employment and occupation as
one variable, of the people and of the linear estimate of the same noisy tables, in closed form. Cells count
alike, so that those of tables with areas decide; in the row "tables alike" every table counts alike, and the
region is a variable.

Margins are measured on files by region, or on the whole census with ``--areas``: of all cells that hold or show
anybody, the share that lies within the margin that the answer states, by the size of the number shown.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
from parts.figures import record

from lustrum.demo.census import people
from lustrum.demo.draws import description_path
from lustrum.model import Category, Dataset
from lustrum.model.finest import FinestCells
from lustrum.protect.population.public import MARGIN_ENDS, margin_class, of_kind
from lustrum.protect.population.support import Combinations
from lustrum.protect.proven.domain import Domain, laid_out
from lustrum.protect.proven.margins import NoiseMargins
from lustrum.protect.proven.measure import measure_tables
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.plan import LinearEstimate
from lustrum.protect.proven.report import Remade, public_report
from lustrum.tabulate import FrameEngine, Secret, finest_cells, read_description

FOUR_WAY = 60
EVERY = f"{FOUR_WAY} four-way of all variables, tables alike"
Axes = tuple[tuple[str, Sequence[Category]], ...]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--persons", type=int, default=1_500_000)
    options.add_argument("--seed", type=int, default=2001, help="of the people who are invented")
    options.add_argument("--rho", type=float, default=2.56)
    options.add_argument("--draws", type=int, default=1)
    options.add_argument("--coverage", action="store_true", help="of margins, in place of errors")
    options.add_argument(
        "--areas", action="store_true", help="margins of the census with its areas"
    )
    given = options.parse_args()
    whole = read_description(description_path("demo"))
    dataset = without_areas(whole) if given.coverage and not given.areas else whole
    engine = FrameEngine(people(given.persons, given.seed), dataset, Secret(b"bench" * 8))
    cells = finest_cells(engine)
    method = ProvenPopulation(rho=given.rho)
    if given.coverage:
        title = f"A population with a proof: coverage of margins, {given.persons:,} people, rho {given.rho:g}"
        for row in covered(method, cells, given.draws):
            record(title, {"shown": row.pop("shown"), "draws": given.draws, **row})
        return
    draws = [errors_of(method, cells) for _ in range(given.draws)]
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
        if kind == EVERY:
            errors[kind] = (float(np.mean([one.mean() for one in apart])), errors[kind][1])
    estimate, truth = (
        LinearEstimate(noisy.plan, noisy.tables, noisy.people),
        laid_out(domain, cells),
    )
    shown = laid_out(domain, made)
    for number, (name, table) in product(
        (1, 2, 3),
        (
            ("people, as measured", partial(domain.table, shown)),
            ("linear estimate", estimate.table),
        ),
    ):
        apart = [
            np.abs(table(subset) - domain.table(truth, subset))[domain.possible_table(subset)]
            for subset in domain.subsets(3)
            if len(subset) == number
        ]
        errors[f"{name}, {number}-way"] = _mean_and_largest(apart)
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
    finest = {v.name: v.finest for v in dataset.variables if v.name != "region"}
    for number, word in ((1, "one"), (2, "two"), (3, "three")):
        yield f"{word}-way, finest", tables(finest, number)
    yield "three-way, all levels", list(at_all_levels(dataset, 3))
    for kind, some in (
        (f"{FOUR_WAY} four-way, finest", finest),
        (EVERY, {v.name: v.finest for v in dataset.variables}),
    ):
        yield kind, random.Random(4).sample(sorted(tables(some, 4), key=str), FOUR_WAY)


def tables(categories: dict[str, Sequence[Category]], number: int) -> list[Axes]:
    """All tables of so many variables."""
    return [tuple((n, categories[n]) for n in names) for names in combinations(categories, number)]


def at_all_levels(dataset: Dataset, number: int) -> Iterator[Axes]:
    """The same, with every variable at each of its levels."""
    levels = {v.name: [v.finest, *(x.categories for x in v.levels)] for v in dataset.variables}
    if "area" in levels:
        del levels["region"]
    for names in combinations(levels, number):
        for chosen in product(*(levels[n] for n in names)):
            yield tuple(zip(names, chosen, strict=True))


def without_areas(whole: Dataset) -> Dataset:
    """The census by region: small files have tables that are not empty."""
    variables = [v for v in whole.source["variables"] if v["name"] != "area"]
    zeros = [z for z in whole.source["structural_zeros"] if "area" not in z["where"]]
    maps = [m for m in whole.source.get("maps", ()) if m["variable"] != "area"]
    return Dataset.from_mapping(
        {**whole.source, "variables": variables, "structural_zeros": zeros, "maps": maps}
    )


def covered(method: ProvenPopulation, cells: FinestCells, draws: int) -> Iterator[dict[str, Any]]:
    """How many cells lie within the stated margin, by variables and by the size of the shown number."""
    dataset, sizes = cells.dataset, len(MARGIN_ENDS) + 1
    counts = np.zeros((3, 2, sizes, 2), dtype=np.int64)
    domain = Domain.of(dataset)
    for _ in range(draws):
        noisy = measure_tables(domain, method.plan(domain), cells)
        remade = Remade.of(method, noisy)
        made = remade.people
        report = public_report(method, remade, remade.again(method), {})
        assert report.noise is not None
        noise = NoiseMargins.from_mapping(report.noise)
        for number in (1, 2, 3):
            for axes in at_all_levels(dataset, number):
                true, shown = (counted(one, axes).astype(np.int64) for one in (cells, made))
                seen = (true > 0) | (shown > 0)
                within = np.abs(true - shown) <= noise.margins(dataset, axes, {}, shown)
                for row, size in zip(counts[number - 1], (shown, true), strict=True):
                    for column, weights in enumerate((None, within[seen])):
                        row[:, column] += np.bincount(
                            margin_class(size[seen]), weights, minlength=sizes
                        ).astype(np.int64)
    for number, (by_shown, by_true) in enumerate(counts, start=1):
        for size, least in enumerate((0, *MARGIN_ENDS)):
            if by_shown[size, 0]:
                yield {
                    "shown": f"{number}-way, {least:,} or more",
                    "largest margin in the last draw": int(of_kind(report.margins, number)[size]),
                    "cells": int(by_shown[size, 0]),
                    "within (%)": 100 * by_shown[size, 1] / by_shown[size, 0],
                    "the same by true size (%)": 100 * by_true[size, 1] / max(by_true[size, 0], 1),
                }


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
