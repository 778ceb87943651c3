"""What contributors know about the cells of one table, or of several that are read together.

A holding knows its own contributions to all tables. A cell that it has alone it knows exactly; of any other it
knows that the cell holds at least its own contribution. So what it contributes in one table counts when it
attacks a cell of another. What others contribute to a cell must stay protected from a holding that contributes
to it too: the cell needs its levels against it, as far down as the holding's own contribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Table
from lustrum.model.arrays import Ints, Mask, Sparse
from lustrum.protect.suppression.problem import ContributorView, SuppressionProblem

_OPEN = np.iinfo(np.int64).max // 4
MOST_PAIRS = 20_000
"""Pairs of contributors beyond which a run refuses to withstand all of them."""


@dataclass(frozen=True, eq=False, repr=False)
class RankedContributions:
    """Contributions in any order: the cell, who contributes to it, how much, and whether nobody else does."""

    cell: Ints
    holding: Ints
    amount: Ints
    alone: Mask


def singleton_views(
    values: npt.ArrayLike, singletons: npt.ArrayLike, holdings: npt.ArrayLike | None = None
) -> tuple[ContributorView, ...]:
    """One attacker for each cell with a sole contributor, or for each holding that is one.

    ``holdings`` names the sole contributor of each cell (-1 for none); cells of one holding are known together.

    >>> [v.cells.tolist() for v in singleton_views([4, 7, 9], [True, False, True])]
    [[0], [2]]
    >>> [v.cells.tolist() for v in singleton_views([4, 7, 9], [True, False, True], [5, -1, 5])]
    [[0, 2]]
    """
    value = np.asarray(values, dtype=np.int64).ravel()
    cells = np.flatnonzero(np.asarray(singletons, dtype=np.bool_).ravel())
    if holdings is None:
        groups = [np.array([c]) for c in cells.tolist()]
    else:
        holder = np.asarray(holdings, dtype=np.int64).ravel()
        if holder.size != value.size:
            raise InputError(
                f"There are {value.size} cells, but {holder.size} holdings were given."
            )
        groups = [cells[holder[cells] == h] for h in np.unique(holder[cells])]
    return tuple(
        ContributorView(f"sole contributor {i + 1}", group, value[group], value[group])
        for i, group in enumerate(groups)
    )


def contributor_views(
    tables: Sequence[Table],
    problem: SuppressionProblem,
    *,
    alone_only: bool,
    named: bool = True,
    pairs: bool = False,
) -> tuple[ContributorView, ...]:
    """The attackers among the contributors to tables, whose cells follow each other in the problem.

    With ``alone_only`` they are those that are alone in some cell, and know nothing else. ``named`` says that a
    number of a holding means the same holding in every cell; otherwise sole contributors are known to be the
    same where one of them is alone in a total of the others. With ``pairs``, every two attack
    together too, and pool what they know.
    """
    starts = np.cumsum([0, *(table.values.size for table in tables)])[:-1].tolist()
    contributions = ranked_contributions(
        tables, starts, problem.relations, alone_only=alone_only, named=named
    )
    levels = np.stack([problem.lower, problem.upper, problem.sliding])
    about = problem.values, problem.relations, problem.primary, levels
    return views_of(contributions, *about, numbers=contributor_numbers(tables) if pairs else None)


def contributor_numbers(tables: Sequence[Table]) -> Ints:
    """The number of contributors to every cell; of tables that do not say it, more than anybody can be."""
    return np.concatenate(
        [
            np.full(table.values.size, _OPEN)
            if table.contributors is None
            else table.contributors.ravel()
            for table in tables
        ]
    )


def ranked_contributions(
    tables: Sequence[Table],
    starts: Sequence[int],
    relations: Sparse,
    *,
    alone_only: bool,
    named: bool = True,
    scales: Sequence[int] | None = None,
) -> RankedContributions:
    """The largest contributions to all cells; those without a name get numbers of their own."""
    cells, holdings, amounts, alone = [], [], [], []
    for table, start, scale in zip(tables, starts, scales or [1] * len(tables), strict=True):
        value, holding, only = _own(table, alone_only)
        cell_index, rank = np.nonzero(
            (holding >= 0) | (only[:, None] & (np.arange(holding.shape[1]) == 0))
        )
        cells.append(cell_index + start)
        holdings.append(holding[cell_index, rank] if named else np.full(cell_index.size, -1))
        amounts.append(value[cell_index, rank] * scale)
        alone.append(only[cell_index])
    cell, single = np.concatenate(cells), np.concatenate(alone)
    who = _numbered(np.concatenate(holdings), cell, single, relations)
    # A sole contributor is taken to know nothing about cells that it shares with others.
    picks = np.flatnonzero(single) if alone_only else np.arange(cell.size)
    return RankedContributions(
        cell[picks], who[picks], np.concatenate(amounts)[picks], single[picks]
    )


def _own(table: Table, alone_only: bool) -> tuple[Ints, Ints, Mask]:
    """The largest contributions of each cell, their holdings (-1 for none), and where one is alone."""
    if table.contributions is not None:
        ranks = table.contributions.value.shape[-1]
        value = table.contributions.value.reshape(-1, ranks)
        holding = table.contributions.holding.reshape(-1, ranks)
        if table.contributors is None:
            return value, holding, np.asarray((holding >= 0).sum(axis=1) == 1)
        return value, holding, np.asarray(table.contributors.ravel() == 1)
    if not alone_only:
        raise InputError(
            "Attackers that are holdings need the largest contributions of every cell; use 'singletons' "
            "where there are none."
        )
    if table.contributors is None:
        raise InputError(
            "The attacker 'singletons' needs the number of contributors of every cell."
        )
    alone = np.asarray(table.contributors.ravel() == 1)
    value = table.values.reshape(-1, 1)
    return value, np.full(value.shape, -1, dtype=np.int64), alone


def _numbered(who: Ints, cell: Ints, alone: Mask, relations: Sparse) -> Ints:
    """Numbers for holdings that have none; the sole one in a total is the sole one in its parts."""
    without = who < 0
    if not without.any():
        return who
    out = who.copy()
    # Names are numbers from 0; those below stand for contributors without a name.
    out[without] = -1 - np.arange(int(without.sum()))
    entry = {int(cell[k]): k for k in np.flatnonzero(alone & without).tolist()}
    parent = np.arange(who.size)

    def root(k: int) -> int:
        while parent[k] != k:
            parent[k] = parent[parent[k]]
            k = int(parent[k])
        return k

    for total, parts in _sums(relations):
        if total in entry:
            for part in parts:
                if part in entry:
                    one, other = root(entry[total]), root(entry[part])
                    parent[max(one, other)] = min(one, other)
    tops = np.array([root(k) for k in range(who.size)], dtype=np.int64)
    return np.asarray(np.where(without, out[tops], out))


def _sums(relations: Sparse) -> list[tuple[int, list[int]]]:
    """The relations that say that one cell is the sum of others."""
    sums = []
    ends = relations.indptr.tolist()
    for a, b in pairwise(ends):
        cells, weights = relations.indices[a:b], relations.data[a:b]
        if b - a == 2 and int(weights.sum()) == 0:
            # One cell in two tables: each is the sum of the other.
            sums.append((int(cells[0]), [int(cells[1])]))
            sums.append((int(cells[1]), [int(cells[0])]))
            continue
        for sign in (1, -1):
            down = np.flatnonzero(sign * weights == -1)
            if down.size == 1 and int((sign * weights == 1).sum()) == b - a - 1:
                at = int(down[0])
                sums.append((int(cells[at]), np.delete(cells, at).tolist()))
                break
    return sums


def views_of(
    contributions: RankedContributions,
    values: Ints,
    relations: Sparse,
    primary: Mask,
    levels: Ints,
    *,
    numbers: Ints | None = None,
    together: int = 2,
) -> tuple[ContributorView, ...]:
    """One attacker for each holding that knows anything; with ``numbers`` of contributors, also every pair.

    Of those that know one cell only, and share it, the largest knows most; what the others know follows.
    ``together`` is the size of the largest coalitions, if these are to be more than pairs.
    """
    # As for rules, values can be negative if anything negative is in sight anywhere in the table.
    positive = bool((values >= 0).all() and (contributions.amount >= 0).all())
    sums = _Implied(relations) if positive else None
    every = _knowing(contributions, values, positive)
    apart, sharers = _sharers(every, together)

    def view(name: str, known: Knowing, *, pooled: bool = False) -> ContributorView:
        low, exact = dict(known.low), known.exact
        if sums is not None:
            implied = sums.of(low)
            if pooled:
                # A total of their own contributions alone is their own secret, whoever is named in it.
                exact = exact | {cell for cell, least in implied.items() if least == values[cell]}
            for cell, least in implied.items():
                # A total that holds at least the own parts cannot be lower for this attacker.
                if primary[cell] and values[cell] - least < levels[0][cell]:
                    low[cell] = max(low.get(cell, 0), least)
        return _view(name, low, exact, values, levels, known.who)

    attackers = sorted([*apart, *(largest[0] for largest in sharers.values())])
    views = [view(f"holding {i + 1}", every[k]) for i, k in enumerate(attackers)]
    if numbers is not None:
        word = "pair" if together == 2 else "coalition"
        groups = _groups(attackers, sharers, together)
        if len(groups) > MOST_PAIRS:
            raise InputError(
                f"The contributors make too many {word}s, and at most {MOST_PAIRS:,} can be attacked with; "
                "take fewer cells together, or contributors one by one."
            )
        for number, members in enumerate(groups):
            known = every[members[0]]
            for other in members[1:]:
                known = _together(known, every[other], values, numbers)
            views.append(view(f"{word} {number + 1} of contributors", known, pooled=True))
    return tuple(views)


def _groups(
    attackers: Sequence[int], sharers: dict[int, list[int]], together: int
) -> list[tuple[int, ...]]:
    """All coalitions that can matter: who knows a share of one cell only joins after larger ones in it."""
    before = {b: a for members in sharers.values() for a, b in pairwise(members)}
    every = [*attackers, *before]
    place = {k: i for i, k in enumerate(every)}
    out: list[tuple[int, ...]] = []
    last: list[tuple[int, ...]] = [(k,) for k in attackers]
    for _ in range(1, together):
        longer: list[tuple[int, ...]] = []
        for group in last:
            for k in every[place[group[-1]] + 1 :]:
                if k not in before or before[k] in group:
                    longer.append((*group, k))
            if len(out) + len(longer) > MOST_PAIRS:
                return out + longer
        # Coalitions of those who attack alone come first.
        last = sorted(longer, key=lambda g: place[g[-1]] if g[-1] in before else -1)
        out += last
    return out


@dataclass(frozen=True)
class Knowing:
    """What somebody contributes: the least value of cells that follows, and cells that are known exactly."""

    low: dict[int, int]
    exact: set[int]
    who: tuple[int, ...]


def _knowing(contributions: RankedContributions, values: Ints, positive: bool) -> list[Knowing]:
    """What each holding knows that knows anything."""
    order = np.lexsort((contributions.cell, contributions.holding))
    cuts = np.flatnonzero(np.diff(contributions.holding[order])) + 1
    every = []
    for at in np.split(order, cuts):
        low: dict[int, int] = {}
        exact: set[int] = set()
        for k in at.tolist():
            cell, amount = int(contributions.cell[k]), int(contributions.amount[k])
            if contributions.alone[k]:
                exact.add(cell)
                low[cell] = int(values[cell])
            elif positive and amount > 0:
                # Where values can be negative, one's own contribution bounds nothing.
                low[cell] = max(low.get(cell, 0), amount)
        if low:
            every.append(Knowing(low, exact, (int(contributions.holding[at[0]]),)))
    return every


def _sharers(every: Sequence[Knowing], most: int) -> tuple[list[int], dict[int, list[int]]]:
    """Those who know more than a share of one cell; and of the others the largest, cell by cell.

    Who knows a share of one cell only learns about other cells what a larger one in it learns, and about the
    cell itself what an outsider learns. The same holds beside any partner.
    """
    apart, sharers = [], dict[int, list[int]]()
    for k, known in enumerate(every):
        if len(known.low) == 1 and not known.exact:
            sharers.setdefault(next(iter(known.low)), []).append(k)
        else:
            apart.append(k)
    for cell, members in sharers.items():
        sharers[cell] = sorted(members, key=lambda k: -every[k].low[cell])[:most]
    return apart, sharers


def _together(one: Knowing, other: Knowing, values: Ints, numbers: Ints) -> Knowing:
    """What two know who pool their contributions; of a cell that is theirs alone they know all."""
    low, exact = dict(one.low), one.exact | other.exact
    for cell, amount in other.low.items():
        if cell in low and cell not in exact:
            low[cell] += amount
            if numbers[cell] <= 2:
                exact.add(cell)
        else:
            low[cell] = amount
    for cell in exact:
        low[cell] = int(values[cell])
    return Knowing(low, exact, one.who + other.who)


def _view(
    name: str,
    low: dict[int, int],
    exact: set[int],
    values: Ints,
    levels: Ints,
    who: tuple[int, ...],
) -> ContributorView:
    cells = np.array(sorted(low), dtype=np.int64)
    least = np.array([low[cell] for cell in cells.tolist()], dtype=np.int64)
    known = np.array([cell in exact for cell in cells.tolist()], dtype=np.bool_)
    most = np.where(known, values[cells], _OPEN)
    needed_levels = np.where(known, 0, levels[:, cells])
    needed_levels[0] = np.minimum(needed_levels[0], values[cells] - least)
    return ContributorView(name, cells, least, most, levels=needed_levels, members=who)


class _Implied:
    """Lower ends of totals that follow from those of their parts, where no value is negative."""

    def __init__(self, relations: Sparse) -> None:
        self._of_part: dict[int, list[int]] = {}
        self._sums = _sums(relations)
        for number, (_, parts) in enumerate(self._sums):
            for part in parts:
                self._of_part.setdefault(part, []).append(number)

    def of(self, low: dict[int, int]) -> dict[int, int]:
        """All lower ends that follow from some, those given among them."""
        known = dict(low)
        waiting = list(known)
        while waiting:
            for number in self._of_part.get(waiting.pop(), ()):
                total, parts = self._sums[number]
                least = sum(known.get(part, 0) for part in parts)
                if least > known.get(total, 0):
                    known[total] = least
                    waiting.append(total)
        return known


def coalition(name: str, members: Iterable[ContributorView]) -> ContributorView:
    """Contributors who pool what they know; if several know a cell, the narrowest bounds count.

    A cell needs the lowest level that it needs against any of them, none if they know it exactly.
    """
    views = tuple(members)
    if not views:
        raise InputError("A coalition needs at least one member.")
    cells = np.unique(np.concatenate([v.cells for v in views]))
    low = np.full(cells.size, np.iinfo(np.int64).min // 4)
    high = np.full(cells.size, np.iinfo(np.int64).max // 4)
    levels = np.full((3, cells.size), np.iinfo(np.int64).max // 4)
    for view in views:
        index = np.searchsorted(cells, view.cells)
        np.maximum.at(low, index, view.low)
        np.minimum.at(high, index, view.high)
        levels[:, index] = np.minimum(levels[:, index], 0 if view.levels is None else view.levels)
    levels[:, low == high] = 0
    return ContributorView(name, cells, low, high, levels=levels if levels.any() else None)
