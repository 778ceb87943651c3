"""The quadratic programs of controlled adjustment as the package solves them, by Clarabel, and by HiGHS.

Run it from the root of the project: ``python bench/parts/quadratic.py``. The programs are those of
``ControlledAdjustment(norm="l2")`` on tables of four-cell groups by ten columns with all totals. It prints
markdown: seconds, the cost relative to the least, and how far relations and bounds are missed.
"""

from __future__ import annotations

import time
from typing import Any

import highspy
import numpy as np
from adjustment import made
from figures import record

from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.adjustment.problem import AdjustmentProblem, as_floats, reduce_problem
from lustrum.protect.adjustment.search import least_squares

Answer = tuple[float, Floats | None]


def own(problem: AdjustmentProblem, directions: Ints) -> Answer:
    """The method of the package."""
    began = time.perf_counter()
    found = least_squares(problem, directions)
    return time.perf_counter() - began, None if found is None else found.moved


def highs(problem: AdjustmentProblem, directions: Ints, limit: float) -> Answer:
    """The quadratic solver of HiGHS."""
    low, high = (as_floats(end) for end in problem.bounds(directions))
    matrix = problem.relations.tocsc()
    began = time.perf_counter()
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("time_limit", limit)
    program = highspy.HighsModel()
    lp = program.lp_
    lp.num_col_, lp.num_row_ = matrix.shape[1], matrix.shape[0]
    lp.col_cost_ = np.zeros(lp.num_col_)
    lp.col_lower_, lp.col_upper_ = low, high
    lp.row_lower_ = lp.row_upper_ = np.zeros(lp.num_row_)
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data.astype(np.float64)
    program.hessian_.dim_ = lp.num_col_
    program.hessian_.start_ = np.arange(lp.num_col_ + 1)
    program.hessian_.index_ = np.arange(lp.num_col_)
    program.hessian_.value_ = 2.0 * problem.weights
    model.passModel(program)
    model.run()
    seconds = time.perf_counter() - began
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return seconds, None
    return seconds, np.array(model.getSolution().col_value)


def missed(problem: AdjustmentProblem, directions: Ints, moved: Floats) -> float:
    """How far relations and bounds are missed, at most."""
    low, high = (as_floats(end) for end in problem.bounds(directions))
    outside = np.maximum(low - moved, moved - high).max(initial=0.0)
    return float(max(outside, np.abs(problem.relations @ moved).max(initial=0.0)))


def main() -> None:
    """Solve each program by each solver."""
    for groups in (5, 20, 80, 400):
        value, matrix, sensitive, levels = made(groups, 1)
        far, weights = np.full(value.size, UNBOUNDED), 1.0 / np.maximum(value, 1)
        problem = reduce_problem(matrix, value, -value, far, sensitive, levels, levels, weights)
        directions = np.where(np.arange(problem.places.size) % 2, 1, -1)
        answers: dict[str, Any] = {"Lustrum": own(problem, directions)}
        if groups <= 20:  # beyond, it finds nothing in a minute
            answers["HiGHS"] = highs(problem, directions, 60.0)
        costs = {
            name: problem.distance(moved, "l2")
            for name, (_, moved) in answers.items()
            if moved is not None
        }
        least = min(costs.values())
        for name, (seconds, moved) in answers.items():
            none = moved is None
            record(
                "Quadratic programs of controlled adjustment",
                {
                    "cells": value.size,
                    "groups": problem.low.size,
                    "solver": name,
                    "took (s)": seconds,
                    "cost relative to the least": None if none else f"{costs[name] / least:.9f}",
                    "missed by": None if none else f"{missed(problem, directions, moved):.1e}",
                },
                "rounding",
            )


if __name__ == "__main__":
    main()
