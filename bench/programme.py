"""How long `lustrum release` takes beside protecting each table alone, and what that leaves open.

Run it from the root of the project: ``python bench/programme.py``. A register of invented businesses is made
here. The same tables are made once as a programme, which protects them together, audits and proves them, and
once by a run of ``lustrum suppress`` for each table, as somebody would do without a programme. Then the
sensitive cells are counted that a reader of all tables can work out too closely. Seconds are those of the
processor. It prints markdown, and how far it is on standard error.
"""

from __future__ import annotations

import argparse
import csv
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from parts.figures import record
from pyarrow import csv as arrow_csv

from lustrum.demo.draws import description_path
from lustrum.demo.register import businesses
from lustrum.model import CellStatus, Release, TableAxis
from lustrum.numeric.structure import UNBOUNDED
from lustrum.publish.programme.audit import Judged, audit_ranges, judge
from lustrum.publish.programme.read import bound_to, read_programme
from lustrum.publish.programme.system import ProgrammeSystem, SystemPart, open_records, systems_of
from lustrum.readers.own import published_cells
from lustrum.sensitivity.rule import ranks_of

HEAD = """
[programme]
name = "bench"
formats = ["csv"]

[data]
file = "records.csv"
description = "description.toml"

[[sets]]
name = "turnover"
relations = ["turnover = turnover_domestic + turnover_export"]
method = {{method = "suppression"{algorithm}}}

[[sets.rules]]
rule = "p-percent"
p = 10
"""
TABLE = """
[[sets.tables]]
name = "{name}"
by = [{by}]
measures = [{measures}]
"""
SECTORS = '{variable = "activity", level = "sector", total = true}'
SECTIONS = '{variable = "activity", level = "section", total = true}'
DIVISIONS = '{variable = "activity", levels = ["section", "finest"], total = true}'
REGIONS = '{variable = "region", total = true}'
SIZES = '{variable = "size", total = true}'
PROGRAMMES = {
    "sectors": (("regions", SECTORS, REGIONS, 2), ("sizes", SECTORS, SIZES, 1)),
    "sections": (("regions", SECTIONS, REGIONS, 2), ("sizes", SECTIONS, SIZES, 1)),
    "divisions": (("regions", DIVISIONS, REGIONS, 2), ("sizes", SECTIONS, SIZES, 1)),
    "all": (("regions", DIVISIONS, REGIONS, 2), ("sizes", DIVISIONS, SIZES, 2)),
}
MEASURES = ("turnover", "turnover_domestic")


def programme_text(name: str, algorithm: str) -> str:
    """The file of a programme."""
    words = f', algorithm = "{algorithm}"' if algorithm else ""
    tables = [
        TABLE.format(
            name=table,
            by=", ".join(by),
            measures=", ".join(f'"{m}"' for m in MEASURES[:count]),
        )
        for table, *by, count in PROGRAMMES[name]
    ]
    return HEAD.format(algorithm=words) + "".join(tables) + "end = true\n"


