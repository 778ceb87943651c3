"""From engines to records and back: the way of a pre-tabular method."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model.records import Records
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.numeric.counting.plan import Chunk


class RecordsEngine(KernelEngine):
    """Answers from records in memory."""

    def __init__(self, records: Records, workers: int | None = None) -> None:
        chunk = Chunk(len(records), records.codes, records.numbers, records.ids, records.keys)
        super().__init__(records.dataset, [chunk], workers)


def records_of(engine: KernelEngine) -> Records:
    """All records behind an engine in one piece."""
    chunks = engine.chunks

    def joined(part: str, name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(chunk, part)[name] for chunk in chunks])

    first = chunks[0]
    keys = [chunk.keys for chunk in chunks if chunk.keys is not None]
    return Records(
        engine.dataset,
        codes={name: joined("codes", name) for name in first.codes},
        numbers={name: joined("numbers", name) for name in first.numbers},
        ids={name: joined("ids", name) for name in first.ids},
        keys=np.concatenate(keys) if len(keys) == len(chunks) else None,
    )
