"""Write a public bundle: what leaves of a dataset, the bytes of its files, and the folder as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from lustrum.model import Dataset
from lustrum.model.arrays import Array, Ints
from lustrum.model.finest import FinestCells
from lustrum.model.translations import people_texts
from lustrum.policy.read import parse_policy
from lustrum.protect.population.public import PublicReport
from lustrum.protect.weighted import ProtectedRespondents
from lustrum.public.bundle.agreement import protection_digest
from lustrum.public.bundle.files import (
    CELLS,
    DATASET,
    FACTORS,
    FORMAT,
    KIND,
    POLICY,
    PROTECTION,
    REPORT,
    RESPONDENTS,
    SHARDS,
    SUMS,
    ProtectedSums,
    overall_digest,
)
from lustrum.public.bundle.respondents import respondents_bytes
from lustrum.public.bundle.shards import COUNT, SHARDED_FROM, shards_of
from lustrum.publish.prepared import json_bytes, write_folder
from lustrum.runtime.data_folder import MANIFEST


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
    public_measures = [
        {key: value for key, value in measure.items() if key not in ("holding", "missing")}
        for measure in source.pop("measures", ())
        if measure["name"] in measures
    ]
    if respondents is not None:
        weight = dataset.weight(respondents.name)
        public_weight = {
            "name": weight.name,
            "label": weight.label,
            "decimals": respondents.decimals,
        }
        source["weights"] = [public_weight]
    confidential = ("record_id", "identifiers", "population")
    head = {k: v for k, v in source["dataset"].items() if k not in confidential}
    public = {
        **source,
        "dataset": head,
        **({"measures": public_measures} if public_measures else {}),
    }
    if "translations" in source:
        # A text that is left out may not come back with its translation. Others may be notes of a policy.
        left_out = people_texts(dataset.source) - people_texts(public)
        public["translations"] = {
            code: {text: said for text, said in texts.items() if text not in left_out}
            for code, texts in source["translations"].items()
        }
    return public


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
    decided = parse_policy(policy, POLICY)
    protection = protection_digest(decided, report.search, FORMAT)
    described = public_description(cells.dataset, respondents, measures)
    shards = {}
    if len(cells) > SHARDED_FROM and respondents is None and sums is None:
        in_shards, words = shards_of(replace(cells, dataset=Dataset.from_mapping(described)))
        shards = {CELLS: in_shards, SHARDS: json_bytes(words)}
    files = {
        DATASET: json_bytes(described),
        **(shards or {CELLS: _arrow(cells.columns(), {COUNT: cells.counts})}),
        POLICY: policy,
        REPORT: json_bytes({**report.to_mapping(), PROTECTION: protection}),
    }
    if respondents is not None:
        files[RESPONDENTS] = respondents_bytes(respondents)
    if sums is not None:
        files[SUMS] = _arrow(sums.sums.columns(), sums.sums.sums)
        files[FACTORS] = json_bytes(sums.public.to_mapping())
    digests = {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        for name, data in files.items()
    }
    digest = overall_digest(FORMAT, cells.dataset.name, digests)
    manifest = {
        "format": FORMAT,
        "kind": KIND,
        "dataset": cells.dataset.name,
        "files": digests,
        "digest": digest,
    }
    return PackedBundle({**files, MANIFEST: json_bytes(manifest)}, digest)


def write_bundle(path: Path, packed: PackedBundle) -> str:
    """Write a bundle in place of an earlier one, if there is any; gives its digest."""
    write_folder(path, packed.files, "bundle")
    return packed.digest


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
