"""Classes of figures for colours: quantiles or natural breaks, none narrower than what protection blurs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

MOST_CLASSES = 5
"""More shades of one colour could not be told apart."""


@dataclass(frozen=True)
class Classes:
    """Values in rising classes; ``ends`` are the least and the largest value of each."""

    ends: tuple[tuple[float, float], ...]

    def shade(self, value: float) -> int:
        """The shade of a value, from 1, the lightest, to :data:`MOST_CLASSES`."""
        return self.shades[sum(value > high for _, high in self.ends[:-1])]

    @property
    def shades(self) -> tuple[int, ...]:
        """The shade of each class; few classes are as far apart as many."""
        last = max(1, len(self.ends) - 1)
        return tuple(
            1 + (2 * i * (MOST_CLASSES - 1) + last) // (2 * last) for i in range(len(self.ends))
        )


def classed(
    values: Sequence[float], how: str = "quantile", margin: float = 0.0, most: int = MOST_CLASSES
) -> Classes:
    """Classes of known values. A break keeps to the widest gap near its place.

    A class is at least twice the margin wide, so that two figures in classes that do not touch differ by more
    than protection may have moved them.

    >>> classed([1, 2, 3, 50, 51, 52], most=2).ends
    ((1, 3), (50, 52))
    >>> classed([10, 11, 12, 13], margin=9).ends
    ((10, 13),)
    """
    ranked = sorted(values)
    if not ranked:
        return Classes(())
    cuts = _natural(ranked, most) if how == "natural" else _quantiles(ranked, most)
    breaks: list[int] = []
    start = 0
    for cut in cuts:
        wide = ranked[cut] - ranked[start] >= 2 * margin
        rest = ranked[-1] - ranked[cut] >= 2 * margin
        if ranked[cut] > ranked[cut - 1] and wide and rest:
            breaks.append(cut)
            start = cut
    places = [0, *breaks, len(ranked)]
    return Classes(tuple((ranked[a], ranked[b - 1]) for a, b in pairwise(places)))


def _quantiles(ranked: Sequence[float], most: int) -> list[int]:
    """Where each class but the first begins: at the widest gap near an equal share."""
    size = len(ranked)
    room = max(1, size // (4 * most))
    cuts = []
    for number in range(1, most):
        about = round(size * number / most)
        near = range(max(1, about - room), min(size - 1, about + room) + 1)
        if near:
            cuts.append(
                max(near, key=lambda at: (ranked[at] - ranked[at - 1], -abs(at - about), -at))
            )
    return sorted(set(cuts))


def _natural(ranked: Sequence[float], most: int) -> list[int]:
    """The breaks that leave the least sum of squares within classes (Fisher 1958), by dynamic programming."""
    size, most = len(ranked), min(most, len(set(ranked)))
    sums, squares = [0.0], [0.0]
    for value in ranked:
        sums.append(sums[-1] + value)
        squares.append(squares[-1] + value * value)

    def spread(a: int, b: int) -> float:
        total = sums[b] - sums[a]
        return squares[b] - squares[a] - total * total / (b - a)

    costs = [spread(0, b) if b else 0.0 for b in range(size + 1)]
    froms: list[list[int]] = []
    for number in range(2, most + 1):
        starts = [0] * (size + 1)
        next_costs = [0.0] * (size + 1)
        for b in range(number, size + 1):
            starts[b] = min(range(number - 1, b), key=lambda a: (costs[a] + spread(a, b), a))
            next_costs[b] = costs[starts[b]] + spread(starts[b], b)
        froms.append(starts)
        costs = next_costs
    cuts: list[int] = []
    end = size
    for starts in reversed(froms):
        end = starts[end]
        cuts.append(end)
    return cuts[::-1]
