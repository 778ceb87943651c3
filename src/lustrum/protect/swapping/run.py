"""Run a swap: find the households at risk, draw others, and pair them, from strict to loose profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Array, Floats, Ints, Mask
from lustrum.model.errors import check_known
from lustrum.model.records import Records
from lustrum.model.variable import Variable
from lustrum.numeric.compiled import compiled
from lustrum.numeric.stream import unit
from lustrum.protect.microdata import canonical_order, combined, numbered

# The plan of a swap: what the spec decides and the run carries out.


@dataclass(frozen=True)
class SwapPlan:
    """Checked parameters of a swap, as :class:`~lustrum.protect.swapping.RecordSwapping` explains them.

    ``traded`` are the variables that partners trade, the finest areas first. ``rate`` holds for areas that
    ``area_rates`` does not name.
    """

    traded: tuple[str, ...]
    household: str | None
    rate: float
    area_rates: Mapping[str, float]
    control: tuple[str, ...]
    similar: tuple[tuple[str, ...], ...]
    same_size: bool
    within: str | None
    target: Literal["random", "risk"]
    risk_on: tuple[tuple[str, ...], ...]
    k: int
    levels: tuple[str, ...]
    all_unsafe: bool
    weight: str | None
    no_swap: tuple[str, ...]
    no_swap_variable: str | None


# What record swapping did: for the agency only.


@dataclass(frozen=True, eq=False, repr=False)
class SwapReport:
    """The pairs that traded places, and the households without a partner.

    With this report the swap can be undone, so it is never part of a release, and its ``repr`` shows
    nothing.

    ``pairs`` holds the household ids of partners, or record ids (positions without any) where each record
    moves on its own. The household that looked for a partner is named first. ``profile`` is the position of
    the profile in which the two are alike. ``wanted`` pairs make up the rate; ``unsafe`` counts the households
    at risk, ``unsafe_left`` those of them that have not moved.
    """

    units: int
    wanted: int
    pairs: Ints
    profile: Ints
    unsafe: int = 0
    unsafe_left: int = 0

    def __repr__(self) -> str:
        return "SwapReport(hidden)"

    @property
    def missing(self) -> int:
        """The number of pairs that the rate requires and that could not be made."""
        return max(self.wanted - len(self.pairs), 0)

    @property
    def rate(self) -> float:
        return 2 * len(self.pairs) / self.units if self.units else 0.0


@dataclass(frozen=True, eq=False)
class Swapped:
    """Records after swapping, with the agency's own report."""

    records: Records
    report: SwapReport


# The geography of a swap: levels from coarse to fine, and the larger areas in which partners are sought.


def groups_of(variable: Variable, level: str | None) -> Ints:
    """For each finest code the position of its category at a level; without a level, all in one."""
    out = np.zeros(len(variable.codes), dtype=np.int64)
    if level is not None:
        for position, category in enumerate(variable.level(level).categories):
            out[list(category.members)] = position
    return out


@dataclass(frozen=True, eq=False)
class SwapPlaces:
    """Levels at which households may be unsafe, from coarse to fine; the finest codes come last.

    ``levels[i]`` gives each finest code its place at that level; ``scopes[i]`` its places in the areas within
    which a household that is unsafe at that level looks for a partner, from narrow to wide.
    """

    levels: tuple[Ints, ...]
    scopes: tuple[tuple[Ints, ...], ...]

    @classmethod
    def of(cls, variable: Variable, levels: tuple[str, ...], within: str | None) -> SwapPlaces:
        """Check that every level divides the one before it, and that all of them divide the outer area."""
        ladder = [groups_of(variable, within), *(groups_of(variable, name) for name in levels)]
        named = [within, *levels]
        for i in range(1, len(ladder)):
            if not _parts(ladder[i], ladder[i - 1]) or _parts(ladder[i - 1], ladder[i]):
                above = "the whole" if named[i - 1] is None else repr(named[i - 1])
                raise InputError(
                    f"The levels of {variable.name!r} must go from coarse to fine; {named[i]!r} does "
                    f"not part {above} into smaller ones."
                )
        finest = np.arange(len(variable.codes), dtype=np.int64)
        scopes = [(ladder[0],)] + [(above, ladder[0]) for above in ladder[1:]]
        return cls((*ladder[1:], finest), tuple(scopes))


