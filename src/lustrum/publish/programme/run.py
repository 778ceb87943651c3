"""One run of a programme: from its file to a public folder and the agency's trace.

The same file, records and secret give the same bytes. Nothing is written before everything is made and audited;
then the public folder and the trace take their places together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lustrum.formats.cell_text import number_text
from lustrum.model import CellStatus, Dataset, InputError, Release
from lustrum.model.arrays import Mask
from lustrum.protect.adjustment import ControlledAdjustment
from lustrum.protect.suppression import Pattern, PatternChanges, Suppression
from lustrum.public.bundle.files import read_bundle
from lustrum.public.bundle.numbers import BundleNumbers
from lustrum.public.prepared.folder import PreparedFolder, read_prepared
from lustrum.publish.prepared import digest_of, write_prepared
from lustrum.publish.programme.audit import (
    AuditedSystem,
    Judged,
    audit_moves,
    audit_ranges,
    certificate_of,
    judge,
    rules_for,
)
from lustrum.publish.programme.files import MadeTable, SetReport, public_files
from lustrum.publish.programme.protect import method_of, protect_system
from lustrum.publish.programme.read import bound_to
from lustrum.publish.programme.spec import COUNT, PreparedSet, Programme, regrouped
from lustrum.publish.programme.system import (
    ProgrammeSystem,
    RecordSource,
    SystemPart,
    open_records,
    systems_of,
)
from lustrum.runtime.durable import taken_back_on_failure
from lustrum.sensitivity.rule import ranks_of

Progress = Callable[[str, float], None]

_PRIMARY = {
    letter.value
    for letter in CellStatus
    if letter not in (CellStatus.FREE, CellStatus.SECONDARY, CellStatus.NOT_FOR_PUBLICATION)
}


@dataclass(frozen=True)
class MadeProgramme:
    """A public folder that was written: its digest, and for each table how many cells it has and hides."""

    digest: str
    tables: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, eq=False)
class _ProgrammeRun:
    """What the steps of one run share."""

    programme: Programme
    records: RecordSource
    previous: PreparedFolder | None
    workers: int | None
    tell: Progress


def check_programme(programme: Programme, data: Path) -> list[str]:
    """Check a programme against its data without protecting anything; sentences about what it would make."""
    dataset = _described(programme, data)
    bound = bound_to(programme, dataset)
    said = []
    for table_set in bound.sets:
        if programme.source.bundle is None:
            method_of(table_set)
            for response in dict.fromkeys(r for table in table_set.tables for r in table.responses):
                rules_for(table_set, response)
        cells = 0
        for table in table_set.tables:
            shape = [
                len(axis.categories(dataset.variable(axis.variable))) for axis in table.query.by
            ]
            cells += int(np.prod(shape, dtype=np.int64)) * len(table.responses)
        method = (
            table_set.method.get("method", Suppression.name)
            if programme.source.bundle is None
            else "bundle"
        )
        tables = "1 table" if len(table_set.tables) == 1 else f"{len(table_set.tables)} tables"
        said.append(f"Set {table_set.name}: {tables}, {cells:,} cells, by {method}.")
    return said


def run_programme(
    programme: Programme,
    data: Path,
    out: Path,
    trace: Path,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    accept: Callable[[str], None] | None = None,
) -> MadeProgramme:
    """Make all tables of a programme, audit them and write the public folder and the trace.

    ``accept`` is given the digest before anything is written.
    """
    if out.resolve() == trace.resolve() or out.resolve() in trace.resolve().parents:
        raise InputError(
            "The trace of the agency is confidential and must not stand in the public folder; name another "
            "file with --trace."
        )
    tell = progress or (lambda _step, _share: None)
    if programme.source.bundle is not None:
        head, files, set_traces = _from_bundle(programme, programme.source.bundle, workers)
    else:
        head, files, set_traces = _from_records(programme, data, workers, tell)
    digest = digest_of(head, files)
    if accept is not None:
        accept(digest)
    trace_document = {
        "confidential": "For the agency alone: it holds true values.",
        "programme": programme.name,
        "public_digest": digest,
        "sets": set_traces,
    }
    text = json.dumps(trace_document, indent=1, ensure_ascii=False).encode() + b"\n"
    write_prepared(out, head, files, taken_back_on_failure(trace, text, 0o600))
    tables = tuple((str(t["label"]), int(t["cells"]), int(t["suppressed"])) for t in head["tables"])
    return MadeProgramme(digest, tables)


def _described(programme: Programme, data: Path) -> Dataset:
    if programme.source.bundle is not None:
        return read_bundle(programme.source.bundle).dataset
    return regrouped(programme.sets, open_records(programme.source, data).dataset)


def _from_bundle(
    programme: Programme, path: Path, workers: int | None
) -> tuple[dict[str, Any], dict[str, bytes], list[dict[str, Any]]]:
    """Plain counts of a protected population, which agree with every other table of it."""
    bundle = read_bundle(path)
    bound = bound_to(programme, bundle.dataset)
    numbers = BundleNumbers(bundle, workers)
    tables, sets = [], []
    for table_set in bound.sets:
        for table in table_set.tables:
            tables.append(MadeTable(table_set, table, COUNT, numbers.views(table.query).shown))
        method = tables[-1].release.method
        checked = (
            "All numbers are counts of one protected population, so that tables add up and agree."
        )
        sets.append(SetReport(table_set.name, table_set.title, method, checked))
    source = {"bundle": bundle.digest, "beside": None}
    head, files = public_files(bound, bundle.dataset, tables, sets, {}, source)
    return head, files, []


def _from_records(
    programme: Programme, data: Path, workers: int | None, tell: Progress
) -> tuple[dict[str, Any], dict[str, bytes], list[dict[str, Any]]]:
    tell("reading records", 0.0)
    records = open_records(programme.source, data, workers)
    bound = bound_to(programme, records.dataset)
    records = records.described_by(regrouped(programme.sets, records.dataset))
    beside = None if programme.source.beside is None else read_bundle(programme.source.beside)
    if beside is not None:
        check_beside(bound, beside.dataset, records.dataset)
    previous = None if bound.previous is None else read_prepared(bound.previous)
    work = _ProgrammeRun(bound, records, previous, workers, tell)
    tell("reading records", 1.0)
    all_tables: list[MadeTable] = []
    sets: list[SetReport] = []
    proofs: dict[str, bytes] = {}
    set_traces: list[dict[str, Any]] = []
    for table_set in bound.sets:
        tables, report, certificates, traced = _one_set(work, table_set)
        all_tables += tables
        sets.append(report)
        proofs |= certificates
        set_traces.append(traced)
    records.require_unchanged()
    order = {
        id(table): i
        for i, table in enumerate(t for table_set in bound.sets for t in table_set.tables)
    }
    all_tables.sort(key=lambda one: (order[id(one.table)], one.table.responses.index(one.response)))
    source = {"bundle": None, "beside": None if beside is None else beside.digest}
    head, files = public_files(bound, records.dataset, all_tables, sets, proofs, source)
    return head, files, set_traces


def check_beside(programme: Programme, beside: Dataset, dataset: Dataset) -> None:
    """Refuse tables that tell of the same numbers as the bundle that is served beside them."""
    if beside.name != dataset.name:
        raise InputError(
            f"[data]: 'beside' is a bundle of {beside.name!r}, not of {dataset.name!r}."
        )
    if not programme.plain_status:
        raise InputError(
            "[programme]: beside a bundle, letters would tell which cells have few contributors, which its "
            "counts hide; leave plain_status out."
        )
    held = {COUNT, *(measure.name for measure in beside.measures)}
    families = [{measure.name, *measure.parts} for measure in dataset.measures]
    for _ in families:  # a part of two sums ties them, whichever is described first
        for family in families:
            if held & family:
                # An exact part is at most the sum, which the bundle holds protected, and often all of it.
                held |= family
    for table_set in programme.sets:
        for table in table_set.tables:
            for response in table.responses:
                if response in held:
                    raise InputError(
                        f"Table {table.name!r} shows {response!r}, which the bundle that is served beside it "
                        "holds protected, itself or a measure that adds up with it: exact numbers would undo "
                        "protected ones; make the table from the bundle, in a programme of its own."
                    )


def _one_set(
    work: _ProgrammeRun, table_set: PreparedSet
) -> tuple[list[MadeTable], SetReport, dict[str, bytes], dict[str, Any]]:
    programme, records = work.programme, work.records
    spec = method_of(table_set)
    public = _public_words(programme, table_set)
    tables: list[MadeTable] = []
    proofs: dict[str, bytes] = {}
    traced: list[dict[str, Any]] = []

    def tell(what: str, share: float) -> None:
        work.tell(what if what.startswith(table_set.name) else f"{table_set.name}: {what}", share)

    tell("counting", 0.0)
    systems = systems_of(table_set, records, ranks_of(*(one.rule for one in table_set.rules)))
    tell("counting", 1.0)
    for number, system in enumerate(systems, start=1):
        zeros_shown = isinstance(spec, Suppression) and not spec.zeros
        judged = judge(table_set, system, records.background, zeros_shown=zeros_shown)
        protected = protect_system(
            table_set,
            system,
            judged,
            description=public,
            previous=_previous(system, work.previous),
            workers=work.workers,
            progress=tell,
        )
        tell("audit", 0.0)
        audited = (
            audit_moves(system, judged, protected.releases)
            if isinstance(spec, ControlledAdjustment)
            else audit_ranges(
                system, judged, protected.releases, workers=work.workers, progress=tell
            )
        )
        tell("audit", 1.0)
        _require_safe(table_set, audited)
        if programme.certificate and audited.seen is not None:
            cells = _certified(system, protected.releases, plain=programme.plain_status)
            if cells:
                proof = certificate_of(audited.seen, cells, progress=tell)
                name = table_set.name if len(systems) == 1 else f"{table_set.name}-{number}"
                proofs[f"certificates/{name}.json"] = proof.to_json().encode("utf-8")
        traced.append(system_trace(system, judged, audited, protected.pattern, protected.changes))
        for part, release in zip(system.parts, protected.releases, strict=True):
            if release is not None and part.table is not None:
                tables.append(MadeTable(table_set, part.table, part.response, release))
    report = SetReport(
        table_set.name, table_set.title, public, _checked(table_set, spec), tuple(sorted(proofs))
    )
    return tables, report, proofs, {"set": table_set.name, "systems": traced}


def _public_words(programme: Programme, table_set: PreparedSet) -> dict[str, Any]:
    """The method as the public may know it: the parameters of rules tell an attacker how close is too close."""
    spec = method_of(table_set)
    description = {key: value for key, value in spec.to_mapping().items() if key != "rule"}
    if isinstance(spec, Suppression):
        description = {"method": spec.name}
    rules = [one.rule.to_mapping() for one in table_set.rules]
    said = rules if programme.publish_rules else list(dict.fromkeys(rule["rule"] for rule in rules))
    return description | {"rules": said}


def _require_safe(table_set: PreparedSet, audited: AuditedSystem) -> None:
    if audited.safe:
        return
    count = int((~audited.enough).sum())
    cells = "1 sensitive cell" if count == 1 else f"{count} sensitive cells"
    raise InputError(
        f"Set {table_set.name!r}: a reader of all its tables could still work out {cells} too closely, so "
        "nothing was written; use another method, a larger base, or coarser categories."
    )


def _certified(
    system: ProgrammeSystem, releases: tuple[Release | None, ...], *, plain: bool
) -> list[int]:
    """The cells that are not shown and whose letters say that they are sensitive; all, if letters do not."""
    cells: list[int] = []
    for span, release in zip(system.spans, releases, strict=True):
        if release is None:
            continue
        flat = release.status.ravel()
        wanted = ~release.shown.ravel() if plain else np.isin(flat, sorted(_PRIMARY))
        cells += (np.flatnonzero(wanted) + span.start).tolist()
    return cells


def _previous(system: ProgrammeSystem, folder: PreparedFolder | None) -> Mask | None:
    """The cells that the last period's tables of the same names did not show."""
    if folder is None:
        return None
    mask = np.zeros(system.values.size, dtype=np.bool_)
    listed = {one.id: one for one in folder.tables}
    for part, span in zip(system.parts, system.spans, strict=True):
        if part.table is None or f"{part.table.name}.{part.response}" not in listed:
            continue
        before = folder.release(listed[f"{part.table.name}.{part.response}"])
        mask[span] |= _hidden_before(part, before).ravel()
    return mask


