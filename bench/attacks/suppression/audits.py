"""Files with and without disclosures, for ``lustrum audit``: an all-clear over a disclosed cell is a failure.

A file is drawn with blanks in the layouts that agencies use. Which blanks have one value left is worked out by
the programs of this package, from all that the file says.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from attacks.suppression.cells import Leaves, Population, Record, Variable
from attacks.suppression.drive import command_line
from attacks.suppression.kinds import grouped, plain
from attacks.suppression.programs import INFINITY, Fact, Facts, Program

Companion = Literal["none", "bounds", "mean", "percent", "standing"]

STYLES: tuple[tuple[str, str, str, str], ...] = (
    ("", "", "", ""),
    ("", "x", "", ""),
    ("", "c", "", ""),
    ("", "..", "", ""),
    ("status", "", "F", "D"),
    ("status", "", "", "c"),
    ("CONF_STATUS", "", "F", "N"),
    ("OBS_STATUS", "", "A", "Q"),
)
"""The column of letters, the symbol in place of a value, and the letters of shown and hidden cells."""


@dataclass(frozen=True)
class Case:
    """A published file, the blanks that have one value left, and those that are known to within a percent."""

    number: int
    text: str
    disclosed: tuple[str, ...]
    near: tuple[str, ...]
    hidden: int
    companion: Companion


@dataclass(frozen=True)
class Audited:
    """What ``lustrum audit`` said about a file."""

    case: Case
    code: int | str
    said: str

    @property
    def false_clear(self) -> bool:
        """A disclosed cell, and no word of it."""
        return bool(self.case.disclosed) and self.code == 0

    @property
    def false_alarm(self) -> bool:
        """Nothing disclosed, not even to within a percent, and an alarm."""
        return not self.case.disclosed and not self.case.near and self.code == 3


def _population(rng: random.Random, variables: tuple[Variable, ...], negative: bool) -> Population:
    shape = [len(v.leaves) for v in variables]
    records = []

    def fill(codes: tuple[int, ...]) -> None:
        if len(codes) < len(shape):
            for code in range(shape[len(codes)]):
                fill((*codes, code))
            return
        amount = 0 if rng.random() < 0.1 else rng.randint(1, rng.choice((9, 60, 900)))
        if negative and rng.random() < 0.3:
            amount = -amount
        records.append(Record(codes, f"f{len(records)}", amount))

    fill(())
    return Population(variables, tuple(records))


def subtotal_case(number: int) -> Case:
    """A file in which blanks of two groups protect each other, unless its reader knows the groups.

    The subtotals of half of the files are blank too.
    """
    rng = random.Random(f"audit of subtotals {number}")
    tree = grouped(rng, "nace", prefix=True, deep=False)
    others = tuple(plain("bc"[i], rng.randint(2, 3)) for i in range(rng.choice((0, 1, 1))))
    people = _population(rng, (tree, *others), False)
    cells = people.table(v.name for v in people.variables)
    groups = rng.sample(sorted(tree.groups), 2)
    lines = [rng.choice(tree.groups[group]) for group in groups]
    if rng.random() < 0.5:
        lines += groups
    columns = [set(rng.sample(v.leaves, 2)) for v in others]
    hidden = {
        i for i, cell in enumerate(cells)
        if cell["nace"] in lines
        and all(cell[v.name] in some for v, some in zip(others, columns, strict=True))
    }  # fmt: skip
    facts = _shown(people, cells, hidden)
    total = rng.choice(("Total", "_T", "Canada"))
    text = _text(rng, people, cells, hidden, None, rng.choice(STYLES), "none", total, facts)
    exact, near = _disclosed(people, cells, hidden, facts, False)
    return Case(number, text, exact, near, len(hidden), "none")


def case(number: int, *, negative: bool = False) -> Case:
    """The file of a number; the same everywhere. At first sight its blanks protect each other.

    Half of the files then get one more blank, a value left standing, or columns beside the values.
    """
    rng = random.Random(f"audit {number} {negative}")
    first = (
        grouped(rng, "nace", prefix=True, deep=False)
        if rng.random() < 0.4
        else plain("a", rng.randint(3, 5))
    )
    others = tuple(plain("bc"[i], rng.randint(2, 4)) for i in range(rng.choice((0, 1, 1, 1, 2))))
    people = _population(rng, (first, *others), negative)
    cells = people.table(v.name for v in people.variables)
    hidden: set[int] = set()
    for _ in range(200):
        hidden = _blanks(rng, people, cells)
        if not _disclosed(people, cells, hidden, _shown(people, cells, hidden), negative)[0]:
            break
    style = rng.choice(STYLES)
    companion: Companion = "none"
    standing: int | None = None
    leak = rng.choice(
        ("none", "none", "none", "blank", "blank", "companion", "companion", "standing")
    )
    if leak == "blank":
        hidden |= {rng.randrange(len(cells))}
    elif leak == "companion":
        companion = rng.choice(("bounds", "mean", "percent"))
    elif leak == "standing" and style[3]:
        companion, standing = "standing", rng.choice(sorted(hidden))
    facts = _shown(people, cells, hidden - {standing})
    total = rng.choice(("Total", "Total", "_T", "Gesamt", "Canada"))
    text = _text(rng, people, cells, hidden, standing, style, companion, total, facts)
    exact, near = _disclosed(people, cells, hidden, facts, negative)
    return Case(number, text, exact, near, len(hidden), companion)


def _shown(people: Population, cells: list[dict[str, str]], hidden: set[int]) -> Facts:
    facts = Facts()
    for i, where in enumerate(cells):
        if i not in hidden:
            leaves = people.leaves(where)
            value = sum(people.values[j] for j in leaves)
            facts.add(Fact(leaves, value, value))
    return facts


def _disclosed(
    people: Population, cells: list[dict[str, str]], hidden: set[int], facts: Facts, negative: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The blanks that one value is left for, and those whose middle is within a percent of both ends."""
    places = {i: people.leaves(cells[i]) for i in sorted(hidden)}
    program = Program(people.size, facts, whole=True, free=negative, also=places.values())
    exact, near = [], []
    for i, leaves in places.items():
        low, high = program.range(leaves)
        name = " ".join(cells[i].values())
        if high - low < 0.5:
            exact.append(name)
        elif high < INFINITY and low > -INFINITY and 100 * (high - low) <= abs(high + low):
            near.append(name)
    return tuple(exact), tuple(near)


