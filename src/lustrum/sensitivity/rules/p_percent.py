"""The p% rule: the prior-posterior rule without prior knowledge, ``q = 100``.

A cell is sensitive if the largest other contributor, or a coalition of the ``m`` largest others, comes
within ``p`` percent of the largest contribution by taking away its own from the total::

    X - x_1 - x_2 - ... - x_{m+1} < (p / 100) x_1             (Hundepool et al. 2024, section 4.2.1)
    upper level = (p / 100) x_1 - (X - x_1 - ... - x_{m+1})   (Hundepool et al. 2024, section 4.2.2)

No other attacker and no other target gives a closer estimate. The lower level equals the upper one, but
never leads below 0 where nothing is negative. SDMX has no letter of its own for this rule: M.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import ClassVar

from lustrum.model import Table
from lustrum.model.parameters import parameter
from lustrum.model.table import check_table
from lustrum.sensitivity.background import NOTHING, Background
from lustrum.sensitivity.ranked import Weights
from lustrum.sensitivity.result import Sensitivity
from lustrum.sensitivity.rule import (
    Percent,
    RuleSpec,
    exact,
)
from lustrum.sensitivity.rules.prior_posterior import judge_ratio


@dataclass(frozen=True)
class PPercent(RuleSpec):
    """Sensitive if the largest contribution can be estimated to within ``p`` percent.

    >>> from lustrum.sensitivity.examples import table_of
    >>> found = PPercent(p=10).judge(table_of([[59, 40, 1], [61, 20, 19]]))
    >>> found.status.tolist(), found.upper.tolist()
    (['M', 'F'], [5, 0])
    """

    name: ClassVar[str] = "p-percent"
    p: Percent = parameter(
        MISSING, "Nobody may estimate a contribution within this percentage.", above=0, below=100
    )
    coalition: int = parameter(1, "How many contributors share what they know.", least=1)
    weights: Weights = parameter("expanded", "Whether contributions count with their weights.")

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Judge every cell by what the largest others can find out."""
        check_table(table, f"The rule {self.name!r}")
        return judge_ratio(
            table,
            background,
            exact(self.p) / 100,
            self.coalition,
            self.weights,
            self.to_mapping(),
        )