def _hidden_before(part: SystemPart, before: Release) -> Mask:
    hidden = np.zeros(part.true.shape, dtype=np.bool_)
    places: dict[str, Mapping[str, int]] = {
        axis.name: {code: i for i, code in enumerate(axis.codes)} for axis in before.axes
    }
    if {axis.name for axis in part.true.axes} != set(places):
        return hidden
    names = [axis.name for axis in before.axes]
    for cell in np.ndindex(*part.true.shape):
        codes = {a.name: a.codes[i] for a, i in zip(part.true.axes, cell, strict=True)}
        at = [places[name].get(codes[name]) for name in names]
        if None not in at:
            hidden[cell] = not before.shown[tuple(i for i in at if i is not None)]
    return hidden


def _checked(table_set: PreparedSet, spec: object) -> str:
    tables = (
        "the table"
        if len(table_set.tables) == 1
        else f"all {len(table_set.tables)} tables together"
    )
    if isinstance(spec, ControlledAdjustment):
        return f"Every sensitive number was moved far enough, and the numbers of {tables} add up."
    return (
        f"An audit found that a reader of {tables} is left with a range wide enough for every cell."
    )


# What only the agency may know of a run: true values, levels, ranges, costs and gaps.
#
# The trace is written to a file of its own, readable by its owner only, and never stands in the public folder.


