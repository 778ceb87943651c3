"""The search for partners, step by step, from strict to loose profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.protect.microdata import numbered
from lustrum.protect.swapping.kernels import pair_up


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
