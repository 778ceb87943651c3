"""The file in which an agency remembers protected sums: a row for every record, or piece of a record."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.protect.magnitudes.remembered import RememberedSums

_WORDS = b"lustrum sum memory 1"
_REACH = ("least if up", "most if up", "least if down", "most if down")


def sums_bytes(kept: RememberedSums) -> bytes:
    """The memory as an Arrow file."""
    order = np.argsort(kept.carried, kind="stable")
    row = kept.carried[order]
    columns: dict[str, Any] = {"record": pa.array(kept.record[row], pa.uint64())}
    for name in kept.true:
        columns[f"true {name}"] = pa.array(kept.true[name][row], pa.int64())
        columns[f"shown {name}"] = pa.array(kept.shown[name][row], pa.int64())
        for end, column in zip(_REACH, kept.reach.get(name, ()), strict=False):
            columns[f"{end} {name}"] = pa.array(column[row], pa.int64())
    for place in range(kept.cell.shape[0]):
        columns[f"home {place}"] = pa.array(kept.home[place][row].astype(np.uint32))
        columns[f"cell {place}"] = pa.array(kept.cell[place][order].astype(np.uint32))
    said = {
        "method": dict(kept.method),
        "release": kept.release,
        "measures": list(kept.true),
        "variables": int(kept.cell.shape[0]),
    }
    table = pa.table(columns).replace_schema_metadata({_WORDS: json.dumps(said).encode()})
    out = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(out, table.schema, options=options) as writer:
        writer.write_table(table)
    data: bytes = out.getvalue().to_pybytes()
    return data


def remembered_sums(data: bytes) -> RememberedSums:
    """The memory that :func:`sums_bytes` wrote; errors are those of the reader of the memory beside it."""
    table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    said = json.loads((table.schema.metadata or {})[_WORDS])

    def column(name: str) -> Any:
        return np.asarray(table.column(name))

    record, first, carried = np.unique(column("record"), return_index=True, return_inverse=True)
    places = range(int(said["variables"]))
    home = np.stack([column(f"home {place}")[first] for place in places])
    return RememberedSums(
        dict(said["method"]),
        int(said["release"]),
        record,
        {name: column(f"true {name}")[first] for name in said["measures"]},
        {name: column(f"shown {name}")[first] for name in said["measures"]},
        home,
        carried.ravel(),
        np.stack([column(f"cell {place}") for place in places]),
        {
            name: np.stack([column(f"{end} {name}")[first] for end in _REACH])
            for name in said["measures"]
            if f"{_REACH[0]} {name}" in table.column_names
        },
    )
