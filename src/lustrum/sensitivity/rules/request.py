"""The request rule of foreign trade statistics.

Only those who asked for protection have it. A cell is sensitive if its ``n`` largest contributors all asked
and together have more than the ``n``-th of the given shares::

    x_1 + ... + x_n > (share_n / 100) X,  1 .. n all on request       (Hundepool et al. 2024, section 4.2.1)
    upper level = (100 / share_n) (x_1 + ... + x_n) - X

It rests on Regulation (EC) 638/2004, article 11, and is the request rule of tau-ARGUS, which gives it one
share; two shares serve "one or two dominate". As there, ``minimum`` makes a cell of fewer
contributors sensitive as soon as one of them asked. Who asked is the
:class:`~lustrum.sensitivity.Background`'s to say; a waiver takes a request back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lustrum.model import CellStatus, InputError, Reason, Table
from lustrum.model.parameters import parameter
from lustrum.model.table import check_table
from lustrum.sensitivity.background import NOTHING, Background
from lustrum.sensitivity.ranked import Ranked, Weights
from lustrum.sensitivity.result import Finding, Sensitivity
from lustrum.sensitivity.rule import (
    Percent,
    RuleSpec,
    exact,
)
from lustrum.sensitivity.rules.dominance import dominance_findings, dominance_gap
from lustrum.sensitivity.rules.threshold import contributors_of


@dataclass(frozen=True)
class Request(RuleSpec):
    """Sensitive if the largest asked for protection and have more than their share.

    >>> from lustrum.sensitivity.examples import table_of
    >>> cells = table_of([[80, 15, 5], [60, 35, 5], [60, 35, 5]])
    >>> asked = Background(requested=[0])
    >>> Request(shares=(70,)).judge(cells, asked).status.tolist()
    ['O', 'F', 'F']
    """

    name: ClassVar[str] = "request"
    shares: tuple[Percent, ...] = parameter(
        (70,),
        "From these percentages on, the largest contributors are protected if they asked.",
        above=0,
        below=100,
    )
    minimum: int = parameter(0, "Fewer contributors than this are too few.", least=0)
    weights: Weights = parameter("expanded", "Whether contributions count with their weights.")

    def check_together(self) -> None:
        """There is a share for the largest at least."""
        if not self.shares:
            raise InputError(
                "The request rule has no share; it needs one for the largest at least."
            )

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Judge every cell to which somebody on request contributes."""
        check_table(table, f"The rule {self.name!r}")
        fractions = [exact(share) / 100 for share in self.shares]
        ranked = Ranked.of(
            table,
            # Waivers only take requests back here; the largest are the largest of all.
            NOTHING,
            rule=self.name,
            ranks=max(len(self.shares), self.minimum - 1),
            weights=self.weights,
            factor=max(f.numerator + f.denominator for f in fractions),
        )
        assert table.contributions is not None
        asked = background.has_requested(table.contributions.holding).reshape(ranked.value.shape)
        upper = np.zeros(ranked.total.shape, dtype=ranked.total.dtype)
        dominated = []
        for number, (share, fraction) in enumerate(zip(self.shares, fractions, strict=True), 1):
            gap = dominance_gap(ranked, ranked.largest(number), share)
            among = ranked.taken(number) > 0
            hit = (gap > 0) & among.any(axis=1) & (asked | ~among).all(axis=1)
            dominated.append(hit)
            upper = np.where(hit, np.maximum(upper, ranked.units(gap, fraction.numerator)), upper)
        findings = dominance_findings(
            self.name, dominated, np.any(dominated, axis=0), table.shape, merged=False
        )
        if self.minimum:
            few = (contributors_of(table).reshape(-1) < self.minimum) & asked.any(axis=1)
            reason = Reason(self.name, "few contributors, and protection was asked for")
            findings.append(Finding(reason, CellStatus.SMALL_COUNT, few.reshape(table.shape)))
            upper = np.where(few, np.maximum(upper, 1), upper)
        return Sensitivity.of(table, self.to_mapping(), findings, ranked.downwards(upper), upper)
