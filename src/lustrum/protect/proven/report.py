"""The public report of a population with a proof: its promise, and how large errors are.

Errors follow from public numbers alone, by a parametric bootstrap: the people who were made up are measured
again with new noise of the same scales, people are made up from that, and both are compared. This does not see
what nobody measured: how more variables depend on each other than the tables had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod, sqrt
from typing import Any

import numpy as np

from lustrum.model.finest import FinestCells
from lustrum.protect.population.measure import MeasuredTable, measured_tables, report_of
from lustrum.protect.population.public import MARGIN_ENDS, Margins, PublicReport
from lustrum.protect.population.start import cell_numbers
from lustrum.protect.population.support import Support
from lustrum.protect.privacy.budget import epsilon_of_rho
from lustrum.protect.privacy.mechanism import DiscreteNoiseChannel
from lustrum.protect.proven.domain import Domain
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.noisy import NEIGHBOURS, NoisyTables
from lustrum.protect.proven.places import laid_out
from lustrum.protect.rehearsal import rehearsed_noise

DELTA = 1e-10
"""The delta for which the report also states an epsilon."""
_BASE = 3
"""Sizes of counts and errors are stated in steps of this, as for other populations."""
_COVERED, _FEWEST = 0.955, 100
"""The share of cells that a margin is to cover, and from how many cells on one is stated."""
_CELLS, _DRAWS = 1 << 20, 8
"""Small files are compared with several draws of noise: so many finest cells in all, at most so many draws."""
SUPPORT = Support(_BASE, small_only=True, certain=False)
"""Every number leaves every count."""
VERSION = 1
"""Of the fit: one that makes other people of the same noisy tables is another."""


def public_report(
    method: ProvenPopulation, noisy: NoisyTables, people: FinestCells, proof: Mapping[str, Any]
) -> PublicReport:
    """Compare the people with those of other draws of noise; ``proof`` is what the ledger adds."""
    rng = np.random.default_rng(int(noisy.digest[:16], 16))
    most = min(method.max_variables, len(noisy.domain.axes))
    kinds: dict[int, list[MeasuredTable]] = {}
    grouped: dict[int, list[MeasuredTable]] = {}
    for _ in range(min(max(_CELLS // prod(noisy.domain.shape), 1), _DRAWS)):
        again = method.population(simulated(noisy, people, rng))
        for every, some in zip(
            (kinds, grouped), measured_tables(*beside(people, again), _BASE, most), strict=True
        ):
            for variables, tables in some.items():
                every.setdefault(variables, []).extend(tables)
    # Nothing here is secret: the noisy tables themselves may be published.
    shift = hashlib.sha256(noisy.digest.encode()).digest()
    report = report_of(method.to_mapping(), SUPPORT, 0.5, kinds, grouped, shift, fewest=1)
    return replace(
        report,
        search=VERSION,
        changed=0.95,
        largest=None,
        margins=_margins(kinds) or report.margins,
        proof={
            "rho": str(noisy.rho),
            "neighbours": NEIGHBOURS,
            "epsilon": round(epsilon_of_rho(float(noisy.rho), DELTA), 2),
            "delta": DELTA,
            "noisy_tables": noisy.digest,
            **proof,
        },
    )


def _margins(kinds: Mapping[int, Sequence[MeasuredTable]]) -> Margins:
    """By variables and size, what 95 % of the cells keep: nothing is made coarse, since nothing is secret.

    A size of which there are few cells has the margin of that size by more variables, or else by fewer, and if
    these are few as well that of the nearest smaller size, or else of the nearest larger one.
    """
    rows = {v: np.concatenate([one.by_size for one in tables]) for v, tables in kinds.items()}
    found: dict[int, dict[int, int]] = {}
    for variables in rows:
        order = sorted(rows, key=lambda v: (v < variables, abs(v - variables)))
        found[variables] = {}
        for size in range(len(MARGIN_ENDS) + 1):
            joined = np.zeros((0, 3), dtype=np.int64)
            for other in order:
                joined = np.concatenate([joined, rows[other][rows[other][:, 0] == size]])
                if (cells := joined[:, 2].sum()) >= _FEWEST:
                    joined = joined[np.argsort(joined[:, 1], kind="stable")]
                    at = np.searchsorted(np.cumsum(joined[:, 2]), _COVERED * cells)
                    found[variables][size] = max(int(joined[at, 1]), 1)
                    break
    return {
        variables: tuple(
            sizes[min(sizes, key=lambda s: (s > size, abs(s - size)))]
            for size in range(len(MARGIN_ENDS) + 1)
        )
        for variables, sizes in found.items()
        if sizes
    }


def rehearsed_people(
    method: ProvenPopulation, cells: FinestCells, rng: np.random.Generator
) -> FinestCells:
    """People as the method would make them up, with noise that can be repeated: never to publish."""
    domain = Domain.of(cells.dataset)
    plan = method.plan(domain)
    scales = {subset: sqrt(1 / share) for subset, share in plan.shares.items()}
    unmeasured = NoisyTables(domain, plan, int(cells.counts.sum()), {}, scales, {})
    return method.population(simulated(unmeasured, cells, rng))


def simulated(noisy: NoisyTables, people: FinestCells, rng: np.random.Generator) -> NoisyTables:
    """Tables of people who were made up, with noise of the same scales from an ordinary generator."""
    domain, counts = noisy.domain, laid_out(noisy.domain, people)
    tables = {}
    for subset, scale in noisy.scales.items():
        possible = domain.possible_table(subset)
        noise = rehearsed_noise(DiscreteNoiseChannel("gaussian", scale), possible.shape, rng)
        tables[subset] = domain.table(counts, subset) + np.where(possible, noise, 0)
    return replace(noisy, tables=tables)


def beside(one: FinestCells, other: FinestCells) -> tuple[FinestCells, FinestCells]:
    """The cells of both, with the counts of each."""
    codes = np.concatenate([one.codes, other.codes], axis=1)
    numbers, first, place = np.unique(
        cell_numbers(one.dataset, codes), return_index=True, return_inverse=True
    )
    counts = np.zeros((2, numbers.size), dtype=np.int64)
    counts[0, place.reshape(-1)[: len(one)]] = one.counts
    counts[1, place.reshape(-1)[len(one) :]] = other.counts
    both = codes[:, first]
    return tuple(FinestCells(one.dataset, both, row) for row in counts)  # type: ignore[return-value]
