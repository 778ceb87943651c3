"""The hot loops of sampling, compiled at first use.

Tests compare each with plain Python that makes the same moves from the same stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from lustrum.model.arrays import Array, Floats, Whole
from lustrum.numeric.arithmetic_loops import exp, log, log_gamma
from lustrum.numeric.compiled import Loop
from lustrum.numeric.compiled import compiled as keep_compiled
from lustrum.numeric.stream import below_of, unit_of
from lustrum.numeric.stream import mixed as word_at

# How the hot loops are compiled, and the one function that all of them need.


F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile with the arithmetic of numpy, where a division by zero is not an exception."""
    return keep_compiled(function, error_model="numpy")


def inlined(function: F) -> F:
    """Compile into the caller: passing arrays to a function costs more than these few lines."""
    loop = Loop(function, {"inline": "always", "error_model": "numpy"})
    loop.keep = False
    return cast(F, loop)


@inlined
def log_factorial(count: int, logs: Array) -> float:  # pragma: no cover
    """``log n!``, from a list if it is long enough."""
    return logs[count] if count < logs.size else log_gamma(count + 1.0)


FEW = 8  # squares with up to this many points have all weights computed
SHORT = 16  # lines with up to this many points have all weights computed; longer ones are sliced
LARGE = 1_000_000  # above this count a product of a few weights may overflow


@compiled
def _next(state: Array) -> Any:  # pragma: no cover
    """The next word; the second word of the state is the stream's own increment."""
    state[0] += state[1]
    return word_at(state[0])


@compiled
def _unit(state: Array) -> float:  # pragma: no cover
    return unit_of(_next(state))


@inlined
def _from_weights(weights: Array, count: int, left: float) -> int:  # pragma: no cover
    """The place in the cumulated weights at which ``left`` falls."""
    for k in range(count - 1):
        left -= weights[k]
        if left < 0.0:
            return k
    return count - 1


def _scaled_factorials(count: int) -> Floats:
    """``n! / c**n`` for n below ``count``, with the c that keeps products of four in the range of floats.

    The two counts that go up on a square and the two that go down do so by the same step, so the powers
    of c cancel in every ratio.
    """
    steps = np.arange(1, count) * (math.e / count)
    return np.concatenate([[1.0], np.cumprod(steps)])


FALLING = 400  # counts below this have their factorials in the list
_FACTORIALS = _scaled_factorials(FALLING)


@compiled
def _ratio(p: int, q: int, u: int, v: int, t: int, logs: Array) -> float:  # pragma: no cover
    """The ratio of the probabilities of a square after and before a step, or 1 if that is less."""
    gain = log_factorial(p, logs) - log_factorial(p + t, logs)
    gain += log_factorial(q, logs) - log_factorial(q + t, logs)
    gain += log_factorial(u, logs) - log_factorial(u - t, logs)
    gain += log_factorial(v, logs) - log_factorial(v - t, logs)
    return exp(min(gain, 0.0))


@inlined
def _square_step(  # pragma: no cover
    p: int,
    q: int,
    u: int,
    v: int,
    low: int,
    high: int,
    first: float,
    level: float,
    logs: Array,
    weights: Array,
) -> Any:
    """A step along a square that keeps its hypergeometric conditional distribution.

    Drawn from that distribution where the line is short; otherwise a Metropolis step. ``first`` and ``level``
    are two random numbers below 1, of which a short line needs one.
    """
    count = high - low + 1
    if count <= FEW and max(p + q, u + v) < LARGE:
        # Ratios of neighbours: one count goes up on two sides and down on the two others.
        weight, total = 1.0, 1.0
        weights[0] = 1.0
        for k in range(1, count):
            t = low + k
            weight *= (float(u - t + 1) * float(v - t + 1)) / (float(p + t) * float(q + t))
            weights[k] = weight
            total += weight
        return low + _from_weights(weights, count, first * total)
    # The sums of the square, and so the spread of its conditional distribution, are the same along the
    # line: a step within twice the spread is as likely in both directions.
    people = float(p + u + q + v)
    ways = (float(p + u) * float(q + v)) * (float(p + v) * float(q + u))
    spread = math.sqrt(ways / (people * people * (people - 1.0)))
    reach = int(2.0 * spread) + 1
    t = int(first * (2 * reach)) - reach
    t += t >= 0
    # No branch depends on whether a step is taken, because the processor would often predict it wrongly,
    # which costs more than weighing a step beyond the end.
    inside = min(max(t, low), high)
    if max(max(p, q) + high, max(u, v) - low) < FALLING:
        here = (_FACTORIALS[p] * _FACTORIALS[q]) * (_FACTORIALS[u] * _FACTORIALS[v])
        up = _FACTORIALS[p + inside] * _FACTORIALS[q + inside]
        down = _FACTORIALS[u - inside] * _FACTORIALS[v - inside]
        taken = level * (up * down) < here
    else:
        taken = level < _ratio(p, q, u, v, inside, logs)
    return np.int64(taken & (inside == t)) * t


