"""A chunk: encoded columns, of records or of cells. It knows nothing of where they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Array


@dataclass(frozen=True, repr=False)
class Chunk:
    """Some records (or cells of a hypercube, with ``counts``), column by column."""

    rows: int
    codes: Mapping[str, Array]
    numbers: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    ids: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    keys: npt.NDArray[np.uint64] | None = None
    counts: npt.NDArray[np.int64] | None = None
