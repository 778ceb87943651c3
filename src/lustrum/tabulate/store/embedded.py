"""The engine over a version on disk, mapped into memory."""

from __future__ import annotations

import mmap
import weakref
from typing import Any

import numpy as np
import pyarrow as pa

from lustrum.model import Dataset, DatasetError, InternalError
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.numeric.counting.plan import Zones
from lustrum.tabulate.encode import Chunk
from lustrum.tabulate.store.files import VersionFiles
from lustrum.tabulate.store.manifest import RECORDS


class EmbeddedEngine(KernelEngine):
    """Answers from a dataset on disk, through a memory map of files that were checked before.

    Only files whose digests are right are mapped: neither Arrow's reader nor the compiled loops look for bytes
    that nobody wrote. Codes are still held to their code lists, for the loops check no bounds.
    """

    def __init__(self, files: VersionFiles, workers: int | None = None) -> None:
        if not files.checked:
            raise InternalError("The files of a dataset must be checked before they are used.")
        self.version = files.version
        self.rows = files.manifest.rows
        self.secret = files.manifest.secret
        """The fingerprint of the secret behind the record keys."""
        self.files = files
        # Records and keys stay open as long as the engine: its arrays are views into them.
        weakref.finalize(self, files.close)
        dataset = files.manifest.dataset
        chunks = _chunks(files, dataset)
        zones = Zones.of(chunks, [variable.name for variable in dataset.variables])
        _check_codes(files, dataset, zones)
        super().__init__(dataset, chunks, workers, zones)

    def require_unchanged(self) -> None:
        """Refuse to answer where a file was changed or cut since it was opened."""
        self.files.require_unchanged()

    @property
    def encoded_bytes(self) -> int:
        """The size of the encoded columns."""
        return self.files.size


def _chunks(files: VersionFiles, dataset: Dataset) -> list[Chunk]:
    """The columns, as views into the files."""
    try:
        records, keys = (
            pa.ipc.open_file(pa.py_buffer(mmap.mmap(handle, 0, prot=mmap.PROT_READ)))
            for handle in files.handles
        )
        if records.num_record_batches != keys.num_record_batches:
            raise pa.ArrowInvalid("other batches")
        return [
            _chunk(dataset, records.get_batch(i), keys.get_batch(i))
            for i in range(records.num_record_batches)
        ]
    except (pa.ArrowException, ValueError, KeyError):
        raise files.damaged("its records cannot be read") from None
    except OSError as error:
        raise DatasetError(f"{files.folder} cannot be read: {error.strerror}.") from None


def _check_codes(files: VersionFiles, dataset: Dataset, zones: Zones) -> None:
    """Hold every code to its code list, and the records to their number."""
    for variable in dataset.variables:
        ranges = zones.ranges.get(variable.name)
        if ranges is not None and int(ranges.greatest.max()) >= len(variable.codes):
            raise files.damaged(
                f"{RECORDS} holds codes of {variable.name!r} that are not in its code list"
            )
    if sum(chunk.rows for chunk in zones.chunks) != files.manifest.rows:
        raise files.damaged(f"{RECORDS} does not hold as many records as were written")


def _chunk(dataset: Dataset, records: pa.RecordBatch, keys: pa.RecordBatch) -> Chunk:
    def array(name: str) -> np.ndarray[Any, Any]:
        column = records.column(records.schema.get_field_index(name))
        source = column
        if pa.types.is_dictionary(column.type):
            # The kernel checks no bounds: these codes must be those of the description.
            if tuple(column.dictionary.to_pylist()) != dataset.variable(name).codes:
                raise pa.ArrowInvalid(f"other codes of {name}")
            source = column.indices
        if source.null_count:
            raise pa.ArrowInvalid(f"gaps in {name}")
        out: np.ndarray[Any, Any] = source.to_numpy(zero_copy_only=True)
        return out

    numbers = [
        *(m.name for m in dataset.measures),
        *(c.name for w in dataset.weights for c in w.columns),
    ]
    if keys.num_rows != records.num_rows or keys.schema.types != [pa.uint64()]:
        raise pa.ArrowInvalid("other keys than records")
    return Chunk(
        rows=records.num_rows,
        codes={v.name: array(v.name) for v in dataset.variables},
        numbers={name: array(name) for name in numbers},
        ids={name: array(name) for name in dataset.id_columns},
        keys=keys.column(0).to_numpy(zero_copy_only=True),
    )
