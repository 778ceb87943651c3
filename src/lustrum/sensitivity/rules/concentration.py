"""Rules of concentration: dominance, prior-posterior, p% and request.

The (n, k) dominance rule.

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

from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.model import CellStatus, InputError, Reason, Table
from lustrum.model.arrays import Mask
from lustrum.model.parameters import parameter
from lustrum.model.table import check_table
from lustrum.sensitivity.ranked import Exact, Ranked, Weights
from lustrum.sensitivity.result import Finding, Sensitivity
from lustrum.sensitivity.rule import NOTHING, Background, Percent, RuleSpec, exact
from lustrum.sensitivity.rules.threshold import contributors_of

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

    def check_together(self) -> None:
        """A number of contributors and a percentage that are not taken for one another."""
        if self.k < 1 or self.n > max(self.k, 10):
            meant = f"n={self.k:g}, k={self.n}" if self.k >= 1 else f"k={self.k * 100:g}"
            raise InputError(
                f"The dominance rule has n = {self.n} and k = {self.k:g}: n counts contributors, and k is a "
                f"percentage. Was {meant} meant?"
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


# The prior-posterior rule, (p, q).
#
# Before publication everybody can estimate everybody else's contribution to within ``q`` percent; a cell is
# sensitive if publication lets somebody estimate a contribution to within ``p`` percent. The best placed are
# the largest others, estimating the largest; alone (``coalition=1``) or ``m`` of them pooling what they
# know::
#
#     X - x_1 - x_2 - ... - x_{m+1} < (p / q) x_1                       (Hundepool et al. 2024, section 4.2.1)
#     upper level = (p / q) x_1 - (X - x_1 - ... - x_{m+1})             (Hundepool et al. 2024, section 4.2.2)
#
# for coalitions see Loeve 2001. Only the ratio ``p / q`` counts. ``q`` may exceed 100 for data that can be
# negative, where an estimate can be off by more than the value itself. The lower level equals the upper one,
# but never leads below 0 where nothing is negative. For weights, negative contributions and waivers (``x_s``
# and the ``m`` largest others in place of ``x_1 ... x_{m+1}``) see :mod:`lustrum.sensitivity.ranked`.


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


# The p% rule: the prior-posterior rule without prior knowledge, ``q = 100``.
#
# A cell is sensitive if the largest other contributor, or a coalition of the ``m`` largest others, comes
# within ``p`` percent of the largest contribution by taking away its own from the total::
#
#     X - x_1 - x_2 - ... - x_{m+1} < (p / 100) x_1             (Hundepool et al. 2024, section 4.2.1)
#     upper level = (p / 100) x_1 - (X - x_1 - ... - x_{m+1})   (Hundepool et al. 2024, section 4.2.2)
#
# No other attacker and no other target gives a closer estimate. The lower level equals the upper one, but
# never leads below 0 where nothing is negative. SDMX has no letter of its own for this rule: M.


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

    def check_together(self) -> None:
        """A percentage, and no fraction of one."""
        if self.p < 1:
            raise InputError(
                f"The p% rule has p = {self.p:g}, which is less than one percent and protects next to nothing. "
                f"Was p={self.p * 100:g} meant?"
            )

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """Judge every cell by what the largest others can find out."""
        check_table(table, f"The rule {self.name!r}")
        return judge_ratio(
            table, background, exact(self.p) / 100, self.coalition, self.weights, self.to_mapping()
        )


# The request rule of foreign trade statistics.
#
# Only those who asked for protection have it. A cell is sensitive if its ``n`` largest contributors all asked
# and together have more than the ``n``-th of the given shares::
#
#     x_1 + ... + x_n > (share_n / 100) X,  1 .. n all on request       (Hundepool et al. 2024, section 4.2.1)
#     upper level = (100 / share_n) (x_1 + ... + x_n) - X
#
# It rests on Regulation (EC) 638/2004, article 11, and is the request rule of tau-ARGUS, which gives it one
# share; two shares serve "one or two dominate". As there, ``minimum`` makes a cell of fewer contributors
# sensitive as soon as one of them asked. Who asked is the :class:`~lustrum.sensitivity.Background`'s to say;
# a waiver takes a request back.


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
