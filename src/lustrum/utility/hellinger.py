"""Hellinger distance of counts, as a utility from 0 to 1 (Shlomo, Antal, Elliot 2015, equation 4)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table

__all__ = ["HellingerUtility", "hellinger_counts"]


class HellingerUtility:
    """``1 - HD(F, G) / sqrt N`` over the inner cells that are shown; higher is better.

    >>> from lustrum.protect import RandomRounding
    >>> table = Table.from_counts([[3, 6], [9, 12]])
    >>> HellingerUtility().of(table, RandomRounding().apply(table, np.random.default_rng(0)))
    1.0
    """

    name: ClassVar[str] = "hellinger"

    def of(self, table: Table, release: Release) -> float:
        """The utility of a release in place of its table, cut at 0."""
        if release.shape != table.shape:
            raise InputError("The release and its table have different shapes; they must be equal.")
        if not release.shown[table.inner].all():
            raise InputError(
                "The release has suppressed cells, whose values the Hellinger distance needs."
            )
        original = table.values[table.inner]
        if not original.any():
            raise InputError("A table without anybody in it has no Hellinger scale.")
        distance = hellinger_counts(original, release.published[table.inner])
        return max(0.0, 1.0 - distance / float(np.sqrt(original.sum())))


def hellinger_counts(original: npt.ArrayLike, published: npt.ArrayLike) -> float:
    """``sqrt(sum (sqrt F - sqrt G)**2 / 2)``; 0 when equal, at most ``sqrt((N + M) / 2)``."""
    difference = np.sqrt(np.asarray(original, dtype=np.float64)) - np.sqrt(
        np.asarray(published, dtype=np.float64)
    )
    return float(np.sqrt((difference**2).sum() / 2))