@compiled
def run_squares(  # pragma: no cover
    x: Array,
    begin: Array,
    counts: Array,
    offsets: Array,
    hyper: bool,
    logs: Array,
    state: Array,
    thin: int,
    keep: Array,
    out: Array,
) -> int:
    """Moves on squares of a table without upper bounds; ``out`` takes a table every ``thin`` moves.

    Joint ``e`` has ``counts[e]`` = (separator, left, right) configurations, whose places in the table
    are three lists of ``offsets`` from ``begin[e]`` on. Gives the number of moves that changed the table.
    """
    joints = counts.shape[0]
    weights = np.empty(SHORT, dtype=np.float64)
    mask = np.uint64(0xFFFFFFFF)
    changed = 0
    # The stream is kept in two local numbers: the compiler knows that writes to the table cannot change
    # them.
    position, ahead = state[0], state[1]
    for row in range(out.shape[0]):
        for _ in range(thin):
            e, base = 0, 0
            if joints > 1 or counts[0, 0] > 1:
                position += ahead
                bits = word_at(position)
                e = below_of(bits & mask, joints)
                base = offsets[begin[e] + below_of(bits >> np.uint64(32), counts[e, 0])]
            first = begin[e] + counts[e, 0]
            second = first + counts[e, 1]
            position += ahead
            bits = word_at(position)
            a = below_of(bits & mask, counts[e, 1])
            c = below_of(bits >> np.uint64(32), counts[e, 1] - 1)
            c += c >= a
            position += ahead
            bits = word_at(position)
            b = below_of(bits & mask, counts[e, 2])
            d = below_of(bits >> np.uint64(32), counts[e, 2] - 1)
            d += d >= b
            top, bottom = base + offsets[first + a], base + offsets[first + c]
            b, d = offsets[second + b], offsets[second + d]
            p, q, u, v = x[top + b], x[bottom + d], x[top + d], x[bottom + b]
            low, high = -min(p, q), min(u, v)
            position += ahead
            luck = unit_of(word_at(position))
            if hyper:
                position += ahead
                t = _square_step(
                    p, q, u, v, low, high, luck, unit_of(word_at(position)), logs, weights
                )
            else:
                t = low + np.int64(luck * (high - low + 1))
            changed += t != 0
            x[top + b] = p + t
            x[bottom + d] = q + t
            x[top + d] = u - t
            x[bottom + b] = v - t
        for k in range(keep.size):
            out[row, k] = x[keep[k]]
    state[0] = position
    return changed


@inlined
def _log_line(  # pragma: no cover
    x: Array, cells: Array, steps: Array, size: int, t: int, counted: Array, logs: Array
) -> float:
    total = 0.0
    for k in range(size):
        if counted[cells[k]]:
            total -= log_factorial(x[cells[k]] + t * steps[k], logs)
    return total


