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

from lustrum.model.finest import FinestCells
from lustrum.protect.privacy.mechanism import measure
from lustrum.protect.proven.domain import Domain
from lustrum.protect.proven.noisy import NoisyTables
from lustrum.protect.proven.places import laid_out
from lustrum.protect.proven.plan import MeasurementPlan
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
        possible = domain.possible_table(subset)
        noisy = np.zeros(possible.shape, dtype=np.int64)
        drawn = measure(
            domain.table(counts, subset)[possible],
            "gaussian",
            cells=_CHANGED_CELLS,
            records=1,
            cost=float_at_most(share),
        )
        noisy[possible] = drawn.values
        tables[subset], scales[subset] = noisy, drawn.scale
    made_with = {"opendp": version("opendp"), "lustrum": version("lustrum")}
    return NoisyTables(domain, plan, int(cells.counts.sum()), tables, scales, made_with)


def float_at_most(share: Fraction) -> float:
    """The largest float that is not above an exact share."""
    near = float(share)
    return near if Fraction(near) <= share else nextafter(near, 0.0)
