"""From records to a public bundle: count the finest cells, protect them once, write what may leave.

Beside the bundle the agency keeps a memory, from which a second release of the same people starts. It is
written before the bundle, under the digest of the bundle that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lustrum.model import DatasetError, InputError, PolicyError
from lustrum.model.arrays import Floats, Words
from lustrum.model.finest import FinestCells
from lustrum.model.records import Records
from lustrum.model.variable import Replicates
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.policy import Policy, read_policy
from lustrum.policy.read import sealed
from lustrum.protect.magnitudes.check import ContributorAudit, audit_contributors
from lustrum.protect.magnitudes.method import MagnitudeResult
from lustrum.protect.magnitudes.remembered import RememberedSums, SumsTogether, sums_together
from lustrum.protect.population.method import PopulationResult
from lustrum.protect.population.together import Together, carried_bounds, together
from lustrum.protect.weighted import SurveyRecords
from lustrum.protect.weighted.replicates import GivenReplicates, alike_clusters, jackknife_design
from lustrum.public.bundle.files import ProtectedSums, bundle_digest, read_bundle
from lustrum.publish.bundles.memory import Memory, memory_path, read_memory, sums_path, write_memory
from lustrum.publish.bundles.on_spark import made_on_spark
from lustrum.publish.bundles.people import (
    People,
    SamePeople,
    last_memory,
    one_by_one,
    opened,
    require_one_draw,
    require_unanswered,
    require_unchanged,
    revealed,
    same_people,
)
from lustrum.publish.bundles.write import pack_bundle, write_bundle
from lustrum.runtime.data_folder import SEARCH_STATE
from lustrum.runtime.durable import outages
from lustrum.runtime.stop import reporting_progress
from lustrum.survey import Design
from lustrum.tabulate import Secret, Store, records_of
from lustrum.tabulate.finest import finest_cells
from lustrum.tabulate.remote import ConnectedEngine
from lustrum.tabulate.store import EmbeddedEngine

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False, repr=False)
class MadeBundle:
    """A bundle that was written, and what only the agency may know of it.

    ``cells`` are the true finest cells; ``both`` says what this release and the one before tell together.
    ``magnitudes`` are the protected sums, where the policy asks for them, ``audits`` what attackers can say
    about the contributors of each measure, and ``both_sums`` what both releases tell together of them.
    ``same_people`` are other datasets of the same people, and what they tell beside this one.
    """

    digest: str
    result: PopulationResult
    cells: FinestCells
    both: Together | None = None
    magnitudes: MagnitudeResult | None = None
    audits: tuple[ContributorAudit, ...] = ()
    both_sums: tuple[SumsTogether, ...] | None = None
    same_people: tuple[SamePeople, ...] = ()

    def __repr__(self) -> str:
        return f"MadeBundle({self.digest[:12]})"


class PopulationMethod(Protocol):
    """A method that protects the finest cells of a dataset once; see ``lustrum.testing.check_population``."""

    def to_mapping(self) -> dict[str, Any]: ...

    def protect(
        self,
        cells: FinestCells,
        key: bytes,
        *,
        previous: FinestCells | None = None,
        progress: Progress | None = None,
        state: Path | None = None,
    ) -> PopulationResult:
        """Protect the cells; all chance comes from the key and the record keys."""
        ...


def population_of(policy: Policy, where: str) -> PopulationMethod:
    """The protected population that a policy asks for; a clear sentence where it asks for another method."""
    spec = policy.population
    if spec is None:
        raise PolicyError(
            f"{where} does not ask for a protected population; write [[before]] with "
            'method = "protected-population", and [protect] with method = "none".'
        )
    method: PopulationMethod = spec
    return method


def _takes(method: PopulationMethod, word: str) -> bool:
    """Whether a method can be told this; what it cannot be told does not concern it."""
    return word in signature(method.protect).parameters


def earlier_memory(folder: Path, out: Path) -> Memory | None:
    """The memory of the bundle that is to be replaced; None where no bundle stands there."""
    digest = bundle_digest(out)
    if digest is None:
        return None
    path = memory_path(folder, digest)
    if not path.is_file():
        raise DatasetError(
            f"{out} is a release already, and {folder} does not hold its memory; name it with --previous. If "
            "that release was never published, say so with --never-published: all numbers are then drawn anew."
        )
    return read_memory(path)


def require_alone(folder: Path, out: Path, digest: str = "") -> None:
    """Refuse a first release beside the memory of another; a stopped process may leave that of the same one."""
    others = {path.name for path in folder.glob(memory_path(Path(), "*").name)}
    if others - {memory_path(folder, digest).name}:
        raise DatasetError(
            f"{folder} holds the memory of a release that does not stand in {out}; name it with "
            "--previous. If no release was ever published, say so with --never-published."
        )


def replaced_memory(folder: Path, out: Path) -> Memory | None:
    """The memory of the bundle that stands there, if the agency still has it."""
    digest = bundle_digest(out)
    if digest is None or not memory_path(folder, digest).is_file():
        return None
    return read_memory(memory_path(folder, digest))


@outages("The data folder")
def make_bundle(
    store: Store,
    name: str,
    policy: Path,
    out: Path,
    *,
    folder: Path | None = None,
    previous: Memory | None = None,
    replaced: Memory | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    accept: Callable[[str, str], None] | None = None,
    new_series: bool = False,
    processes: int = 1,
) -> MadeBundle:
    """Protect a dataset once and write its public bundle.

    The chance follows from the agency's secret and the dataset: the same records give the same bundle.
    ``folder`` is the agency's own: the memory is kept there, and a search that was stopped goes on from
    there. ``previous`` is the memory of an earlier release of the same people, from which this one goes on;
    ``replaced`` that of one from which it does not, and which readers may hold nevertheless. ``accept`` is
    given the digest and the population before anything is written, and raises if the release may not be
    made. With ``new_series`` readers may know which records changed since the release before. ``processes``
    is how many work on the blocks that a description names.
    """
    decided = read_policy(policy)
    spec = population_of(decided, str(policy))
    if previous is not None:
        previous.require_same_method(spec.to_mapping())
    report = progress or (lambda _step, _share: None)
    engine = opened(store, name, workers)
    require_unanswered(store, engine.dataset, decided.same_people_because)
    people = People.of(store, engine)
    matches = [] if people is None else same_people(store, people)
    if people is not None:
        require_one_draw(matches, people, decided.same_people_because)
    key = store.secret_of(engine.secret).derive(f"lustrum protected population {name}")
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    before = None if previous is None else previous.cells
    on_workers = partial(
        made_on_spark, engine, spec, key, before, report, new_series, folder=folder
    )
    # Large sums hold counts, so that the records are read before counts are protected.
    there = on_workers() if decided.magnitudes is None else None
    if there is None:
        with reporting_progress(report):
            cells = finest_cells(engine)
    else:
        cells = there[1]
    if previous is not None and engine.dataset.record_id is None:
        _require_same_records(previous, cells)
    behind = _one_by_one(engine, decided, cells)
    sums = _SumsOf.policy(decided, behind, store.secret_of(engine.secret))
    held = None if sums is None else sums.held(cells, spec)
    if sums is not None and (there := on_workers(held)) is not None:
        require_unchanged(f"Dataset {name!r}", there[1], cells)
    if there is not None:
        result = there[0]
    else:
        result = spec.protect(
            cells,
            key,
            previous=before,
            progress=report,
            state=None if folder is None else folder / SEARCH_STATE,
            **({} if held is None else {"held": held}),
            **({"new_series": True} if new_series and _takes(spec, "new_series") else {}),
            **({"processes": processes} if processes > 1 and _takes(spec, "processes") else {}),
        )
    earlier = None if previous is None else previous.sums
    magnitudes = None if sums is None else sums.protected(result.cells, earlier, report)
    if previous is not None and magnitudes is not None and earlier is None:
        _require_same_sums(out, magnitudes)
    audits = () if sums is None or magnitudes is None else sums.audited(magnitudes)
    engine.require_unchanged()
    respondents = None
    weights = decided.weights
    if weights is not None and behind is not None:
        records = survey_records(behind, weights.weight)
        survey_key = store.secret_of(engine.secret).derive(f"lustrum protected survey {name}")
        respondents = weights.spec.with_counts(records, result, survey_key)
    report("writing", 0.0)
    packed = pack_bundle(
        result.cells,
        # What a bundle holds is what protected it, to the last byte.
        sealed(policy.read_bytes(), str(policy)),
        result.public,
        respondents,
        None if magnitudes is None else ProtectedSums(magnitudes.sums, magnitudes.public),
    )
    if accept is not None:
        accept(packed.digest, engine.dataset.population or "")
        require_unanswered(
            store, engine.dataset, decided.same_people_because
        )  # none came meanwhile
    memory = None if folder is None else memory_path(folder, packed.digest)
    is_first = memory is not None and not memory.exists()
    if folder is not None:
        method = dict(result.public.method)
        # A release without sums leaves those before it as they are, for the next one that has some.
        sum_memory = earlier if magnitudes is None else magnitudes.memory
        report("writing", 0.3)
        write_memory(folder, _remembered(result, method, packed.digest, sum_memory, previous))
    report("writing", 0.8)
    try:
        if people is not None:
            people.record(store.root)
        write_bundle(out, packed)
    except BaseException:
        # A memory without its bundle would be taken for that of a release that was published.
        if memory is not None and is_first and bundle_digest(out) != packed.digest:
            memory.unlink()
            sums_path(memory).unlink(missing_ok=True)
        raise
    report("writing", 1.0)
    known = previous
    if replaced is not None and replaced.method.get("base") == result.public.support.base:
        known = replaced
    support = result.public.support
    both = None if known is None else together(known.cells, result.cells, support, known.bounds)
    beside = None if known is None else known.sums
    beside_others = _same_people(store, matches, result)
    if sums is None or magnitudes is None:
        return MadeBundle(packed.digest, result, cells, both, same_people=beside_others)
    return MadeBundle(
        packed.digest,
        result,
        cells,
        both,
        magnitudes,
        audits,
        None if beside is None else sums.together(beside, magnitudes),
        beside_others,
    )


def _same_people(
    store: Store, matches: Sequence[SamePeople], result: PopulationResult
) -> tuple[SamePeople, ...]:
    """Other datasets of the same people, with what they tell beside this release."""
    measured = []
    for one in matches:
        memory = last_memory(store.root, one.dataset)
        if memory is not None:
            told = revealed(result.cells, result.public.support, memory)
            one = replace(one, revealed=told)
        measured.append(one)
    return tuple(measured)


def _one_by_one(
    engine: EmbeddedEngine | ConnectedEngine, policy: Policy, cells: FinestCells
) -> KernelEngine | None:
    """The records one by one, where sums or weights are to be protected."""
    if policy.magnitudes is None and policy.weights is None:
        return None
    return one_by_one(engine, cells)


def _require_same_records(previous: Memory, cells: FinestCells) -> None:
    """Refuse a later release of records that are known by their row numbers: one row less is other people."""
    if not previous.holds(cells):
        raise DatasetError(
            f"Dataset {cells.dataset.name!r} has no identifiers, so that its records cannot be matched to "
            "those of the earlier release. Name a column of identifiers that stay ('record_id') and ingest it "
            "again; records of a release without identifiers had their row numbers there, from 1. If the "
            "earlier release was never published, say so with --never-published."
        )


def _remembered(
    result: PopulationResult,
    method: dict[str, Any],
    digest: str,
    sums: RememberedSums | None,
    previous: Memory | None,
) -> Memory:
    """The memory of a release: it counts what all releases before it leave."""
    support = result.public.support
    if previous is None:
        return Memory(result.memory, method, digest, sums, support.finest(result.memory))
    bounds = carried_bounds(previous.cells, result.memory, support, previous.bounds)
    # The same records are the same release, which is not one of those before it.
    earlier = tuple(d for d in (*previous.earlier, previous.digest) if d != digest)
    return Memory(result.memory, method, digest, sums, bounds, earlier)


@dataclass(frozen=True, eq=False, repr=False)
class _SumsOf:
    """The protected sums of one dataset in the making."""

    spec: Any
    records: Records
    key: bytes

    @classmethod
    def policy(cls, policy: Policy, engine: KernelEngine | None, secret: Secret) -> _SumsOf | None:
        if policy.magnitudes is None or engine is None:
            return None
        key = secret.derive(f"lustrum protected magnitudes {engine.dataset.name}")
        return cls(policy.magnitudes, records_of(engine), key)

    def held(self, cells: FinestCells, population: PopulationMethod) -> Words | None:
        """The cells that are to show a count, if the method for counts can hold any."""
        base = getattr(population, "base", None)
        if base is None or not _takes(population, "held"):
            return None
        held_cells: Words | None = self.spec.held(self.records, cells, base, self.key)
        return held_cells

    def protected(
        self, shown: FinestCells, previous: RememberedSums | None, progress: Progress
    ) -> MagnitudeResult:
        """The sums, tied to the protected counts beside them where existence is secret."""
        magnitudes: MagnitudeResult = self.spec.protect(
            self.records, self.key, shown=shown, previous=previous, progress=progress
        )
        return magnitudes

    def audited(self, magnitudes: MagnitudeResult) -> tuple[ContributorAudit, ...]:
        """What attackers can say about the contributors of every measure, before anything is written."""
        audits = tuple(
            audit_contributors(
                self.records,
                values,
                name,
                self.spec.factors,
                self.spec.share,
                max_variables=self.spec.max_variables,
                tables=self.spec.tables,
                carried=magnitudes.carried,
                others=magnitudes.records,
            )
            for name, values in magnitudes.records.items()
        )
        for audit in audits:
            if audit.growth:
                raise PolicyError(
                    f"The growth of {audit.growth:,} contributions to {audit.measure!r} would be certain "
                    f"within {self.spec.p:g} percent; use directions = 'known', give the measure more "
                    "decimals, or leave out one of its two periods."
                )
        return audits

    def together(
        self, before: RememberedSums, magnitudes: MagnitudeResult
    ) -> tuple[SumsTogether, ...]:
        """What an earlier release and this one tell together about single contributions."""
        return tuple(
            sums_together(before, magnitudes.memory, name, self.spec.factors, self.spec.share)
            for name in magnitudes.records
            if name in before.true or name in before.resting
        )


def _require_same_sums(out: Path, magnitudes: MagnitudeResult) -> None:
    """Refuse other sums of the same contributors: two different ones of a contribution say more than one."""
    if bundle_digest(out) is None:
        return
    before = read_bundle(out).sums
    if before is None:
        return
    old, new = before.sums, magnitudes.sums
    same = np.array_equal(old.codes, new.codes) and all(
        name in new.sums and np.array_equal(sums, new.sums[name]) for name, sums in old.sums.items()
    )
    if not same:
        raise DatasetError(
            f"{out} holds protected sums already, its memory does not, and these would be others for the "
            "same contributors: readers of both would know more than of one. Keep its records and its method, "
            "or draw all numbers anew with --never-published if it was never published."
        )


def survey_records(engine: KernelEngine, name: str) -> SurveyRecords:
    """All respondents with the design that the description of their weight names.

    A stratum with a single cluster is refused: its variance cannot be estimated.
    """
    dataset = engine.dataset
    weight = dataset.weight(name)
    chunks = [chunk for chunk in engine.chunks if chunk.rows]
    if not chunks or any(chunk.keys is None for chunk in chunks):
        raise DatasetError(f"Dataset {dataset.name!r} has no records with keys to protect.")

    def column(identifier: str | None) -> np.ndarray | None:
        if identifier is None:
            return None
        return np.concatenate([chunk.ids[identifier] for chunk in chunks])

    scaled = np.concatenate([chunk.numbers[name] for chunk in chunks])
    try:
        design, replicates = _design(
            scaled / 10.0**weight.decimals,
            column(weight.strata),
            column(weight.clusters),
            weight.replicates,
            [
                np.concatenate([chunk.numbers[c.name] for chunk in chunks]) / 10.0**c.decimals
                for c in weight.columns[1:]
            ],
        )
    except InputError as error:
        raise InputError(f"Weight {name!r} of {dataset.name!r}: {error}") from None
    codes = np.stack(
        [np.concatenate([chunk.codes[v.name] for chunk in chunks]) for v in dataset.variables]
    )
    keys = np.concatenate([chunk.keys for chunk in chunks if chunk.keys is not None])
    measures = {
        m.name: np.concatenate([chunk.numbers[m.name] for chunk in chunks])
        for m in dataset.measures
    }
    return SurveyRecords(dataset, codes, design, keys, weight.total, measures, replicates)


def _design(
    weights: Floats,
    strata: np.ndarray | None,
    clusters: np.ndarray | None,
    given: Replicates | None,
    columns: list[Floats],
) -> tuple[Design, GivenReplicates | None]:
    """The design, and what replicate weights add to it."""
    if given is None:
        return Design(weights, strata, clusters), None
    if not bool((weights > 0).all()):
        raise InputError("A respondent has the weight 0; leave such records out.")
    replicates = np.stack(columns, axis=1)
    if given.method == "jackknife":
        if clusters is None:
            return jackknife_design(weights, replicates), None
        return Design(weights, strata, clusters), None
    if clusters is None:
        clusters = alike_clusters(weights, replicates)
    # Variances come from the replicates, so that a stratum may have a single cluster.
    design = Design(weights, strata, clusters, lonely="centre")
    return design, GivenReplicates(replicates, given.scale)
