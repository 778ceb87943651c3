"""The prior-posterior rule, (p, q).

Before publication everybody can estimate everybody else's contribution to within ``q`` percent; a cell is
sensitive if publication lets somebody estimate a contribution to within ``p`` percent. The best placed
are the largest others, estimating the largest; alone (``coalition=1``) or ``m`` of them pooling what they
know::

    X - x_1 - x_2 - ... - x_{m+1} < (p / q) x_1                       (Hundepool et al. 2024, section 4.2.1)
    upper level = (p / q) x_1 - (X - x_1 - ... - x_{m+1})             (Hundepool et al. 2024, section 4.2.2)

for coalitions see Loeve 2001. Only the ratio ``p / q`` counts. ``q`` may exceed 100 for data
that can be negative, where an estimate can be off by more than the value itself. The lower level equals
the upper one, but never leads below 0 where nothing is negative. For weights, negative
contributions and waivers (``x_s`` and the ``m`` largest others in place of ``x_1 ... x_{m+1}``) see
:mod:`lustrum.sensitivity.ranked`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from fractions import Fraction
from typing import Any, ClassVar

from lustrum.model import CellStatus, InputError, Reason, Table
from lustrum.model.parameters import parameter
from lustrum.model.table import check_table
from lustrum.sensitivity.background import NOTHING, Background
from lustrum.sensitivity.ranked import Ranked, Weights
from lustrum.sensitivity.result import Finding, Sensitivity
from lustrum.sensitivity.rule import Percent, RuleSpec, exact


@dataclass(frozen=True)
class PriorPosterior(RuleSpec):
    """Sensitive if somebody who knows others to ``q`` percent comes to know one to ``p`` percent.

    >>> from lustrum.sensitivity.examples import table_of
    >>> cells = table_of([[59, 40, 1], [61, 20, 19]])
    >>> PriorPosterior(p=10, q=50).judge(cells).mask.tolist()
    [True, False]
    """

    name: ClassVar[str] = "prior-posterior"
    p: Percent = parameter(
        MISSING, "Nobody may estimate a contribution within this percentage.", above=0
    )
    q: Percent = parameter(
        MISSING, "Everybody knows contributions within this percentage beforehand.", above=0
    )
    coalition: int = parameter(1, "How many contributors share what they know.", least=1)
    weights: Weights = parameter("expanded", "Whether contributions count with their weights.")

    def check_together(self) -> None:
        """Publication cannot make anybody know less."""
        if self.q <= self.p:
            raise InputError(
                f"The prior-posterior rule has q = {self.q} and p = {self.p}; q must be above p, since "
                "publication cannot make anybody know less than before."
            )

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Judge every cell by what the largest others can find out."""
        check_table(table, f"The rule {self.name!r}")
        return judge_ratio(
            table,
            background,
            exact(self.p) / exact(self.q),
            self.coalition,
            self.weights,
            self.to_mapping(),
        )


def judge_ratio(
    table: Table,
    background: Background,
    ratio: Fraction,
    coalition: int,
    weights: Weights,
    rule: Mapping[str, Any],
) -> Sensitivity:
    """Cells where what is left beside the largest and the coalition is below ``ratio`` of the largest."""
    name = str(rule["rule"])
    ranked = Ranked.of(
        table,
        background,
        rule=name,
        ranks=coalition + 1,
        weights=weights,
        factor=ratio.numerator + ratio.denominator,
    )
    left = ranked.total - ranked.largest(coalition + 1)
    gap = ratio.numerator * ranked.one - ratio.denominator * left
    upper = ranked.units(gap, ratio.denominator)
    reason = Reason(
        name,
        "another contributor could find out too much about the largest",
        "Merge categories, so that more contributors share the cell.",
    )
    cells = ((gap > 0) & ranked.protected).reshape(table.shape)
    finding = Finding(reason, CellStatus.CONCENTRATED, cells)
    return Sensitivity.of(table, rule, [finding], ranked.downwards(upper), upper)
