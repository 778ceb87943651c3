"""Independently protected totals that must not disclose inner cells.

When every cell of a table is perturbed by itself, totals reveal something about their parts: 3 and 3 beside
a total of 0, all rounded to base 3, can only be 1 and 1. A table with such a line shows none of its
perturbed totals, because a reader who sees that only the total of 3 and 3 is missing would know why. A
table whose totals happen to add up is treated in the same way, so that a missing total has two
explanations.

What replaces them depends on the source of randomness. With record keys, the same people have one number in
every table, so the totals are hidden, never replaced by other numbers. With a generator, a table stands
alone, and its totals become the sums of its published inner cells. A reader could add those up as well, so
both reveal the same.

Keys reveal more. The same records always show the same number, so if a total shows another number than one
of its parts, another part is not empty: 0 and 3 beside a total of 0 can only be 1 and 1 too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from lustrum.model import TableAxis
from lustrum.model.arrays import Ints, Mask
from lustrum.model.table import inner_cells
from lustrum.model.text import Message, say
from lustrum.numeric.structure import Relations, Structure
from lustrum.protect.totals.lines import added_up, line_totals, narrow_relations, pinned
from lustrum.protect.totals.summed import PublishedSums, Totals

_ROUNDS = 1000


class Supported(Protocol):
    """A channel, as far as its bounds: which true values can lead to a published one."""

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The smallest and the largest true value that can lead to each published one."""
        ...


def safe_totals(
    axes: Sequence[TableAxis],
    perturbed: Ints,
    channel: Supported,
    structural: Mask | None = None,
    *,
    keyed: bool = False,
    hide: bool | None = None,
) -> PublishedSums:
    """Keep all totals as they were perturbed, or none of them if one discloses an inner cell.

    The guard takes into account that everybody knows ``structural`` cells to be empty and that, if the
    method is ``keyed``, a total of the same records as one of its parts shows the same number. Totals that
    are not kept are hidden with ``hide``, which is the default for keyed methods, and added up otherwise.
    """
    return TotalsGuard(tuple(axes)).publish(perturbed, channel, structural, keyed=keyed, hide=hide)


def hidden_totals() -> Message:
    """The note for readers about hidden totals."""
    return say(
        "Totals are protected on their own, so the numbers may not add up to them. A table does not "
        "show its totals if they add up, or if they would disclose a number."
    )


@dataclass(frozen=True)
class TotalsGuard:
    """The totals of one table layout, for any number of tables of that layout."""

    axes: tuple[TableAxis, ...]

    @cached_property
    def _inner(self) -> Mask:
        return inner_cells(self.axes)

    @cached_property
    def _lines(self) -> list[int] | None:
        return line_totals(self.axes)

    @cached_property
    def _totals(self) -> Totals:
        return Totals.of(self.axes)

    @cached_property
    def _relations(self) -> Relations:
        """Every total with its parts; within one table all relations are of this kind."""
        relations = Structure.of_tables([self.axes]).relations
        assert bool((relations.totals >= 0).all())
        return relations

    def publish(
        self,
        perturbed: Ints,
        channel: Supported,
        structural: Mask | None = None,
        *,
        keyed: bool = False,
        hide: bool | None = None,
    ) -> PublishedSums:
        """Publish a table; the decision depends on the perturbed values alone."""
        known = _Known(channel, structural)
        low, high = known.support(perturbed)
        if self._inner.all():
            return PublishedSums(perturbed, low, high)
        if self._lines is None:
            self._totals.need_parts(self.axes)
        sums = self._added_up(perturbed)
        shown = perturbed if keyed else None
        if not np.array_equal(sums, perturbed) and not self._determines_a_cell(low, high, shown):
            return PublishedSums(perturbed, low, high)
        totals = ~self._inner  # all parts of each are in the table
        if keyed if hide is None else hide:
            return PublishedSums(
                np.where(totals, 0, perturbed), self._added_up(low), self._added_up(high), totals
            )
        # Totals that all add up can be perturbed ones or sums; a reader must allow for both.
        natural_low, natural_high = known.support(sums)
        return PublishedSums(
            sums,
            np.where(totals, np.minimum(natural_low, self._added_up(low)), low),
            np.where(totals, np.maximum(natural_high, self._added_up(high)), high),
        )

    def _added_up(self, array: Ints) -> Ints:
        """All totals that inner cells cover, as their sums."""
        if self._lines is not None:
            return added_up(array, self._lines)
        return self._totals.added_up(array)

    def _determines_a_cell(self, low: Ints, high: Ints, shown: Ints | None) -> bool:
        """Whether the totals determine an inner cell that has several possible values by itself."""
        open_cells = self._inner & (low < high)
        if self._lines is not None:
            return pinned(low, high, open_cells, self._lines, shown)
        relations = self._relations
        return bool(
            narrow_relations(
                low.flatten(),
                high.flatten(),
                open_cells.ravel(),
                relations.indptr,
                relations.cells,
                low.ravel() if shown is None else shown.ravel(),
                shown is not None,
                _ROUNDS,
            )
        )


@dataclass(frozen=True)
class _Known:
    """A channel, and the cells of one table that are known to be empty."""

    channel: Supported
    structural: Mask | None

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        low, high = self.channel.support(published)
        if self.structural is None:
            return low, high
        return np.where(self.structural, 0, low), np.where(self.structural, 0, high)