@inlined
def _line_step(  # pragma: no cover
    x: Array,
    cells: Array,
    steps: Array,
    size: int,
    low: Whole,
    high: Whole,
    counted: Array,
    state: Array,
    logs: Array,
    weights: Array,
) -> Any:
    """A step along any line from its hypergeometric conditional distribution."""
    here = _log_line(x, cells, steps, size, 0, counted, logs)
    count = high - low + 1
    if count <= SHORT:
        top = -np.inf
        for k in range(count):
            weights[k] = _log_line(x, cells, steps, size, low + k, counted, logs)
            top = max(top, weights[k])
        total = 0.0
        for k in range(count):
            weights[k] = exp(weights[k] - top)
            total += weights[k]
        return low + _from_weights(weights, count, _unit(state) * total)
    level = here + log(1.0 - _unit(state))
    left, outside = 0, low - 1
    while left - outside > 1:
        middle = (left + outside) >> 1
        if _log_line(x, cells, steps, size, middle, counted, logs) >= level:
            left = middle
        else:
            outside = middle
    right, beyond = 0, high + 1
    while beyond - right > 1:
        middle = (right + beyond) >> 1
        if _log_line(x, cells, steps, size, middle, counted, logs) >= level:
            right = middle
        else:
            beyond = middle
    return left + np.int64(_unit(state) * (right - left + 1))


@compiled
def run_lines(  # pragma: no cover
    x: Array,
    low: Array,
    high: Array,
    counted: Array,
    indptr: Array,
    cells: Array,
    steps: Array,
    mixed: float,
    hyper: bool,
    logs: Array,
    state: Array,
    thin: int,
    keep: Array,
    out: Array,
) -> int:
    """Moves along listed directions and, with probability ``mixed``, along random sums of them."""
    moves = indptr.size - 1
    line_cells = np.empty(x.size, dtype=np.int64)
    line_steps = np.empty(x.size, dtype=np.int64)
    dense = np.zeros(x.size, dtype=np.int64)
    seen = np.zeros(x.size, dtype=np.bool_)
    weights = np.empty(SHORT, dtype=np.float64)
    mask = np.uint64(0xFFFFFFFF)
    changed = 0
    for row in range(out.shape[0]):
        for _ in range(thin):
            bits = _next(state)
            move = below_of(bits & mask, moves)
            size = 0
            if _unit(state) >= mixed:
                for k in range(indptr[move], indptr[move + 1]):
                    line_cells[size] = cells[k]
                    line_steps[size] = steps[k]
                    size += 1
            else:
                touched = 0
                more = True
                while more:
                    # Every sign and every number of terms has a positive probability, so every sum of moves
                    # has one.
                    sign = 1 if bits >> np.uint64(63) else -1
                    for k in range(indptr[move], indptr[move + 1]):
                        cell = cells[k]
                        if not seen[cell]:
                            seen[cell] = True
                            line_cells[touched] = cell
                            touched += 1
                        dense[cell] += sign * steps[k]
                    bits = _next(state)
                    move = below_of(bits & mask, moves)
                    more = (bits >> np.uint64(32)) & np.uint64(1) == 1
                for k in range(touched):
                    cell = line_cells[k]
                    if dense[cell] != 0:
                        line_cells[size] = cell
                        line_steps[size] = dense[cell]
                        size += 1
                    dense[cell] = 0
                    seen[cell] = False
            least, most = np.int64(-(2**62)), np.int64(2**62)
            for k in range(size):
                cell, step = line_cells[k], line_steps[k]
                up, down = high[cell] - x[cell], x[cell] - low[cell]
                if step > 0:
                    most, least = min(most, up // step), max(least, -(down // step))
                else:
                    most, least = min(most, down // -step), max(least, -(up // -step))
                if least == most:
                    break
            if size == 0 or least == most:
                continue
            if hyper:
                t = _line_step(
                    x, line_cells, line_steps, size, least, most, counted, state, logs, weights
                )
            else:
                t = least + int(_unit(state) * (most - least + 1))
            if t != 0:
                changed += 1
                for k in range(size):
                    x[line_cells[k]] += t * line_steps[k]
        for k in range(keep.size):
            out[row, k] = x[keep[k]]
    return changed


# Depth-first search through a fibre, compiled at first use.
#
# Tests compare it with a recursion in plain Python.


@compiled
def walk(  # pragma: no cover
    low: Array,
    high: Array,
    indptr: Array,
    rows: Array,
    coefficients: Array,
    rest_low: Array,
    rest_high: Array,
    left: Array,
    counted: Array,
    logs: Array,
    reference: float,
    begin: Array,
    sums: Array,
    tables: Array,
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
