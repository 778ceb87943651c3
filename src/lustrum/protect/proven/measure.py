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

from lustrum.model import InputError
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.finest import FinestCells
from lustrum.protect.privacy.mechanism import measure
from lustrum.protect.proven.domain import Domain
from lustrum.protect.proven.noisy import NoisyTables
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


def laid_out(domain: Domain, cells: FinestCells) -> Ints:
    """The counts of all finest cells, those of nobody among them: (major codes, combinations)."""
    counts = np.zeros(domain.shape, dtype=np.int64)
    counts[positions(domain, cells.codes)] = cells.counts
    return counts


def positions(domain: Domain, codes: Array) -> tuple[Ints, Ints]:
    """The major code and the combination of each finest cell; an error if one cannot exist."""
    places = []
    for axis in domain.axes:
        wanted, known = (
            _numbered(domain, axis.variables, r) for r in (codes[list(axis.variables)], axis.codes)
        )
        order = np.argsort(known, kind="stable")
        place = order[np.minimum(np.searchsorted(known[order], wanted), known.size - 1)]
        _require_possible(known[place] == wanted)
        places.append(place)
    number = np.zeros(codes.shape[1], dtype=np.int64)
    known = np.zeros(domain.shape[1], dtype=np.int64)
    for size, place, row in zip(domain.sizes[1:], places[1:], domain.combined, strict=True):
        number, known = number * size + place, known * size + row
    # Combinations stand in ascending order of their codes.
    combination = np.minimum(np.searchsorted(known, number), known.size - 1)
    _require_possible(known[combination] == number)
    _require_possible(domain.possible[places[0], combination])
    return places[0], combination


def _require_possible(possible: Mask) -> None:
    if not possible.all():
        raise InputError("A record has a combination that the description says cannot exist.")


def _numbered(domain: Domain, variables: tuple[int, ...], rows: Array) -> Ints:
    """One number for the codes of several variables."""
    number = np.zeros(rows.shape[1], dtype=np.int64)
    for variable, row in zip(variables, rows, strict=True):
        number = number * len(domain.dataset.variables[variable].codes) + row
    return number