def system_trace(
    system: ProgrammeSystem,
    judged: Judged,
    audited: AuditedSystem,
    pattern: Pattern | None,
    changes: PatternChanges | None = None,
) -> dict[str, Any]:
    """One system: how many cells were sensitive and why, what it cost, and every sensitive cell."""
    trace: dict[str, Any] = {
        "responses": list(system.responses),
        "relations": list(system.relations),
        "cells": int(system.values.size),
        "sensitive": int(judged.sensitive.sum()),
        "safe": audited.safe,
        "tables": [
            {
                "table": part.name,
                "shown": part.shown,
                "cells": int(part.true.values.size),
                "sensitive": int(sensitivity.mask.sum()),
                "reasons": {str(f.reason.text): int(f.cells.sum()) for f in sensitivity.findings},
            }
            for part, sensitivity in zip(system.parts, judged.findings, strict=True)
        ],
        "sensitive_cells": _cells(system, judged, audited),
    }
    if pattern is not None:
        trace["suppression"] = {
            "primary": int(pattern.primary.sum()),
            "secondary": int(pattern.secondary.sum()),
            "cost": pattern.cost,
            "lower_bound": pattern.lower_bound,
            "gap": pattern.gap,
            "algorithm": pattern.algorithm,
            "why": pattern.why,
            "steps": pattern.steps,
        }
        if pattern.changes is not None and changes is not None:
            trace["suppression"]["against_last_period"] = _changes(system, pattern, changes)
    return trace


