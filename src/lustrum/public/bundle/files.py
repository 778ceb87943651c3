"""The files of a public bundle.

::

    <bundle>/manifest.json   format, name, the digest of every file, and the digest of these digests
    <bundle>/dataset.json    the public description: no identifiers, the names of weights, and only measures
                             with protected sums
    <bundle>/cells.arrow     the finest cells that show somebody, with their protected counts
    <bundle>/policy.toml     what the agency decided
    <bundle>/report.json     the public report: method, support, typical errors
    <bundle>/sums.arrow      protected sums of measures by finest cell, where the policy asks for them
    <bundle>/sums.json       how they were made: method, factors, typical relative errors
    <bundle>/respondents.arrow   of a survey: protected respondents with shared weights and drawn designs

Every digest is one of public bytes: a digest of the records, or of the secret, would confirm a guess. A bundle
is written beside its place and put there as a whole; one whose bytes do not fit its digests is refused.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.arrays import Array, Ints
from lustrum.durable import sync
from lustrum.model import Dataset, DatasetError, LustrumError
from lustrum.model.finest import FinestCells
from lustrum.model.finest_sums import FinestSums
from lustrum.policy import Policy, check_names
from lustrum.policy.read import parse_policy
from lustrum.protect.magnitudes.report import PublicFactors
from lustrum.protect.population.public import SEARCH, PublicReport, stated_search
from lustrum.protect.weighted import ProtectedRespondents
from lustrum.public.bundle.place import MANIFEST, put_in_place, standing
from lustrum.public.bundle.respondents import respondents_bytes, respondents_of

__all__ = [
    "Bundle",
    "PackedBundle",
    "ProtectedSums",
    "bundle_digest",
    "bundle_name",
    "is_made_by",
    "other_search",
    "pack_bundle",
    "read_bundle",
    "stated_method",
    "write_bundle",
]

FORMAT = 4
"""The layout of bundles and of the files in them; a change of any of them is another layout."""
KIND = "lustrum public bundle"
_DATASET = "dataset.json"
_CELLS = "cells.arrow"
_POLICY = "policy.toml"
_REPORT = "report.json"
_FILES = (_DATASET, _CELLS, _POLICY, _REPORT)
_RESPONDENTS = "respondents.arrow"
_SUMS = "sums.arrow"
_FACTORS = "sums.json"
_SUM_FILES = (_SUMS, _FACTORS)
"""Both or neither of them stand in a bundle."""
_COUNT = "count"


@dataclass(frozen=True, eq=False, repr=False)
class ProtectedSums:
    """Protected sums by finest cell, and how they were made."""

    sums: FinestSums
    public: PublicFactors


@dataclass(frozen=True, eq=False, repr=False)
class Bundle:
    """A bundle that was read and found whole."""

    cells: FinestCells
    policy: Policy
    report: PublicReport
    digest: str
    respondents: ProtectedRespondents | None = None
    sums: ProtectedSums | None = None

    def __repr__(self) -> str:
        return f"Bundle({self.cells.dataset.name!r}, {self.digest[:12]})"

    @property
    def dataset(self) -> Dataset:
        """The public description."""
        return self.cells.dataset


def public_description(
    dataset: Dataset,
    respondents: ProtectedRespondents | None = None,
    measures: Collection[str] = (),
) -> dict[str, Any]:
    """A description without what only records have: identifiers, weights, and measures without protected sums.

    A measure stays with its words for people; who its contributors are does not. Of a survey the weight stays
    that its protected respondents have.
    """
    source = dict(dataset.source)
    source.pop("weights", None)
    kept = [
        {key: value for key, value in measure.items() if key not in ("holding", "missing")}
        for measure in source.pop("measures", ())
        if measure["name"] in measures
    ]
    if respondents is not None:
        weight = dataset.weight(respondents.name)
        words = {"name": weight.name, "label": weight.label, "decimals": respondents.decimals}
        source["weights"] = [words]
    head = {k: v for k, v in source["dataset"].items() if k not in ("record_id", "identifiers")}
    return {**source, "dataset": head, **({"measures": kept} if kept else {})}


@dataclass(frozen=True, eq=False, repr=False)
class PackedBundle:
    """The bytes of a bundle before they stand anywhere."""

    files: Mapping[str, bytes]
    digest: str


def pack_bundle(
    cells: FinestCells,
    policy: bytes,
    report: PublicReport,
    respondents: ProtectedRespondents | None = None,
    sums: ProtectedSums | None = None,
) -> PackedBundle:
    """The files of a bundle, with their digests in a manifest."""
    measures = () if sums is None else tuple(sums.sums.sums)
    if respondents is not None:
        measures = (*measures, *respondents.values)
    files = {
        _DATASET: _json(public_description(cells.dataset, respondents, measures)),
        _CELLS: _arrow(cells.columns(), {_COUNT: cells.counts}),
        _POLICY: policy,
        _REPORT: _json(report.to_mapping()),
    }
    if respondents is not None:
        files[_RESPONDENTS] = respondents_bytes(respondents)
    if sums is not None:
        files[_SUMS] = _arrow(sums.sums.columns(), sums.sums.sums)
        files[_FACTORS] = _json(sums.public.to_mapping())
    digests = {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        for name, data in files.items()
    }
    digest = _overall(FORMAT, cells.dataset.name, digests)
    manifest = {
        "format": FORMAT,
        "kind": KIND,
        "dataset": cells.dataset.name,
        "files": digests,
        "digest": digest,
    }
    return PackedBundle({**files, MANIFEST: _json(manifest)}, digest)


def write_bundle(path: Path, packed: PackedBundle) -> str:
    """Write a bundle in place of an earlier one, if there is any; gives its digest."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        draft.mkdir()
        try:
            for name, data in packed.files.items():
                (draft / name).write_bytes(data)
                sync(draft / name)
            put_in_place(draft, path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise DatasetError(f"The bundle {path} cannot be written: {error.strerror}.") from None
    return packed.digest


def read_bundle(path: Path) -> Bundle:
    """Read a bundle and check every byte of it; one clear sentence where it is not whole."""
    for _ in range(_ATTEMPTS):
        there = standing(path)
        before = _manifest_bytes(there)
        try:
            return _read(path, there)
        except DatasetError:
            # A bundle that is replaced while it is read is read again.
            if standing(path) == there and _manifest_bytes(there) == before:
                raise
    return _read(path, standing(path))


_ATTEMPTS = 3


def bundle_name(path: Path) -> str:
    """The dataset that a bundle is of, from its manifest."""
    return str(_manifest(path, standing(path))["dataset"])


def bundle_digest(path: Path) -> str | None:
    """The digest of the bundle that stands there, from its manifest; None where none can be read."""
    try:
        return str(_manifest(path, standing(path))["digest"])
    except DatasetError:
        return None


def stated_method(path: Path) -> Mapping[str, Any] | None:
    """The method that the bundle there states, in the layout of this version; its bytes are not checked."""
    method = _stated(path).get("method")
    return method if isinstance(method, dict) else None


def other_search(path: Path) -> int | None:
    """The version of the search that made the bundle there, if it is not the one of this version.

    Its numbers are as safe, and are no reason to make it again: that would be a second release.
    """
    words = _stated(path)
    if not words:
        return None
    try:
        search = stated_search(words)
    except (ValueError, TypeError):
        return None
    return None if search == SEARCH else search


def _stated(path: Path) -> Mapping[str, Any]:
    """The public report of the bundle there; empty where none can be read."""
    if bundle_digest(path) is None:
        return {}
    try:
        words = json.loads((standing(path) / _REPORT).read_bytes())
    except (OSError, ValueError):
        return {}
    return words if isinstance(words, dict) else {}


def is_made_by(method: Mapping[str, Any] | None, policy: Policy) -> bool:
    """Whether a method that a bundle states is the one that a policy asks for, or mends it as it may."""
    wanted = {} if policy.population is None else policy.population.to_mapping()
    made = dict(method or {})
    if wanted.get("if_fewer") == "larger-base" and made.get("base", 0) > wanted["base"]:
        wanted["base"] = made["base"]
    return bool(made) and made == wanted


def _read(path: Path, there: Path) -> Bundle:
    manifest = _manifest(path, there)
    try:
        files = {name: (there / name).read_bytes() for name in manifest["files"]}
    except OSError as error:
        missing = Path(str(error.filename)).name
        raise _damaged(path, f"{missing} cannot be read") from None
    for name, data in files.items():
        if hashlib.sha256(data).hexdigest() != manifest["files"][name]["sha256"]:
            raise _damaged(path, f"{name} does not have the digest that the manifest states")
    try:
        dataset = Dataset.from_mapping(json.loads(files[_DATASET]))
        report = PublicReport.from_mapping(json.loads(files[_REPORT]))
        policy = parse_policy(files[_POLICY], str(path / _POLICY))
        check_names(policy, dataset, str(path / _POLICY))
        cells = _cells(files[_CELLS], dataset)
        report.support.bounds(cells.counts)
        respondents = None
        if _RESPONDENTS in files:
            respondents = respondents_of(files[_RESPONDENTS], cells)
        sums = _sums(files, cells)
    except (LustrumError, ValueError, KeyError, pa.ArrowException) as error:
        # Every byte is as it was written, so that nothing is damaged: it was written otherwise.
        said = str(error) if isinstance(error, LustrumError) else "its files do not fit each other"
        raise _other_version(path, f" ({said.rstrip('.')})") from None
    return Bundle(cells, policy, report, manifest["digest"], respondents, sums)


def _manifest_bytes(there: Path) -> bytes | None:
    try:
        return (there / MANIFEST).read_bytes()
    except OSError:
        return None


def _manifest(path: Path, there: Path) -> Mapping[str, Any]:
    written = _manifest_bytes(there)
    if written is None:
        raise DatasetError(
            f"{path} is not a bundle: there is no {MANIFEST} to be read; 'lustrum protect' makes one."
        )
    try:
        raw = json.loads(written)
    except ValueError:
        raise _damaged(path, f"{MANIFEST} is not valid JSON") from None
    if not isinstance(raw, dict) or raw.get("kind") != KIND:
        raise _damaged(path, f"{MANIFEST} is not that of a bundle")
    files, name, layout = raw.get("files"), raw.get("dataset"), raw.get("format")
    if (
        not isinstance(name, str)
        or not isinstance(files, dict)
        or raw.get("digest") != _overall(layout, name, files)
    ):
        raise _damaged(path, f"{MANIFEST} does not have its own digest")
    without = set(files) - {_RESPONDENTS}
    if without >= set(_SUM_FILES):
        without -= set(_SUM_FILES)
    if layout != FORMAT or without != set(_FILES):
        raise _other_version(path, f" (layout {layout}; this version reads {FORMAT})")
    return raw


def _overall(layout: Any, name: str, digests: Mapping[str, Any]) -> str:
    words = json.dumps([layout, KIND, name, digests], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(words.encode()).hexdigest()


def _other_version(path: Path, how: str) -> DatasetError:
    return DatasetError(
        f"The bundle {path} was written by another version of Lustrum{how}; make it again with "
        "'lustrum protect', or serve it with the version that wrote it."
    )


def _damaged(path: Path, why: str) -> DatasetError:
    return DatasetError(f"The bundle {path} is damaged: {why}; copy it again, or make it again.")


def _json(words: Any) -> bytes:
    return json.dumps(words, ensure_ascii=False, sort_keys=True, indent=1).encode() + b"\n"


def _arrow(codes: Mapping[str, Array], numbers: Mapping[str, Ints]) -> bytes:
    columns = {name: pa.array(row) for name, row in codes.items()}
    added = {name: pa.array(column, pa.int64()) for name, column in numbers.items()}
    table = pa.table({**columns, **added})
    out = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(out, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = out.getvalue().to_pybytes()
    return data


def _cells(data: bytes, dataset: Dataset) -> FinestCells:
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    names = [v.name for v in dataset.variables]
    if table.schema.names != [*names, _COUNT] or any(c.null_count for c in table.columns):
        raise ValueError("other columns than the description has")
    codes = np.stack([np.asarray(table.column(name)) for name in names])
    counts = np.asarray(table.column(_COUNT)).astype(np.int64)
    if counts.size and int(counts.min()) < 1:
        raise ValueError("a cell shows nobody")
    return FinestCells(dataset, codes, counts)


def _sums(files: Mapping[str, bytes], cells: FinestCells) -> ProtectedSums | None:
    if _SUMS not in files:
        return None
    dataset = cells.dataset
    table = pa.ipc.open_file(pa.BufferReader(files[_SUMS])).read_all()
    names = [v.name for v in dataset.variables]
    measures = [m.name for m in dataset.measures if m.name in table.schema.names]
    if sorted(table.schema.names) != sorted([*names, *measures]) or any(
        c.null_count for c in table.columns
    ):
        raise ValueError("other columns than the description has")
    codes = np.stack([np.asarray(table.column(name)) for name in names])
    sums = {m: np.asarray(table.column(m)).astype(np.int64) for m in measures}
    public = PublicFactors.from_mapping(json.loads(files[_FACTORS]))
    if sorted(public.errors) != sorted(measures):
        raise ValueError("other measures than the description has")
    held = FinestSums(dataset, codes, sums)
    if not public.existence_public and not np.array_equal(held.codes, cells.codes):
        raise ValueError(
            "sums that are tied to counts stand beside a count of 0, or lack beside another"
        )
    return ProtectedSums(held, public)
