"""A tiny register in memory, and programmes over it whose every number can be added up by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lustrum.model import Dataset
from lustrum.numeric.structure import TableLayout
from lustrum.publish.programme.audit import judge
from lustrum.publish.programme.read import bound_to, parse_programme
from lustrum.publish.programme.spec import PreparedSet, Programme
from lustrum.publish.programme.system import ProgrammeSystem, RecordSource, systems_of
from lustrum.sensitivity import Background
from lustrum.sensitivity.rule import ranks_of
from lustrum.tabulate.frame import FrameEngine
from lustrum.tabulate.keys import Secret

DESCRIPTION = """
[dataset]
name = "tiny"
title = "Tiny"
units = "firms"
record_id = "id"
identifiers = ["firm"]

[[variables]]
name = "area"
codes = [["n", "N"], ["s", "S"]]

[[variables]]
name = "job"
codes = [["a", "A"], ["b", "B"], ["c", "C"]]

[[variables.hierarchies]]
name = "jobs"

[[variables.hierarchies.levels]]
name = "broad"
groups = [{code = "X", label = "X", members = ["a", "b"]}]

[[variables]]
name = "sex"
codes = [["m", "M"], ["f", "F"]]

[[measures]]
name = "pay"
label = "Pay"
unit = "EUR"
decimals = 1
holding = "firm"

[[measures]]
name = "base"
label = "Base"
decimals = 1
holding = "firm"

[[measures]]
name = "tips"
label = "Tips"
holding = "firm"
"""
SECRET = Secret(b"tiny secret of all these tests !")
RULES = '[[sets.rules]]\nrule = "threshold"\nminimum = 3\nmargin = 10\n'
PERCENT = '[[sets.rules]]\nrule = "p-percent"\np = 20\n'
PAY = 'relations = ["pay = base + tips"]'
BY_BOTH = 'by = ["area", "job"]\ntotals = true'


def firms(counts: Mapping[tuple[str, str, str], int]) -> list[dict[str, Any]]:
    """So many firms in each cell, each of its own holding, with pay that grows from one to the next."""
    found: list[dict[str, Any]] = []
    for (area, job, sex), number in counts.items():
        for _ in range(number):
            k = len(found)
            base, tips = 10.0 + k + 0.5, 3 + k % 4
            own = {"area": area, "job": job, "sex": sex, "base": base, "tips": tips}
            found.append(own | {"pay": base + tips, "id": str(k), "firm": f"g{k}"})
    return found


EVEN = {(area, job, sex): 4 for area in "ns" for job in "abc" for sex in "mf"}
FIRMS = firms(EVEN | {("n", "a", "m"): 1, ("n", "a", "f"): 1})


def dataset() -> Dataset:
    return Dataset.from_mapping(tomllib.loads(DESCRIPTION))


def records(
    rows: Sequence[Mapping[str, Any]] = FIRMS,
    background: Background | None = None,
    secret: Secret | None = None,
) -> RecordSource:
    frame = pa.Table.from_pylist([dict(row) for row in rows])
    return RecordSource(FrameEngine(frame, dataset(), secret, 1), background or Background())


def table(name: str, words: str = BY_BOTH, *measures: str) -> str:
    said = f"measures = [{', '.join(repr(m) for m in measures)}]\n" if measures else ""
    return f'[[sets.tables]]\nname = "{name}"\n{words}\n{said}'


def programme(*tables: str, one: str = "", rules: str = RULES, head: str = "") -> Programme:
    """A programme of one set, bound to the tiny register."""
    text = (
        f'[programme]\nname = "tiny"\n{head}\n[data]\ndataset = "tiny"\n[[sets]]\nname = "one"\n{one}\n'
        f"{rules}{''.join(tables)}end = true\n"
    )
    return bound_to(parse_programme(text.encode(), "tiny.toml", Path("/nowhere")), dataset())


def systems(
    *tables: str, rows: Sequence[Mapping[str, Any]] = FIRMS, **words: str
) -> tuple[PreparedSet, list[ProgrammeSystem]]:
    own = programme(*tables, **words).sets[0]
    return own, systems_of(own, records(rows), ranks_of(*(one.rule for one in own.rules)))


def judged(
    *tables: str,
    rows: Sequence[Mapping[str, Any]] = FIRMS,
    background: Background | None = None,
    zeros_shown: bool = True,
    **words: str,
) -> tuple[PreparedSet, ProgrammeSystem, Any]:
    """One set with one system, and which of its cells are sensitive."""
    own, (system,) = systems(*tables, rows=rows, **words)
    return own, system, judge(own, system, background or Background(), zeros_shown=zeros_shown)


def added_up(
    rows: Sequence[Mapping[str, Any]], layout: TableLayout, response: str, scale: int = 1
) -> list[int]:
    """The cells of a layout, row after row, by looking at every record."""
    codes = {v.name: v.codes for v in dataset().variables}

    def inside(row: Mapping[str, Any], axis: Any, category: Any) -> bool:
        return codes[axis.name].index(row[axis.name]) in category.members

    passing = [row for row in rows if all(inside(row, f, f.categories[0]) for f in layout.filters)]
    cells: list[list[tuple[Any, Any]]] = [[]]
    for axis in layout.axes:
        cells = [[*cell, (axis, category)] for cell in cells for category in axis.categories]
    found = []
    for cell in cells:
        own = [row for row in passing if all(inside(row, *place) for place in cell)]
        amounts = [1 if response == "count" else round(row[response] * scale) for row in own]
        found.append(sum(amounts))
    return found
