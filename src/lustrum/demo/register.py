"""The demo business register: heavy tails, holdings and weights for magnitude tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lustrum.demo.draws import (
    Positions,
    Progress,
    categories,
    described,
    distribution,
    draw_given,
    generators,
    pick,
    silent,
)
from lustrum.demo.geography import area_kinds, area_regions, area_shares
from lustrum.model.arrays import Floats, Mask
from lustrum.numeric.arithmetic import exp, log, normal_quantile, power

#: What businesses of each section are like: its weight among all businesses, the typical turnover per person
#: engaged in thousand euro, how unequal businesses are, how much more often they have many employees, and the
#: typical share sold abroad.
_SHARE, _TURNOVER, _SPREAD, _LARGE, _EXPORT = np.array(
    [
        (9.0, 70, 0.9, 0.3, 0.1),  # A: Agriculture, forestry and fishing
        (0.15, 260, 1.3, 2.5, 0.25),  # B: Mining and quarrying
        (7.5, 170, 1.1, 3.0, 0.35),  # C: Manufacturing
        (0.3, 900, 1.5, 2.0, 0.08),  # D: Electricity and gas supply
        (0.5, 220, 1.0, 2.2, 0.05),  # E: Water supply and waste
        (12.0, 120, 0.9, 1.0, 0.03),  # F: Construction
        (20.0, 300, 1.1, 1.0, 0.1),  # G: Trade and repair of vehicles
        (4.5, 140, 1.0, 1.6, 0.2),  # H: Transport and storage
        (6.5, 50, 0.7, 1.3, 0.02),  # I: Hotels and restaurants
        (4.0, 140, 1.1, 1.4, 0.25),  # J: Information and communication
        (1.8, 350, 1.5, 1.3, 0.15),  # K: Finance and insurance
        (4.5, 260, 1.2, 0.3, 0.01),  # L: Real estate
        (11.5, 95, 1.0, 0.6, 0.12),  # M: Professional and technical services
        (4.2, 80, 1.0, 2.0, 0.06),  # N: Administrative and support services
        (0.3, 60, 0.5, 5.0, 0.0),  # O: Public administration
        (1.9, 45, 0.7, 2.0, 0.02),  # P: Education
        (5.0, 60, 0.8, 1.6, 0.01),  # Q: Health and social work
        (2.4, 60, 1.1, 0.7, 0.05),  # R: Arts and recreation
        (4.0, 45, 0.7, 0.5, 0.01),  # S: Other services
    ]
).T

#: Fewest employees of each size class.
SIZE_FROM = (0, 2, 10, 20, 50, 250)
_SIZES = np.array([0.62, 0.27, 0.055, 0.033, 0.018, 0.004])
_LARGEST = 6000

#: Businesses per head by kind of area: city, town, country, coast.
_PER_HEAD = np.array([1.2, 0.9, 1.0, 1.1])

#: The share of giants among businesses of the largest size class.
_GIANTS = 0.08
#: Nobody has a larger turnover, in thousand euro: about two per cent of that of the country.
_LARGEST_TURNOVER = 5_000_000
#: The share of businesses that began within the last year, by size class.
_BORN = np.array([0.09, 0.05, 0.02, 0.01, 0.005, 0.0])

_IN_A_GROUP = np.array([0.02, 0.06, 0.15, 0.25, 0.4, 0.6])
_LARGEST_GROUP = 60

#: Typical sampling weight by size class; the last two classes are surveyed in full.
_WEIGHTS = np.array([22.0, 9.0, 3.5, 1.8, 1.0, 1.0])
#: Businesses with at least this turnover, in thousand euro, are surveyed in full as well.
_TAKE_ALL_FROM = 50_000


def _normal(rng: np.random.Generator, count: int) -> Floats:
    return normal_quantile(np.maximum(rng.random(count), 1e-12))


def _draw_activities(count: int, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Division and section of each business; divisions of a section thin out by rank."""
    sections = described("businesses")["variables"][0]["hierarchies"][0]["levels"][0]["groups"]
    divisions = [len(section["members"]) for section in sections]
    within = [_skewed(n) * share for n, share in zip(divisions, _SHARE, strict=True)]
    activity = pick(rng.random(count), distribution(np.concatenate(within)))
    return activity, np.repeat(np.arange(len(divisions)), divisions)[activity]


