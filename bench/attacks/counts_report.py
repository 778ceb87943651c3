"""What all attacks on counts found on one server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from attacks.figures import Figured
from attacks.lattice import Found
from attacks.phrasing import Phrased, Split
from attacks.reconstruction import Rebuilt
from attacks.times import Timed


@dataclass(frozen=True)
class Report:
    """What all attacks found on one server."""

    figures: Figured
    lattice: Found
    phrasing: Phrased
    splits: Split
    rebuilt: Rebuilt
    timed: Timed

    @property
    def disclosures(self) -> int:
        """Certain disclosures of small counts by attacks that are never wrong."""
        found = self.figures.certain
        found += self.lattice.small if self.lattice.wrong == 0 else 0
        return found + (self.rebuilt.small if self.rebuilt.wrong == 0 else 0)

    def rows(self) -> Iterator[tuple[str, str]]:
        """The report, line by line."""
        f, c, p, s, r = self.figures, self.lattice, self.phrasing, self.splits, self.rebuilt
        t = self.timed
        yield (
            "figures beside two chosen cells",
            f"{f.cells} cells that show 0; {f.claims} claims, {f.right} right; "
            f"{f.telling} groups of equal numbers with different figures",
        )
        yield (
            "all tables up to three variables, and three within each sex",
            f"{c.certain:,} of {c.cells:,} cells that can hold anybody certain, {c.small} of them ones "
            f"and twos, {c.alone} people alone; {c.wrong} bounds wrong",
        )
        yield (
            "one population in many phrasings",
            f"{p.different} of {p.populations:,} populations show two numbers",
        )
        yield (
            "sums over disjoint splits",
            f"mean error of {s.cells} small cells {s.single:.2f} alone, {s.averaged:.2f} averaged; "
            f"{s.different} with different sums",
        )
        yield (
            "reconstruction of one area by linear programs",
            f"{r.tables} tables; {r.certain} of {r.cells} hidden cells certain, {r.small} of them "
            f"ones and twos; {r.wrong} bounds wrong",
        )
        yield (
            "time and size of answers that show 0",
            f"{t.empty} empty and {t.occupied} occupied populations; time tells them apart in "
            f"{100 * t.told_by_time:.0f} of 100 pairs (50 is chance, standard error {100 * t.error:.0f}); "
            f"{t.sizes} size{'s' if t.sizes != 1 else ''}",
        )
