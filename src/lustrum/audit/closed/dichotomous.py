"""Sharp bounds in closed form for k variables with two categories each and all (k - 1)-way margins."""

from __future__ import annotations

from itertools import product

import numpy as np

from lustrum.audit.bounding.compute import Bounds
from lustrum.audit.closed.margins import Margins
from lustrum.audit.knowledge.facts import ContradictionError
from lustrum.model import InputError


def is_dichotomous(margins: Margins) -> bool:
    """Whether every variable has two categories and all margins without one variable are released.

    Variables with one category are ignored.
    """
    wide = frozenset(a for a, size in enumerate(margins.shape) if size > 1)
    if not wide or any(margins.shape[a] != 2 for a in wide):
        return False
    return all(margins.knows(wide - {a}) for a in wide)


def dichotomous(margins: Margins) -> Bounds:
    """Sharp bounds of every cell of a 2 x 2 x ... x 2 table from all margins over one variable.

    Such margins leave a single unknown. Let x be the first cell and ``s`` the number of categories in which
    a cell differs from it::

        n = c + (-1)**s x,    so  max over even s of (-c)  <=  x  <=  min over odd s of c

    where the constants c follow from the margins, one flip at a time. These are the bounds that
    Fienberg (1999) gives for 2 x 2 x 2 and Dobra and Fienberg (2000) for any k.

    >>> cube = Margins.of_table([[[1, 2], [3, 0]], [[2, 2], [0, 4]]], [[0, 1], [0, 2], [1, 2]])
    >>> dichotomous(cube).low.astype(int).tolist(), dichotomous(cube).high.astype(int).tolist()
    ([1, 0, 1, 0, 0, 2, 0, 2], [3, 2, 3, 2, 2, 4, 2, 4])
    """
    if not is_dichotomous(margins):
        raise InputError(
            "This closed form needs variables of two categories and all margins without one of them."
        )
    wide = [a for a, size in enumerate(margins.shape) if size > 1]
    constant = np.zeros(margins.shape, dtype=np.int64)
    sign = np.ones(margins.shape, dtype=np.int64)
    for digits in product((0, 1), repeat=len(wide)):
        if not any(digits):
            continue
        flipped = digits.index(1)
        cell = [0] * len(margins.shape)
        for axis, digit in zip(wide, digits, strict=True):
            cell[axis] = digit
        before = list(cell)
        before[wide[flipped]] = 0
        both = margins.margin(frozenset(wide) - {wide[flipped]})
        constant[tuple(cell)] = both[tuple(before)] - constant[tuple(before)]
        sign[tuple(cell)] = -sign[tuple(before)]
    least = int((-constant[sign > 0]).max())
    most = int(constant[sign < 0].min())
    if least > most:
        raise ContradictionError("The margins agree in pairs, but no table has all of them.")
    ends = constant + sign * least, constant + sign * most
    return margins.bounds(np.minimum(*ends), np.maximum(*ends), True)
