"""One protected population: errors, seconds and memory as people grow, and errors beside keyed methods.

    python bench/population.py                       # the demo census of 1.5 million, then the comparison
    python bench/population.py --persons 6000000     # growth; also 15000000
    python bench/population.py --sweeps 4            # what a first start of the server uses
    python bench/population.py --key 1 --questions 0 # errors under another key

The comparison asks the same questions of the protected population, of keyed random rounding and of the cell key
method: the four tables of the 2015 study, random tables, own groups, and differences of nested tables.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from parts.figures import record

from lustrum.demo.census import people
from lustrum.demo.draws import description_path
from lustrum.model import Axis, Filter, Group, TableQuery
from lustrum.model.finest import FinestCells
from lustrum.protect import CellKey, RandomRounding
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.study.table_server_outcomes import _SELECTIONS
from lustrum.tabulate import FrameEngine, KernelEngine, Secret, finest_cells, read_description
from lustrum.tabulate.encode import Chunk

KEY = b"a key for benchmarks, 32 bytes.."


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--persons", type=int, default=1_500_000)
    options.add_argument("--seed", type=int, default=2001, help="of the people who are invented")
    options.add_argument("--sweeps", type=int, default=ProtectedPopulation().sweeps)
    options.add_argument("--questions", type=int, default=200)
    options.add_argument("--key", type=int, default=0, help="another key for every number above 0")
    given = options.parse_args()
    dataset = read_description(description_path("demo"))
    print(f"inventing {given.persons:,} people", flush=True)
    engine = FrameEngine(people(given.persons, given.seed), dataset, Secret(b"bench" * 8))
    start = time.perf_counter()
    cells = finest_cells(engine)
    print(
        f"finest cells: {len(cells):,} of {given.persons:,} people, {time.perf_counter() - start:.1f} s"
    )
    start, cpu = time.perf_counter(), time.process_time()
    key = hashlib.sha256(b"key %d" % given.key).digest() if given.key else KEY
    result = ProtectedPopulation(sweeps=given.sweeps).protect(cells, key)
    seconds, busy = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    figures = {"people": given.persons, "sweeps": given.sweeps, "finest cells": len(cells)}
    times = {"clock (s)": seconds, "CPU (s)": busy, "peak (GiB)": peak}
    record("One protected population: time", figures | times)
    report = result.agency
    most = ProtectedPopulation().max_variables
    few = [t for t in report.tables if t.variables <= most]
    for label, found in (
        (
            "finest levels, up to three variables",
            replace(report, tables=tuple(few)).over(finest=True),
        ),
        ("all levels, up to three variables", replace(report, tables=tuple(few)).over()),
        ("four variables", report.over(variables=most + 1)),
    ):
        record(
            "One protected population: errors",
            {
                "people": given.persons,
                "controlled tables": label,
                "mean error": found["mean"],
                "of non-empty cells": found["mean_occupied"],
                "largest": int(found["largest"]),
            },
        )
    print(f"  rounded up: {report.rounded_up()}; empty among shown 3s: {report.empty_share:.3f}")
    print(
        f"  typical errors: {dict(result.public.errors)}; own groups {dict(result.public.group_errors)}"
    )
    if given.questions:
        compare(engine, result.cells, given.questions)


def compare(engine: KernelEngine, protected: FinestCells, questions: int) -> None:
    """Mean errors over the non-empty cells of the same questions, and ratios to the keyed methods."""
    safe = KernelEngine(
        engine.dataset, [Chunk(len(protected), protected.columns(), counts=protected.counts)]
    )
    rounding, cell_key = RandomRounding(base=3), CellKey()
    for name, asked in (
        ("four tables of the 2015 study", study_tables(engine)),
        (
            f"{questions} random tables, half of them with a filter",
            random_tables(engine, questions, own=False),
        ),
        (f"{questions} tables with own groups", random_tables(engine, questions, own=True)),
    ):
        errors: dict[str, list[np.ndarray]] = {"population": [], "rounding": [], "cell key": []}
        for query in asked:
            table = engine.tabulate(query)
            true = table.values
            if not true.any():
                continue
            seen = true > 0
            errors["population"].append(np.abs(safe.tabulate(query).values - true)[seen])
            errors["rounding"].append(np.abs(rounding.apply(table).published - true)[seen])
            errors["cell key"].append(np.abs(cell_key.apply(table).published - true)[seen])
        tell(name, errors)
    errors = {"population": [], "rounding": [], "cell key": []}
    for whole, part in nested(engine, questions):
        tables = [engine.tabulate(query) for query in (whole, part)]
        true = tables[0].values - tables[1].values
        seen = true > 0
        kept = [safe.tabulate(query).values for query in (whole, part)]
        errors["population"].append(np.abs(kept[0] - kept[1] - true)[seen])
        for label, method in (("rounding", rounding), ("cell key", cell_key)):
            shown = [method.apply(table).published for table in tables]
            errors[label].append(np.abs(shown[0] - shown[1] - true)[seen])
    tell(f"differences of {questions} nested pairs", errors)


def tell(name: str, errors: dict[str, list[np.ndarray]]) -> None:
    means = {label: float(np.concatenate(parts).mean()) for label, parts in errors.items()}
    most = {label: int(np.concatenate(parts).max()) for label, parts in errors.items()}
    record(
        "One protected population: the same questions by other methods",
        {
            "questions": name,
            "mean error": means["population"],
            "largest": most["population"],
            "keyed rounding: mean error": means["rounding"],
            "its largest": most["rounding"],
            "ratio to keyed rounding": means["population"] / means["rounding"],
            "cell key: mean error": means["cell key"],
            "largest of cell key": most["cell key"],
            "ratio to cell key": means["population"] / means["cell key"],
        },
    )


def study_tables(engine: KernelEngine) -> Iterator[TableQuery]:
    """The four tables of Shlomo, Antal and Elliot (2015), as the study of the table server makes them."""
    for name, code, names in _SELECTIONS:
        chosen = Filter(name, (engine.dataset.variable(name).codes[code],))
        yield TableQuery("demo", tuple(Axis(n) for n in names), (chosen,))


def random_tables(engine: KernelEngine, count: int, *, own: bool) -> Iterator[TableQuery]:
    """Tables of one to four variables at random levels, with a filter now and then, or with own groups."""
    rng = np.random.default_rng(1)
    variables = [v for v in engine.dataset.variables if v.name != "region"]
    for _ in range(count):
        chosen = rng.permutation(len(variables))[: int(rng.integers(1, 4))]
        axes = []
        for place in chosen:
            variable = variables[place]
            levels = [None, *(level.name for level in variable.levels)]
            level = levels[int(rng.integers(len(levels)))]
            axes.append(Axis(variable.name, level=level))
        if own:
            variable = variables[chosen[0]]
            size = int(rng.integers(1, max(2, len(variable.codes) // 2) + 1))
            codes = tuple(
                variable.codes[c] for c in sorted(rng.permutation(len(variable.codes))[:size])
            )
            axes[0] = Axis(variable.name, groups=(Group("Own group", codes),))
        filters: tuple[Filter, ...] = ()
        if rng.random() < 0.5:
            other = variables[int(rng.integers(len(variables)))]
            if other.name not in {axis.variable for axis in axes}:
                filters = (Filter(other.name, (other.codes[int(rng.integers(len(other.codes)))],)),)
        yield TableQuery("demo", tuple(axes), filters)


def nested(engine: KernelEngine, count: int) -> Iterator[tuple[TableQuery, TableQuery]]:
    """A table, and the same for all codes of one more variable but one: their difference is one code."""
    rng = np.random.default_rng(2)
    for query in random_tables(engine, count, own=False):
        used = {axis.variable for axis in query.by} | {f.variable for f in query.where}
        free = [v for v in engine.dataset.variables if v.name not in used and v.name != "region"]
        variable = free[int(rng.integers(len(free)))]
        left_out = int(rng.integers(len(variable.codes)))
        codes = tuple(c for i, c in enumerate(variable.codes) if i != left_out)
        part = TableQuery("demo", query.by, (*query.where, Filter(variable.name, codes)))
        yield query, part


if __name__ == "__main__":
    main()
