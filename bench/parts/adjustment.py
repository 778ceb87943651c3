"""How fast and how close tables are adjusted, beside plain solvers with the same problem and the same time.

Run it from the root of the project: ``python bench/parts/adjustment.py``; with ``--data FOLDER`` the problems
of ``FOLDER/csplib`` (``*.json.gz``) instead of a small one made here. Every adjusted table is checked on its
whole numbers: all relations hold, every sensitive cell is at least its level away, nothing is below 0.
It prints markdown.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from figures import record
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.adjustment import Adjusted, adjust
from lustrum.protect.adjustment.problem import reduce_problem

PROBLEMS = ("hier13", "two5in6", "ninenew")


def csplib(path: Path) -> tuple[Any, Any, Any, Any]:
    """Values, relations, sensitive cells and their levels."""
    with gzip.open(path, "rt") as file:
        data = json.load(file)
    rows = [[total, *parts] for total, parts in data["relations"]]
    signs = [[-1] + [1] * len(parts) for _, parts in data["relations"]]
    value = np.array(data["value"], dtype=np.int64)
    matrix = sparse.csr_array(
        (np.concatenate(signs), np.concatenate(rows), np.cumsum([0] + [len(r) for r in rows])),
        shape=(len(rows), value.size),
    )
    return value, matrix, np.array(data["primary"]), np.ceil(data["protection"]).astype(np.int64)


def made(groups: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """A table of four-cell groups by ten columns, with all totals, and a tenth of the cells sensitive."""
    rng = np.random.default_rng(seed)
    inner = np.floor(rng.lognormal(4, 1, (groups, 4, 10))).astype(np.int64) + 10
    by_group = np.concatenate([inner, inner.sum(axis=1, keepdims=True)], axis=1)
    lines = np.concatenate([by_group.reshape(-1, 10), by_group[:, 4].sum(axis=0)[None]])
    values = np.concatenate([lines, lines.sum(axis=1, keepdims=True)], axis=1)
    height, width = values.shape
    place = np.arange(values.size).reshape(values.shape)
    rows = [
        [place[5 * g + 4, c], *place[5 * g : 5 * g + 4, c]]
        for g in range(groups)
        for c in range(width)
    ]
    rows += [[place[-1, c], *place[4:-1:5, c]] for c in range(width)]
    rows += [[place[r, -1], *place[r, :-1]] for r in range(height)]
    signs = np.concatenate([[-1] + [1] * (len(row) - 1) for row in rows])
    cuts = np.cumsum([0] + [len(row) for row in rows])
    matrix = sparse.csr_array((signs, np.concatenate(rows), cuts), shape=(len(rows), values.size))
    flat = values.ravel()
    sensitive = np.sort(rng.choice(flat.size, flat.size // 10, replace=False))
    return flat, matrix, sensitive, np.maximum(flat[sensitive] // 10, 1)


def check(found: Adjusted, value: Any, matrix: Any, sensitive: Any, levels: Any) -> str:
    """Nothing that breaks a promise is reported."""
    assert not (matrix @ found.values).any()
    assert np.all(np.abs(found.values - value)[sensitive] >= levels)
    assert np.all(found.values >= 0)
    return "yes"


def plain_milp(problem: Any, seconds: float) -> str:
    """The mixed program of the textbook on all cells, by scipy with its own settings."""
    value, matrix, sensitive, levels = problem
    size, count = value.size, sensitive.size
    weights = 1.0 / np.maximum(value, 1)
    far = float(value.max())
    pick = sparse.csr_array((np.ones(count), (range(count), sensitive)), shape=(count, size))
    none = sparse.csr_array((count, size))
    rows = sparse.block_array(
        [
            [matrix, -matrix, None],
            [pick, none, -sparse.diags_array(levels.astype(float))],
            [pick, none, -far * sparse.eye_array(count)],
            [none, pick, sparse.diags_array(levels.astype(float))],
            [none, pick, sparse.diags_array(value[sensitive].astype(float))],
        ],
        format="csr",
    )
    height, inf, zero = matrix.shape[0], np.full(count, np.inf), np.zeros(count)
    low = np.concatenate([np.zeros(height), zero, -inf, levels, -inf])
    high = np.concatenate([np.zeros(height), inf, zero, inf, value[sensitive]])
    start = time.perf_counter()
    found = milp(
        np.concatenate([weights, weights, zero]),
        integrality=np.concatenate([np.zeros(2 * size), np.ones(count)]),
        bounds=Bounds(0, np.concatenate([np.full(size, np.inf), value, np.ones(count)])),
        constraints=LinearConstraint(rows, low, high),
        options={"time_limit": seconds},
    )
    took = time.perf_counter() - start
    if found.x is None:
        return f"nothing in {took:.1f} s"
    return f"{found.fun:.3f} in {took:.1f} s, gap {found.mip_gap:.1%}"


def plain_squares(problem: Any, directions: Any, seconds: float) -> str:
    """The quadratic program on all cells, by the solver of HiGHS."""
    value, matrix, sensitive, levels = problem
    columns = matrix.tocsc().astype(np.float64)
    low, high = -value.astype(np.float64), np.full(value.size, np.inf)
    up = directions > 0
    low[sensitive[up]], high[sensitive[~up]] = levels[up], -levels[~up]
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = columns.shape
    lp.col_cost_ = np.zeros(value.size)
    lp.col_lower_, lp.col_upper_ = low, high
    lp.row_lower_ = lp.row_upper_ = np.zeros(columns.shape[0])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = columns.indptr, columns.indices
    lp.a_matrix_.value_ = columns.data
    hessian = highspy.HighsHessian()
    hessian.dim_ = value.size
    hessian.format_ = highspy.HessianFormat.kTriangular
    hessian.start_ = np.arange(value.size + 1)
    hessian.index_ = np.arange(value.size)
    hessian.value_ = 2.0 / np.maximum(value, 1)
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("time_limit", seconds)
    model.passModel(lp)
    model.passHessian(hessian)
    start = time.perf_counter()
    model.run()
    took = time.perf_counter() - start
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return f"none in {took:.1f} s"
    return f"{model.getObjectiveValue():.3f} in {took:.1f} s"


def report(name: str, problem: Any, seconds: float) -> None:
    """All lines of one problem."""
    value, matrix, sensitive, levels = problem
    wide = np.full(value.size, UNBOUNDED)
    weights = 1.0 / np.maximum(value, 1)
    small = reduce_problem(matrix, value, -value, wide, sensitive, levels, levels, weights)
    print(
        f"\n{name}: {value.size:,} cells, {matrix.shape[0]:,} relations, {sensitive.size} sensitive; of "
        f"these {small.low.size:,} groups, {small.span.shape[1]:,} free cells and {small.places.size} "
        "directions are left."
    )
    signs = None
    runs = [("l2", "balanced"), ("l2", "heuristic"), ("l1", "random"), ("l1", "balanced")]
    for norm, way in [*runs, ("l1", "heuristic"), ("l1", "exact")]:
        start = time.perf_counter()
        found = adjust(
            value,
            matrix,
            sensitive,
            levels,
            levels,
            norm=norm,  # type: ignore[arg-type]
            directions=way,
            rng=np.random.default_rng(1),
        )
        took = time.perf_counter() - start
        good = check(found, value, matrix, sensitive, levels)
        if (norm, way) == ("l2", "balanced"):
            signs = np.sign(found.values - value)[sensitive]
        cut = ", cut short" if found.cut_short else ""
        record(
            "Controlled adjustment",
            {
                "problem": name,
                "norm": norm,
                "directions": f"{way}{cut}",
                "took (s)": took,
                "distance": found.distance,
                "before rounding": found.real_distance,
                "gap (%)": 100 * found.gap,
                "checked": good,
            },
            "rounding",
        )
    for norm, solver, said in (
        ("l1", "scipy milp, as it is", plain_milp(problem, seconds)),
        ("l2", "HiGHS QP, directions of l2 balanced", plain_squares(problem, signs, seconds)),
    ):
        figures = {"problem": name, "norm": norm, "solver": solver, "distance": said}
        record("Controlled adjustment by plain solvers", figures, "rounding")


def main() -> None:
    """Read the arguments and print one table for each problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder that holds csplib/*.json.gz")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of the others")
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    given = parser.parse_args()
    if given.data is None:
        report("made", made(12, 1), given.seconds)
        return
    for name in given.problems:
        report(name, csplib(given.data / "csplib" / f"{name}.json.gz"), given.seconds)


if __name__ == "__main__":
    main()
