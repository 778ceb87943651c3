"""Sums that are carried can come near the truth by chance: nobody can know where.

All registers of three firms in four cells are enumerated, with every true value at the ends of what a protected
value leaves open. An attacker knows the published sums, its own cell, its own value and its protected value,
which it takes from the sum of its cell. Wherever that comes nearer to the largest contribution than the p%
rule allows, another register shows the same to the attacker, and there it does not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from lustrum.audit.contribution import candidates
from lustrum.model.finest import FinestCells
from lustrum.protect.magnitudes.carriers import carried_by
from lustrum.protect.magnitudes.factors import needed_factors
from lustrum.protect.population.search.plan import plan_tables
from lustrum.protect.population.support import Support
from magnitude_registers import register

P = Fraction(1, 10)
FACTORS = needed_factors(P, "known")
SHOWN = ((1000, 1180, 2300), (700, 1000, 250))
"""The protected values of the three firms, which are the same in all registers that are compared."""
Three = tuple[int, ...]


def true_values(shown: int) -> list[int]:
    """The ends of what a protected value leaves open."""
    ends = [candidates(np.array([shown]), FACTORS.least, FACTORS.most, s) for s in ("up", "down")]
    return [int(end[0]) for side in ends for end in side]


def outcomes(counts: Three, protected: Three) -> Iterator[tuple[Three, Three]]:
    """Where the firms are, and what the cells show as sums, for every register and several keys."""
    records = register([(1, 0, 0, 5)])
    plan = plan_tables(records.dataset, 2)
    cells = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    seen = np.flatnonzero(counts)
    shown = FinestCells(records.dataset, cells[:, seen], np.array(counts)[seen])
    low, high = Support(3).bounds(np.array(counts))
    values = np.array(protected, dtype=np.int64)[:, None]
    for placed in product(range(4), repeat=3):
        true = np.bincount(placed, minlength=4)
        if (true < low).any() or (true > high).any():
            continue
        codes = np.array([[c // 2 for c in placed], [c % 2 for c in placed]], dtype=np.uint8)
        for key in (b"%016d" % k for k in range(4)):
            by = carried_by(
                plan, codes, values, np.arange(3, dtype=np.uint64), shown, key, sweeps=2
            )
            found = np.zeros(4, dtype=np.int64)
            np.add.at(found, seen[by.carrier], by.values(values[:, 0]))
            yield placed, tuple(found.tolist())


def attacks(placed: Three, sums: Three, protected: Three) -> Iterator[tuple[tuple[int, int], bool]]:
    """Every second largest firm of a cell with its true value, and whether it comes too near the largest."""
    for true in product(*(true_values(y) for y in protected)):
        for own, cell in enumerate(placed):
            others = sorted(true[i] for i in range(3) if i != own and placed[i] == cell)
            if not others or sums[cell] == 0 or others[-1] < true[own]:
                continue
            if len(others) > 1 and others[0] > true[own]:
                continue
            lacking = P * others[-1] - sum(others[:-1])
            estimate = sums[cell] - protected[own]
            yield (own, true[own]), abs(estimate - sum(others)) < lacking


@pytest.mark.parametrize("protected", SHOWN)
def test_nobody_can_know_where_a_sum_is_near_by_chance(protected: Three) -> None:
    views: dict[Any, set[bool]] = defaultdict(set)
    for placed, sums in outcomes((3, 0, 0, 0), protected):
        for view, near in attacks(placed, sums, protected):
            views[sums, placed[view[0]], view].add(near)
    by_chance = [found for found in views.values() if True in found]
    assert len(by_chance) >= 4
    assert all(False in found for found in by_chance)


@pytest.mark.parametrize("protected", SHOWN)
def test_sums_that_stay_where_they_are_are_never_near(protected: Three) -> None:
    for placed in product(range(4), repeat=3):
        sums = np.bincount(placed, weights=protected, minlength=4).astype(np.int64)
        assert not any(flag for _, flag in attacks(placed, tuple(sums.tolist()), protected))
