"""Which cells are sensitive, and the protection that the literature demands.

Levels are those of Hundepool et al., Statistical Disclosure Control (2012), table 4.2: how far the range that
an attacker is left with must reach above the true value, and as far below. All arithmetic is on whole numbers
and fractions. A threshold on sums has no level in the literature; here the margin is a tenth of the cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from attacks.suppression.cells import Content

MARGIN = 10
"""Percent of a sum by which a threshold or a cell marked by hand must be hidden, unless levels are given."""


@dataclass(frozen=True)
class Rule:
    """A rule as the command line takes it: a name and numbers."""

    name: str
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}={','.join(str(n) for n in self.numbers)}"

    @property
    def ranks(self) -> int:
        """How many of the largest contributions the rule looks at."""
        if self.name == "nk":
            return self.numbers[0]
        return 1 + self.coalition if self.name in ("p", "pq") else 0

    @property
    def coalition(self) -> int:
        """How many contributors pool what they know."""
        place = {"p": 1, "pq": 2}.get(self.name)
        return 1 if place is None or place >= len(self.numbers) else self.numbers[place]

    def level(self, cell: Content) -> Fraction | None:
        """The protection that a sensitive sum needs above and below it; None if it is not sensitive."""
        if cell.n == 0:
            return None
        x = [cell.largest(i) for i in range(cell.n)]
        if self.name == "threshold":
            return Fraction(MARGIN * abs(cell.value), 100) if cell.n < self.numbers[0] else None
        if self.name == "nk":
            n, k = self.numbers
            level = Fraction(100 * sum(x[:n]), k) - cell.value
            return level if level > 0 else None
        p = self.numbers[0]
        q = self.numbers[1] if self.name == "pq" else 100
        others = cell.value - sum(x[: 1 + self.coalition])
        level = Fraction(p, q) * x[0] - others
        return level if level > 0 else None

    def against(self, cell: Content, own: int) -> Fraction:
        """The protection above a sum that this contributor must be left with, so that nobody else is estimated.

        A contributor of ``own`` subtracts it from the highest possible sum, which bounds every other one.
        """
        if self.name not in ("p", "pq"):
            return self.level(cell) or Fraction(0)
        p = self.numbers[0]
        q = self.numbers[1] if self.name == "pq" else 100
        others = [amount for amount, _ in cell.parts]
        if own in others:
            others.remove(own)
        if not others:
            return Fraction(0)
        return max(Fraction(p, q) * x - (cell.value - own - x) for x in others)


def demanded(rules: tuple[Rule, ...], cell: Content) -> Fraction | None:
    """The level of a sum under several rules, any of which makes it sensitive."""
    levels = [level for rule in rules if (level := rule.level(cell)) is not None]
    return max(levels) if levels else None
