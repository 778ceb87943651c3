"""Files that were written, read back as releases: what tests compare them by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lustrum.model import CellStatus, Release
from lustrum.numeric.structure import UNBOUNDED
from lustrum.readers import Recognition, TableFile, recognise


def releases_of(
    files: Sequence[TableFile], recognition: Recognition | None = None
) -> list[Release]:
    """Tables over one population in one unit; a cell that is not shown has no value, or its stated interval."""
    found = recognise(files) if recognition is None else recognition
    decimals = max((file.decimals for file in files), default=0)
    return [_release(file, found, decimals) for file in files]


def _release(file: TableFile, recognition: Recognition, decimals: int) -> Release:
    response = file.responses[0]
    values, known = file.dense(file.values[response], decimals)
    letters = {letter.value for letter in CellStatus}
    other = CellStatus.NOT_FOR_PUBLICATION.value
    status = np.full(file.shape, other)
    status[file.positions] = [s if s in letters else other for s in file.status[response]]
    status[~known & (status == CellStatus.FREE.value)] = other
    status[known] = CellStatus.FREE.value
    low = high = None
    if file.interval is not None:
        negative = bool((known & (values < 0)).any())
        (least, has_least), (most, has_most) = (file.dense(e, decimals) for e in file.interval)
        low = np.where(known, values, np.where(has_least, least, -UNBOUNDED if negative else 0))
        high = np.where(known, values, np.where(has_most, most, UNBOUNDED))
    axes = recognition.axes(file)
    return Release(
        axes, values, status, {"method": "unknown"}, low=low, high=high, decimals=decimals
    )
