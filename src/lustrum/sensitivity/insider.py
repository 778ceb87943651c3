"""How closely an insider can bound the largest contributor (Robertson and Ethier 2002).

An insider who knows some contributions subtracts them from the published total; what is left bounds every
other contribution from above. The closest bound of the largest comes from the largest others::

    x_1 <= X - (x_2 + ... + x_{m+1})

Robertson and Ethier use it to show that dominance can call the worse of two cells safe.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lustrum.model import Table
from lustrum.sensitivity.background import NOTHING, Background
from lustrum.sensitivity.ranked import Ranked, Weights
from lustrum.sensitivity.rule import check_whole


def insider_bounds(
    table: Table,
    coalition: int = 1,
    background: Background = NOTHING,
    weights: Weights = "expanded",
) -> npt.NDArray[np.int64]:
    """The coalition's upper bound of the largest contribution in each cell, in units of the table.

    >>> from lustrum.sensitivity.examples import table_of
    >>> insider_bounds(table_of([[59, 40, 1], [61, 20, 19]])).tolist()
    [60, 80]
    """
    check_whole(coalition, "The coalition of insiders", 1)
    ranked = Ranked.of(
        table, background, rule="insider", ranks=coalition + 1, weights=weights, factor=1
    )
    known = ranked.largest(coalition + 1) - ranked.one
    bounds = ranked.units(ranked.total - known)
    return bounds.astype(np.int64).reshape(table.shape)
