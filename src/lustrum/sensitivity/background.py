"""What a judge of cells must know beside the table: who waived and who asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask


@dataclass(frozen=True, repr=False)
class Background:
    """Facts about contributors and data, apart from the rule's own parameters.

    A rule holds what an agency decides and may be written down in a policy file; who signed a waiver
    or asked for protection is confidential and stays here. Holdings are named by the numbers that
    :class:`~lustrum.model.Contributions` uses, and shown to nobody.

    >>> Background(waived=[17, 4])
    Background()
    """

    waived: frozenset[int] = frozenset()
    requested: frozenset[int] = frozenset()

    def __init__(self, waived: Iterable[int] = (), requested: Iterable[int] = ()) -> None:
        object.__setattr__(self, "waived", _holdings(waived, "waived"))
        object.__setattr__(self, "requested", _holdings(requested, "requested"))

    def __repr__(self) -> str:
        return "Background()"

    def has_waived(self, holding: Ints) -> Mask:
        """Which of these holdings gave a waiver."""
        return _among(holding, self.waived)

    def has_requested(self, holding: Ints) -> Mask:
        """Which of these holdings asked for protection and did not waive it."""
        return _among(holding, self.requested - self.waived)


def _holdings(given: Iterable[int], name: str) -> frozenset[int]:
    numbers = frozenset(int(h) for h in given)
    if any(h < 0 for h in numbers):
        raise InputError(f"The holdings in {name!r} must be numbers of 0 or more.")
    return numbers


def _among(holding: Ints, chosen: frozenset[int]) -> Mask:
    return np.isin(holding, np.fromiter(chosen, dtype=np.int64, count=len(chosen)))


NOTHING = Background()