def _skewed(count: int) -> Floats:
    """Shares of ``count`` divisions, very different but in no order of their codes."""
    ranks = (np.arange(count) * 7 + 2) % count if count % 7 else np.arange(count)
    weights = 1.0 / power(1.0 + ranks, 1.3)
    shares: Floats = weights / weights.sum()
    return shares


def _draw_sizes(section: Positions, rng: np.random.Generator) -> tuple[Positions, Positions]:
    """Size class and number of employees, log-uniform within the class."""
    tilt = exp(log(_LARGE)[:, None] * np.linspace(0, 1.6, 6))
    size = draw_given(rng.random(len(section)), (_SIZES * tilt, section))
    low = np.array(SIZE_FROM, dtype=np.float64)[size]
    high = np.array([*SIZE_FROM[1:], _LARGEST], dtype=np.float64)[size]
    # The tail of the top class is skewed further, so that a giant stays a rarity.
    drawn = rng.random(len(section))
    position = np.where(size == len(SIZE_FROM) - 1, power(drawn, 2.5), power(drawn, 1.2))
    start = np.maximum(low, 0.5)
    employees = np.floor(start * exp(position * log(high / start)))
    return size, np.clip(employees, low, high - 1).astype(np.int64)


def _draw_turnover(section: Positions, employees: Positions, rng: np.random.Generator) -> Positions:
    """Log-normal turnover in thousand euro around the section's turnover per head."""
    typical = log(_TURNOVER[section] * (employees + 0.7))
    spread = _SPREAD[section] * _normal(rng, len(section))
    return np.maximum(np.rint(exp(typical + spread)), 1).astype(np.int64)


def _make_giants(size: Positions, turnover: Positions, rng: np.random.Generator) -> Positions:
    """Some of the largest businesses are giants, each many times its peers, as in real registers."""
    giant = (size == len(SIZE_FROM) - 1) & (rng.random(len(size)) < _GIANTS)
    times = exp(0.7 + 1.6 * rng.random(len(size)))
    grown = np.where(giant, np.rint(turnover * times), turnover).astype(np.int64)
    return np.minimum(grown, _LARGEST_TURNOVER)


def _draw_wages(section: Positions, employees: Positions, rng: np.random.Generator) -> Positions:
    """The wage bill in thousand euro; none without employees."""
    per_head = 18.0 + 0.12 * np.minimum(_TURNOVER[section], 250.0)
    scale = exp(0.35 * _normal(rng, len(section)))
    wages: Positions = np.rint(employees * per_head * scale).astype(np.int64)
    return wages


def _draw_investment(
    section: Positions, size: Positions, turnover: Positions, rng: np.random.Generator
) -> Positions:
    """Lumpy investment in thousand euro: many small businesses have none in a year."""
    invests = rng.random(len(size)) < np.array([0.25, 0.45, 0.7, 0.85, 0.95, 1.0])[size]
    typical = 0.04 * np.sqrt(_LARGE)[section]
    share = typical * exp(1.1 * _normal(rng, len(size)))
    return np.where(invests, np.rint(turnover * np.minimum(share, 1.5)), 0).astype(np.int64)


def _a_year_before(
    values: Positions, born: Mask, growth: float, spread: float, rng: np.random.Generator
) -> Positions:
    """The same number one year earlier; a business that is new had none."""
    factor = exp(-growth + spread * _normal(rng, len(values)))
    return np.where(born, 0, np.rint(values * factor)).astype(np.int64)


