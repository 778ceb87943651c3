"""Totals protected on their own, kept from giving inner cells away.

When every cell of a table is perturbed by itself, totals tell about parts: 3 and 3 beside a total of
0, all rounded to base 3, can only be 1 and 1. A table with such a line does not show the totals that were
perturbed, not a single one: a reader who sees that only the total of 3 and 3 is missing knows why. A
table whose totals happen to add up is treated alike, so that a missing total has two explanations.

What stands in their place depends on where chance comes from. By keys, one population has one number in
every table: its totals are hidden, never replaced by other numbers. By a generator a table stands alone,
and its totals are the sums of its published inner cells. A reader can add those up as well, so that both
tell the same.

Keys tell more. The same records always show the same number, so a total that shows another number than
one of its parts has somebody in another part: 0 and 3 beside a total of 0 can only be 1 and 1 too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from lustrum.arrays import Ints, Mask
from lustrum.model import TableAxis
from lustrum.model.table import inner_cells
from lustrum.model.text import Message, say
from lustrum.protect.totals.lines import added_up, line_totals, narrow_relations, pinned
from lustrum.protect.totals.summed import Published, Totals
from lustrum.structure import Relations, Structure

__all__ = ["Supported", "TotalsGuard", "hidden_totals", "safe_totals"]


_ROUNDS = 1000


class Supported(Protocol):
    """Says which true values can be behind a published one, as any channel does."""

    def support(self, published: Ints) -> tuple[Ints, Ints]:
        """The smallest and the largest true value behind each published one."""
        ...


def safe_totals(
    axes: Sequence[TableAxis],
    perturbed: Ints,
    channel: Supported,
    structural: Mask | None = None,
    *,
    keyed: bool = False,
    hide: bool | None = None,
) -> Published:
    """Keep all totals as they were perturbed, or none of them if one pins an inner cell.

    The guard takes into account that everybody knows ``structural`` cells to be empty and that, where chance
    is ``keyed``, a total of the same records as one of its parts shows the same number.
    Totals that are not kept are hidden with ``hide``, by default where chance is keyed, and added up otherwise.
    """
    return TotalsGuard(tuple(axes)).publish(perturbed, channel, structural, keyed=keyed, hide=hide)


def hidden_totals() -> Message:
    """What a reader should know of totals that are hidden where they would tell."""
    return say(
        "Totals are protected on their own, so the numbers may not add up to them. A table does not "
        "show its totals if they add up, or if they would disclose a number."
    )


@dataclass(frozen=True)
class TotalsGuard:
    """The totals of one shape of table; made once, it serves any number of tables of that shape."""

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
        found = Structure.of_tables([self.axes]).relations
        assert bool((found.totals >= 0).all())
        return found

    def publish(
        self,
        perturbed: Ints,
        channel: Supported,
        structural: Mask | None = None,
        *,
        keyed: bool = False,
        hide: bool | None = None,
    ) -> Published:
        """Decide by the perturbed values alone."""
        known = _Known(channel, structural)
        low, high = known.support(perturbed)
        if self._inner.all():
            return Published(perturbed, low, high)
        if self._lines is None:
            self._totals.need_parts(self.axes)
        sums = self._added_up(perturbed)
        shown = perturbed if keyed else None
        if not np.array_equal(sums, perturbed) and not self._tells(low, high, shown):
            return Published(perturbed, low, high)
        if keyed if hide is None else hide:
            hidden = self._covered
            return Published(
                np.where(hidden, 0, perturbed), self._added_up(low), self._added_up(high), hidden
            )
        # Totals that all add up can have come about both ways; a reader must allow for both.
        natural_low, natural_high = known.support(sums)
        covered = self._covered
        return Published(
            sums,
            np.where(covered, np.minimum(natural_low, self._added_up(low)), low),
            np.where(covered, np.maximum(natural_high, self._added_up(high)), high),
        )

    @property
    def _covered(self) -> Mask:
        return ~self._inner if self._lines is not None else self._totals.covered

    def _added_up(self, array: Ints) -> Ints:
        """All totals that inner cells cover as their sums."""
        if self._lines is not None:
            return added_up(array, self._lines)
        return self._totals.added_up(array)

    def _tells(self, low: Ints, high: Ints, shown: Ints | None) -> bool:
        """Whether the totals pin an inner cell that has several values by itself."""
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
