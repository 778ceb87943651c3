"""Depth-first search through a fibre, compiled at first use.

Tests compare it with a recursion in plain Python.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lustrum.audit.fibre.compiled import compiled, log_factorial
from lustrum.numeric.arithmetic_loops import exp


@compiled
def walk(  # pragma: no cover
    low: Any,
    high: Any,
    indptr: Any,
    rows: Any,
    coefficients: Any,
    rest_low: Any,
    rest_high: Any,
    left: Any,
    counted: Any,
    logs: Any,
    reference: float,
    begin: Any,
    sums: Any,
    tables: Any,
    most_nodes: int,
) -> Any:
    """Depth-first search through all points of a block, column by column.

    Column ``k`` is in ``rows[indptr[k]:indptr[k + 1]]``; ``rest_low`` and ``rest_high`` bound the sum of
    the later columns in each such row. Adds to ``sums[begin[k] + value - low[k]]`` the weight ``exp(log
    weight - reference)`` of every point with that value, or 1 where ``reference`` is NaN, and fills
    ``tables`` with the first points. Returns the number of points, the number of nodes, and the largest log
    weight.
    """
    n = low.size
    flat = math.isnan(reference)
    value, last = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    weight, below = np.zeros(n + 1), np.zeros(n + 1)
    points, nodes, top = 0, 0, -np.inf
    depth, entering = 0, True
    while depth >= 0:
        if depth == n:
            if points < tables.shape[0]:
                tables[points] = value[:n]
            points += 1
            top = max(top, weight[n])
            below[n] = 1.0 if flat else exp(weight[n] - reference)
            depth -= 1
            entering = False
            continue
        begins, ends = indptr[depth], indptr[depth + 1]
        if entering:
            least, most = low[depth], high[depth]
            for k in range(begins, ends):
                c = coefficients[k]
                smallest, largest = left[rows[k]] - rest_high[k], left[rows[k]] - rest_low[k]
                if c > 0:
                    least, most = max(least, -((-smallest) // c)), min(most, largest // c)
                else:
                    least, most = max(least, -(largest // -c)), min(most, (-smallest) // -c)
            below[depth] = 0.0
            if least > most:
                depth -= 1
                entering = False
                continue
            value[depth], last[depth] = least, most
            for k in range(begins, ends):
                left[rows[k]] -= coefficients[k] * least
        else:
            sums[begin[depth] + value[depth] - low[depth]] += below[depth + 1]
            below[depth] += below[depth + 1]
            if value[depth] == last[depth]:
                for k in range(begins, ends):
                    left[rows[k]] += coefficients[k] * value[depth]
                depth -= 1
                continue
            value[depth] += 1
            for k in range(begins, ends):
                left[rows[k]] -= coefficients[k]
        nodes += 1
        if nodes > most_nodes:
            return points, nodes, top
        weight[depth + 1] = weight[depth]
        if counted[depth]:
            weight[depth + 1] -= log_factorial(value[depth], logs)
        depth += 1
        entering = True
    return points, nodes, top
