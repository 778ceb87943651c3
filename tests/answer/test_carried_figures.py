"""Risk figures of sums that other cells may carry: they never state more uncertainty than attackers have.

A reader who knows the method is enumerated in full: the second largest contributor of a cell knows its own
protected value and whether the cell carries it. The largest contribution may be in the published sum, in part
or not at all, and a contribution of another cell may be in it. All whole contributions and shares are equally
likely; every way to carry is possible.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from lustrum.model.arrays import Floats
from lustrum.protect.magnitudes.factors import needed_factors
from lustrum.protect.magnitudes.report import PublicFactors
from lustrum.public.noise import FactorNoise

FACTORS = needed_factors(Fraction(1, 10), "known")
METHOD = {"method": "protected-magnitudes", "p": 10.0, "existence": "secret"}
NOISE = FactorNoise(PublicFactors(METHOD, FACTORS, {"turnover": {1: 1.0}}), "turnover")
LEAST, MOST = 40, 400
"""The contributions that are enumerated; below 40 units rounding is not covered by what figures promise."""
SIZE = 2 * int(MOST * (1 + float(FACTORS.most))) + 4


def shown(x: int, direction: str | None) -> Floats:
    """How likely a contribution is to show each protected value."""
    out = np.zeros(SIZE)
    shares = np.linspace(float(FACTORS.least), float(FACTORS.most), 400)
    amount = np.ceil(shares * x - 1e-9).astype(np.int64)
    for side in (1, -1) if direction is None else (1,) if direction == "up" else (-1,):
        np.add.at(out, x + side * amount, 1.0)
    return np.asarray(out / out.sum())


def pieces(values: Floats) -> Floats:
    """The same when half of the value is here."""
    out = np.zeros(SIZE)
    np.add.at(out, np.arange(SIZE) // 2, values)
    return out


def added(one: Floats, other: Floats) -> Floats:
    """Two independent values together."""
    return np.asarray(np.fft.irfft(np.fft.rfft(one, 2 * SIZE) * np.fft.rfft(other, 2 * SIZE)))[
        :SIZE
    ]


def posteriors(direction: str | None, least: int) -> Floats:
    """``out[x, left]``: how likely the largest is ``x``, and this is left without the attacker's value."""
    nothing = np.zeros(SIZE)
    nothing[0] = 1.0
    every = [shown(x, None) for x in range(LEAST, MOST)]
    whole = np.mean(every, axis=0)
    foreign = (2 * nothing + whole + pieces(whole)) / 4
    out = np.zeros((MOST - least, SIZE))
    for row, x in enumerate(range(least, MOST)):
        own = shown(x, direction)
        inside = (2 * own + pieces(own) + nothing) / 4
        out[row] = np.maximum(added(inside, foreign), 0.0)
    return out


def bits(weight: Floats) -> float:
    p = weight / weight.sum()
    p = p[p > 1e-15]
    return float(-(p * np.log2(p)).sum())


@pytest.mark.parametrize("direction", [None, "up", "down"])
def test_an_attacker_who_knows_the_method_is_as_uncertain_as_stated(direction: str | None) -> None:
    judged = 0
    for second in (40, 70, 110):
        found = posteriors(direction, second)
        reach = np.flatnonzero(shown(second, None))
        for carried in (0, int(reach[0]), int(reach[-1])):
            # Sums so small that no contribution was left out of the enumeration.
            for left in range(1, int(MOST * (1 - float(FACTORS.most))), 3):
                if found[:, left].sum() < 1e-12:
                    continue
                published = left + carried
                least = int(NOISE.left(np.array([published]), np.array([0]))[0])
                figure = NOISE.belief(least, published, direction=direction is not None)
                assert bits(found[:, left]) >= figure.bits - 1e-9, (second, carried, left)
                judged += 1
    assert judged > 300


def test_the_same_reader_without_carrying_has_about_what_is_stated() -> None:
    """The bound is not trivial: where nothing can be carried, one bit more is known than with carrying."""
    second, left = 110, 150
    alone = np.array([shown(x, None)[left] for x in range(second, MOST)])
    carried = posteriors(None, second)[:, left]
    published = left + int(np.flatnonzero(shown(second, None))[-1])
    least = int(NOISE.left(np.array([published]), np.array([0]))[0])
    stated = NOISE.belief(least, published).bits
    assert stated <= bits(alone) < bits(carried) - 1
    assert bits(alone) - stated < 2
