"""How many sensitive cells a reader can estimate too closely: the risk of a table of magnitudes.

A cell needs protection where a rule says so, by default the p% rule if the table knows its largest
contributions. The risk of a cell is the larger of two:

- 1 if the published value itself lies within ``percent`` of the true one, as a reader takes it for an
  estimate; otherwise 0. Averaged over replications that is the probability of a close estimate.
- ``min(1, needed / left)``: the width of the interval of ``percent`` around the true value, over the width of
  the range that the published cells leave. It is 1 where the range is no wider than that.

The figure of a table is the mean over its sensitive cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Mask
from lustrum.model.parameters import parameter
from lustrum.model.release import check_release
from lustrum.model.table import check_table
from lustrum.risk.measure import RiskSpec

if TYPE_CHECKING:
    from lustrum.sensitivity.rule import Rule


@dataclass(frozen=True)
class CloseEstimates(RiskSpec):
    """The mean closeness of a reader's estimates of sensitive cells; from 0 to 1.

    ``rule`` says which cells are sensitive; without one the p% rule does, with ``percent`` for p below 100, if
    the table holds its largest contributions, and else every cell above 0 counts. ``audit`` is as in
    :class:`~lustrum.risk.cell_certainty.CellCertainty`.

    >>> from lustrum.protect.unchanged import Unchanged
    >>> table = Table.from_counts([[40, 7], [3, 50]])
    >>> CloseEstimates().after(table, Unchanged().apply(table))
    1.0
    """

    name: ClassVar[str] = "close-estimates"
    measures_releases: ClassVar[bool] = True
    percent: float = parameter(10.0, "An estimate within this percentage is close.", above=0)
    audit: Literal["cell", "propagate", "sharp"] = parameter(
        "propagate", "How far the reader calculates."
    )
    rule: Rule | None = parameter(
        None, "Which cells are sensitive; by default the p% rule.", brief=True, write=repr
    )

    def before(self, table: Table) -> float:
        """1 where a cell is sensitive, as the true table gives it away; otherwise 0."""
        return 1.0 if self.judged(table).any() else 0.0

    def after(self, table: Table, release: Release) -> float:
        """The mean over the sensitive cells of a release."""
        risks = self.cells(table, release)
        return float(risks.mean()) if risks.size else 0.0

    def judged(self, table: Table) -> Mask:
        """The inner cells that are sensitive."""
        check_table(table, f"The risk measure {self.name!r}")
        inner = table.inner if table.structural is None else table.inner & ~table.structural
        rule = self.rule
        if rule is None and table.contributions is not None and self.percent < 100:
            from lustrum.sensitivity import PPercent

            rule = PPercent(p=self.percent)
        if rule is None:
            return np.asarray(inner & (table.values != 0))
        return np.asarray(inner & (rule.judge(table).status != "F"))

    def cells(self, table: Table, release: Release) -> Floats:
        """The risk of each sensitive cell, in the order of the table."""
        check_table(table, f"The risk measure {self.name!r}")
        check_release(release, f"The risk measure {self.name!r}")
        from lustrum.audit import bounds, from_release
        from lustrum.audit.knowledge.reduce import as_floats, narrowed

        if release.shape != table.shape or release.decimals != table.decimals:
            raise InputError(
                "The release and its table differ in shape or decimals; they must not."
            )
        cells = np.flatnonzero(self.judged(table))
        if not cells.size:
            return np.zeros(0)
        least = min(0, int(table.values.min(initial=0)))
        known = from_release(release, low=least)
        if self.audit == "sharp":
            ranges = bounds(known, cells.tolist(), integer=True)
            low, high = ranges.low, ranges.high
        else:
            ends = (known.low, known.high) if self.audit == "cell" else narrowed(known)
            low, high = (as_floats(end[cells]) for end in ends)
        true = table.values.ravel()[cells].astype(np.float64)
        reach = np.abs(true) * (self.percent / 100.0)
        width = high - low
        narrow = np.where(width > 0, 2 * reach / np.where(width > 0, width, 1.0), 1.0)
        shown = release.shown.ravel()[cells]
        guess = release.numbers.ravel()[cells].astype(np.float64)
        close = shown & (np.abs(guess - true) <= reach)
        return np.where(close, 1.0, np.minimum(narrow, 1.0))
