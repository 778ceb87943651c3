"""From positions to Arrow columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lustrum.demo.draws import Positions
from lustrum.demo.vocabulary import DemoVariable


def categorical(positions: Positions, variable: DemoVariable) -> pa.DictionaryArray:
    """A dictionary column with every code of the variable, in the order of its description."""
    index = np.uint8 if len(variable) <= np.iinfo(np.uint8).max else np.uint16
    codes = pa.array(variable.code_list, type=pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(positions.astype(index)), codes)
