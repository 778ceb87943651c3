"""Read a public bundle and check every byte of it; very many cells are checked when they are first needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, DatasetError, LustrumError
from lustrum.model.dataset import not_collecting
from lustrum.model.finest import FinestCells, FinestSums
from lustrum.policy import Policy, check_names
from lustrum.policy.read import parse_policy
from lustrum.protect.magnitudes.factors import VERSION
from lustrum.protect.magnitudes.report import PublicFactors
from lustrum.protect.population.public import (
    SEARCH,
    SEARCH_OF_INVENTED,
    SEARCH_OF_MANY_CODES,
    PublicReport,
    search_version,
    stated_search,
)
from lustrum.protect.proven.margins import NoiseMargins
from lustrum.protect.proven.sums import ClippedSums
from lustrum.protect.weighted import ProtectedRespondents
from lustrum.public.bundle.agreement import Made, protection_digest
from lustrum.public.bundle.respondents import respondents_of, whole_numbers
from lustrum.public.bundle.shards import COUNT, ShardedCells
from lustrum.runtime.data_folder import MANIFEST, standing

# The files of a public bundle.
#
# ::
#
#     <bundle>/manifest.json   format, name, the digest of every file, and the digest of these digests
#     <bundle>/dataset.json    the public description: no identifiers, the names of weights, and only measures
#                              with protected sums
#     <bundle>/cells.arrow     the finest cells that show somebody, with their protected counts
#     <bundle>/shards.json     where very many cells stand in shards, with the digest of each
#     <bundle>/policy.toml     what the agency decided
#     <bundle>/report.json     the public report: method, support, typical errors, the digest of all protection
#     <bundle>/sums.arrow      protected sums of measures by finest cell, where the policy asks for them
#     <bundle>/sums.json       how they were made: method, factors, typical relative errors
#     <bundle>/respondents.arrow   of a survey: protected respondents with shared weights and drawn designs
#
# Every digest is one of public bytes: a digest of the records, or of the secret, would confirm a guess. A
# bundle is written beside its place and put there as a whole; one whose bytes do not fit its digests is
# refused.


FORMAT = 4
"""The layout of bundles and of the files in them; a change of any of them is another layout."""
KIND = "lustrum public bundle"
DATASET = "dataset.json"
CELLS = "cells.arrow"
POLICY = "policy.toml"
REPORT = "report.json"
FILES = (DATASET, CELLS, POLICY, REPORT)
RESPONDENTS = "respondents.arrow"
SUMS = "sums.arrow"
FACTORS = "sums.json"
SUM_FILES = (SUMS, FACTORS)
"""Both or neither of them stand in a bundle."""
SHARDS = "shards.json"
"""Stands beside cells in shards, see :mod:`lustrum.public.bundle.shards`; never beside sums or respondents."""
PROTECTION = "protection"
"""The key of the report that states the digest of all that protected a bundle."""


def overall_digest(layout: Any, name: str, digests: Mapping[str, Any]) -> str:
    """The digest of a bundle: of its layout, the name of its dataset and the digests of its files."""
    text = json.dumps([layout, KIND, name, digests], sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class ProtectedSums:
    """Protected sums by finest cell, and how they were made."""

    sums: FinestSums
    public: PublicFactors | ClippedSums

    @cached_property
    def negative(self) -> frozenset[str]:
        """The measures with contributions below 0, as everybody can see or is told."""
        seen = {n for n, s in self.sums.sums.items() if s.size and int(s.min()) < 0}
        return frozenset(seen | set(self.public.losses))

    @property
    def unsafe(self) -> str | None:
        """Why these sums must not be published; None where nothing is known against them."""
        if isinstance(self.public, ClippedSums) or self.public.version >= VERSION:
            return None
        if not self.negative:
            return None
        return (
            f"Its sums of {' and '.join(sorted(self.negative))} are unsafe: an earlier version showed gains "
            "and losses of one owner by one factor, so that their ratios are exact. Take it back, and make it "
            "again without these measures, or with --never-published if it never went out."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Bundle:
    """A bundle that was read and found whole."""

    cells: FinestCells | ShardedCells
    policy: Policy
    report: PublicReport
    digest: str
    respondents: ProtectedRespondents | None = None
    sums: ProtectedSums | None = None
    protection: str | None = None
    """The digest of all that protected it; None where an earlier version made it, which stated none."""

    def __repr__(self) -> str:
        return f"Bundle({self.cells.dataset.name!r}, {self.digest[:12]})"

    @property
    def dataset(self) -> Dataset:
        return self.cells.dataset

    @property
    def made(self) -> Made:
        """The words of the methods that made it, as its own version wrote them."""
        methods = [self.report.method, *(() if self.sums is None else (self.sums.public.method,))]
        return {str(method.get("method")): method for method in methods}


def read_bundle(path: Path, *, every_byte: bool = False) -> Bundle:
    """Read a bundle and check every byte of it; one clear sentence where it is not whole.

    Cells in shards are checked whenever they are read, before a number leaves; ``every_byte`` checks them now.
    """
    for _ in range(_ATTEMPTS):
        there = standing(path)
        before = _manifest_bytes(there)
        try:
            return _read(path, there, every_byte)
        except DatasetError:
            # A bundle that is replaced while it is read is read again.
            if standing(path) == there and _manifest_bytes(there) == before:
                raise
    return _read(path, standing(path), every_byte)


_ATTEMPTS = 3


def bundle_name(path: Path) -> str:
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


def stated_proof(path: Path) -> Mapping[str, Any] | None:
    """The promise that the bundle there states, if it has a proof; its bytes are not checked."""
    proof = _stated(path).get("proof")
    return proof if isinstance(proof, dict) else None


def other_search(path: Path) -> int | None:
    """The version of the search that made the bundle there, if it is not the one of this version.

    Such a bundle is just as safe. Making it again would be a second release, so nobody should. People who are
    made up from noisy tables come from no such search.
    """
    report = _stated(path)
    if not report or "proof" in report:
        return None
    try:
        search = stated_search(report)
    except (ValueError, TypeError):
        return None
    if search == SEARCH_OF_MANY_CODES:
        return None
    # The same method searches files with very many codes otherwise by now.
    method = stated_method(path) or {}
    sweeps, siblings = method.get("sweeps"), method.get("sparse_siblings", 0.0)
    if siblings == "auto":
        siblings = 2.0 if search == SEARCH_OF_INVENTED else 1.0
    if not isinstance(sweeps, int) or not isinstance(siblings, int | float):
        return None if search == SEARCH else search
    now = search_version(sweeps, _most_codes(path), siblings)
    return None if search == now and now in (SEARCH, SEARCH_OF_INVENTED) else search


def _stated(path: Path) -> Mapping[str, Any]:
    """The public report of the bundle there; empty where none can be read."""
    if bundle_digest(path) is None:
        return {}
    try:
        report = json.loads((standing(path) / REPORT).read_bytes())
    except (OSError, ValueError):
        return {}
    return report if isinstance(report, dict) else {}


def _most_codes(path: Path) -> int:
    """How many codes the longest list of codes has in the description of the bundle there."""
    try:
        described = json.loads((standing(path) / DATASET).read_bytes())
        return max(len(variable["codes"]) for variable in described["variables"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _read(path: Path, there: Path, every_byte: bool) -> Bundle:
    manifest = _manifest(path, there)
    sharded = SHARDS in manifest["files"]
    lazy = {CELLS} if sharded and not every_byte else set()
    try:
        files = {name: (there / name).read_bytes() for name in manifest["files"].keys() - lazy}
        for name in lazy:
            if (there / name).stat().st_size != manifest["files"][name]["bytes"]:
                raise _damaged(path, f"{name} does not have the length that the manifest states")
    except OSError as error:
        missing = Path(str(error.filename)).name
        raise _damaged(path, f"{missing} cannot be read") from None
    for name, data in files.items():
        if hashlib.sha256(data).hexdigest() != manifest["files"][name]["sha256"]:
            raise _damaged(path, f"{name} does not have the digest that the manifest states")
    try:
        with not_collecting():
            dataset = Dataset.from_mapping(json.loads(files[DATASET]))
        stated = json.loads(files[REPORT])
        report = PublicReport.from_mapping(stated)
        if report.noise is not None:
            NoiseMargins.from_mapping(report.noise)
        policy = parse_policy(files[POLICY], str(path / POLICY))
        check_names(policy, dataset, str(path / POLICY))
        cells: FinestCells | ShardedCells
        respondents, sums = None, None
        if sharded:
            cells = ShardedCells(there / CELLS, files[SHARDS], dataset, report.support)
            if cells.end > manifest["files"][CELLS]["bytes"]:
                raise ValueError("shards beyond the end")
        else:
            cells = _cells(files[CELLS], dataset)
            report.support.check(cells.counts)
            if RESPONDENTS in files:
                respondents = respondents_of(files[RESPONDENTS], cells)
            sums = _sums(files, cells)
    except OSError:
        raise _damaged(path, f"{CELLS} cannot be read") from None
    except (LustrumError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        # Every byte is as it was written, so that nothing is damaged: it was written otherwise.
        said = str(error) if isinstance(error, LustrumError) else "its files do not fit each other"
        raise _other_version(path, f" ({said.rstrip('.')})") from None
    if every_byte and isinstance(cells, ShardedCells):
        cells.check()
    protection = stated.get(PROTECTION)
    bundle = Bundle(cells, policy, report, manifest["digest"], respondents, sums, protection)
    if protection not in (None, protection_digest(policy, report.search, FORMAT, bundle.made)):
        # The bytes are as written: two bundles were mixed, or a default of [weights] has changed since.
        raise _other_version(path, " (its policy means another protection than it was made with)")
    return bundle


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
        or raw.get("digest") != overall_digest(layout, name, files)
    ):
        raise _damaged(path, f"{MANIFEST} does not have its own digest")
    without = set(files) - ({SHARDS} if SHARDS in files else {RESPONDENTS})
    if without >= set(SUM_FILES) and SHARDS not in files:
        without -= set(SUM_FILES)
    if layout != FORMAT or without != set(FILES):
        raise _other_version(path, f" (layout {layout}; this version reads {FORMAT})")
    return raw


def _other_version(path: Path, how: str) -> DatasetError:
    return DatasetError(
        f"The bundle {path} was written by another version of Lustrum{how}; make it again with "
        "'lustrum protect', or serve it with the version that wrote it."
    )


def _damaged(path: Path, why: str) -> DatasetError:
    return DatasetError(f"The bundle {path} is damaged: {why}; copy it again, or make it again.")


def _cells(data: bytes, dataset: Dataset) -> FinestCells:
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    names = [v.name for v in dataset.variables]
    if table.schema.names != [*names, COUNT] or any(c.null_count for c in table.columns):
        raise ValueError("other columns than the description has")
    codes = np.stack([whole_numbers(table.column(name)) for name in names])
    counts = whole_numbers(table.column(COUNT)).astype(np.int64, copy=False)
    for array in (codes, counts):
        array.setflags(write=False)  # nobody else holds them, so that they need not be copied
    if counts.size and int(counts.min()) < 1:
        raise ValueError("a cell shows nobody")
    return FinestCells(dataset, codes, counts)


def _sums(files: Mapping[str, bytes], cells: FinestCells) -> ProtectedSums | None:
    if SUMS not in files:
        return None
    dataset = cells.dataset
    table = pa.ipc.open_file(pa.BufferReader(files[SUMS])).read_all()
    names = [v.name for v in dataset.variables]
    measures = [m.name for m in dataset.measures if m.name in table.schema.names]
    if sorted(table.schema.names) != sorted([*names, *measures]) or any(
        c.null_count for c in table.columns
    ):
        raise ValueError("other columns than the description has")
    codes = np.stack([whole_numbers(table.column(name)) for name in names])
    sums = {m: whole_numbers(table.column(m)).astype(np.int64) for m in measures}
    words = json.loads(files[FACTORS])
    public = (ClippedSums if "clipped" in words else PublicFactors).from_mapping(words)
    stated = public.measures if isinstance(public, ClippedSums) else public.errors
    if sorted(stated) != sorted(measures):
        raise ValueError("other measures than the description has")
    held = FinestSums(dataset, codes, sums)
    if not public.existence_public and not np.array_equal(held.codes, cells.codes):
        raise ValueError(
            "sums that are tied to counts stand beside a count of 0, or lack beside another"
        )
    return ProtectedSums(held, public)
