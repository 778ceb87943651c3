"""The threshold rule: a minimum of contributors.

A cell is sensitive if fewer than ``minimum`` contribute to it (Hundepool et al. 2024, section 4.2.1). It serves
counts and magnitudes; contributors are those of the data, not weighted, since these are the ones
to protect.

*Waivers.* A cell all of whose contributors consented in writing is not sensitive, as under section
17 of Canada's Statistics Act; one contributor without a waiver keeps it so.

*Levels.* For counts the interval must reach up to the threshold: ``upper = minimum - x``. For magnitudes it
must reach ``margin`` percent of the cell (the frequency safety range of tau-ARGUS), and one unit at least: a
sum that is known to a few units is as good as disclosed, so a margin of 0 is out of range. The lower level
equals the upper one, but does not lead below 0 unless the value is negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import CellStatus, InputError, Reason, Table
from lustrum.model.arrays import Ints, Mask
from lustrum.model.parameters import parameter
from lustrum.model.table import check_table
from lustrum.sensitivity.result import Finding, Sensitivity
from lustrum.sensitivity.rule import NOTHING, Background, Percent, RuleSpec, exact

DEFAULT_MARGIN = 10
"""The protection of a sum in percent of the cell, where an agency does not say another."""


@dataclass(frozen=True)
class Threshold(RuleSpec):
    """Sensitive if fewer than ``minimum`` contribute.

    That nobody contributes to a cell (``empty``) can be a secret of those who are elsewhere.

    >>> found = Threshold(3).judge(Table.from_counts([0, 1, 2, 3]))
    >>> found.mask.tolist(), found.upper.tolist(), found.lower.tolist()
    ([False, True, True, False], [0, 2, 1, 0], [0, 1, 1, 0])
    """

    name: ClassVar[str] = "threshold"
    minimum: int = parameter(3, "Fewer contributors than this are too few.", least=1)
    empty: Literal["safe", "sensitive"] = parameter(
        "safe", "Whether a cell to which nobody contributes is sensitive too."
    )
    zeros: Literal["counted", "ignored"] = parameter(
        "counted", "Whether a contribution of 0 counts as one."
    )
    margin: Percent = parameter(
        DEFAULT_MARGIN, "The protection of a magnitude, in percent of the cell.", above=0
    )

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Judge every cell by how many contribute."""
        check_table(table, f"The rule {self.name!r}")
        count = contributors_of(table)
        if self.zeros == "ignored":
            count = _without_zeros(table, count, self.minimum)
        cells = count < self.minimum
        if self.empty == "safe":
            cells = cells & (count > 0)
        cells = cells & ~_all_waived(table, background)
        upper = margin_level(table, self.margin)
        if table.kind == "count":
            unit = 10**table.decimals
            upper = np.maximum(
                upper, self.minimum * unit - np.minimum(table.values, self.minimum * unit)
            )
        lower = np.where(table.values < 0, upper, np.minimum(upper, table.values))
        reason = Reason(self.name, "few contributors", "Merge categories, so that cells hold more.")
        finding = Finding(reason, CellStatus.SMALL_COUNT, cells)
        return Sensitivity.of(table, self.to_mapping(), [finding], lower, upper)


def contributors_of(table: Table) -> Ints:
    """How many contribute to each cell."""
    if table.contributors is not None:
        return table.contributors
    if table.kind == "count" and table.decimals == 0:
        return table.values
    raise InputError(
        "The table does not say how many contribute to each cell; make it with an engine, or give it "
        "'contributors'."
    )


def margin_level(table: Table, percent: Percent) -> npt.NDArray[Any]:
    """So many percent of each cell, rounded up, and one unit at least."""
    share = exact(percent) / 100
    size = np.abs(table.values).astype(object)
    level: npt.NDArray[Any] = np.maximum(-((-size * share.numerator) // share.denominator), 1)
    return level


def _all_waived(table: Table, background: Background) -> Mask:
    contributions = table.contributions
    if contributions is None or not background.waived or table.contributors is None:
        return np.zeros(table.shape, dtype=np.bool_)
    waived = np.count_nonzero(background.has_waived(contributions.holding), axis=-1)
    return np.asarray((waived == table.contributors) & (waived > 0))


def _without_zeros(table: Table, count: Ints, minimum: int) -> Ints:
    contributions = table.contributions
    if table.kind == "count":
        return count
    if contributions is None or contributions.value.shape[-1] < minimum:
        raise InputError(
            "The rule 'threshold' with zeros ignored must see as many contributions as its minimum; ask "
            f"the engine for ranks={minimum}."
        )
    # Ranked by size, so that contributors below the ranks matter only if all ranked ones are above 0.
    return np.asarray(
        np.count_nonzero(contributions.present & (contributions.value != 0), axis=-1),
        dtype=np.int64,
    )
