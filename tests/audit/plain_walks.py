"""The loops of :mod:`lustrum.audit.fibre.kernels` in plain Python: slow, short, and the same.

From the same stream they make the same moves, which is how the compiled ones are tested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from lustrum.audit.fibre.kernels import FEW, LARGE, SHORT
from lustrum.audit.fibre.moves import Lines, Squares
from lustrum.audit.fibre.system import FibreBlock
from lustrum.model.arrays import Ints

__all__ = ["Stream", "plain_lines", "plain_squares", "plain_tables"]

Weigh = Callable[[int], float]

_WORD = 2**64 - 1
_HALF = 2**32 - 1


class Stream:
    """SplitMix64 in Python's own integers.

    >>> stream = Stream([0, 0x9E3779B97F4A7C15])
    >>> hex(stream.word())
    '0xe220a8397b1dcdaf'
    """

    def __init__(self, state: npt.ArrayLike) -> None:
        self.position, self.step = (int(word) for word in np.asarray(state, dtype=np.uint64))

    def word(self) -> int:
        """64 bits."""
        self.position = (self.position + self.step) & _WORD
        z = self.position
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
        return z ^ (z >> 31)

    def unit(self) -> float:
        """A number in [0, 1)."""
        return (self.word() >> 11) * 2.0**-53

    def weighted(self, weights: list[float]) -> int:
        """A place in a list, as likely as its weight."""
        left = self.unit() * math.fsum(weights)
        for k, weight in enumerate(weights[:-1]):
            left -= weight
            if left < 0:
                return k
        return len(weights) - 1


def plain_squares(
    squares: Squares, x: Ints, stream: Stream, hypergeometric: bool, moves: int
) -> Ints:
    """A table after so many moves on squares."""
    x = x.copy()
    for _ in range(moves):
        e, held = 0, 0
        if len(squares.counts) > 1 or squares.counts[0, 0] > 1:
            word = stream.word()
            e = ((word & _HALF) * len(squares.counts)) >> 32
            held = ((word >> 32) * int(squares.counts[e, 0])) >> 32
        sizes = squares.counts[e]
        part = squares.offsets[squares.begin[e] :]
        separator, left, right = np.split(part[: sizes.sum()], np.cumsum(sizes)[:-1])
        i, j = _pair(stream.word(), left.size)
        k, m = _pair(stream.word(), right.size)
        base = separator[held]
        up = base + left[i] + right[k], base + left[j] + right[m]
        down = base + left[i] + right[m], base + left[j] + right[k]
        low, high = -int(min(x[list(up)])), int(min(x[list(down)]))
        if hypergeometric:
            t = _square_step([int(x[c]) for c in (*up, *down)], low, high, stream)
        else:
            t = low + int(stream.unit() * (high - low + 1))
        x[list(up)] += t
        x[list(down)] -= t
    return x


def _pair(word: int, size: int) -> tuple[int, int]:
    first = ((word & _HALF) * size) >> 32
    second = ((word >> 32) * (size - 1)) >> 32
    return first, second + (second >= first)


def _square_step(corners: list[int], low: int, high: int, stream: Stream) -> int:
    p, q, u, v = corners

    def log(t: int) -> float:
        return -sum(math.lgamma(c + 1) for c in (p + t, q + t, u - t, v - t))

    if high - low + 1 <= FEW and max(p + q, u + v) < LARGE:
        top = log(low)
        t = low + stream.weighted([math.exp(log(t) - top) for t in range(low, high + 1)])
        stream.word()  # every step takes two
        return t
    people = p + q + u + v
    spread = math.sqrt((p + u) * (q + v) * (p + v) * (q + u) / (people * people * (people - 1)))
    reach = int(2 * spread) + 1
    t = int(stream.unit() * (2 * reach)) - reach
    t += t >= 0
    level = stream.unit()
    if not low <= t <= high:
        return 0
    gain = log(t) - log(0)
    return t if gain >= 0 or level < math.exp(gain) else 0


def plain_lines(lines: Lines, x: Ints, stream: Stream, hypergeometric: bool, moves: int) -> Ints:
    """A table after so many moves along lines."""
    x = x.copy()
    listed = lines.vectors()
    for _ in range(moves):
        word = stream.word()
        move = ((word & _HALF) * len(listed)) >> 32
        if stream.unit() >= lines.mixed:
            step = listed[move]
        else:
            step, more = np.zeros_like(x), True
            while more:
                step = step + (1 if word >> 63 else -1) * listed[move]
                word = stream.word()
                move = ((word & _HALF) * len(listed)) >> 32
                more = bool((word >> 32) & 1)
        low, high = _ends(lines, x, step)
        if low == high:
            continue
        if hypergeometric:
            t = _line_step(_along(x, step, lines.counted), low, high, stream)
        else:
            t = low + int(stream.unit() * (high - low + 1))
        x = x + t * step
    return x


def _ends(lines: Lines, x: Ints, step: Ints) -> tuple[int, int]:
    moving = np.flatnonzero(step)
    if moving.size == 0:
        return 0, 0
    size, up = np.abs(step[moving]), step[moving] > 0
    above, below = (lines.high - x)[moving] // size, (x - lines.low)[moving] // size
    return -int(np.where(up, below, above).min()), int(np.where(up, above, below).min())


def _along(x: Ints, step: Ints, counted: npt.NDArray[np.bool_]) -> Weigh:
    cells = np.flatnonzero((step != 0) & counted)

    def log(t: int) -> float:
        return -sum(math.lgamma(int(x[c] + t * step[c]) + 1) for c in cells)

    return log


def _line_step(log: Weigh, low: int, high: int, stream: Stream) -> int:
    if high - low + 1 <= SHORT:
        logs = [log(t) for t in range(low, high + 1)]
        return low + stream.weighted([math.exp(w - max(logs)) for w in logs])
    level = log(0) + math.log(1 - stream.unit())
    inside = [t for t in range(low, high + 1) if log(t) >= level or t == 0]
    return min(inside) + int(stream.unit() * (max(inside) - min(inside) + 1))


def plain_tables(block: FibreBlock) -> Iterator[tuple[int, ...]]:
    """Every point of a block, column after column, without any foresight but the equations'."""
    matrix, n = block.matrix.toarray(), len(block)
    ends = np.stack([matrix * block.low, matrix * block.high])
    # What columns from k on can add to each row, at least and at most.
    least = np.concatenate([np.cumsum(ends.min(axis=0)[:, ::-1], axis=1)[:, ::-1], 0 * matrix], 1)
    most = np.concatenate([np.cumsum(ends.max(axis=0)[:, ::-1], axis=1)[:, ::-1], 0 * matrix], 1)

    def extend(point: list[int], left: Ints) -> Iterator[tuple[int, ...]]:
        k = len(point)
        if k == n:
            yield tuple(point)
            return
        for value in range(int(block.low[k]), int(block.high[k]) + 1):
            after = left - matrix[:, k] * value
            rest = (least[:, k + 1], most[:, k + 1]) if k + 1 < n else (0, 0)
            if bool(((rest[0] <= after) & (after <= rest[1])).all()):
                yield from extend([*point, value], after)

    yield from extend([], block.totals)
