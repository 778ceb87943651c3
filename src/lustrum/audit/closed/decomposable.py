"""Sharp bounds in closed form for margins that are the cliques of a chordal graph."""

from __future__ import annotations

import numpy as np

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.closed.graphs import CliqueStep, perfect_sequence
from lustrum.audit.closed.margins import Margins
from lustrum.model import InputError
from lustrum.model.arrays import Ints


def is_decomposable(margins: Margins) -> bool:
    """Whether the released margins are the maximal cliques of a chordal graph."""
    return perfect_sequence(margins.generators) is not None


def decomposable(margins: Margins) -> Bounds:
    """Sharp bounds of every cell from decomposable margins (Dobra and Fienberg 2000).

    With cliques C and separators S of the graph, each separator counted as often as it occurs::

        max(0, sum of n_C - sum of n_S)  <=  n  <=  min of n_C

    Tables of whole numbers reach both ends. A variable in no margin is unrestricted.

    >>> seen = Margins.of(
    ...     {"I": 2, "J": 2, "K": 2}, {"IJ": [[3, 1], [2, 4]], "JK": [[5, 0], [2, 3]]}
    ... )
    >>> found = decomposable(seen)
    >>> found.low.astype(int).tolist(), found.high.astype(int).tolist()
    ([3, 0, 0, 0, 2, 0, 1, 2], [3, 0, 1, 1, 2, 0, 2, 3])
    """
    low, high = decomposable_arrays(margins, sequence(margins))
    return margins.bounds(*margins.spread(low, high), True)


def decomposable_arrays(margins: Margins, steps: tuple[CliqueStep, ...]) -> tuple[Ints, Ints]:
    """The same over the covered variables, before the bounds are extended to the cube."""
    low = high = margins.margin(steps[0].clique)
    for step in steps[1:]:
        clique = margins.margin(step.clique)
        low = low + clique - margins.margin(step.separator)
        high = np.minimum(high, clique)
    return np.maximum(low, 0), high


def sequence(margins: Margins) -> tuple[CliqueStep, ...]:
    """The cliques in a perfect order; raises an error that names an alternative if there is none."""
    steps = perfect_sequence(margins.generators)
    if steps is None:
        shown = ", ".join(margins.label(g) for g in margins.generators)
        raise InputError(
            f"The margins {shown} are not decomposable, so this closed form does not apply; "
            "ask for reducible bounds or for the shuttle."
        )
    return steps
