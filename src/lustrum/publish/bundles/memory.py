"""What an agency remembers of a release: every finest cell with its number, its offset and the keys of its
records.

The numbers of a second release of the same people follow from the offsets. The memory is confidential, readable
by its owner only, and stays in the agency's own folder, one file for each bundle:

::

    <folder>/memory-<first digits of the bundle's digest>.arrow
    <folder>/sums-memory-<the same digits>.arrow      where the bundle holds protected sums
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, DatasetError, InputError, LustrumError
from lustrum.model.finest import FinestCells
from lustrum.protect.magnitudes.remembered import RememberedSums
from lustrum.protect.population.later import RememberedCells
from lustrum.protect.population.together import Bounds
from lustrum.publish.bundles.sum_memory import remembered_sums, sums_bytes
from lustrum.runtime.durable import outages, write_whole

_COUNT, _KEY, _WORDS = "count", "key", b"lustrum memory 1"
_BOUNDS = ("least true count", "largest true count")
_LASTING = {"offset": "level less count", "shift": "moved by", "odds": "odds changed by"}


@dataclass(frozen=True, eq=False, repr=False)
class Memory:
    """The memory of one release, with the words of the method that made it.

    ``bounds`` are what this release and all before it leave for every cell, ``earlier`` the digests of those
    before it.
    """

    cells: FinestCells
    method: dict[str, Any]
    digest: str
    sums: RememberedSums | None = None
    bounds: Bounds | None = None
    earlier: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Memory({self.cells.dataset.name!r})"

    @property
    def shown(self) -> FinestCells:
        """The cells that were published: those that show somebody, without keys."""
        return self.cells.where(self.cells.counts > 0)

    def holds(self, cells: FinestCells) -> bool:
        """Whether these are the records of this release."""
        assert self.cells.keys is not None
        has_key = self.cells.keys > 0
        if cells.keys is None:
            return False
        return np.array_equal(self.cells.codes[:, has_key], cells.codes) and np.array_equal(
            self.cells.keys[has_key], cells.keys
        )

    def require_same_method(self, method: dict[str, Any]) -> None:
        """Refuse a method that cannot keep the numbers of this release."""
        for name in ("base", "cells"):
            if self.method.get(name) != method.get(name):
                raise InputError(
                    f"The earlier release was made with {name} = {self.method.get(name)!r}, and the policy "
                    f"now says {method.get(name)!r}; keep it, or say --never-published if that is so."
                )
        shares = [float(settings.get("empty_share", 0.0)) for settings in (self.method, method)]
        if shares[1] < shares[0]:
            raise InputError(
                f"The earlier release was made with empty_share = {shares[0]}, and the policy now says "
                f"{shares[1]}: cells that no longer show anybody would be known to be empty, and others to be "
                "occupied. Keep it or raise it, or say --never-published if that is so."
            )


def memory_path(folder: Path, digest: str) -> Path:
    return folder / f"memory-{digest[:16]}.arrow"


def sums_path(memory: Path) -> Path:
    """Where the memory of protected sums stands, beside that of the counts."""
    return memory.with_name(f"sums-{memory.name}")


def write_memory(folder: Path, memory: Memory) -> Path:
    """Write a memory for its owner alone."""
    cells = memory.cells
    if cells.keys is None:
        raise InputError("A memory needs the keys of records; count the cells with keys.")
    columns: dict[str, Any] = {name: pa.array(row) for name, row in cells.columns().items()}
    columns[_COUNT] = pa.array(cells.counts, pa.int64())
    columns[_KEY] = pa.array(cells.keys, pa.uint64())
    if memory.bounds is not None:
        for name, bound in zip(_BOUNDS, memory.bounds, strict=True):
            columns[name] = pa.array(bound, pa.int64())
    said: dict[str, Any] = {
        "dataset": cells.dataset.source,
        "method": memory.method,
        "digest": memory.digest,
        "earlier": list(memory.earlier),
    }
    if isinstance(cells, RememberedCells) and cells.offset is not None:
        columns |= {words: pa.array(getattr(cells, name)) for name, words in _LASTING.items()}
        said |= {"wide": cells.wide, "share": cells.share}
    table = pa.table(columns).replace_schema_metadata({_WORDS: json.dumps(said).encode()})
    out = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(out, table.schema, options=options) as writer:
        writer.write_table(table)
    path = memory_path(folder, memory.digest)
    with outages(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if memory.sums is not None:
            write_whole(sums_path(path), sums_bytes(memory.sums), 0o600)
        write_whole(path, out.getvalue().to_pybytes(), 0o600)
    return path


def read_memory(path: Path) -> Memory:
    """Read a memory; one clear sentence where the file is none."""
    with outages(path):
        data = path.read_bytes()
        beside = sums_path(path)
        sums = beside.read_bytes() if beside.is_file() else None
    try:
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
        said = json.loads((table.schema.metadata or {})[_WORDS])
        dataset = Dataset.from_mapping(said["dataset"])
        codes = np.stack([np.asarray(table.column(v.name)) for v in dataset.variables])
        counts, keys = (np.asarray(table.column(name)) for name in (_COUNT, _KEY))
        cells = FinestCells(dataset, codes, counts, keys)
        if "share" in said:
            offset, shift, odds = (np.array(table.column(words)) for words in _LASTING.values())
            cells = RememberedCells(
                *(dataset, codes, counts, keys, offset, shift, odds, bool(said["wide"])),
                share=(int(said["share"][0]), int(said["share"][1])),
            )
        sum_memory = None if sums is None else remembered_sums(sums)
        bounds = None
        if _BOUNDS[0] in table.column_names:
            low, high = (np.array(table.column(name), dtype=np.int64) for name in _BOUNDS)
            bounds = low, high
        earlier = tuple(map(str, said.get("earlier", ())))
        return Memory(cells, dict(said["method"]), str(said["digest"]), sum_memory, bounds, earlier)
    except (LustrumError, ValueError, KeyError, TypeError, pa.ArrowException):
        raise DatasetError(
            f"{path} is not the memory of a release, or is damaged; name a memory that "
            "'lustrum protect' wrote."
        ) from None
