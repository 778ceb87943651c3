"""The (n, k) dominance rule.

A cell is sensitive if its ``n`` largest contributors have more than ``k`` percent of it::

    x_1 + ... + x_n > (k / 100) X                             (Cox 1981; Hundepool et al. 2024, section 4.2.1)
    upper level = (100 / k) (x_1 + ... + x_n) - X             (Hundepool et al. 2024, section 4.2.2)

The lower level equals the upper one "out of symmetry", as that handbook does, but never leads below 0
where nothing is negative. For weights, negative contributions and waivers (``x_s`` and the ``n - 1``
largest others stand on the left) see :mod:`lustrum.sensitivity.ranked`.

*Letters.* The SDMX code list ``CL_CONF_STATUS`` knows dominance by one unit (O), by two (T) and by one or
two (G). We read: O where the largest alone has more than ``k`` percent; T where the two largest have it
together, but not the largest alone; M where it takes three or more. G stands for O and T alike
when an agency does not tell them apart (``letters="merged"``), since the letter itself says something
about the largest contributor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from lustrum.model import CellStatus, Reason, Table
from lustrum.model.arrays import Mask
from lustrum.model.parameters import parameter
from lustrum.model.table import check_table
from lustrum.sensitivity.background import NOTHING, Background
from lustrum.sensitivity.ranked import Exact, Ranked, Weights
from lustrum.sensitivity.result import Finding, Sensitivity
from lustrum.sensitivity.rule import (
    Percent,
    RuleSpec,
    exact,
)

WAY_FORWARD = "Merge categories, so that more contributors share the cell."


@dataclass(frozen=True)
class Dominance(RuleSpec):
    """Sensitive if the ``n`` largest have more than ``k`` percent of the cell.

    >>> from lustrum.sensitivity.examples import table_of
    >>> cells = table_of([[59, 40, 1], [61, 20, 19]])
    >>> Dominance(n=1, k=60).judge(cells).status.tolist()
    ['F', 'O']
    """

    name: ClassVar[str] = "dominance"
    n: int = parameter(2, "How many of the largest contributors count.", least=1)
    k: Percent = parameter(
        85, "A larger percentage of the cell than this is too much.", above=0, below=100
    )
    weights: Weights = parameter("expanded", "Whether contributions count with their weights.")
    letters: Literal["exact", "merged"] = parameter(
        "exact", "Whether status letters tell 1, 2 and more contributors apart."
    )

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Judge every cell by its largest contributors."""
        check_table(table, f"The rule {self.name!r}")
        share = exact(self.k) / 100
        ranked = Ranked.of(
            table,
            background,
            rule=self.name,
            ranks=self.n,
            weights=self.weights,
            factor=share.denominator + share.numerator,
        )
        gaps = [
            dominance_gap(ranked, ranked.largest(m), self.k) for m in range(1, min(self.n, 2) + 1)
        ]
        gap = dominance_gap(ranked, ranked.largest(self.n), self.k)
        cells = (gap > 0) & ranked.protected
        upper = ranked.units(gap, share.numerator)
        findings = dominance_findings(
            self.name, [g > 0 for g in gaps], cells, table.shape, merged=self.letters == "merged"
        )
        return Sensitivity.of(table, self.to_mapping(), findings, ranked.downwards(upper), upper)


def dominance_gap(ranked: Ranked, together: Exact, k: Percent) -> Exact:
    """``together - (k / 100) X`` times the denominator of ``k / 100``; above 0 where they dominate."""
    share = exact(k) / 100
    return np.asarray(share.denominator * together - share.numerator * ranked.total)


def dominance_findings(
    rule: str, by: list[Mask], cells: Mask, shape: tuple[int, ...], *, merged: bool
) -> list[Finding]:
    """Split sensitive cells by how many dominate; ``by`` says it for the largest, then for two."""
    kinds = [
        (CellStatus.DOMINATED_BY_ONE, "one contributor has too large a part"),
        (CellStatus.DOMINATED_BY_TWO, "two contributors have too large a part"),
    ]
    findings = []
    left = cells
    for (status, text), dominated in zip(kinds, by, strict=False):
        hit = left & dominated
        left = left & ~dominated
        if merged:
            status, text = CellStatus.DOMINATED_BY_ONE_OR_TWO, "one or two have too large a part"
        findings.append(Finding(Reason(rule, text, WAY_FORWARD), status, hit.reshape(shape)))
    text = "a few contributors have too large a part"
    findings.append(
        Finding(Reason(rule, text, WAY_FORWARD), CellStatus.CONCENTRATED, left.reshape(shape))
    )
    return findings
