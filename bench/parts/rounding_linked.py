"""How fast and how well three-way, hierarchical and linked tables are rounded, as markdown tables.

Run it from the root of the project: ``python bench/parts/rounding_linked.py --data FOLDER``. The folder holds
``f3_40.csv.gz`` (columns ``v1``, ``v2``, ``v3`` and ``freq``), itself or in a folder ``tables``; without it a
table alike is generated. Seconds are of the clock, the structure of the tables included, the best of
three runs after one that compiles. Errors are over all published cells, the grand total included.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import time
from pathlib import Path

import numpy as np
from figures import record

from lustrum.model import Category, TableAxis
from lustrum.numeric.structure import Structure
from lustrum.protect.rounding.controlled.linked import round_system
from lustrum.protect.rounding.controlled.local import Scope, round_inner, sums_of

SCOPES: tuple[Scope, ...] = ("all", "small")
REPEATS = 3


def axis(name: str, size: int, groups: tuple[int, ...] = ()) -> TableAxis:
    """Single codes, groups of so many neighbouring codes, and the total."""
    parts = [(i,) for i in range(size)]
    for width in groups:
        parts += [tuple(range(i, min(i + width, size))) for i in range(0, size, width)]
    parts.append(tuple(range(size)))
    cats = tuple(Category(f"{p[0]}-{p[-1]}-{len(p)}", "", p) for p in dict.fromkeys(parts))
    return TableAxis(name, name, cats)


def full(shape: tuple[int, ...]) -> Structure:
    """A table with all its margins."""
    return Structure.of_tables([[axis(f"v{i + 1}", size) for i, size in enumerate(shape)]])


def negative_binomial(shape: tuple[int, ...], size: float, mean: float, seed: int) -> np.ndarray:
    """Skewed counts, many of them small."""
    return np.random.default_rng(seed).negative_binomial(size, size / (size + mean), shape)


def forty(folder: Path | None) -> np.ndarray:
    """The 40 by 40 by 40 table from the folder, or one alike."""
    if folder is None:
        return negative_binomial((40, 40, 40), 0.5, 4.0, 1)
    places = [folder / "tables" / "f3_40.csv.gz", folder / "f3_40.csv.gz"]
    place = next((p for p in places if p.exists()), places[-1])
    with gzip.open(place, "rt", newline="") as lines:
        rows = sorted((r["v1"], r["v2"], r["v3"], int(r["freq"])) for r in csv.DictReader(lines))
    shape = [len({row[k] for row in rows}) for k in range(3)]
    return np.array([row[3] for row in rows]).reshape(shape)


def rounded(
    name: str,
    inner: np.ndarray,
    build: object,
    base: int,
    sweeps: int,
    title: str = "Controlled rounding by search",
) -> None:
    """One row for each scope."""
    assert callable(build)
    for scope in SCOPES:
        best = np.inf
        for _ in range(REPEATS):
            begin = time.perf_counter()
            tables = build()
            made = round_inner(
                inner, tables, base, rng=np.random.default_rng(1), scope=scope, sweeps=sweeps
            )
            best = min(best, time.perf_counter() - begin)
        error = np.abs(made.published - sums_of(inner.ravel(), tables))
        record(
            title,
            {
                "table": name,
                "published": tables.rows,
                "rounded": scope,
                "took (s)": best,
                "largest error": made.largest_error,
                "mean error": float(error.mean()),
            },
            "rounding",
        )


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with f3_40.csv.gz")
    parser.add_argument("--base", type=int, default=3)
    parser.add_argument("--sweeps", type=int, default=100)
    asked = parser.parse_args()
    base, sweeps = asked.base, asked.sweeps
    for scope in SCOPES:  # compile first
        small = np.arange(64).reshape(4, 4, 4)
        round_inner(small, full((4, 4, 4)), base, rng=np.random.default_rng(0), scope=scope)

    print(f"Base {base}, {sweeps} sweeps.")
    inner = forty(asked.data)
    rounded("40 x 40 x 40", inner, lambda: full(inner.shape), base, sweeps)
    large = negative_binomial((30, 100, 100), 0.5, 20.0, 5)
    rounded("30 x 100 x 100", large, lambda: full((30, 100, 100)), base, sweeps)
    tree = [axis("region", 400, (8, 80)), axis("age", 18, (3,)), axis("sex", 2)]
    people = negative_binomial((400, 18, 2), 0.5, 8.0, 6)
    rounded(
        "region tree x age groups x sex", people, lambda: Structure.of_tables([tree]), base, sweeps
    )
    sizes, margins = (20, 12, 9, 6, 2), ["ABC", "ABE", "CDE", "AD", "A", "E", ""]
    hidden = negative_binomial(sizes, 0.3, 1.0, 7)
    rounded(
        "7 margins of a hidden 5-way cube",
        hidden,
        lambda: Structure.margins(sizes, margins),
        base,
        sweeps,
    )

    for side in (10, 20, 40, 60):
        shape = (side,) * 3
        cells = negative_binomial(shape, 0.5, 4.0, side)
        title = "Controlled rounding by search: growth"
        rounded(f"{side}^3", cells, lambda shape=shape: full(shape), base, sweeps, title)

    for shape in ((4, 4, 4), (6, 6, 6), (8, 8, 8)):
        tables, cells = full(shape), negative_binomial(shape, 1.0, 3.0, 4)
        true = sums_of(cells.ravel(), tables)
        lines = []
        for name, how, weight in (
            ("search", "search", 0.0),
            ("search, inner cells weigh 1", "search", 1.0),
            ("exact", "exact", 0.0),
        ):
            begin = time.perf_counter()
            made = round_system(
                tables, cells, base, rng=np.random.default_rng(1), how=how, inner_weight=weight
            )
            seconds = time.perf_counter() - begin
            far = int(np.abs(made.published - true).sum())
            lines.append((name, made.proven, seconds, made.largest_error, far))
        least = lines[-1][-1]
        for name, proven, seconds, worst, far in lines:
            word = f"{name}, proven" if proven else name
            record(
                "Controlled rounding by search: beside the proven nearest",
                {
                    "table": " x ".join(map(str, shape)),
                    "published": tables.rows,
                    "way": word,
                    "took (s)": seconds,
                    "largest error": worst,
                    "sum of errors": far,
                    "above the least (%)": 100 * (far / least - 1),
                },
                "rounding",
            )


if __name__ == "__main__":
    main()