def run(words: Sequence[object]) -> float:
    """Run the command line and give the processor seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "lustrum", *map(str, words)], check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tell(words: str) -> None:
    """Say on standard error how far the bench is; the rows go to standard output."""
    print(words, file=sys.stderr, flush=True)


def write_table(part: SystemPart, path: Path) -> None:
    """A confidential table with its contributors, as 'lustrum suppress' reads it."""
    table = part.true
    assert table.contributions is not None
    assert table.contributors is not None
    ranks = table.contributions.value.shape[-1]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            [*(a.name for a in table.axes), "value", "n", *(f"x{i + 1}" for i in range(ranks))]
        )
        for place in np.ndindex(*table.shape):
            codes = [a.codes[i] for a, i in zip(table.axes, place, strict=True)]
            writer.writerow(
                [
                    *("Total" if code == "_T" else code for code in codes),
                    table.values[place],
                    table.contributors[place],
                    *table.contributions.value[place].tolist(),
                ]
            )


def write_parents(axis: TableAxis, path: Path) -> bool:
    """The group that each code of an axis belongs to, as 'lustrum suppress' reads it; False without groups."""
    sets = {c.code: c.member_set for c in axis.categories if c.code != "_T"}
    order = {code: (len(own), -place) for place, (code, own) in enumerate(sets.items())}
    rows = []
    for code, own in sets.items():
        above = [g for g, held in sets.items() if own <= held and order[g] > order[code]]
        if above:
            rows.append((code, min(above, key=order.__getitem__)))
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("code", "parent"), *rows])
    return bool(rows)


def written(part: SystemPart, path: Path) -> Release:
    """What a protected file shows of a table of the programme."""
    hidden = np.zeros(part.true.shape, dtype=np.bool_)
    places = [
        {code: i for i, code in enumerate(axis.codes)} | {"Total": axis.codes.index("_T")}
        for axis in part.true.axes
    ]
    for key, value in published_cells(path, [axis.name for axis in part.true.axes]).items():
        if value is None:
            hidden[tuple(place[code] for place, code in zip(places, key, strict=True))] = True
    values = part.true.values
    return Release(
        axes=part.true.axes,
        numbers=np.where(hidden, 0, values),
        status=np.where(hidden, CellStatus.SECONDARY.value, CellStatus.FREE.value),
        method={"method": "suppression"},
        least=np.where(hidden, 0, values),
        most=np.where(hidden, UNBOUNDED, values),
        decimals=part.true.decimals,
        unit=part.true.unit,
    )


def measure(name: str, algorithm: str, folder: Path) -> None:
    """One row: a programme beside its tables one by one."""
    file = folder / "tables.toml"
    file.write_text(programme_text(name, algorithm), encoding="utf-8")
    programme = read_programme(file)
    records = open_records(programme.source, folder)
    (own,) = bound_to(programme, records.dataset).sets
    (system,) = systems_of(own, records, ranks_of(*(one.rule for one in own.rules)))
    judged = judge(own, system, records.background)
    out = folder / "public"
    shown = [part for part in system.parts if part.shown]
    sensitive = int(judged.sensitive.sum())
    tell(f"{name}: {len(shown)} tables, {system.values.size:,} cells, {sensitive:,} sensitive")
    words = ["release", file, "--out", out, "--trace", folder / "trace.json", "--workers", 1]
    together = run(words)
    tell(f"{name}: together in {together:.1f} CPU seconds")
    alone, releases = 0.0, []
    for number, part in enumerate(shown):
        true, public = folder / f"{number}.csv", folder / f"{number}-public.csv"
        write_table(part, true)
        more: list[object] = ["--algorithm", algorithm] if algorithm else []
        for axis in part.true.axes:
            parents = folder / f"{number}-{axis.name}.csv"
            if write_parents(axis, parents):
                more += ["--hierarchy", f"{axis.name}={parents}"]
        seconds = run(["suppress", true, "--rule", "p=10", "--out", public, *more])
        alone += seconds
        releases.append(written(part, public))
        tell(f"{part.name}: {part.true.values.size:,} cells alone in {seconds:.1f} CPU seconds")
    made = [
        written(part, out / "tables" / part.table.name / f"{part.response}.csv")
        for part in shown
        if part.table is not None
    ]
    cells = sum(part.true.values.size for part in shown)
    record(
        "Tables of a programme together and one by one",
        {
            "programme": name,
            "tables": len(shown),
            "cells shown": cells,
            "cells of the system": system.values.size,
            "together (CPU s)": together,
            "one by one (CPU s)": alone,
            "ratio": together / alone,
            "hidden together": hidden_cells(made),
            "hidden one by one": hidden_cells(releases),
            "open together": left_open(system, judged, made),
            "open one by one": left_open(system, judged, releases),
        },
    )


def hidden_cells(releases: Sequence[Release]) -> int:
    """Cells that are not shown."""
    return sum(int((~release.shown).sum()) for release in releases)


def left_open(system: ProgrammeSystem, judged: Judged, releases: Sequence[Release]) -> int:
    """Sensitive cells that a reader of all tables can work out too closely."""
    shown = iter(releases)
    every = [next(shown) if part.shown else None for part in system.parts]
    audited = audit_ranges(system, judged, every, workers=1)
    return int((~audited.enough).sum())


def main() -> None:
    """Measure the programmes that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programmes", nargs="*", default=["sectors", "sections"])
    parser.add_argument("--firms", type=int, default=1_500)
    parser.add_argument("--algorithm", default="", help="of both ways; by default the usual one")
    asked = parser.parse_args()
    for name in asked.programmes:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            arrow_csv.write_csv(businesses(asked.firms), folder / "records.csv")
            text = description_path("businesses").read_text(encoding="utf-8")
            (folder / "description.toml").write_text(text, encoding="utf-8")
            measure(name, asked.algorithm, folder)


if __name__ == "__main__":
    main()