def _draw_export(
    section: Positions, size: Positions, turnover: Positions, rng: np.random.Generator
) -> Positions:
    """Turnover abroad, never more than the whole; most small businesses have none."""
    typical = _EXPORT[section]
    exports = rng.random(len(section)) < np.minimum(typical * (1 + size), 0.95)
    share = np.minimum(typical * 2.2 * rng.random(len(section)), 0.98)
    return np.where(exports, np.floor(turnover * share), 0).astype(np.int64)


def _draw_holdings(size: Positions, rng: np.random.Generator) -> Positions:
    """Who owns each business: mostly itself, otherwise a group; group sizes have a heavy tail."""
    count = len(size)
    holding = np.arange(count, dtype=np.int64)
    owned = np.flatnonzero(rng.random(count) < _IN_A_GROUP[size])
    owned = owned[np.argsort(rng.random(len(owned)), kind="stable")]
    sizes = np.minimum(2.0 / power(1.0 - rng.random(len(owned)), 0.7), _LARGEST_GROUP)
    ends = np.cumsum(sizes.astype(np.int64))
    group = np.searchsorted(ends, np.arange(len(owned)), side="right")
    starts = np.concatenate([[0], ends])[group]
    holding[owned] = owned[starts]
    _, dense = np.unique(holding, return_inverse=True)
    return dense.astype(np.int64) + 1


def _weights(section: Positions, size: Positions, turnover: Positions) -> Floats:
    """Weights of the sample design: equal within section and size class, one for the large."""
    tilt = 0.8 + 0.05 * (section % 9)
    weights: Floats = np.round(np.maximum(_WEIGHTS[size] * tilt, 1.0), 2)
    take_all = (size >= 4) | (turnover >= _TAKE_ALL_FROM)
    return np.where(take_all, 1.0, weights)


def businesses(count: int = 60_000, seed: int = 2001, progress: Progress | None = None) -> pa.Table:
    """A synthetic register of exactly ``count`` businesses; the same seed gives the same table.

    ``progress`` is called with the share of the work done, from 0 to 1.

    >>> businesses(count=500).num_rows
    500
    """
    if count < 1:
        raise ValueError(f"a register needs at least one business, not {count}")
    report = progress or silent
    report(0.0)
    places, kinds, sizes, sales, exports, owners, giants, pay, machines, births, earlier = (
        generators(seed, 11)
    )
    density = area_shares() * _PER_HEAD[area_kinds()]
    area = pick(places.random(count), distribution(density))
    activity, section = _draw_activities(count, kinds)
    size, employees = _draw_sizes(section, sizes)
    report(0.5)
    turnover = _make_giants(size, _draw_turnover(section, employees, sales), giants)
    wages = _draw_wages(section, employees, pay)
    investment = _draw_investment(section, size, turnover, machines)
    born = births.random(count) < _BORN[size]
    export = _draw_export(section, size, turnover, exports)
    table = pa.table(
        {
            "business_id": pa.array(np.arange(1, count + 1, dtype=np.int64)),
            "holding_id": pa.array(_draw_holdings(size, owners)),
            **categories(
                "businesses", activity=activity, size=size, region=area_regions()[area], area=area
            ),
            "employees": pa.array(employees),
            "turnover": pa.array(turnover),
            "turnover_domestic": pa.array(turnover - export),
            "turnover_export": pa.array(export),
            "wages": pa.array(wages),
            "investment": pa.array(investment),
            "employees_before": pa.array(_a_year_before(employees, born, 0.01, 0.08, earlier)),
            "turnover_before": pa.array(_a_year_before(turnover, born, 0.03, 0.15, earlier)),
            "wages_before": pa.array(_a_year_before(wages, born, 0.025, 0.1, earlier)),
            "weight": pa.array(_weights(section, size, turnover)),
        }
    )
    report(1.0)
    return table