def _parts(fine: Ints, coarse: Ints) -> bool:
    """Whether every category of the first lies within one of the second."""
    pairs = np.unique(np.stack((fine, coarse)), axis=1)
    return bool(pairs.shape[1] == np.unique(fine).size)


# Who is at risk: people whose combination of traits is rare where they live.


def sizes_of_groups(groups: Ints, weights: Ints | None = None) -> Ints:
    """For each record how many share its group, or the sum of their weights."""
    if not groups.size:
        return np.zeros(0, dtype=np.int64)
    if weights is None:
        return np.bincount(groups)[groups]
    # Sums of whole numbers by halves of 32 bits: floats hold each of them exactly.
    low = np.bincount(groups, weights=(weights & 0xFFFFFFFF).astype(np.float64))
    high = np.bincount(groups, weights=(weights >> 32).astype(np.float64))
    return (low.astype(np.int64) + (high.astype(np.int64) << 32))[groups]


def rarest(
    records: Records, combinations: Sequence[Sequence[str]], area: Ints, weight: str | None = None
) -> Ints:
    """For each record the smallest group that it falls into, over all combinations of variables.

    A group is everybody of the same ``area`` with the same codes. Below ``k`` it violates k-anonymity
    (Samarati and Sweeney 1998). In a sample the weights say how many of the population a group stands for.
    """
    weights = None if weight is None else records.numbers[weight]
    places = int(area.max(initial=0)) + 1
    out = np.full(len(records), np.iinfo(np.int64).max)
    for combination in combinations:
        groups = numbered(combined(records, combination) * places + area)
        out = np.minimum(out, sizes_of_groups(groups, weights))
    return out


# Households as runs of records, and which of them are alike.


@dataclass(frozen=True, eq=False, repr=False)
class Households:
    """The units that move: ``order[first[u]:first[u + 1]]`` are the records of unit ``u``.

    Their order does not depend on the order of the records, if they have identifiers: it is that of
    household ids or, where each record is a unit of its own, of record keys or record ids.
    """

    order: Ints
    first: Ints
    ids: Ints

    @classmethod
    def of(cls, records: Records, household: str | None) -> Households:
        if household is None:
            order = canonical_order(records)
            id_name = records.dataset.record_id
            ids = (
                order
                if id_name is None or id_name not in records.ids
                else records.ids[id_name][order]
            )
            return cls(order, np.arange(order.size + 1, dtype=np.int64), ids)
        check_known((household,), records.ids, "The records have no identifier")
        column = records.ids[household]
        order = np.argsort(column, kind="stable").astype(np.int64)
        ids = column[order]
        starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))[: ids.size]
        first = np.append(starts, ids.size).astype(np.int64)
        return cls(order, first, ids[first[:-1]])

    def __len__(self) -> int:
        return int(self.first.size - 1)

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self.first)

    def least(self, values: Ints) -> Ints:
        return np.minimum.reduceat(values[self.order], self.first[:-1])

    def one_of(self, values: npt.NDArray[np.integer], name: str) -> Ints:
        """The value that all records of a unit share."""
        ordered = values[self.order].astype(np.int64)
        unit_codes = ordered[self.first[:-1]]
        if not np.array_equal(np.repeat(unit_codes, self.sizes), ordered):
            raise InputError(
                f"A household has records with different codes of {name!r}; it must have one place."
            )
        return unit_codes

    def spread(self, values: Ints) -> Ints:
        """A value per unit, copied to each of its records."""
        out = np.empty(self.order.size, dtype=np.int64)
        out[self.order] = np.repeat(values, self.sizes)
        return out

    def profile(self, codes: Ints, same_size: bool = True) -> Ints:
        """A number per unit: equal for units whose members have the same codes.

        With ``same_size`` each code must occur equally often in both; without it, the same codes must
        occur.
        """
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        span = int(codes.max(initial=0)) + 1
        unit = np.repeat(np.arange(len(self), dtype=np.int64), self.sizes)
        both = unit * span + codes[self.order]
        both.sort()
        if not same_size:
            both = both[np.concatenate(([True], both[1:] != both[:-1]))]
        unit = both // span
        sizes = np.bincount(unit, minlength=len(self))
        first = np.cumsum(sizes) - sizes
        sorted_codes = both - unit * span
        number = numbered(sizes)
        for position in range(int(sizes.max())):
            # Members are compared one place at a time; units that have ended differ in size from the rest.
            longer = np.flatnonzero(sizes > position)
            number[longer] = numbered(
                number[longer] * span + sorted_codes[first[longer] + position]
            )
        return numbered(number * (int(sizes.max()) + 1) + sizes)


