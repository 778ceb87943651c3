"""What the suppression of a cell costs: how much of the table is lost with it."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Mask
from lustrum.model.errors import choices
from lustrum.numeric.arithmetic import log
from lustrum.numeric.arithmetic import power as power_of

CostWord = Literal["value", "count", "frequency", "unity", "distance", "box-cox"]


def cell_costs(
    word: CostWord,
    values: npt.ArrayLike,
    *,
    contributors: npt.ArrayLike | None = None,
    primary: npt.ArrayLike | None = None,
    shape: tuple[int, ...] | None = None,
    power: float = 0.5,
) -> Floats:
    """The cost of every cell.

    ``value`` is the size of the value, ``count`` and ``frequency`` the number of contributors, ``unity`` 1 for
    each cell. ``distance`` grows with the distance to the nearest primary cell, counted in positions along the
    axes. ``box-cox`` is ``(|value| + 1) ** power``, or its logarithm for a power of 0: between unity and value.

    >>> cell_costs("box-cox", [0, 3, 99]).tolist()
    [1.0, 2.0, 10.0]
    """
    size = np.abs(np.asarray(values, dtype=np.float64)).ravel()
    if word == "value":
        return size
    if word == "unity":
        return np.ones(size.size)
    if word in ("count", "frequency"):
        if contributors is None:
            raise InputError(f"The cost {word!r} needs the number of contributors of every cell.")
        return np.asarray(contributors, dtype=np.float64).ravel()
    if word == "box-cox":
        if not 0 <= power <= 1:
            raise InputError("The power of the cost 'box-cox' must be between 0 and 1.")
        return log(size + 1.0) + 1.0 if power == 0 else power_of(size + 1.0, power)
    if word == "distance":
        if primary is None or shape is None:
            raise InputError(
                "The cost 'distance' needs the primary cells and the shape of the table."
            )
        return distance_costs(np.asarray(primary, dtype=np.bool_), shape)
    raise InputError(
        f"'cost' of suppression cannot be {word!r}; {choices(str(word), get_args(CostWord))}."
    )


def distance_costs(primary: Mask, shape: tuple[int, ...]) -> Floats:
    """1 more than the steps to the nearest primary cell, where a step leads to a neighbour along an axis."""
    from scipy.ndimage import distance_transform_cdt

    marks = primary.reshape(shape)
    if not shape or not bool(marks.any()):
        return np.ones(primary.size)
    return (
        np.asarray(distance_transform_cdt(~marks, metric="taxicab"), dtype=np.float64).ravel() + 1.0
    )
