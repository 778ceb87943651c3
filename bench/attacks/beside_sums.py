"""What stands beside sums: counts that sums may tell apart, and means, ratios, shares and growth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from attacks.asker import Asker
from attacks.register import Register
from attacks.sums.insiders import axes_of

__all__ = ["Beside", "beside"]

_DECIMALS = 6


@dataclass
class Beside:
    """Tables of one and two variables at all levels.

    ``sharper`` are statistics that are no function of the shown sums and counts. ``telling`` are cells in which
    a sum, or its absence, says something about emptiness that the shown bounds of the count do not say;
    ``right`` are those of them in which it is true.
    """

    statistics: int = 0
    sharper: int = 0
    cells: int = 0
    telling: int = 0
    right: int = 0


def beside(asker: Asker, register: Register, measure: str, per: str, since: str) -> Beside:
    """Ask for statistics beside sums and counts, and hold them against each other."""
    found = Beside()
    asked_for = [
        "count",
        f"sum:{measure}",
        f"sum:{per}",
        f"sum:{since}",
        {"statistic": "mean", "measure": measure, "decimals": _DECIMALS},
        {"statistic": "ratio", "measure": measure, "per": per, "decimals": _DECIMALS},
        {"statistic": "growth", "measure": measure, "since": since, "decimals": _DECIMALS},
        {"statistic": "share", "measure": measure, "of": "total", "decimals": _DECIMALS},
    ]
    for levels in register.tables():
        if not 1 <= sum(level is not None for level in levels) <= 2:
            continue
        by = axes_of(levels)
        answer, counts = asker.ask({"by": by, "statistics": asked_for}), asker.ask({"by": by})
        if answer is None or counts is None:
            raise SystemExit("A table of statistics was refused.")
        metric = next(i for i, codes in enumerate(answer.codes) if len(codes) == len(asked_for))
        shown = np.moveaxis(answer.shown, metric, 0).reshape(len(asked_for), -1)
        count, total, under, past, mean, ratio, grown, part = shown
        with np.errstate(divide="ignore", invalid="ignore"):
            for given, expected in (
                (mean, total / count),
                (ratio, total / under),
                (grown, 100 * (total / past - 1)),
                (part, 100 * total / total.sum()),
            ):
                there = np.isfinite(given) & np.isfinite(expected)
                off = np.abs(given - expected)[there] > 10.0**-_DECIMALS + 1e-9 * np.abs(
                    expected[there]
                )
                found.statistics += int(there.sum())
                found.sharper += int(off.sum())
        occupied = np.bincount(register.cells(levels), minlength=total.size) > 0
        low, high, seen = counts.low.ravel(), counts.high.ravel(), counts.shown.ravel() > 0
        says_somebody = (total != 0) & ~seen & (low == 0)
        says_nobody = (total == 0) & seen & (high > 0)
        found.cells += total.size
        found.telling += int((says_somebody | says_nobody).sum())
        found.right += int(((says_somebody & occupied) | (says_nobody & ~occupied)).sum())
    return found
