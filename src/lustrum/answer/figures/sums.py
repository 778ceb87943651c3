"""Figures beside a table of sums: what attackers can say about a largest contributor, and what a sum is worth.

Risk is measured as Domingo-Ferrer, Oganian and Torra (2002) measure that of a cell: one over the entropy, in
bits, of what an attacker believes about the largest contribution. Three attackers are looked at:

- an **outsider** knows how many contributors there are at most. The largest lies between an even share of the
  least possible sum and all of the largest possible one; every whole number between is equally likely.
- the **second largest** contributor takes its own value away, with the noise on it. What follows from the
  release alone is the least that it can be left with; see :meth:`SumNoise.left`. In the worst case nobody else
  is in the cell, so that this attacker says what a coalition of all others can say where the largest has half
  of the sum or more.
- the second largest contributor **with the direction** of the largest one's noise, where noise has one.

Figures are those of the cell where an attacker can say most, and of the median cell. They depend on
published sums, their bounds and the parameters of the method. No true number goes into them.
"""

from __future__ import annotations

import numpy as np

from lustrum.model import AttackerFigures, Measure, Release, SizeFigures, SumFigures
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.arithmetic import log2
from lustrum.numeric.structure import UNBOUNDED
from lustrum.public.noise import SumNoise

_DIGITS = 3
_POWERS = 10 ** np.arange(19)


def sum_figures(
    measure: Measure, sums: Release, counts: Release, noise: SumNoise, variables: int
) -> SumFigures:
    """The figures of one measure in a table; ``counts`` says how many contributors each cell can have."""
    cells = sums.inner & sums.known & (sums.numbers > 0)
    published = sums.numbers[cells].astype(np.int64)
    attackers: tuple[AttackerFigures, ...] = ()
    if published.size and sums.least is not None and sums.most is not None:
        low, high = sums.least[cells], sums.most[cells]
        most = _most(counts, cells)
        attackers = (
            *_outsider(measure, published, low, high, most),
            *_insiders(measure, published, low, noise),
        )
    return SumFigures(
        measure=measure.name,
        label=measure.label,
        unit=measure.unit,
        p=noise.p,
        attackers=attackers,
        errors=_errors(measure, published, noise, variables),
        growth=_growth(measure, published, noise, variables),
    )


def _most(counts: Release, cells: Mask) -> Ints:
    """The most contributors that each cell can have."""
    if counts.most is not None:
        return counts.most[cells]
    if counts.channel is not None:
        return counts.channel.support(counts.numbers[cells])[1]
    return np.full(int(cells.sum()), UNBOUNDED, dtype=np.int64)


def _outsider(
    measure: Measure, published: Ints, low: Ints, high: Ints, most: Ints
) -> tuple[AttackerFigures, ...]:
    bounded = high < UNBOUNDED
    if not bounded.any():
        return ()
    shown, least, largest = published[bounded], low[bounded], high[bounded]
    number = np.maximum(most[bounded], 1)
    # Some contributor has an even share or more, and one unit at least where there is a sum.
    share = np.where(number < UNBOUNDED, -(-least // np.minimum(number, UNBOUNDED)), 0)
    share = np.maximum(share, 1)
    bits = log2(np.maximum(largest - share + 1, 1).astype(np.float64))
    worst, usual = _places(bits, shown, share, largest)
    scale = 10**measure.decimals
    return (
        AttackerFigures(
            attacker="outsider",
            published=int(shown[worst]) / scale,
            left=int(shown[worst]) / scale,
            low=int(share[worst]) / scale,
            high=int(largest[worst]) / scale,
            bits=_rounded(float(bits[worst])),
            risk=_risk(float(bits[worst])),
            typical_bits=_rounded(float(bits[usual])),
            typical_risk=_risk(float(bits[usual])),
        ),
    )


def _insiders(
    measure: Measure, published: Ints, low: Ints, noise: SumNoise
) -> tuple[AttackerFigures, ...]:
    left = noise.left(published, low)
    # The entropy grows with what is left, so that the least left is where an attacker can say most.
    worst, usual = _places(left, published)
    scale = 10**measure.decimals
    out = []
    for direction in (False, True)[: 2 if noise.hides_direction else 1]:
        near, typical = (
            noise.believed(int(left[at]), int(published[at]), direction=direction)
            for at in (worst, usual)
        )
        out.append(
            AttackerFigures(
                attacker="second-largest-with-direction" if direction else "second-largest",
                published=int(published[worst]) / scale,
                left=int(left[worst]) / scale,
                low=near.low / scale,
                high=near.high / scale,
                bits=_rounded(near.bits),
                risk=_risk(near.bits),
                typical_bits=_rounded(typical.bits),
                typical_risk=_risk(typical.bits),
                within=None if typical.within is None else _rounded(typical.within),
            )
        )
    return tuple(out)


def _errors(
    measure: Measure, published: Ints, noise: SumNoise, variables: int
) -> tuple[SizeFigures, ...]:
    """Expected relative errors of the sums shown, by powers of ten."""
    scale = 10**measure.decimals
    figures: list[SizeFigures] = []
    digits = np.searchsorted(_POWERS, published // scale, side="right")
    errors = noise.error(published.astype(np.float64), variables)
    for size in np.unique(digits).tolist():
        there = errors[digits == size]
        figures.append(
            SizeFigures(
                least=0 if size == 0 else 10 ** (size - 1),
                most=10**size,
                cells=int(there.size),
                error=_rounded(float(there.mean())),
            )
        )
    return tuple(figures)


def _growth(measure: Measure, published: Ints, noise: SumNoise, variables: int) -> float | None:
    if measure.earlier is None:
        return None
    error = noise.growth_error(published.astype(np.float64), variables)
    return None if error is None else _rounded(error)


def _places(*values: Floats | Ints) -> tuple[int, int]:
    """Where the least value is and where the median; the next values decide ties, not the order of cells."""
    order = np.lexsort(values[::-1])
    return int(order[0]), int(order[(order.size - 1) // 2])


def _risk(bits: float) -> float | None:
    """One over the entropy; None where nothing is left open."""
    return None if bits <= 0 else _rounded(1 / bits)


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")
