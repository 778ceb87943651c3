"""Small releases, and what any file of them may tell of each cell, worked out cell by cell."""

from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal
from typing import Any

import numpy as np

from lustrum.model import Category, DescribedStatistic, Release, TableAxis

OPEN = 2**62
HIDDEN = 918_273_645
"""A value that no file may hold, nor its digits."""


def axis(name: str, labels: str, notes: str = "") -> TableAxis:
    """An axis with a category for each word; the one called Total holds all others."""
    words = labels.split()
    inner = tuple(i for i, word in enumerate(words) if word != "Total")
    said = notes.split("|") if notes else [""] * len(words)
    return TableAxis(
        name,
        name.title(),
        tuple(
            Category(f"{name[0]}{i}", w, inner if w == "Total" else (i,), said[i])
            for i, w in enumerate(words)
        ),
    )


def made(*axes: TableAxis, values: Any, status: Any = None, **words: Any) -> Release:
    shape = tuple(len(a) for a in axes)
    letters = np.full(shape, "F") if status is None else np.array(status).reshape(shape)
    arrays = ("least", "most", "errors", "grades", "undefined", "margins")
    given = {k: np.array(v).reshape(shape) if k in arrays else v for k, v in words.items()}
    numbers = np.array(values, dtype=np.int64).reshape(shape)
    return Release(axes, numbers, letters, {"method": "by hand", "base": 3}, **given)


AREA, SEX, AGE = axis("area", "North South Total"), axis("sex", "women men"), axis("age", "0 1 2")
WHAT = axis("what", "Firms Turnover Mean")
STATISTICS = (
    DescribedStatistic("w0", "Firms", "firms", 0),
    DescribedStatistic("w1", "Turnover", "1000 euro", 1),
    DescribedStatistic("w2", "Mean", "euro", 2),
)
MANY = tuple(map(str, range(40)))
RELEASES = {
    "counts": made(AREA, SEX, values=[4, 0, 7, 9, 11, 9], unit="people", notes=("Rounded.",)),
    "hidden": made(
        AREA, SEX, values=[4, HIDDEN, 7, HIDDEN, 11, 0], status=list("FAFDFN"), unit="people"
    ),
    "intervals": made(
        AREA,
        SEX,
        values=[412, HIDDEN, HIDDEN, HIDDEN, HIDDEN, -105],
        status=list("FDADNF"),
        # An interval; one of a single value; one open above, one open below.
        least=[400, 250, HIDDEN, 100, -OPEN, -200],
        most=[500, 375, HIDDEN, OPEN, 900, 0],
        decimals=2,
        unit="euro",
        label="Turnover",
    ),
    "one interval of width one": made(
        SEX, values=[HIDDEN, 5], status=["D", "F"], least=[7, 5], most=[8, 5]
    ),
    "bounds of what is shown": made(
        SEX, values=[3, 6], least=[1, 4], most=[5, 8], status=["F", "F"], unit="people"
    ),
    "statistics": made(
        AREA,
        WHAT,
        values=[3000, 123456, -3339, 0, HIDDEN, 0, 12345, 99999, 1],
        status=list("FFFFOFFFF"),
        least=[2999, 120000, -OPEN, 0, 1250, 0, 12345, 99999, 1],
        most=[3001, 130000, OPEN, 0, 9870, 0, 12345, 99999, 1],
        decimals=3,
        undefined=[False] * 5 + [True] + [False] * 3,
        statistics=STATISTICS,
        label="Firms and turnover",
        additive=False,
        errors=[1999, 1234, 567, 0, 888, 777, -1, 250, 0],
        grades=list("ABCABCABC"),
    ),
    "two statistics": made(
        AREA,
        axis("what", "Firms Turnover"),
        values=[30, 1234, 50, 999, 80, HIDDEN],
        status=list("FFFFFN"),
        decimals=1,
        statistics=STATISTICS[:2],
        label="Firms and turnover",
    ),
    "a lower end alone": made(SEX, values=[3, HIDDEN], status=["F", "N"], least=[1, 2]),
    "an upper end alone": made(SEX, values=[3, HIDDEN], status=["F", "N"], most=[8, 9]),
    "grades without errors": made(SEX, values=[HIDDEN, 20], status=["N", "F"], grades=["b", "a"]),
    "estimates": made(
        SEX,
        AGE,
        values=[10, HIDDEN, 30, 40, 50, 60],
        status=list("FNFFFF"),
        errors=[2, 999, -1, 0, 7, 8],
        grades=["good", "poor", "poor", "fair, so to say", "good", "fair"],
        unit="people",
    ),
    "one margin": made(
        SEX,
        AGE,
        values=[10, HIDDEN, 30, 40, 50, 60],
        status=list("FNFFFF"),
        margin=7,
        unit="people",
    ),
    "margins": made(
        AREA,
        axis("what", "Firms Turnover"),
        values=[30, 1234, 50, HIDDEN, 80, 7],
        status=list("FFFNFF"),
        decimals=1,
        statistics=STATISTICS[:2],
        label="Firms and turnover",
        margins=[70, -1, 90, HIDDEN, 0, 5],
        least=[20, 1200, -OPEN, 0, 0, 0],
        most=[OPEN, 1300, OPEN, 0, 90, 10],
    ),
    "errors without grades": made(SEX, values=[10, 20], errors=[3, 4]),
    "nobody else": made(values=42, unit="people"),
    "one hidden number": made(values=HIDDEN, status="N", unit="people"),
    "one turnover": made(values=4250, decimals=2, unit="euro", label="Turnover"),
    "own groups": made(
        axis("area", "mine Total", "North, South|"), SEX, values=[1, 2, 3, 4], unit="people"
    ),
    "names of columns": made(
        axis("value", "x y"),
        axis("value_", "x y"),
        axis("status", "x y"),
        axis("value_label", "x y"),
        values=range(16),
        status=["F"] * 15 + ["N"],
        least=[-5] * 16,
        most=[99] * 16,
    ),
    "large numbers": made(
        SEX, AGE, values=[10**15 - 1, 10**15, -(10**15), -(10**15) + 1, 10**17 + 1, 5], decimals=1
    ),
    "large whole numbers": made(AREA, values=[10**15 - 1, -(10**15), 10**15]),
    "four variables": made(AREA, SEX, AGE, axis("own", "yes no"), values=range(36), unit="people"),
    "wide": made(SEX, AGE, axis("size", " ".join(MANY)), values=range(240), unit="people"),
}


