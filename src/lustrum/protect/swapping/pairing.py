"""The search for partners, step by step, from strict to loose profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lustrum.model.arrays import Array, Floats, Ints, Mask
from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import unit
from lustrum.protect.microdata import numbered

# The loop that finds partners, compiled at first use.


@compiled
def pair_up(
    turns: Array, quota: Array, home: Array, stratum: Array, group: Array, limit: int, state: Array
) -> Any:  # pragma: no cover
    """Give units a partner, in the order of ``turns``, and say by which row of ``stratum`` it was found.

    Row ``p`` of ``stratum`` says which units are alike at step ``p``, from strict to loose; row ``p`` of
    ``group`` divides each stratum into units of the same place, which cannot be partners. A partner is
    drawn uniformly from the remaining units of the stratum in other places, by rejection. Every search
    removes one such unit, so all searches together need at most ``n log n`` draws on average. ``quota`` is
    how many units of each ``home`` may still look for a partner.
    """
    steps, units = stratum.shape
    partner = np.full(units, -1, np.int64)
    found_by = np.full(units, -1, np.int64)
    strata = 1
    groups = 1
    for p in range(steps):
        for u in range(units):
            strata = max(strata, stratum[p, u] + 1)
            groups = max(groups, group[p, u] + 1)
    begin = np.zeros((steps, strata + 1), np.int64)
    left = np.zeros((steps, strata), np.int64)
    together = np.zeros((steps, groups), np.int64)
    listed = np.empty((steps, units), np.int32)
    position = np.empty((steps, units), np.int32)
    for p in range(steps):
        for u in range(units):
            begin[p, stratum[p, u] + 1] += 1
            together[p, group[p, u]] += 1
        for s in range(strata):
            begin[p, s + 1] += begin[p, s]
        for u in range(units):
            s = stratum[p, u]
            at = begin[p, s] + left[p, s]
            listed[p, at] = u
            position[p, u] = at
            left[p, s] += 1
    pairs = 0
    for u in turns:
        if pairs >= limit:
            break
        if partner[u] >= 0 or quota[home[u]] <= 0:
            continue
        for p in range(steps):
            s = stratum[p, u]
            if left[p, s] <= together[p, group[p, u]]:
                continue
            v = u
            while group[p, v] == group[p, u]:
                v = listed[p, begin[p, s] + np.int64(unit(state) * left[p, s])]
            partner[u] = v
            partner[v] = u
            found_by[u] = p
            quota[home[u]] -= 1
            pairs += 1
            for gone in (u, v):
                for q in range(steps):
                    t = stratum[q, gone]
                    left[q, t] -= 1
                    last = listed[q, begin[q, t] + left[q, t]]
                    listed[q, position[q, gone]] = last
                    position[q, last] = position[q, gone]
                    together[q, group[q, gone]] -= 1
            break
    return partner, found_by


@dataclass(eq=False, repr=False)
class Search:
    """Units looking for partners, and those found so far; -1 where there is none."""

    profiles: Sequence[Ints]
    home: Ints
    partner: Ints
    found_by: Ints
    free: Mask

    @classmethod
    def begin(cls, profiles: Sequence[Ints], home: Ints, free: Mask) -> Search:
        """A search without partners so far; only units marked free may get one."""
        nobody = np.full(home.size, -1, dtype=np.int64)
        return cls(profiles, home, nobody, nobody.copy(), free.copy())

    def pair(
        self,
        turns: Ints,
        area: Ints,
        scopes: Sequence[Ints],
        rng: np.random.Generator,
        limit: int,
        quota: Ints | None = None,
    ) -> Ints:
        """Find partners of another ``area`` in the same scope, for at most ``limit`` of ``turns``.

        The scopes are tried from narrow to wide and in each the profiles from strict to loose. Returns the
        units that found a partner.
        """
        seed = rng.integers(0, 2**64, size=1, dtype=np.uint64)
        units = np.flatnonzero(self.free)
        at = np.full(self.home.size, -1, dtype=np.int64)
        at[units] = np.arange(units.size)
        turns = at[turns]
        turns = turns[turns >= 0]
        if not turns.size or limit <= 0:
            return np.zeros(0, dtype=np.int64)
        here = numbered(area[units])
        strata = []
        for scope in scopes:
            wide = scope[units]
            span = int(wide.max()) + 1
            strata += [numbered(profile[units] * span + wide) for profile in self.profiles]
        groups = [numbered(stratum * (int(here.max()) + 1) + here) for stratum in strata]
        open_to = np.full(int(self.home.max()) + 1, limit) if quota is None else quota.copy()
        partner, found_by = pair_up(
            turns,
            open_to,
            self.home[units],
            np.stack(strata).astype(np.int32),
            np.stack(groups).astype(np.int32),
            limit,
            seed,
        )
        paired = np.flatnonzero(partner >= 0)
        self.partner[units[paired]] = units[partner[paired]]
        self.free[units[paired]] = False
        looked = np.flatnonzero(found_by >= 0)
        self.found_by[units[looked]] = found_by[looked] % len(self.profiles)
        return units[looked]


def quotas(wanted: Floats, rng: np.random.Generator) -> Ints:
    """Whole numbers near ``wanted``, each right on average, whose sum is less than one off.

    One random start decides all fractions together, as in systematic sampling (Madow 1949).
    """
    ends = np.floor(np.cumsum(wanted) + rng.random()).astype(np.int64)
    return np.diff(ends, prepend=0)
