"""Exact proofs from a solver's floats: multipliers and tables become fractions, which are then checked."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

import numpy as np

from lustrum.audit.certificate.basis import basic_multipliers, basic_point
from lustrum.audit.certificate.exact import Boxes, FactSystem, Leaf, WitnessTable, as_leaf, table_of
from lustrum.audit.certificate.linear import LinearOptimum, elastic
from lustrum.model.arrays import Floats

# Multipliers of tables are small fractions; each larger denominator includes the smaller ones.
_LADDER = (1, 12, 1000, 10**6)
_NEAR = 1e-6  # the largest error that a solver may make
_EXACT = 2.0**53  # floats cannot hold every whole number beyond this
_NOISE = 1e-9  # a solver's values below this are zeros


def bound_leaf(
    system: FactSystem,
    optimum: LinearOptimum,
    cell: int,
    sign: int,
    boxes: Boxes,
    target: Fraction | int | None,
    given: Leaf,
) -> tuple[Leaf, Fraction | None]:
    """The first multipliers that prove the target, or the best ones; ``given`` is one candidate.

    Without a target, the target is the solver's own value, rounded to a whole number.
    """
    best, shown = given, system.shown(given, cell, sign, boxes)
    if target is None and system.whole:
        target = ceil(optimum.value - _NEAR)
    for leaf in _leaves(system, optimum, cell, sign):
        if shown is not None and target is not None and shown >= target:
            break
        bound = system.shown(leaf, cell, sign, boxes)
        if bound is not None and (shown is None or bound > shown):
            best, shown = leaf, bound
    return best, shown


def empty_leaf(system: FactSystem, boxes: Boxes) -> Leaf | None:
    """Multipliers that prove, by Farkas' lemma, that no table fits within the boxes."""
    prices = elastic(system, boxes)
    if prices is None:
        return None
    for rung in _LADDER:
        leaf = _leaf(system, _rational(prices, rung), empty=True)
        bound = system.shown(leaf, 0, 1, boxes)
        if bound is not None and bound > 0:
            return leaf
    return None


def tables_near(system: FactSystem, optimum: LinearOptimum, boxes: Boxes) -> Iterator[WitnessTable]:
    """Exact tables near the solver's point, the likely ones first; they are not checked here."""
    if optimum.point is None:
        return
    near = np.round(optimum.point)
    if bool(((np.abs(optimum.point - near) <= _NEAR) & (np.abs(near) < _EXACT)).all()):
        yield WitnessTable(1, tuple(near.astype(np.int64).tolist()))
    if not system.whole:
        exact = basic_point(system, optimum, boxes)
        if exact is not None:
            yield table_of(exact)
        for rung in _LADDER[1:]:
            rational = _rational(optimum.point, rung)
            yield table_of([rational.get(i, 0) for i in range(near.size)])


def _leaves(system: FactSystem, optimum: LinearOptimum, cell: int, sign: int) -> Iterator[Leaf]:
    if optimum.multipliers is None:
        return
    for rung in _LADDER:
        yield _leaf(system, _rational(optimum.multipliers, rung))
    exact = basic_multipliers(system, optimum, cell, sign)
    if exact is not None:
        yield _leaf(system, exact)


def _rational(values: Floats, most: int) -> dict[int, Fraction]:
    """The nearest fractions with denominators up to ``most``, without zeros."""
    used = np.flatnonzero(np.abs(values) > _NOISE)
    if most == 1:
        return {int(i): Fraction(int(np.round(values[i]))) for i in used}
    return {int(i): Fraction(float(values[i])).limit_denominator(most) for i in used}


def _leaf(system: FactSystem, multipliers: dict[int, Fraction], *, empty: bool = False) -> Leaf:
    """A leaf without the multipliers that use an end which their fact does not have."""
    sound = {
        i: y for i, y in multipliers.items() if y and system.ends[i][0 if y > 0 else 1] is not None
    }
    return as_leaf(sound, empty=empty)
