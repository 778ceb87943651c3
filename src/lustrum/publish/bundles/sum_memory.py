"""The file in which an agency remembers protected sums: a row for every record, or piece of a record.

Contributions that rest are a file of their own within its words, with a row for each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.protect.magnitudes.remembered import LastShown, RememberedSums

_WORDS = b"lustrum sum memory 1"
_RESTING = b"resting contributions"
_REACH = ("least if up", "most if up", "least if down", "most if down")


def sums_bytes(memory: RememberedSums) -> bytes:
    order = np.argsort(memory.carried, kind="stable")
    row = memory.carried[order]
    columns: dict[str, Any] = {"record": pa.array(memory.record[row], pa.uint64())}
    for name in memory.true:
        columns[f"true {name}"] = pa.array(memory.true[name][row], pa.int64())
        columns[f"shown {name}"] = pa.array(memory.shown[name][row], pa.int64())
        for end, column in zip(_REACH, memory.reach.get(name, ()), strict=False):
            columns[f"{end} {name}"] = pa.array(column[row], pa.int64())
    for variable in range(memory.cell.shape[0]):
        columns[f"home {variable}"] = pa.array(memory.home[variable][row].astype(np.uint32))
        columns[f"cell {variable}"] = pa.array(memory.cell[variable][order].astype(np.uint32))
    said = {
        "method": dict(memory.method),
        "release": memory.release,
        "version": memory.version,
        "measures": list(memory.true),
        "variables": int(memory.cell.shape[0]),
    }
    metadata = {_WORDS: json.dumps(said).encode()}
    if memory.resting:
        metadata[_RESTING] = _written(_resting_table(memory.resting))
    return _written(pa.table(columns).replace_schema_metadata(metadata))


def _written(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(out, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = out.getvalue().to_pybytes()
    return data


def _resting_table(resting: Mapping[str, LastShown]) -> pa.Table:
    every = list(resting.items())
    columns = {
        "measure": pa.array(
            [name for name, contributions in every for _ in range(contributions.record.size)]
        ),
        "record": pa.array(
            np.concatenate([contributions.record for _, contributions in every]), pa.uint64()
        ),
        "true": pa.array(
            np.concatenate([contributions.true for _, contributions in every]), pa.int64()
        ),
        "shown": pa.array(
            np.concatenate([contributions.shown for _, contributions in every]), pa.int64()
        ),
    }
    ends = np.concatenate([contributions.reach for _, contributions in every], axis=1)
    return pa.table(columns | {end: pa.array(row) for end, row in zip(_REACH, ends, strict=True)})


def _resting(data: bytes) -> dict[str, LastShown]:
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    record, true, shown, *ends = (
        np.asarray(table.column(name)) for name in ("record", "true", "shown", *_REACH)
    )
    every = LastShown(record, true, shown, np.stack(ends))
    names = table.column("measure").to_pylist()
    measure_of_row = np.array(names)
    return {name: every.take(measure_of_row == name) for name in dict.fromkeys(names)}


def remembered_sums(data: bytes) -> RememberedSums:
    """The memory that :func:`sums_bytes` wrote; errors are those of the reader of the memory beside it."""
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    metadata = table.schema.metadata or {}
    said = json.loads(metadata[_WORDS])

    def column(name: str) -> Any:
        return np.asarray(table.column(name))

    record, first, carried = np.unique(column("record"), return_index=True, return_inverse=True)
    places = range(int(said["variables"]))
    home = np.stack([column(f"home {variable}")[first] for variable in places])
    return RememberedSums(
        dict(said["method"]),
        int(said["release"]),
        record,
        {name: column(f"true {name}")[first] for name in said["measures"]},
        {name: column(f"shown {name}")[first] for name in said["measures"]},
        home,
        carried.ravel(),
        np.stack([column(f"cell {variable}") for variable in places]),
        {
            name: np.stack([column(f"{end} {name}")[first] for end in _REACH])
            for name in said["measures"]
            if f"{_REACH[0]} {name}" in table.column_names
        },
        _resting(metadata[_RESTING]) if _RESTING in metadata else {},
        int(said.get("version", 1)),
    )
