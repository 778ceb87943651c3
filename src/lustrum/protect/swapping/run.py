"""Run a swap: find the households at risk, draw others, and pair them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Ints, Mask
from lustrum.model.records import Records
from lustrum.protect.microdata import combined
from lustrum.protect.swapping.households import Households
from lustrum.protect.swapping.pairing import Search, quotas
from lustrum.protect.swapping.places import Places
from lustrum.protect.swapping.plan import SwapPlan
from lustrum.protect.swapping.report import Swapped, SwapReport
from lustrum.protect.swapping.unsafe import rarest


def swap(plan: SwapPlan, records: Records, rng: np.random.Generator, keep: Ints) -> Swapped:
    """Swap records as planned; households whose ids are in ``keep`` do not move."""
    units = Households.of(records, plan.household)
    if not len(units):
        nobody = np.zeros((0, 2), dtype=np.int64)
        return Swapped(records, SwapReport(0, 0, nobody, nobody[:, 0]))
    finest = records.dataset.variable(plan.traded[0])
    places = Places.of(finest, plan.levels, plan.within)
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


def _rates(plan: SwapPlan, records: Records) -> npt.NDArray[np.float64]:
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
