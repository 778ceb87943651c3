"""Sparsity: too many empty cells along a line.

Zeros rule things out for everybody in a line, so a line most of whose cells are empty tells much about its
people (Hundepool et al. 2024, section 5.2; Antal, Shlomo and Elliot 2014 make the share of
zeros a term of their risk measure)::

    empty cells > max_share * cells that could hold somebody
    lower level = least number of empty cells that would have to fill

Only the inner cells of a line count, and only those that could hold somebody. A line without anybody is not
sensitive: there is nobody to learn about.
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
from lustrum.sensitivity.rule import RuleSpec, exact


@dataclass(frozen=True)
class Sparsity(RuleSpec):
    """Sensitive if more than ``max_share`` of a line's cells are empty.

    The mask marks the populated cells of such lines; :meth:`lines` gives the lines themselves.

    >>> table = Table.from_counts([[4, 0, 0], [5, 1, 3], [2, 2, 1]], names=["area", "faith"])
    >>> Sparsity(max_share=0.5).judge(table).mask.tolist()
    [[True, False, False], [False, False, False], [False, False, False]]
    """

    name: ClassVar[str] = "sparsity"
    max_share: float = parameter(0.5, "The largest share of empty cells.", least=0, below=1)

    def lines(self, table: Table) -> tuple[Mask, ...]:
        """For each axis the lines along it that are too sparse, with that axis of length 1."""
        return tuple(excess > 0 for excess in self._excess(table))

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Judge the cells along every line."""
        check_table(table, f"The rule {self.name!r}")
        reason = Reason(
            self.name,
            "most cells of a group are empty",
            "Merge categories, so that fewer cells are empty.",
        )
        return judge_lines(table, self._excess(table), reason, self.to_mapping())

    def _excess(self, table: Table) -> list[Ints]:
        """For each line how many empty cells it has too many; 0 where it is safe."""
        counts, possible = counts_of(table, self.name), open_cells(table)
        share = exact(self.max_share)
        out = []
        for axis in range(len(table.axes)):
            inner_cells = possible & along(table, axis, distinct(table.axes[axis]))
            cells = np.count_nonzero(inner_cells, axis=axis, keepdims=True)
            empty = np.count_nonzero(inner_cells & (counts == 0), axis=axis, keepdims=True)
            allowed = cells * share.numerator // share.denominator
            out.append(np.where(empty < cells, np.maximum(empty - allowed, 0), 0))
        return out
