"""The public report of a population with a proof: its promise, and how large errors are.

Errors follow from public numbers alone, by a parametric bootstrap: the people who were made up are measured
again with new noise of the same scales, people are made up from that, and both are compared. This does not see
what nobody measured: how more variables depend on each other than the tables had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np

from lustrum.model.finest import FinestCells
from lustrum.protect.population.measure import measured_tables, report_of
from lustrum.protect.population.public import PublicReport
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
SUPPORT = Support(_BASE, small_only=True, certain=False)
"""Every number leaves every count."""
VERSION = 1
"""Of the fit: one that makes other people of the same noisy tables is another."""


def public_report(
    method: ProvenPopulation, noisy: NoisyTables, people: FinestCells, proof: Mapping[str, Any]
) -> PublicReport:
    """Compare the people with those of a second draw of noise; ``proof`` is what the ledger adds."""
    rng = np.random.default_rng(int(noisy.digest[:16], 16))
    again = method.population(simulated(noisy, people, rng))
    every, memory = beside(people, again)
    most = min(method.max_variables, len(noisy.domain.axes))
    kinds, grouped = measured_tables(every, memory, _BASE, most)
    # Nothing here is secret: the noisy tables themselves may be published.
    shift = hashlib.sha256(noisy.digest.encode()).digest()
    report = report_of(method.to_mapping(), SUPPORT, 0.5, kinds, grouped, shift, fewest=1)
    return replace(
        report,
        search=VERSION,
        changed=0.95,
        largest=None,
        proof={
            "rho": str(noisy.plan.rho),
            "neighbours": NEIGHBOURS,
            "epsilon": round(epsilon_of_rho(float(noisy.plan.rho), DELTA), 2),
            "delta": DELTA,
            "noisy_tables": noisy.digest,
            **proof,
        },
    )


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
