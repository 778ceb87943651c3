"""The cases of the corpus, and what the reader says of one: bare, answered, and with its true layout."""

from __future__ import annotations

import functools
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lustrum.model.errors import InputError, NotJudgedError
from lustrum.readers.container import read_container
from lustrum.readers.judge import judge, open_file
from lustrum.readers.layout import Layout, read_layout
from lustrum.readers.propose import propose

HERE = Path(__file__).resolve().parent
FILES = HERE / "files"
CLEAR, DISCLOSED, NOT_JUDGED = 0, 3, 4
ROUNDS = 5


@dataclass(frozen=True, eq=False)
class Case:
    """One published table: its files, their true layouts, and the answer."""

    name: str
    answer: Mapping[str, Any]

    @property
    def family(self) -> str:
        return self.name.split("/")[0]

    @property
    def inputs(self) -> list[Path]:
        return [Path(t.replace("{stem}", str(FILES / self.name))) for t in self.answer["inputs"]]

    @property
    def layouts(self) -> list[Layout]:
        return [read_layout(path.with_suffix(".layout.toml")) for path in self.inputs]

    @property
    def disclosed(self) -> bool:
        return bool(self.answer["truth"] == "disclosed")

    @property
    def asked(self) -> str:
        """The role that gives the secret away itself, so that no layout can call it harmless."""
        return str(self.answer.get("asked", ""))


@dataclass
class Outcome:
    """What an audit ended with; no exit code stands for an error."""

    code: int | None
    exact: list[tuple[str, float]] = field(default_factory=list)
    questions: list[tuple[str, str]] = field(default_factory=list)
    """The file and the role of each question."""
    standing: int = 0
    error: str = ""


@functools.cache
def cases() -> tuple[Case, ...]:
    found = [p for p in FILES.glob("*/*.toml") if not p.name.endswith(".layout.toml")]
    return tuple(
        Case(p.relative_to(FILES).with_suffix("").as_posix(), tomllib.loads(p.read_text("utf-8")))
        for p in sorted(found)
    )


def families() -> list[str]:
    return sorted({case.family for case in cases()})


def audit(paths: list[Path], layouts: list[Layout] | list[None]) -> Outcome:
    """The verdict on files with their layouts. Anything but an error of the package is left to be raised."""
    try:
        opened = [open_file(path, layout) for path, layout in zip(paths, layouts, strict=True)]
        report = judge(opened).report
    except InputError as problem:
        code = NOT_JUDGED if isinstance(problem, NotJudgedError) else None
        return Outcome(code, questions=[("", "column")] * (code is not None), error=str(problem))
    return Outcome(
        report.exit,
        [(v.cell, float(v.low)) for v in report.values if v.finding == "exact"],
        [(q.file, q.role) for q in report.questions],
        len(report.standing),
    )


@functools.cache
def bare(case: Case) -> Outcome:
    return audit(case.inputs, [None] * len(case.inputs))


@functools.cache
def with_true_layout(case: Case) -> Outcome:
    return audit(case.inputs, case.layouts)


@functools.cache
def answered(case: Case) -> tuple[Outcome, int]:
    """The verdict after the questions asked were answered truly, and no others; and how many there were."""
    truths = case.layouts
    layouts = [proposal(path, truth) for path, truth in zip(case.inputs, truths, strict=True)]
    outcome = bare(case)
    asked: set[tuple[str, str]] = set()
    for _ in range(ROUNDS):
        new = set(outcome.questions) - asked
        # A contradiction has to be explained before anything can be believed.
        explained = "codes" not in {role for _, role in new}
        if not new or (outcome.code == DISCLOSED and explained):
            break
        asked |= new
        for i, path in enumerate(case.inputs):
            for file, role in sorted(new):
                if file == str(path) or file not in map(str, case.inputs):
                    layouts[i] = answer(layouts[i], truths[i], role)
        outcome = audit(case.inputs, layouts)
    return outcome, len(asked)


def proposal(path: Path, truth: Layout) -> Layout:
    """The proposed layout. Where cells contradict each other at once, there is none but the columns."""
    try:
        return propose(read_container(path)).layout
    except NotJudgedError:
        return Layout(tables=truth.tables)


def answer(layout: Layout, truth: Layout, role: str) -> Layout:
    """The layout with one role as it truly is, and no longer open."""
    kind, _, name = role.partition(":")
    new: dict[str, Any] = {}
    if kind in ("symbols", "letters", "notes", "parts", "decimal", "kind", "signed"):
        new[kind] = getattr(truth, kind)
        if kind in ("notes", "parts") and new[kind] is None:
            return layout
    elif kind == "missing":
        missing = {table.sheet: table.missing for table in truth.tables}
        new["tables"] = tuple(
            table.model_copy(update={"missing": missing.get(table.sheet)})
            for table in layout.tables
        )
    elif kind == "column":
        # Who says what a column is also says how columns belong together.
        kept = {n: d for n, d in layout.dimensions.items() if n in truth.dimensions}
        new = {"tables": truth.tables, "dimensions": kept}
    elif kind in ("codes", "all", "complete"):
        new = _dimensions(layout, truth, name)
    return layout.model_copy(update={**new, "open": tuple(r for r in layout.open if r != role)})


def _dimensions(layout: Layout, truth: Layout, name: str) -> dict[str, Any]:
    """The codes of a variable, or of all where cells contradict each other."""
    across = truth.tables[0].across
    nested = {column for table in truth.tables for column in table.nested or ()}
    same = len(across or ()) == 1 and layout.tables[0].across == (name,)
    if same and name not in truth.dimensions:
        return {"dimensions": {**layout.dimensions, name: truth.dimensions[across[0]]}}
    if name in truth.dimensions and name not in nested:
        return {"dimensions": {**layout.dimensions, name: truth.dimensions[name]}}
    # The truth has this variable under another name, or other things stand in the cells than numbers.
    more = {} if name else {"rounding": truth.rounding, "symbols": truth.symbols}
    return {"tables": truth.tables, "dimensions": truth.dimensions, **more}


def codes_of(cell: str) -> Counter[str]:
    """The codes of a cell of a report; columns without a name stand for any code."""
    found = re.split(r"(?:^|, )[^=]*?=", cell)[1:]
    pieces = [piece.strip() for code in found for piece in code.split(" / ")]
    return Counter(piece for piece in pieces if not re.fullmatch(r"column \d+", piece))


def is_at(at: Mapping[str, str], cell: str) -> bool:
    """Whether a cell of a report has the codes of an answer; either may leave out constant ones."""
    here = Counter(piece.strip() for code in at.values() for piece in code.split(" / "))
    there = codes_of(cell)
    return here <= there or there <= here


def false_values(case: Case, outcome: Outcome) -> list[str]:
    """What is called exact and is not. Answers count in units of the last printed digit."""

    def known(hidden: Mapping[str, Any], value: float) -> bool:
        if hidden["known"] not in ("exact", "close"):
            return False
        low, high = hidden["low"], hidden["high"]
        return any(low - 1e-6 <= value * unit <= high + 1e-6 for unit in (1, 10, 100))

    return [
        f"{cell} = {value}"
        for cell, value in outcome.exact
        if not any(is_at(h["at"], cell) and known(h, value) for h in case.answer["hidden"])
    ]
