"""One protected population of very many areas: seconds and memory by step, and how soon its bundle opens.

    python bench/protected_areas.py --areas 5000 --people 200000
    python bench/protected_areas.py --areas 190000 --people 15000000 --memory 8
    python bench/protected_areas.py --areas 190000 --drawn-cells 4746947

Invented people live in areas, districts and regions, with sex, age, employment, citizenship and marital
status. ``lustrum protect`` runs in a process of its own with at most ``--memory`` GiB, and another one opens
the bundle as a server does. Prints CPU seconds, seconds of the clock and memory by step, the longest stretches
of work without a word of progress, and the errors that the agency's report states. With ``--drawn-cells``
nobody is protected: a bundle of so many drawn cells is opened.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from areas import description
from parts.figures import record

from lustrum.model import Dataset
from lustrum.tabulate import Secret, Store
from lustrum.tabulate.encode import Chunk

AGES = 18
POLICY = """dataset = "areas"
rules = {{max_dimensions = 6, max_filters = 20, max_cells = 20000000, nested_only = false}}
risk = {{limit = 1.0}}
before = [{{method = "protected-population", sweeps = {sweeps}, extra_tables = {extra}}}]
protect = {{method = "none"}}
end = true
"""


def people_description(areas: int) -> dict[str, Any]:
    """The areas of the bench of areas, with more that is known of their people."""
    words = description(areas)
    words["variables"][2]["hierarchies"] = [
        {
            "name": "broad",
            "levels": [
                {
                    "name": "broad age",
                    "groups": [
                        {
                            "code": f"A{first}",
                            "label": f"From {5 * first}",
                            "members": [str(code) for code in range(first, last)],
                        }
                        for first, last in ((0, 3), (3, 6), (6, 13), (13, AGES))
                    ],
                }
            ],
        }
    ]
    words["variables"] += [
        {"name": "employment", "codes": ["child", "employed", "unemployed", "inactive"]},
        {"name": "citizenship", "codes": ["own", "near", "far"]},
        {
            "name": "marital",
            "label": "Marital status",
            "codes": ["single", "married", "apart", "widowed"],
        },
    ]
    return words


def fill(store: Store, areas: int, people: int) -> None:
    """Write invented people."""
    dataset = Dataset.from_mapping(people_description(areas))
    with store.replace(dataset, Secret(bytes(range(32)))) as writer:
        for chunk in draw(areas, people):
            writer.write(chunk)


def draw(areas: int, people: int) -> Iterator[Chunk]:
    """Invented people; what they do and whom they live with depends on their age."""
    chance = np.random.default_rng(3)
    sizes = np.cumsum(chance.gamma(8.0, size=areas))
    shares = 1 / (1 + np.exp((np.arange(AGES) - 14) / 1.5))
    far = chance.beta(1.0, 12.0, areas)
    for start in range(0, people, 1 << 20):
        some = min(1 << 20, people - start)
        area = np.searchsorted(sizes, chance.random(some) * sizes[-1]).astype(np.uint32)
        age = chance.choice(AGES, some, p=shares / shares.sum()).astype(np.uint8)
        drawn = chance.random((3, some))
        at_work, grown, old = (age >= 3) & (age < 13), age >= 4, age >= 12
        work = np.where(drawn[0] < 0.72, 1, np.where(drawn[0] < 0.79, 2, 3))
        employment = np.where(age < 3, 0, np.where(at_work, work, 3))
        foreign = np.where(drawn[1] < 0.4 * far[area], 1, 2)
        citizenship = np.where(drawn[1] < far[area], foreign, 0)
        later = np.where(drawn[2] < 0.62, 1, np.where(old & (drawn[2] < 0.8), 3, 2))
        marital = np.where(grown & (drawn[2] < 0.04 * (age.astype(np.int64) + 4)), later, 0)
        codes = {
            "area": area,
            "sex": chance.integers(0, 2, some).astype(np.uint8),
            "age": age,
            "employment": employment.astype(np.uint8),
            "citizenship": citizenship.astype(np.uint8),
            "marital": marital.astype(np.uint8),
        }
        yield Chunk(some, codes, keys=chance.integers(0, 2**64, some, dtype=np.uint64))


class Steps:
    """CPU seconds, seconds of the clock and most memory of every step of the work."""

    def __init__(self) -> None:
        self.rows: dict[str, list[float]] = {}
        self.step = "beginning"
        self.silences: list[tuple[float, str]] = []
        self._last = (time.process_time(), time.perf_counter())
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            held = int(Path("/proc/self/statm").read_text().split()[1])
            row = self.rows.setdefault(self.step, [0.0, 0.0, 0.0])
            row[2] = max(row[2], held * os.sysconf("SC_PAGE_SIZE") / 2**30)

    def __call__(self, step: str, share: float) -> None:
        """Note that a step has come so far."""
        now = (time.process_time(), time.perf_counter())
        row = self.rows.setdefault(self.step, [0.0, 0.0, 0.0])
        row[0], row[1] = row[0] + now[0] - self._last[0], row[1] + now[1] - self._last[1]
        silent = f"{self.step} {self._share:.0%} to {step} {share:.0%}"
        self.silences = sorted([*self.silences, (now[0] - self._last[0], silent)])[-5:]
        self._share = share
        if step != self.step or int(20 * share) > self._tenth:
            print(
                f"    {time.strftime('%H:%M:%S')} {step} {share:.0%}", file=sys.stderr, flush=True
            )
        self._tenth = int(20 * share)
        self._last, self.step = now, step

    _tenth, _share = 0, 0.0

    def end(self) -> None:
        """Print all steps."""
        self("end", 1.0)
        self._over.set()
        for name, (cpu, clock, most) in self.rows.items():
            figures = {"step": name, "CPU (s)": cpu, "clock (s)": clock, "memory (GiB)": most}
            record("Very many areas: steps of the protection", figures)


def limited(gibibytes: float) -> None:
    """Let this process hold no more than so much."""
    most = int(gibibytes * 2**30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def protected(root: Path) -> None:
    """What ``lustrum protect`` does, with an eye on its steps."""
    from contextlib import contextmanager

    from rich.console import Console

    from lustrum.cli import protect

    steps = Steps()

    @contextmanager
    def watched(_console: Console) -> Any:
        yield steps

    protect.progress_bars = watched  # type: ignore[assignment]
    made = protect.protect_dataset("areas", root, Console(stderr=True, markup=False))
    steps.end()
    agency = made.result.agency
    used = resource.getrusage(resource.RUSAGE_SELF)
    record(
        "Very many areas: protection",
        {
            "areas": len(made.cells.dataset.variable("area").codes),
            "people": int(made.cells.counts.sum()),
            "occupied finest cells": len(made.cells),
            "cells that may show": len(made.result.memory),
            "cells of the bundle": len(made.result.cells),
            "controlled cells": sum(table.cells for table in agency.tables),
            "CPU (s)": used.ru_utime + used.ru_stime,
            "peak (GiB)": used.ru_maxrss / 2**20,
        },
    )
    for words, finest in (("finest levels", True), ("all levels", False)):
        for variables in range(7):
            figures = agency.over(finest=finest, variables=variables)
            if figures["tables"]:
                record(
                    "Very many areas: errors",
                    {
                        "controlled tables": f"{words}, {variables} variables",
                        "tables": int(figures["tables"]),
                        "cells": int(figures["cells"]),
                        "mean error": figures["mean"],
                        "of non-empty cells": figures["mean_occupied"],
                        "largest": int(figures["largest"]),
                    },
                )
    for cpu, silent in reversed(steps.silences):
        print(f"  {cpu:.1f} CPU s without a word of progress: {silent}")
    _say_peak()


def drawn_bundle(root: Path, areas: int, count: int) -> None:
    """Write a bundle of drawn cells, to be opened; its report is invented."""
    from lustrum.model.finest import FinestCells
    from lustrum.protect import ProtectedPopulation
    from lustrum.protect.population.channel import nearest_rates
    from lustrum.protect.population.public import PublicReport
    from lustrum.publish.bundles.write import pack_bundle, write_bundle

    dataset = Dataset.from_mapping(people_description(areas))
    sizes = [len(variable.codes) for variable in dataset.variables]
    every = int(np.prod(sizes))
    numbers = np.unique(np.random.default_rng(1).integers(0, every, count + count // 50))[:count]
    method, errors = ProtectedPopulation(sweeps=3, extra_tables=200), {1: 1.0, 2: 1.5, 3: 2.0}
    rates = nearest_rates(method.base, method.base)
    report = PublicReport(method.to_mapping(), method.support, 0.5, errors, errors, rates, rates)
    cells = FinestCells(
        dataset, np.stack(np.unravel_index(numbers, sizes)), np.full(numbers.size, 3)
    )
    policy = POLICY.format(sweeps=3, extra=200).encode()
    write_bundle(root / "bundles" / "areas", pack_bundle(cells, policy, report))


def opened(root: Path) -> None:
    """Open the bundle as a server does."""
    from lustrum.public.bundle.files import read_bundle
    from lustrum.public.bundle.numbers import BundleNumbers

    for attempt in ("first", "again"):
        began, clock = time.process_time(), time.perf_counter()
        bundle = read_bundle(root / "bundles" / "areas")
        read = time.process_time()
        numbers = BundleNumbers(bundle)
        cpu, seconds = time.process_time() - began, time.perf_counter() - clock
        figures = {
            "opened": f"{attempt}, {len(bundle.cells):,} cells",
            "CPU (s)": cpu,
            "of which reading (CPU s)": read - began,
        }
        figures |= {"clock (s)": seconds, "peak (GiB)": _peak()}
        record("Very many areas: opening a bundle", figures)
        if attempt == "first":
            del bundle, numbers
    for name, query in questions(len(bundle.dataset.variable("area").codes)).items():
        for attempt in ("first", "again"):
            began, clock = time.process_time(), time.perf_counter()
            numbers.views(query)
            cpu, seconds = time.process_time() - began, time.perf_counter() - clock
            figures = {"table": f"{name}, {attempt}", "CPU (s)": cpu, "clock (s)": seconds}
            record(
                f"Very many areas: tables of a bundle of {len(bundle.cells):,} cells",
                figures | {"peak (GiB)": _peak()},
            )
    _say_peak()


def questions(areas: int) -> dict[str, Any]:
    """Tables that need everybody, and tables that need one area or one district."""
    from lustrum.model import Axis, Filter, TableQuery

    def asked(*by: str, **where: tuple[str, ...]) -> Any:
        axes = tuple(Axis(*name.split(":")) for name in by)
        return TableQuery("areas", axes, tuple(Filter(n, c) for n, c in where.items()))

    one, other = f"E{areas // 3:08d}", f"E{areas // 2:08d}"
    return {
        "sex x broad age": asked("sex", "age:broad age"),
        "district x sex": asked("area:district", "sex"),
        "age x employment in one area": asked("age", "employment", area=(one,)),
        "age x employment in another area": asked("age", "employment", area=(other,)),
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _say_peak() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        f"  {used.ru_utime + used.ru_stime:.1f} CPU s in all, peak {used.ru_maxrss / 2**20:.2f} GiB",
        flush=True,
    )


def main() -> None:
    """Invent people, protect them in a process of its own, and open the bundle in another one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--areas", type=int, default=5_000)
    parser.add_argument("--people", type=int, default=200_000)
    parser.add_argument("--sweeps", type=int, default=12)
    parser.add_argument("--extra-tables", type=int, default=1100)
    parser.add_argument("--memory", type=float, default=8.0, help="GiB that the process may hold")
    parser.add_argument(
        "--data", type=Path, help="a folder in which the people and the bundle are kept"
    )
    parser.add_argument("--drawn-cells", type=int, help="open a bundle of so many drawn cells")
    parser.add_argument("--only", choices=("people", "protect", "open"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only == "protect":
        limited(asked.memory)
        protected(asked.data)
    elif asked.only == "open":
        opened(asked.data)
    else:
        with tempfile.TemporaryDirectory() as folder:
            _all(asked, asked.data or Path(folder) / "data")


def _all(asked: argparse.Namespace, root: Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    if not asked.drawn_cells:
        print(f"{asked.areas:,} areas, {asked.people:,} people, {asked.sweeps} sweeps", flush=True)
    if asked.drawn_cells:
        (root / "bundles").mkdir(exist_ok=True)
        drawn_bundle(root, asked.areas, asked.drawn_cells)
        command = [sys.executable, __file__, "--only", "open", "--data", str(root)]
        subprocess.run(command, check=True)
        return
    store = Store(root)
    if "areas" not in store.names():
        fill(store, asked.areas, asked.people)
    (root / "policies").mkdir(exist_ok=True)
    words = POLICY.format(sweeps=asked.sweeps, extra=asked.extra_tables)
    (root / "policies" / "areas.toml").write_text(words)
    for part in () if asked.only == "people" else ("protect", "open"):
        command = [sys.executable, __file__, "--only", part, "--data", str(root)]
        subprocess.run([*command, "--memory", str(asked.memory)], check=True)


if __name__ == "__main__":
    main()