def swap(plan: SwapPlan, records: Records, rng: np.random.Generator, keep: Ints) -> Swapped:
    """Swap records as planned; households whose ids are in ``keep`` do not move."""
    units = Households.of(records, plan.household)
    if not len(units):
        nobody = np.zeros((0, 2), dtype=np.int64)
        return Swapped(records, SwapReport(0, 0, nobody, nobody[:, 0]))
    finest = records.dataset.variable(plan.traded[0])
    places = SwapPlaces.of(finest, plan.levels, plan.within)
    home = units.one_of(records.codes[finest.name], finest.name)
    rates = _rates(plan, records)
    free = (rates[home] > 0) & ~np.isin(units.ids, keep) & ~_flagged(plan, records, units)
    search = Search.begin(_profile_numbers(plan, records, units), home, free)
    quota = quotas(np.bincount(home, minlength=rates.size) * rates / 2, rng)
    wanted = int(quota.sum())
    turns = rng.permutation(len(units))
    first = np.zeros(0, dtype=np.int64)
    unsafe = np.zeros(len(units), dtype=np.bool_)
    if plan.target == "risk":
        for area, scopes in zip(places.levels, places.scopes, strict=True):
            rare = _rare(plan, records, units, area[records.codes[finest.name]])
            at_risk = rare < plan.k * _one(plan, records)
            unsafe |= at_risk
            order = turns[at_risk[turns]]
            order = order[np.argsort(rare[order], kind="stable")]
            limit = len(units) if plan.all_unsafe else wanted - first.size
            paired = search.pair(order, area[home], [s[home] for s in scopes], rng, limit)
            first = np.concatenate((first, paired))
    left = np.maximum(quota - np.bincount(home[first], minlength=quota.size), 0)
    around = [s[home] for s in places.scopes[-1]]
    paired = search.pair(turns, home, around, rng, wanted - first.size, left)
    first = np.concatenate((first, paired))
    report = SwapReport(
        units=len(units),
        wanted=wanted,
        pairs=np.stack((units.ids[first], units.ids[search.partner[first]]), axis=1),
        profile=search.found_by[first],
        unsafe=int(unsafe.sum()),
        unsafe_left=int((unsafe & (search.partner < 0)).sum()),
    )
    return Swapped(_traded(plan, records, units, search.partner), report)


def _profile_numbers(plan: SwapPlan, records: Records, units: Households) -> list[Ints]:
    """For each profile, a number per household: equal for those who are alike."""
    out = []
    for profile in plan.similar or ((),):
        wanted = tuple(dict.fromkeys((*plan.control, *profile)))
        if wanted or plan.same_size:
            out.append(units.profile(combined(records, wanted), plan.same_size))
        else:
            out.append(np.zeros(len(units), dtype=np.int64))
    return out


def _rates(plan: SwapPlan, records: Records) -> Floats:
    """The rate of every finest area."""
    variable = records.dataset.variable(plan.traded[0])
    out = np.full(len(variable.codes), float(plan.rate))
    for code, rate in plan.area_rates.items():
        out[list(variable.category(code).members)] = rate
    return out


def _flagged(plan: SwapPlan, records: Records, units: Households) -> Mask:
    """Households of which a member has a code that must not move."""
    if plan.no_swap_variable is None:
        return np.zeros(len(units), dtype=np.bool_)
    variable = records.dataset.variable(plan.no_swap_variable)
    may_move = np.ones(len(variable.codes), dtype=np.int64)
    for code in plan.no_swap:
        may_move[list(variable.category(code).members)] = 0
    least = units.least(may_move[records.codes[variable.name]])
    return np.asarray(least == 0, dtype=np.bool_)


def _rare(plan: SwapPlan, records: Records, units: Households, area: Ints) -> Ints:
    return units.least(rarest(records, plan.risk_on, area, plan.weight))


def _one(plan: SwapPlan, records: Records) -> int:
    """One person, in the units that people are counted in."""
    return 1 if plan.weight is None else int(10 ** records.dataset.weight(plan.weight).decimals)


def _traded(plan: SwapPlan, records: Records, units: Households, partner: Ints) -> Records:
    now = np.where(partner >= 0, partner, np.arange(len(units)))
    columns = {
        name: units.spread(units.one_of(records.codes[name], name)[now]) for name in plan.traded
    }
    return records.with_codes(**columns)


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
