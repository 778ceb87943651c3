"""The recoding without sensitive cells that loses least, by best-first search.

Take the recoding with the smallest loss that was not examined yet. If a rule finds no sensitive cell in it,
it is the best one, since merging more never loses less. Otherwise pick one sensitive cell: in every
recoding without sensitive cells that comes from this one, the block of that cell has grown along some axis.
So the search continues with the smallest extensions of that block, and misses nothing.

That argument needs a rule that judges a cell by the cell alone, as threshold, dominance, p percent and
prior-posterior do. For other rules the result has no sensitive cells either, but may not be the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Literal

import numpy as np

from lustrum.model import InputError, Table, TableAxis
from lustrum.model.arrays import Floats, Mask
from lustrum.model.errors import check_known
from lustrum.numeric.arithmetic import log2
from lustrum.protect.redesign.recode import (
    AxisWays,
    MergeWord,
    State,
    grown_states,
    recoded,
    recoded_axis,
    ways_of,
)
from lustrum.protect.suppression import Pattern, Suppression
from lustrum.runtime.stop import check_stop
from lustrum.sensitivity import Rule

# What a recoding loses, in bits for each unit of the table.
#
# A unit (a person, a euro) drawn at random from the table lies in inner cell ``x`` with probability ``p(x)``.
# A reader of the recoded table learns only the block ``f(x)``. What is lost is the conditional entropy, by
# which Willenborg and de Waal (2001) measure the loss of information::
#
#     H(X | f(X)) = sum over x of p(x) log2( P(f(x)) / p(x) )
#
# It is 0 where nothing is merged, grows with every merge, and is at most ``H(X)``. Suppressed cells count as
# one block: all that is certainly known of a unit in one of them is that it lies in one of them.

MeasureWord = Literal["entropy", "cells"]


class Loss:
    """The loss of recodings of one table; ``entropy`` in bits, or the number of inner ``cells`` lost."""

    def __init__(self, table: Table, measure: MeasureWord = "entropy") -> None:
        self.measure = measure
        self._inner = [np.flatnonzero(axis.inner) for axis in table.axes]
        sizes = np.abs(table.values[np.ix_(*self._inner)]).astype(np.float64)
        total = float(sizes.sum())
        self._share = sizes / total if total else sizes

    @property
    def most(self) -> float:
        """The entropy of the table, or the number of its inner cells."""
        return float(self._share.size) if self.measure == "cells" else _entropy(self._share)

    def of(self, states: Sequence[State], suppressed: Mask | None = None) -> float:
        """What is lost by merging, and by not showing some cells of the merged table.

        >>> loss = Loss(Table.from_counts([1, 1, 2]))
        >>> loss.most, loss.of([((0, 1), (2,))])
        (1.5, 0.5)
        """
        blocks = self._share
        for axis, (state, inner) in enumerate(zip(states, self._inner, strict=True)):
            at = {int(i): k for k, i in enumerate(inner)}
            moved = np.moveaxis(blocks, axis, 0)
            rows = [moved[[at[i] for i in block]].sum(axis=0) for block in state]
            blocks = np.moveaxis(np.stack(rows), 0, axis)
        hidden = np.zeros(blocks.shape, np.bool_) if suppressed is None else suppressed
        if self.measure == "cells":
            return float(self._share.size - blocks.size + np.count_nonzero(hidden))
        shown = np.append(blocks[~hidden], blocks[hidden].sum())
        return max(0.0, _entropy(self._share) - _entropy(shown))


def _entropy(shares: Floats) -> float:
    filled = shares[shares > 0]
    return float(-(filled * log2(filled)).sum()) + 0.0


States = tuple[State, ...]

_WORK = 20_000


@dataclass(frozen=True, eq=False)
class Redesign:
    """A recoding, what it loses, and what is proven about it.

    ``loss`` is in the unit of the ``measure``, and ``most`` the loss of a table with one cell. No recoding that
    removes all sensitive cells loses less than ``lower_bound``. ``sensitive`` counts the cells before, ``left``
    those after; where ``left`` is not 0, no recoding removes them all.
    """

    axes: tuple[TableAxis, ...]
    states: States
    measure: MeasureWord
    loss: float
    most: float
    lower_bound: float
    sensitive: int
    left: int
    steps: int

    @property
    def share(self) -> float:
        return self.loss / self.most if self.most else 0.0

    @property
    def optimal(self) -> bool:
        """Whether no recoding removes all sensitive cells at a smaller loss."""
        return self.left == 0 and self.loss <= self.lower_bound + 1e-12

    @property
    def merged(self) -> dict[str, tuple[tuple[str, ...], ...]]:
        """For each variable, the categories that are merged, by their codes."""
        out = {}
        for axis, state in zip(self.axes, self.states, strict=True):
            groups = tuple(tuple(axis.codes[i] for i in block) for block in state if len(block) > 1)
            if groups:
                out[axis.name] = groups
        return out

    def apply(self, table: Table) -> Table:
        if tuple(a.codes for a in table.axes) != tuple(a.codes for a in self.axes):
            raise InputError("The table does not have the categories that were merged.")
        return recoded(table, self.states)

    def sentences(self) -> tuple[str, ...]:
        if not self.sensitive:
            return ("No cell is sensitive; nothing needs to be merged.",)
        lines = []
        for axis, state in zip(self.axes, self.states, strict=True):
            inner = int(axis.inner.sum())
            if len(state) == 1 < inner:
                lines.append(f"Leave out {axis.name}: publish its total only.")
                continue
            new_axis, _ = recoded_axis(axis, state)
            for block, category in zip(state, new_axis.categories, strict=False):
                if len(block) > 1:
                    names = ", ".join(axis.labels[i] for i in block)
                    lines.append(f"{axis.name}: publish {category.label} instead of {names}.")
        unit = "inner cells" if self.measure == "cells" else "bits"
        figure = f"{self.loss:.0f}" if self.measure == "cells" else f"{self.loss:.3f}"
        of = f"{self.most:.0f}" if self.measure == "cells" else f"{self.most:.3f}"
        proof = (
            "no other recoding loses less" if self.optimal else "a smaller loss is not ruled out"
        )
        if self.left:
            lines.append(f"{self.left} of {self.sensitive} sensitive cells are left.")
        else:
            lines.append(
                f"This removes {_cells(self.sensitive)} and loses {figure} of {of} {unit} "
                f"({self.share:.1%}); {proof}."
            )
        return tuple(lines)


def redesign(
    table: Table,
    rule: Rule,
    *,
    merges: MergeWord | Mapping[str, MergeWord] = "auto",
    measure: MeasureWord = "entropy",
    work: int = _WORK,
) -> Redesign:
    """Merge categories until no cell is sensitive, with the least loss of information.

    ``merges`` says for each variable, or for all, what may be merged: ``neighbours``, groups of the
    ``hierarchy`` that the table shows, ``any`` categories, or ``nothing``; ``auto`` takes the hierarchy
    where there is one and neighbours elsewhere. ``measure`` is ``entropy`` (bits for each unit) or
    ``cells``. ``work`` is the number of recodings that are judged; after that, the search repeatedly takes
    the merge that loses least. The result then has a lower bound, and may not be the best.

    >>> from lustrum.sensitivity import Threshold
    >>> found = redesign(Table.from_counts([[9, 5], [1, 8], [7, 6]], names=["age", "sex"]), Threshold(3))
    >>> found.merged, found.optimal
    ({'age': (('1', '2'),)}, True)
    """
    return _RecodeSearch(table, rule, ways_along(table, merges), measure, work).run()


def ways_along(
    table: Table, merges: MergeWord | Mapping[str, MergeWord] = "auto"
) -> tuple[AxisWays, ...]:
    """What may be merged along each axis."""
    names = [axis.name for axis in table.axes]
    given = dict.fromkeys(names, merges) if isinstance(merges, str) else dict(merges)
    for name, word in given.items():
        check_known((name,), names, "There is no variable")
        if word not in ("auto", "neighbours", "hierarchy", "any", "nothing"):
            raise InputError(
                f"What may be merged is 'auto', 'neighbours', 'hierarchy', 'any' or 'nothing', not {word!r}."
            )
    return tuple(ways_of(axis, given.get(axis.name, "auto")) for axis in table.axes)


def _cells(count: int) -> str:
    return "the sensitive cell" if count == 1 else f"all {count} sensitive cells"


class _RecodeSearch:
    def __init__(
        self, table: Table, rule: Rule, ways: Sequence[AxisWays], measure: MeasureWord, work: int
    ) -> None:
        if measure not in ("entropy", "cells"):
            raise InputError(f"The measure of a redesign is 'entropy' or 'cells', not {measure!r}.")
        if isinstance(work, bool) or work < 1:
            raise InputError("'work' of a redesign is a number of recodings, 1 or more.")
        self.table, self.rule, self.ways, self.work = table, rule, tuple(ways), work
        self.loss = Loss(table, measure)
        self.steps = 0

    def run(self) -> Redesign:
        start = tuple(way.finest for way in self.ways)
        before = int(self.rule.judge(self.table).mask.sum())
        queue: list[tuple[float, States]] = [(0.0, start)]
        seen = {start}
        fewest: tuple[int, float, States] | None = None
        while queue:
            loss, states = heappop(queue)
            check_stop()
            sensitive = self.judge(states)
            left = int(sensitive.sum())
            if left == 0:
                return self._result(states, loss, before, left, loss)
            if fewest is None or (left, loss) < fewest[:2]:
                fewest = left, loss, states
            if self.steps >= self.work:
                return self._merged_greedily(states, loss, before)
            for child in self.children(states, sensitive):
                if child not in seen:
                    seen.add(child)
                    heappush(queue, (self.loss.of(child), child))
        assert fewest is not None
        left, loss, states = fewest
        return self._result(states, loss, before, left, np.inf)

    def judge(self, states: States) -> Mask:
        """The sensitive cells of a recoding."""
        self.steps += 1
        return np.asarray(self.rule.judge(recoded(self.table, states)).mask)

    def children(self, states: States, sensitive: Mask) -> list[States]:
        """The smallest recodings that extend one sensitive cell: the one with the fewest of them."""
        best: list[States] | None = None
        cells = np.argwhere(sensitive)
        for cell in cells[:64].tolist():
            ways = list(grown_states(self.ways, states, cell))
            if best is None or len(ways) < len(best):
                best = ways
            if not best:
                break  # no merge can help this cell, so none can make the recoding safe
        return best or []

    def _merged_greedily(self, states: States, bound: float, before: int) -> Redesign:
        """Starting at a recoding, repeat the merge that loses least until no cell is sensitive."""
        while True:
            check_stop()
            sensitive = self.judge(states)
            left = int(sensitive.sum())
            ways = self.children(states, sensitive) if left else []
            if not ways:
                return self._result(states, self.loss.of(states), before, left, bound)
            states = min(ways, key=lambda s: (self.loss.of(s), s))

    def _result(
        self, states: States, loss: float, before: int, left: int, bound: float
    ) -> Redesign:
        return Redesign(
            self.table.axes,
            states,
            self.loss.measure,
            loss,
            self.loss.most,
            bound,
            before,
            left,
            self.steps,
        )


# A recoding and suppression together: merge a little, and suppress what is still sensitive.


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
