"""Protected respondents of a survey as a file of a bundle, and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model.arrays import Array, Ints
from lustrum.model.finest import FinestCells
from lustrum.protect.weighted import ProtectedRespondents
from lustrum.protect.weighted.replicates import ReplicateFactors

_WEIGHT, _STRATUM, _CLUSTER = "weight", "stratum", "cluster"
_VALUE = "value:"
_WORDS = b"lustrum"


def respondents_bytes(respondents: ProtectedRespondents) -> bytes:
    """One row a respondent, in the order of the bundle's cells: weight, stratum, cluster, values of measures.

    The codes follow from ``cells.arrow``, whose counts say how many rows each cell has.
    """
    metadata: dict[str, Any] = {
        "name": respondents.name,
        "decimals": respondents.decimals,
        "count_errors": {str(k): v for k, v in sorted(respondents.count_errors.items())},
        "weight_spread": respondents.weight_spread,
        "weight_noise": respondents.weight_noise,
        "value_spreads": dict(sorted(respondents.value_spreads.items())),
        "value_noise": respondents.value_noise,
    }
    if respondents.replicates is not None:
        metadata["replicates"] = {
            "scale": respondents.replicates.scale,
            "factors": respondents.replicates.factors.tolist(),
        }
    if respondents.joined is not None:
        metadata["joined"] = respondents.joined.tolist()
    columns = {
        _WEIGHT: respondents.weights,
        _STRATUM: respondents.strata,
        _CLUSTER: respondents.clusters,
    }
    columns |= {_VALUE + name: respondents.values[name] for name in sorted(respondents.values)}
    table = pa.table({name: pa.array(column, pa.int64()) for name, column in columns.items()})
    table = table.replace_schema_metadata({_WORDS: json.dumps(metadata, sort_keys=True).encode()})
    out = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(out, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = out.getvalue().to_pybytes()
    return data


def whole_numbers(column: pa.ChunkedArray) -> Array:
    """A column of whole numbers; pyarrow itself would load pandas for it, which takes as long as reading."""
    if not pa.types.is_integer(column.type):
        raise ValueError("a column does not hold whole numbers")
    parts = [np.from_dlpack(chunk) for chunk in column.chunks]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype=np.uint8), *parts])


def respondents_of(data: bytes, cells: FinestCells) -> ProtectedRespondents:
    """The respondents that were written; a ValueError where they do not fit the cells."""
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    metadata = json.loads((table.schema.metadata or {})[_WORDS])
    spreads = {str(k): float(v) for k, v in metadata["value_spreads"].items()}
    if table.schema.names != [_WEIGHT, _STRATUM, _CLUSTER, *(_VALUE + n for n in sorted(spreads))]:
        raise ValueError("other columns than respondents have")
    weights, strata, clusters, *values = (
        whole_numbers(column).astype(np.int64) for column in table.columns
    )
    if weights.size != int(cells.counts.sum()) or bool((weights < 1).any()):
        raise ValueError("respondents do not fit the cells")
    return ProtectedRespondents(
        dataset=cells.dataset,
        codes=np.repeat(cells.codes, cells.counts, axis=1),
        weights=weights,
        strata=strata,
        clusters=clusters,
        count_errors={int(k): float(v) for k, v in metadata["count_errors"].items()},
        weight_spread=float(metadata["weight_spread"]),
        weight_noise=float(metadata["weight_noise"]),
        decimals=int(metadata["decimals"]),
        name=str(metadata["name"]),
        values=dict(zip(sorted(spreads), values, strict=True)),
        value_spreads=spreads,
        value_noise=float(metadata["value_noise"]),
        replicates=_replicates(metadata.get("replicates"), clusters),
        joined=_joined(metadata.get("joined"), clusters),
    )


def _replicates(replicates: Any, clusters: Ints) -> ReplicateFactors | None:
    """The replicate factors of all clusters; a ValueError where they do not fit."""
    if replicates is None:
        return None
    factors = np.array(replicates["factors"], dtype=np.int64)
    if factors.ndim != 2 or factors.shape[1] < 2 or int(clusters.max(initial=-1)) >= len(factors):
        raise ValueError("replicate factors do not fit the clusters")
    if int(factors.min(initial=0)) < 0 or int(clusters.min(initial=0)) < 0:
        raise ValueError("replicate factors are not numbers of 0 or more")
    return ReplicateFactors(factors, float(replicates["scale"]))


def _joined(cluster_counts: Any, clusters: Ints) -> Ints | None:
    """Of how many clusters each unit is made; a ValueError where the numbers do not fit."""
    if cluster_counts is None:
        return None
    joined = np.array(cluster_counts, dtype=np.int64)
    if joined.ndim != 1 or int(clusters.max(initial=-1)) >= len(joined) or bool((joined < 1).any()):
        raise ValueError("numbers of clusters do not fit the units")
    return joined