def decimals_of(release: Release, at: tuple[int, ...]) -> int:
    return release.statistics[at[-1]].decimals if release.statistics else release.decimals


def number(release: Release, value: Any, decimals: int) -> Decimal:
    """A stored number as a reader sees it: with so many decimals, and none of the others."""
    exact = Decimal(int(value)).scaleb(-release.decimals)
    return exact.quantize(Decimal(1).scaleb(-decimals), ROUND_FLOOR)


def told(release: Release, *, own_decimals: bool = True) -> list[dict[str, Any]]:
    """Of each cell what a file may tell; what it may not tell is None."""
    cells = []
    for at in np.ndindex(*release.shape):
        free = release.status[at] == "F"
        there = free and not (release.undefined is not None and release.undefined[at])
        decimals = decimals_of(release, at) if own_decimals else release.decimals
        cell: dict[str, Any] = {"codes": [], "labels": [], "notes": []}
        for own, place in zip(release.axes, at, strict=True):
            cell["codes"].append(own.categories[place].code)
            cell["labels"].append(own.categories[place].label)
            cell["notes"].append(own.categories[place].note)
        cell["at"], cell["decimals"] = at, decimals
        cell["value"] = number(release, release.numbers[at], decimals) if there else None
        cell["status"] = str(release.status[at])
        cell["unit"] = release.statistics[at[-1]].unit if release.statistics else release.unit
        low, high = release.least, release.most
        cell["low"] = cell["high"] = None
        if not free and low is not None and high is not None:
            if -OPEN < low[at] < high[at] < OPEN:
                cell["low"] = number(release, low[at], decimals)
                cell["high"] = number(release, high[at], decimals)
        estimated = there and release.errors is not None and release.errors[at] >= 0
        cell["standard_error"] = cell["reliability"] = None
        if estimated and release.grades is not None:
            cell["standard_error"] = number(release, release.errors[at], decimals)
            cell["reliability"] = str(release.grades[at])
        margin = -1 if release.margin is None else release.margin
        margin = margin if release.margins is None else release.margins[at]
        cell["margin"] = number(release, margin, decimals) if there and margin >= 0 else None
        cells.append(cell)
    return cells


def names_beside(release: Release) -> dict[str, str]:
    """What columns are called that are not variables: a variable keeps its name."""
    variables = {own.name for own in release.axes}
    wanted = [f"{name}{end}" for name in sorted(variables) for end in ("_label", "_members")]
    wanted += ["value", "unit", "status", "low", "high", "standard_error", "reliability", "margin"]
    found = {}
    for want in wanted:
        found[want] = next(n for n in (want + "_" * k for k in range(9)) if n not in variables)
    return found
