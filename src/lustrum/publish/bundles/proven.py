"""A bundle with a proof: charge the budget, measure once, and make people up from what was measured.

Noisy tables stand in the agency's folder from the moment they were paid for. Whatever stops the work
afterwards, the next call goes on from them without another charge; only ``measure_again`` pays for new ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from lustrum.ledger.acts import left
from lustrum.model import Dataset, DatasetError, PolicyError
from lustrum.model.arrays import Ints
from lustrum.model.finest import FinestCells
from lustrum.model.records import Records
from lustrum.policy import Policy, read_policy
from lustrum.policy.read import sealed
from lustrum.protect.population.public import PublicReport
from lustrum.protect.proven.domain import Domain, Placed, laid_out, positions
from lustrum.protect.proven.margins import NoiseMargins, compared
from lustrum.protect.proven.measure import measure_sums, measure_tables
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.noisy import NoisyTables
from lustrum.protect.proven.plan import few_people
from lustrum.protect.proven.report import Remade, public_report, public_sums
from lustrum.protect.proven.sums import ClippedSums, ProvenSums
from lustrum.public.bundle.files import ProtectedSums, bundle_digest, stated_proof
from lustrum.publish.budget import BudgetLedger
from lustrum.publish.bundles.history import ReleaseHistory
from lustrum.publish.bundles.people import People, one_by_one, opened, people_path, population_of
from lustrum.publish.bundles.write import pack_bundle, write_bundle
from lustrum.runtime.data_folder import BUNDLES, PREPARED, RELEASES, bundles_in
from lustrum.runtime.durable import outages, write_whole
from lustrum.runtime.stop import reporting_progress
from lustrum.tabulate import Store, records_of
from lustrum.tabulate.finest import finest_cells

Progress = Callable[[str, float], None]
NOISY, ERRORS = "noisy-tables.json", "true-errors.json"


@dataclass(frozen=True, eq=False, repr=False)
class ProvenBundle:
    """A bundle that was written, whether it was paid for anew, and what is left.

    ``earlier`` says whether these people were in a release without proof, ``few`` warns of too few people.
    """

    digest: str
    charged: bool
    rho: Fraction
    left: Fraction
    earlier: bool
    few: str | None


def method_with_proof(policy: Policy, where: str) -> ProvenPopulation | None:
    """The method of a policy that asks for a population with a proof; beside it only sums may stand."""
    spec = policy.population
    if not isinstance(spec, ProvenPopulation):
        return None
    if policy.weights is not None:
        raise PolicyError(
            f"{where} asks for weights beside a population with a proof; a weight multiplies what one person "
            "changes, and weighted numbers have no proof yet, so leave [weights] out."
        )
    return spec


def make_proven_bundle(
    store: Store,
    name: str,
    policy: Path,
    out: Path,
    *,
    folder: Path,
    workers: int | None = None,
    progress: Progress | None = None,
    measure_again: bool = False,
    warn: Callable[[str], None] | None = None,
    accept: Callable[[str, str], None] | None = None,
) -> ProvenBundle:
    """Make the bundle of a dataset from its noisy tables, which are measured if there are none yet.

    ``warn`` is told of too few people before anything is paid, ``accept`` of the digest and the population
    before it is written.
    """
    decided = read_policy(policy)
    spec = method_with_proof(decided, str(policy))
    if spec is None:
        raise PolicyError(f"{policy} does not ask for a population with a proof.")
    engine = opened(store, name, workers)
    if engine.dataset.population is None:
        raise DatasetError(
            f"The description of {name!r} names no population, whose budget the release is paid from; write "
            'one word, such as population = "residents", the same for all datasets of these people.'
        )
    ledger = BudgetLedger(store.root, engine.dataset.population)
    released = _released_names(store, engine.dataset)
    heads = [
        head
        for path in (out, *(store.root / BUNDLES / n for n in released))
        for head in _head(path)
    ]
    with reporting_progress(progress or (lambda _step, _share: None)):
        noisy = None if measure_again else _paid_for(folder / NOISY, engine.dataset, ledger)
        charged = noisy is None
        cells = finest_cells(engine)
        sums = decided.magnitudes
        asked = _Purchase(spec, sums, {} if sums is None else sums.bounds_of(*_sized(cells)))
        records = None if sums is None else records_of(one_by_one(engine, cells))
        engine.require_unchanged()
        if noisy is None:
            warned = warn or (lambda _sentence: None)
            noisy = _measured(asked, cells, records, ledger, heads, folder, warned)
        elif not asked.measured_by(noisy):
            raise DatasetError(
                f"{folder / NOISY} was measured with rho {float(noisy.rho):g}, and the policy asks for "
                f"{float(asked.rho):g} or for other sums; take the change back, or pay for new tables with "
                "--measure-again."
            )
        earlier = _earlier_without_proof(store, released, ledger)
        made = Remade.of(spec, noisy)
        again = made.again(spec)
        proof = {"ledger": ledger.measured()[noisy.digest], "earlier_without_proof": earlier}
        report = public_report(spec, made, again, proof)
        shown = None
        if sums is not None and made.sums is not None:
            shown = ProtectedSums(made.sums, public_sums(sums, made, again))
        errors = _true_errors(noisy.domain, cells, records, made.people, report, shown)
        write_whole(folder / ERRORS, json.dumps(errors, indent=1).encode(), 0o600)
    packed = pack_bundle(made.people, sealed(policy.read_bytes(), str(policy)), report, sums=shown)
    # First of all, so that no crash leaves a release that seems to have no proof.
    ledger.released(name, packed.digest)
    if accept is not None:
        accept(packed.digest, engine.dataset.population or "")
    write_bundle(out, packed)
    ReleaseHistory.read(store.root, name).record(None, packed.digest)
    released_people = People.of(store, engine)
    assert released_people is not None
    released_people.record(store.root)
    few = few_people(noisy.domain, noisy.plan, noisy.people)
    return ProvenBundle(packed.digest, charged, noisy.rho, ledger.left, earlier, few)


def _true_errors(
    domain: Domain,
    true: FinestCells,
    records: Records | None,
    people: FinestCells,
    report: PublicReport,
    sums: ProtectedSums | None,
) -> dict[str, Any]:
    """How far numbers are from the true ones: for the agency alone, and no part of what the proof covers."""
    assert report.noise is not None
    counted = Placed.of(domain, true), Placed.of(domain, people)
    errors: dict[str, Any] = {
        "confidential": "For the agency alone: measured on the true counts.",
        "tables": _errors_by_axes(domain, NoiseMargins.from_mapping(report.noise), *counted),
    }
    if records is not None and sums is not None and isinstance(sums.public, ClippedSums):
        codes = np.stack([records.codes[v.name] for v in domain.dataset.variables])
        errors["sums"] = []
        for name, words in sums.public.measures.items():
            given = records.numbers[name]
            clipped = np.clip(given, 0, words.bound)
            true_sums = Placed(*positions(domain, codes), clipped)
            shown = replace(counted[1], numbers=sums.sums.sums[name])
            errors["sums"].append(
                {
                    "measure": name,
                    "contributions that were clipped": int(np.count_nonzero(clipped != given)),
                    "sum in units of the last decimal": int(given.sum()),
                    "clipped off": int((given - clipped).sum()),
                    "tables": _errors_by_axes(domain, words.noise, true_sums, shown),
                }
            )
    return errors


def _errors_by_axes(
    domain: Domain, noise: NoiseMargins, true: Placed, shown: Placed
) -> list[dict[str, Any]]:
    """Errors of all tables at all levels by the number of their axes; tied variables are one axis."""
    found: dict[int, list[tuple[Ints, Ints]]] = {}
    for subset, one, other, deviation in compared(domain, noise, true, shown):
        if not deviation.any():
            continue  # the number of people, which is exact
        margins = noise.rounded(deviation, np.full(other.shape, len(subset)), other)
        found.setdefault(len(subset), []).append((np.abs(one - other), margins))
    rows = []
    for axes, parts in found.items():
        error, margin = (np.concatenate(part) for part in zip(*parts, strict=True))
        cells = max(error.size, 1)
        rows.append(
            {
                "variables": axes,
                "cells that hold or show anything": error.size,
                "mean error": round(int(error.sum()) / cells, 3),
                "largest error": int(error.max(initial=0)),
                "within the stated margin": round(int((error <= margin).sum()) / cells, 4),
            }
        )
    return rows


@dataclass(frozen=True)
class _Purchase:
    """What a policy asks for: people, and sums with their bounds in units."""

    people: ProvenPopulation
    sums: ProvenSums | None
    bounds: Mapping[str, int]

    @property
    def rho(self) -> Fraction:
        return self.people.exact_rho + (0 if self.sums is None else self.sums.exact_rho)

    def measured_by(self, noisy: NoisyTables) -> bool:
        """Whether these noisy tables are what the policy asks for."""
        bounds = {name: one.bound for name, one in noisy.sums.items()}
        costs = noisy.plan.rho == self.people.exact_rho and noisy.rho == self.rho
        return costs and bounds == self.bounds


def _sized(cells: FinestCells) -> tuple[Dataset, int]:
    return cells.dataset, int(cells.counts.sum())


def _measured(
    asked: _Purchase,
    cells: FinestCells,
    records: Records | None,
    ledger: BudgetLedger,
    heads: list[str],
    folder: Path,
    warn: Callable[[str], None],
) -> NoisyTables:
    """Check, charge, draw, write, and only then say that it is done."""
    domain = Domain.of(cells.dataset)
    plan = asked.people.plan(domain)
    laid_out(domain, cells)  # a record that cannot exist is found before anything is paid
    if (few := few_people(domain, plan, int(cells.counts.sum()))) is not None:
        warn(few)
    with outages(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ledger.charge(asked.rho, cells.dataset.name, heads) as charge, outages(folder):
        noisy = measure_tables(domain, plan, cells)
        if asked.sums is not None and records is not None:
            noisy = replace(noisy, sums=measure_sums(domain, asked.sums, records))
        write_whole(folder / NOISY, noisy.to_bytes(), 0o600)
        charge.done(noisy.digest)
    return noisy


def _paid_for(path: Path, dataset: Dataset, ledger: BudgetLedger) -> NoisyTables | None:
    """The noisy tables that stand there; None without any. Tables that the ledger does not know are refused."""
    with outages(path):
        if not path.is_file():
            return None
        data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest not in ledger.measured():
        raise DatasetError(
            f"{path} is not what the budget of {ledger.population!r} paid for; bring back the file as it was, "
            "or pay for new tables with --measure-again."
        )
    return NoisyTables.from_bytes(data, dataset)


def _released_names(store: Store, dataset: Dataset) -> list[str]:
    """The datasets with a release whose people may be these; where nobody can say, they are."""
    with outages(store.root):
        kept = {path.stem for path in (store.root / RELEASES).glob("*.*")}
        names = {dataset.name, *kept, *bundles_in(store.root / BUNDLES)}
    names |= {str(entry.said["dataset"]) for entry in left(store.root)}
    return [n for n in sorted(names) if population_of(store, n) in (None, dataset.population)]


def _head(path: Path) -> Iterator[str]:
    """The last line of the ledger that the bundle there states."""
    stated = stated_proof(path)
    if stated is not None and isinstance(stated.get("ledger"), str):
        yield stated["ledger"]


def _earlier_without_proof(store: Store, names: list[str], ledger: BudgetLedger) -> bool:
    """Whether anything of these people was released that no charge paid for."""
    root, proven = store.root, ledger.releases()
    with outages(root):
        bundles = bundles_in(root / BUNDLES)
        for name in names:
            released = set(ReleaseHistory.read(root, name).digests)
            if name in bundles:
                released.add(bundle_digest(root / BUNDLES / name) or "unknown")
            if not released <= proven or (not released and people_path(root, name).is_file()):
                return True
        return any((root / PREPARED).glob("*/*")) or any(
            entry.said["dataset"] in names and entry.said.get("decision") not in proven
            for entry in left(root)
        )
