"""Measure the tables of a plan once, with noise from OpenDP: the one place of the method that sees true counts.

The promise. Let two datasets have the same size and differ in one record. Then each table of the plan differs
by one in at most two cells, by the root of 2 in Euclidean distance. Discrete Gaussian noise whose cost for that
distance is at most the table's share of rho, as OpenDP itself states it rounded up, makes the table
share-zCDP (Canonne, Kamath and Steinke 2020); shares add up to rho (Bun and Steinke 2016, composition), and
whatever is computed from noisy tables, the public description and a public seed is rho-zCDP as well. Cells that
cannot exist are 0 in both datasets and are not measured.
"""

from __future__ import annotations

from fractions import Fraction
from importlib.metadata import version
from math import nextafter

import numpy as np

from lustrum.model.arrays import Ints
from lustrum.model.finest import FinestCells
from lustrum.model.records import Records
from lustrum.protect.privacy.mechanism import measure
from lustrum.protect.proven.domain import Domain, Subset, laid_out, positions
from lustrum.protect.proven.noisy import NoisySums, NoisyTables
from lustrum.protect.proven.plan import MeasurementPlan
from lustrum.protect.proven.sums import ProvenSums
from lustrum.runtime.stop import check_stop, report_progress

_CHANGED_CELLS = 2
"""One record that is replaced changes two cells of a table by one each."""


def measure_tables(domain: Domain, plan: MeasurementPlan, cells: FinestCells) -> NoisyTables:
    """Draw the noise of every table of the plan; call this once for one charge of the budget."""
    counts = laid_out(domain, cells)
    tables, scales = {}, {}
    for number, (subset, share) in enumerate(plan.shares.items()):
        check_stop()
        report_progress("measuring tables", number / len(plan.shares))
        tables[subset], scales[subset] = _with_noise(domain, counts, subset, 1, share)
    made_with = {"opendp": version("opendp"), "lustrum": version("lustrum")}
    return NoisyTables(domain, plan, int(cells.counts.sum()), tables, scales, made_with)


def measure_sums(domain: Domain, spec: ProvenSums, records: Records) -> dict[str, NoisySums]:
    """Draw the noise of the sums of every measure; call this once for one charge of the budget.

    Contributions are clipped one by one, so that one record changes a cell by at most the bound.
    """
    codes = np.stack([records.codes[v.name] for v in domain.dataset.variables])
    place = np.ravel_multi_index(positions(domain, codes), domain.shape)
    plan, clipped_rho = spec.shares(domain)
    found = {}
    for name, bound in spec.bounds_of(domain.dataset, len(records)).items():
        given = records.numbers[name]
        clipped = np.clip(given, 0, bound)
        sums = np.zeros(domain.shape, dtype=np.int64)
        np.add.at(sums.ravel(), place, clipped)
        drawn = {}
        for subset, share in plan.shares.items():
            check_stop()
            drawn[subset] = _with_noise(domain, sums, subset, bound, share)
        outside = np.array([np.count_nonzero(clipped != given)])
        cost = float_at_most(clipped_rho)
        counted = measure(outside, "gaussian", cells=1, records=1, cost=cost)
        found[name] = NoisySums(
            bound,
            plan,
            {subset: table for subset, (table, _) in drawn.items()},
            {subset: scale for subset, (_, scale) in drawn.items()},
            int(counted.values[0]),
            counted.scale,
            clipped_rho,
        )
    return found


def _with_noise(
    domain: Domain, cells: Ints, subset: Subset, most: int, share: Fraction
) -> tuple[Ints, float]:
    """A table with noise, and its scale; one record adds ``most`` to a cell, or less."""
    possible = domain.possible_table(subset)
    noisy = np.zeros(possible.shape, dtype=np.int64)
    drawn = measure(
        domain.table(cells, subset)[possible],
        "gaussian",
        cells=_CHANGED_CELLS,
        records=most,
        cost=float_at_most(share),
    )
    noisy[possible] = drawn.values
    return noisy, drawn.scale


def float_at_most(share: Fraction) -> float:
    """The largest float that is not above an exact share."""
    near = float(share)
    return near if Fraction(near) <= share else nextafter(near, 0.0)
