"""Group disclosure: a row or column whose people are all in one or two cells.

Of a line with zeros everywhere but in a few cells anybody learns that every one of its people is in
these, without knowing who is who (Hundepool et al. 2024, section 5.2; with two cells, one of
them small, it is what they call within-group disclosure)::

    1 <= populated cells <= populated, and some cell of the line is empty that need not be
    lower level = populated + 1 - populated cells

The level lets so many people of a cell be elsewhere that the line could have one populated cell
too many for the rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lustrum.model import Reason, Table
from lustrum.model.arrays import Ints, Mask
from lustrum.model.parameters import parameter
from lustrum.model.table import check_table
from lustrum.sensitivity.background import NOTHING, Background
from lustrum.sensitivity.lines import along, counts_of, distinct, judge_lines, open_cells
from lustrum.sensitivity.result import Sensitivity
from lustrum.sensitivity.rule import RuleSpec


@dataclass(frozen=True)
class GroupDisclosure(RuleSpec):
    """Sensitive if all people of a line are in at most ``populated`` cells.

    The mask marks the populated cells of such lines; :meth:`lines` gives the lines themselves.

    >>> table = Table.from_counts([[6, 0, 0], [5, 1, 0], [2, 2, 1]], names=["status", "hours"])
    >>> GroupDisclosure(populated=1).judge(table).mask.tolist()
    [[True, False, False], [False, False, False], [False, False, True]]
    """

    name: ClassVar[str] = "group-disclosure"
    populated: int = parameter(
        2, "A line with at most this many populated cells discloses its group.", least=1
    )

    def lines(self, table: Table) -> tuple[Mask, ...]:
        """For each axis the lines along it that disclose, with that axis of length 1."""
        return tuple(missing > 0 for missing in self._missing(table))

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Judge the cells along every line."""
        check_table(table, f"The rule {self.name!r}")
        reason = Reason(
            self.name,
            "all of a group are in a few cells",
            "Merge categories, so that the group spreads over more cells.",
        )
        return judge_lines(table, self._missing(table), reason, self.to_mapping())

    def _missing(self, table: Table) -> list[Ints]:
        """For each line how many populated cells it lacks to be safe; 0 where it is."""
        counts, possible = counts_of(table, self.name), open_cells(table)
        out = []
        for axis in range(len(table.axes)):
            inner = along(table, axis, distinct(table.axes[axis]))
            filled = np.count_nonzero((counts > 0) & inner, axis=axis, keepdims=True)
            empty = ((counts == 0) & possible & inner).any(axis=axis, keepdims=True)
            disclosing = (filled >= 1) & (filled <= self.populated) & empty
            out.append(np.where(disclosing, self.populated + 1 - filled, 0))
        return out