def _blanks(rng: random.Random, people: Population, cells: list[dict[str, str]]) -> set[int]:
    """A box of inner cells, two codes along every variable."""
    chosen = [set(rng.sample(v.leaves, 2)) for v in people.variables]
    return {
        i for i, cell in enumerate(cells)
        if all(c in some for c, some in zip(cell.values(), chosen, strict=True))
    }  # fmt: skip


def _text(
    rng: random.Random,
    people: Population,
    cells: list[dict[str, str]],
    hidden: set[int],
    standing: int | None,
    style: tuple[str, str, str, str],
    companion: Companion,
    total: str,
    facts: Facts,
) -> str:
    column, symbol, free, letter = style
    companions = {
        "bounds": ["lower", "upper"],
        "mean": ["mean", "firms"],
        "percent": ["percent"],
    }.get(companion, [])
    rows = [",".join([*cells[0], "value", *([column] if column else []), *companions])]
    grand = sum(people.values)
    for i, where in enumerate(cells):
        leaves = people.leaves(where)
        value = sum(people.values[j] for j in leaves)
        row = [*(total if c == "Total" else c for c in where.values())]
        row.append(symbol if i in hidden and i != standing else str(value))
        if column:
            row.append(letter if i in hidden else free)
        row += _beside(rng, companion, leaves, value, i in hidden, grand, facts)
        rows.append(",".join(row))
    return "\n".join(rows) + "\n"


def _beside(
    rng: random.Random,
    companion: Companion,
    leaves: Leaves,
    value: int,
    blank: bool,
    grand: int,
    facts: Facts,
) -> list[str]:
    """The companion columns of a row, and what they say."""
    if companion == "bounds":
        if not blank:
            return ["", ""]
        near = rng.random() < 0.3
        low, high = (
            (value, value) if near else (value - rng.randint(1, 9), value + rng.randint(1, 9))
        )
        facts.add(Fact(leaves, low, high))
        return [str(low), str(high)]
    if companion == "mean":
        firms = rng.randint(2, 9)
        mean = round(value / firms, 1)
        facts.add(Fact(leaves, (mean - 0.05) * firms - 1e-9, (mean + 0.05) * firms + 1e-9))
        return [f"{mean:.1f}", str(firms)]
    if companion == "percent":
        if grand <= 0:
            return [""]
        share = round(100 * value / grand, 1)
        facts.add(
            Fact(leaves, (share - 0.05) * grand / 100 - 1e-9, (share + 0.05) * grand / 100 + 1e-9)
        )
        return [f"{share:.1f}"]
    return []


def audited(one: Case, folder: Path) -> Audited:
    """Run ``lustrum audit`` on a file, without any options."""
    path = folder / "published.csv"
    path.write_text(one.text, encoding="utf-8")
    code, said = command_line("audit", str(path))
    return Audited(one, code, said)


AUDITS: dict[str, Callable[[int], Case]] = {
    "audit": case,
    "audit, negative": partial(case, negative=True),
    "audit, subtotals": subtotal_case,
}
"""Kinds of drawn files, and the file of a number."""