def _changes(system: ProgrammeSystem, pattern: Pattern, changes: PatternChanges) -> dict[str, Any]:
    assert pattern.changes is not None
    names = system.known.known.names
    kinds = [one.change for one in changes.cells]
    old = changes.open_before
    return {
        "kept": int(pattern.changes.kept.size),
        "added": kinds.count("added"),
        "published_again": kinds.count("published again"),
        "cells": [
            {"cell": names[one.cell], "change": one.change, "why": one.why} for one in changes.cells
        ],
        "open_under_the_old_pattern": None if old is None else [names[c] for c in old.tolist()],
    }


def _cells(system: ProgrammeSystem, judged: Judged, audited: AuditedSystem) -> list[dict[str, Any]]:
    names = system.known.known.names
    out = []
    for i, cell in enumerate(audited.cells.tolist()):
        row: dict[str, Any] = {
            "cell": names[cell],
            "value": number_text(int(system.values[cell]), system.decimals),
            "lower_level": number_text(int(judged.lower[cell]), system.decimals),
            "upper_level": number_text(int(judged.upper[cell]), system.decimals),
            "enough": bool(audited.enough[i]),
        }
        for key, end in (("low", audited.low[i]), ("high", audited.high[i])):
            row[key] = number_text(round(float(end)), system.decimals) if np.isfinite(end) else None
        out.append(row)
    return out
