"""A recoding and suppression together: merge a little, and suppress what is still sensitive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lustrum.model import Table
from lustrum.model.arrays import Mask
from lustrum.protect.redesign.recode import AxisWays, MergeWord, grown_states, recoded
from lustrum.protect.redesign.search import (
    Loss,
    MeasureWord,
    Redesign,
    States,
    redesign,
    ways_along,
)
from lustrum.protect.suppression import Pattern, Suppression

_WORK = 20_000
_TRIES = 40


@dataclass(frozen=True, eq=False)
class Mixed:
    """The best of the recodings that were tried, with the pattern of what is still suppressed.

    ``redesign`` says what is merged; ``pattern`` what is suppressed in the recoded table. ``loss`` counts both,
    with all suppressed inner cells as one block. ``tried`` are the losses of all recodings that were tried, by
    how many categories they have in all; ``merging`` is the best recoding without suppression.
    """

    redesign: Redesign
    pattern: Pattern
    table: Table
    loss: float
    most: float
    merging: Redesign
    tried: tuple[tuple[int, float], ...]

    def sentences(self) -> tuple[str, ...]:
        """The outcome in words."""
        lines = list(self.redesign.sentences()[:-1]) or ["Merge nothing."]
        hidden = int(self.pattern.suppressed.sum())
        unit = "inner cells" if self.redesign.measure == "cells" else "bits"
        lines.append(
            f"Suppress {hidden} cells. Together this loses {self.loss:.3f} of {self.most:.3f} {unit}; merging "
            + (
                f"alone loses {self.merging.loss:.3f}."
                if self.merging.left == 0
                else "alone cannot remove all sensitive cells."
            )
        )
        return tuple(lines)


def redesign_and_suppress(
    table: Table,
    method: Suppression,
    *,
    merges: MergeWord | Mapping[str, MergeWord] = "auto",
    measure: MeasureWord = "entropy",
    work: int = _WORK,
    tries: int = _TRIES,
) -> Mixed:
    """Merge categories and suppress cells, whichever loses less.

    Starting from the original table, the search repeats the merge that loses least together with
    suppression, as long as some cell is sensitive and ``tries`` recodings are left. The result is the best
    of all recodings tried, including the best one without suppression. The outcome is safe, but not proven
    to be the best.
    """
    assert not isinstance(method.rule, Mapping)
    alone = redesign(table, method.rule, merges=merges, measure=measure, work=work)
    ways = ways_along(table, merges)
    loss = Loss(table, measure)
    states: States = tuple(way.finest for way in ways)
    best: tuple[float, States, Pattern] | None = None
    seen: dict[States, tuple[float, Pattern, Table]] = {}

    def tried(at: States) -> tuple[float, Pattern, Table]:
        if at not in seen:
            recoded_table = recoded(table, at)
            pattern = method.pattern(recoded_table)
            hidden = pattern.suppressed.reshape(recoded_table.shape)
            inner = hidden[np.ix_(*(np.arange(len(state)) for state in at))]
            cost = loss.of(at, inner) if pattern.safe else np.inf
            seen[at] = cost, pattern, recoded_table
        return seen[at]

    if alone.left == 0:
        cost, pattern, _ = tried(alone.states)
        best = cost, alone.states, pattern
    while True:
        cost, pattern, recoded_table = tried(states)
        if best is None or cost < best[0]:
            best = cost, states, pattern
        sensitive = method.judge(recoded_table).mask
        children = _children(ways, states, sensitive)
        if not children or len(seen) + len(children) > tries:
            break
        states = min(children, key=lambda s: (tried(s)[0], s))
    cost, states, pattern = best
    recoded_table = seen[states][2]
    chosen = Redesign(
        table.axes,
        states,
        measure,
        loss.of(states),
        loss.most,
        0.0,
        alone.sensitive,
        int(method.judge(recoded_table).mask.sum()),
        len(seen),
    )
    sizes = sorted((sum(map(len, s)), seen[s][0]) for s in seen)
    return Mixed(chosen, pattern, recoded_table, cost, loss.most, alone, tuple(sizes))


def _children(ways: tuple[AxisWays, ...], states: States, sensitive: Mask) -> list[States]:
    """All single merges that make a sensitive cell grow."""
    cells = np.argwhere(sensitive).tolist()
    return list(dict.fromkeys(s for cell in cells for s in grown_states(ways, states, cell)))
