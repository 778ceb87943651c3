"""Reconstruction: all answers about one area as a linear program over its hidden cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import highspy
import numpy as np

from attacks.asker import Asker, Codes, question

__all__ = ["Rebuilt", "rebuild"]


@dataclass(frozen=True)
class Rebuilt:
    """Hidden cells of an area, those with one whole value left, the small ones of these, and wrong claims."""

    tables: int
    cells: int
    certain: int
    small: int
    wrong: int


def rebuild(
    asker: Asker,
    codes: Codes,
    names: Sequence[str],
    where: Codes,
    truth: np.ndarray[Any, Any],
    small: int = 2,
) -> Rebuilt:
    """Ask for every table up to three of these variables in the area, and bound each hidden cell."""
    shape = tuple(len(codes[n]) for n in names)
    size = int(np.prod(shape))
    cells = np.arange(size).reshape(shape)
    model = highspy.Highs()
    model.silent()
    for _ in range(size):
        model.addVar(0.0, highspy.kHighsInf)
    tables = 0
    for order in (1, 2, 3):
        for chosen in combinations(range(len(names)), order):
            answer = asker.ask(question([names[i] for i in chosen], where))
            if answer is None:
                continue
            tables += 1
            front = np.moveaxis(cells, chosen, range(order)).reshape(answer.shown.size, -1)
            low, high = answer.low.ravel(), answer.high.ravel()
            for row, least, most in zip(front, low, high, strict=True):
                top = highspy.kHighsInf if np.isinf(most) else most
                model.addRow(least, top, len(row), row, np.ones(len(row)))
    certain = few = wrong = 0
    for cell in range(size):
        ends = []
        for sign in (1.0, -1.0):
            model.changeColCost(cell, sign)
            model.run()
            status = model.getModelStatus()
            value = model.getInfo().objective_function_value
            ends.append(sign * value if status == highspy.HighsModelStatus.kOptimal else np.inf)
        model.changeColCost(cell, 0.0)
        least, most = np.ceil(ends[0] - 1e-6), np.floor(ends[1] + 1e-6)
        true = int(truth.ravel()[cell])
        certain += bool(least == most)
        few += bool(least == most and 1 <= true <= small)
        wrong += bool(true < least or true > most)
    return Rebuilt(tables, size, certain, few, wrong)
