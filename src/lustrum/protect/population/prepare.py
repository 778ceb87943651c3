"""From true finest cells to the cells that the search may move, and where each of them starts.

A later release of the same people goes on from the one before; see :mod:`lustrum.protect.population.later`.

Empty cells may show somebody in sparse rows, so that a row does not name an attribute. The *row* of a variable
joins the finest cells that agree in all other variables. A reader who knows these looks at the one category
that the row shows. Where similar rows say that hardly anybody is to be expected, it would nearly always be the
right one. So the search may let an empty cell of such a row show the base instead: a *sibling* of a cell below
the base, in the category of a similar person, which is one of the next in the order of all other variables. In
the sparsest rows there are two. The search treats all alike, and tables stay close.

Siblings in *other* rows point at the cell around which they were drawn. If it is asked for, most are therefore
around invented people in empty cells: each variable in turn takes the code of a similar person, so that hardly
anything is left of whoever a chain began with. Small cells then start at their upper number about as seldom as
empty ones, and the search may not undo that: tables are closest where it shows those who are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, prod
from typing import Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Array, Floats, Ints, Mask, Words, narrow
from lustrum.model.finest import FinestCells, possible_cells
from lustrum.model.keys import scramble
from lustrum.protect.population.attributes import AttributeRows, root_variables
from lustrum.protect.population.continued import continued
from lustrum.protect.population.later import (
    ONE_IN,
    Kept,
    Redraw,
    RememberedCells,
    joined,
    odds_of,
    spare,
)
from lustrum.protect.population.search.levels import dependents
from lustrum.protect.population.search.run import SearchProblem
from lustrum.protect.population.start import (
    Options,
    cell_numbers,
    derived,
    empty_candidates,
    empty_start,
    find,
    options,
    start_up,
)
from lustrum.protect.population.support import Combinations
from lustrum.runtime.stop import check_stop, report_progress, still_working


@dataclass(frozen=True)
class Begun:
    """What a release began with: whether it is the first one, and cells of the one before whose records stayed
    or changed.

    ``moved`` says of how many cells of a count the search moved how many, where it chose among drawn ones.
    """

    first: bool
    unchanged: int
    changed: int
    moved: Mapping[int, tuple[int, int]]


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """All cells that hold or may show somebody, which are fixed, and which the search may move."""

    every: FinestCells
    shown: Ints
    problem: SearchProblem
    kept: Kept
    key: bytes

    def numbers(self, up: Mask) -> Ints:
        """What all cells show after a search."""
        shown = self.shown.copy()
        shown[self.problem.movable] = self.problem.low + self.problem.step * up
        return shown

    def begun(self, shown: Ints) -> Begun:
        """What the release began with, once it is known what its cells show."""
        levels, moved = self.kept.levels, {}
        if levels is not None:
            chosen = self.problem.movable
            other, counts = (shown != levels.number)[chosen], self.every.counts[chosen]
            for n in np.unique(counts[counts < _COUNTED]).tolist():
                moved[n] = int(other[counts == n].sum()), int((counts == n).sum())
        return Begun(levels is None, self.kept.unchanged, self.kept.changed, moved)

    def memory(self, shown: Ints) -> RememberedCells:
        """What all cells show, and how they follow later changes."""
        every, levels, share = self.every, self.kept.levels, self.kept.share
        if levels is None:
            more = spare(every, shown, self.key, self.problem.step, share)
            offset = shown + more - every.counts
            shift, odds = np.zeros_like(offset), np.ones(offset.size)
        else:
            by = np.sign(shown - levels.number)
            offset, shift = levels.offset + by, levels.shift + by
            factor = np.ones(len(every))
            for one_in in ONE_IN:
                here = self.kept.movable & (levels.one_in == one_in)
                factor[here] = odds_of(one_in, moved=False)
            factor[self.kept.movable & (by != 0)] = odds_of(ONE_IN[0], moved=True)
            odds = levels.odds * factor
        rows = every.dataset, every.codes, shown, every.keys
        offset, shift, odds = map(narrow, (offset, shift, odds))
        return RememberedCells(*rows, offset, shift, odds, self.kept.wide, share)


def prepare(
    cells: FinestCells,
    key: bytes,
    *,
    base: int,
    small_only: bool,
    empty_share: float,
    previous: FinestCells | None = None,
    refresh: float = 0.05,
    change_odds: float = 0.5,
    known_changes: float = 2.0,
    held: Words | None = None,
    sparse_siblings: float | Literal["auto"] = 0.0,
) -> Prepared:
    """Choose the empty cells that may show somebody, and where every cell starts.

    ``held`` are numbers of occupied cells, as :func:`cell_numbers` makes them, that show their upper number in
    a first release; later numbers follow from it.
    ``sparse_siblings`` is described with :class:`~lustrum.protect.population.method.ProtectedPopulation`.
    """
    if sparse_siblings == "auto":
        # The key moves the limits, so that nobody sees by the choice on which side of one the people are.
        drawn = int.from_bytes(derived(key, "siblings")[:8], "big") / 2**64
        people = int(cells.counts.sum()) * (0.8 + 0.45 * drawn)
        sparse_siblings = siblings_of(cells.dataset, people)
    choice = options(cells.counts, base, small_only)
    only_small = sparse_siblings > 1
    total = int(choice.residue[choice.low == 0].sum() if only_small else choice.residue.sum())
    required = empty_share / (1 - empty_share) * _expected_smallest(choice, base)
    extra, needed, one_in = candidates(cells, key, base, required, sparse_siblings, total)
    still_working()
    # No more empty cells can show somebody than there are.
    left = total - base * min(int(needed), extra.shape[1])
    if needed == required:
        left = max(left, total // 2)
    shrink = (left, total) if total else (1, 1)
    if previous is None:
        every = joined(cells, extra)
        kept = _nothing_kept(every, base, small_only, held, shrink)
    else:
        redraw = Redraw(base, small_only, empty_share > 0, refresh, change_odds, known_changes)
        every, kept = continued(cells, extra, previous, key, choice, shrink, redraw)
    still_working()
    empty = every.counts == 0
    shown, low, up, movable = kept.number, kept.low, kept.up, kept.movable
    if kept.levels is None:
        choice = options(every.counts, base, small_only)
        up = start_up(every, choice, key, shrink, only_small=only_small) & choice.movable
        up |= empty & empty_start(every.dataset, every.codes, key, one_in)
        movable = kept.movable & (choice.movable | empty)
        low, shown = choice.low, np.where(kept.movable, choice.low, kept.number)
        _start_groups(every, choice, kept, up, movable, key)
    still_working()
    # There may be tens of millions of cells, so that small numbers are kept as such.
    small = np.int32 if int(shown.max(initial=0)) + base < 2**31 else np.int64
    problem = SearchProblem(
        every=every.codes,
        movable=movable,
        residue=(every.counts - low)[movable].astype(np.int16),
        step=base,
        up=up[movable],
        is_empty=empty[movable],
        low=low[movable].astype(small),
        group=kept.group[movable].astype(np.int32),
        fixed_up=(shown - every.counts)[~movable],
        fixed_smallest=int((shown[~movable] == base).sum()),
        fixed_empty=int(((shown == base) & empty)[~movable].sum()),
        # In thousandths, and never fewer than were promised; what rounding errors add is no thousandth.
        empty_share=(ceil(round(empty_share * 1000, 6)), 1000),
        start_share=shrink,
        drift_part=_DRIFT_PART if sparse_siblings > 1 else None,
        kind=kept.kind,
        up_shares=kept.up_shares,
    )
    return Prepared(every, shown, problem, kept, key)


def _nothing_kept(
    every: FinestCells, base: int, small_only: bool, held: Words | None, share: tuple[int, int]
) -> Kept:
    """What a first release begins with: every cell may move but those that are held."""
    choice = options(every.counts, base, small_only)
    stays = np.zeros(len(every), dtype=np.bool_)
    if held is not None:
        stays = choice.movable & np.isin(cell_numbers(every.dataset, every.codes), held)
    free = np.full(len(every), -1, dtype=np.int64)
    return Kept(~stays, choice.low, stays, choice.low + base, free, {}, share=share)


def _expected_smallest(choice: Options, base: int) -> float:
    """How many cells the unbiased start makes show the base."""
    low, residue = choice.low, choice.residue
    return float((residue[low == 0] / base).sum() + (1 - residue[low == base] / base).sum())


def _start_groups(
    every: FinestCells,
    choice: Options,
    kept: Kept,
    up: npt.NDArray[np.bool_],
    movable: npt.NDArray[np.bool_],
    key: bytes,
) -> None:
    """Let as many parts of every kept cell start at their upper number as its sum asks for."""
    members = np.flatnonzero((kept.group >= 0) & movable)
    everyone = np.flatnonzero(kept.group >= 0)
    if not everyone.size:
        return
    base_sum: dict[int, int] = {}
    for cell in everyone:
        group = int(kept.group[cell])
        base_sum[group] = base_sum.get(group, 0) + int(choice.low[cell])
    random_words = scramble(
        derived(key, "parts"), cell_numbers(every.dataset, every.codes[:, members])
    )
    drawn = (random_words >> np.uint64(11)).astype(np.float64) / 2**53
    # Parts with a larger residue come first more often; empty ones only where nothing else is left.
    residue = choice.residue[members]
    rank = np.where(residue > 0, drawn / np.maximum(residue, 1), 2.0 + drawn)
    up[members] = False
    left = {g: (kept.target[g] - low) // choice.step for g, low in base_sum.items()}
    for index in np.lexsort((rank, kept.group[members])):
        group = int(kept.group[members[index]])
        if left[group] > 0:
            up[members[index]] = True
            left[group] -= 1
    if any(left.values()):
        raise InputError("The memory of the earlier release does not belong to these records.")


_COUNTED = 6
"""Of smaller true counts the agency's report says how many cells the search moved."""
CANDIDATES = 4
"""Candidates among the empty cells for each that must show somebody."""
_SIBLINGS = 6
"""Candidates in sparse rows for each that would show somebody at the start, if these added nobody to totals."""
SPARSE = 2.0
"""Rows that are expected to hold more people get no siblings."""
_SPARSE_FILES = ((0.0007, 32), (0.002, 10), (0.01, 3))
"""Files with fewer people for each possible cell have so many siblings for one around a small cell."""
_DRIFT_PART = Fraction(1, 2)
"""Around invented people few small cells show somebody; so the search shows no more than half as many again."""
_HALVES = (0.6, 0.15)
"""Rows that are expected to hold so many people get half as many first siblings, and second ones."""
_INVENTED_SWEEPS, _INVENTED_WINDOW = 2, 64
"""How often invented people take every variable from somebody else, and how far these stand apart."""
_WINDOWS = (8, 8, 16, 32, 64, 256, 1024, 4096)
"""How far apart similar people may stand, from one attempt to the next."""


def candidates(
    cells: FinestCells, key: bytes, base: int, needed: float, share: float, people: int
) -> tuple[Array, float, int]:
    """All empty cells that may show somebody, how many do so at the start, and one in how many that is.

    ``needed`` is how many must show the base anywhere. Siblings come first, then neighbours of any cells. The
    start shows so many ``people`` in cells that may move. Siblings share them with occupied cells, so that the
    chances of both shrink by the same factor.
    """
    wanted = ceil(CANDIDATES * needed)
    empty_codes = empty_candidates(cells, wanted, key)
    if needed > 0:
        siblings = sibling_candidates(cells, key, base, share)
        numbers = cell_numbers(cells.dataset, siblings)
        still_working()
        others = empty_codes[:, ~np.isin(cell_numbers(cells.dataset, empty_codes), numbers)]
        empty_codes = np.concatenate([siblings.astype(empty_codes.dtype), others], axis=1)
        empty_codes = empty_codes[:, : max(numbers.size, wanted)]
        more = max(share, 1.0) * numbers.size / _SIBLINGS
        shown = more * people / max(people + base * more, 1.0)
        needed = max(needed, min(shown, numbers.size / CANDIDATES))
    return empty_codes, needed, max(CANDIDATES, round(empty_codes.shape[1] / max(needed, 1.0)))


def siblings_of(dataset: Dataset, people: float) -> float:
    """How many siblings in all stand beside one around a small cell, by the people for each possible cell."""
    possible = prod(int(one.sum()) for _, one in Combinations.of(dataset).components)
    people /= max(possible, 1)
    return next((float(one_in) for limit, one_in in _SPARSE_FILES if people < limit), 1.0)


def sibling_candidates(cells: FinestCells, key: bytes, base: int, share: float) -> Array:
    """Codes of empty cells that may show somebody in sparse rows, chosen by the key.

    ``share`` is which part of two there are in the sparsest rows for each small cell and variable. Above 1
    there are as many as with 1, but only one in so many lies around a small cell, and the others around
    invented people, one for each small cell, who also lend all categories.
    """
    roots = root_variables(cells.dataset)
    small = np.flatnonzero((cells.counts > 0) & (cells.counts < base))
    if share <= 0 or len(roots) < 2 or not small.size:
        return cells.codes[:, :0].copy()
    cell_keys = (cell_numbers(cells.dataset, cells.codes) if cells.keys is None else cells.keys)[
        small
    ]
    taken = np.sort(cell_numbers(cells.dataset, cells.codes))
    own = cells.codes[:, small]
    around, lenders, sibling_codes = own, own, [own[:, :0]]
    part = np.full(small.size, min(share, 1 / share))
    if share > 1:
        invented, own_keys = _invented(cells, small, cell_keys, taken, key)
        lenders = invented if own_keys.size else own
        around, cell_keys = np.concatenate([around, invented], 1), np.r_[cell_keys, own_keys]
        part = np.r_[part, np.full(own_keys.size, 1 - 1 / share)]
        sibling_codes.append(invented[:, _drawn(key, "invented", own_keys) < part[small.size :]])
    for number, index in enumerate(roots):
        report_progress("choosing empty cells", number / len(roots))
        rows = AttributeRows.of(cells.dataset, index, roots)
        similar = _Lenders.of(rows, lenders)
        place = similar.rank if lenders is own else similar.place(around)
        still_working()
        for turn, half in enumerate(_HALVES):
            turn_keys = (
                scramble(derived(key, f"sibling again {turn}"), cell_keys) if turn else cell_keys
            )
            drawn = _drawn(key, f"sibling {index}", turn_keys)
            chosen = np.flatnonzero(drawn < part)
            still_working()
            expected = rows.expected(cells.codes, cells.counts, around[:, chosen])
            chance = np.where(expected <= SPARSE, part[chosen] / (1 + expected / half), 0.0)
            chosen = chosen[drawn[chosen] < chance]
            done = (number + (1 + turn) / 3) / len(roots)
            wanted = around[:, chosen], place[chosen], turn_keys[chosen]
            sibling_codes.append(similar.siblings(*wanted, taken, key, lenders is own, done))
    codes = np.concatenate(sibling_codes, axis=1)
    still_working()
    _, first = np.unique(cell_numbers(cells.dataset, codes), return_index=True)
    still_working()
    return np.ascontiguousarray(codes[:, np.sort(first)])


def _drawn(key: bytes, purpose: str, words: Words) -> Floats:
    """A number from 0 to 1 for each word."""
    return (scramble(derived(key, purpose), words) >> np.uint64(32)).astype(np.float64) / 2.0**32


def _invented(
    cells: FinestCells, small: Ints, cell_keys: Words, taken: Words, key: bytes
) -> tuple[Array, Words]:
    """An invented person for each small cell, as far as they are in empty cells, with keys of their own.

    Of many small cells none is more than one in ``2 * _INVENTED_WINDOW`` of those that may lend a code.
    """
    dataset, lenders = cells.dataset, cells.codes[:, small]
    stream, codes = scramble(derived(key, "invented 0"), cell_keys), lenders
    roots = root_variables(dataset)
    for sweep in range(_INVENTED_SWEEPS):
        for index in roots:
            check_stop()
            report_progress("choosing empty cells", 0.0)
            rows = AttributeRows.of(dataset, index, roots)
            row = rows.numbers(lenders)
            order = np.argsort(row, kind="stable")
            place = np.searchsorted(row[order], rows.numbers(codes))
            drawn = scramble(derived(key, f"inventing {sweep} {index}"), stream)
            place = place + _below(drawn, 2 * _INVENTED_WINDOW) - _INVENTED_WINDOW
            lender = order[place % order.size]
            new_codes = codes.copy()
            for variable in (index, *dependents(dataset, index)):
                new_codes[variable] = lenders[variable, lender]
            codes = np.where(possible_cells(dataset, new_codes), new_codes, codes)
    numbers, first = np.unique(cell_numbers(dataset, codes), return_index=True)
    first = first[~find(taken, numbers)[1]]
    return codes[:, first], stream[first]


def _below(random_words: Words, limit: int) -> Ints:
    """A number below a limit from the upper half of each word."""
    part = (random_words >> np.uint64(32)) * np.uint64(limit) >> np.uint64(32)
    return np.asarray(part, dtype=np.int64)


@dataclass(frozen=True)
class _Lenders:
    """Those who lend a category of the variable of rows, in the order of their rows."""

    rows: AttributeRows
    lenders: Array
    row: Words
    rank: Ints

    @classmethod
    def of(cls, rows: AttributeRows, lenders: Array) -> _Lenders:
        """Put them in order."""
        row = rows.numbers(lenders)
        order = np.argsort(row, kind="stable")
        still_working()
        rank = np.empty(order.size, dtype=np.int64)
        rank[order] = np.arange(order.size)
        return cls(rows, lenders[:, order], row[order], rank)

    def place(self, codes: Array) -> Ints:
        """Where the rows of others would stand."""
        return np.searchsorted(self.row, self.rows.numbers(codes)).astype(np.int64)

    def siblings(
        self,
        codes: Array,
        place: Ints,
        keys: Words,
        taken: Words,
        key: bytes,
        own: bool,
        done: float,
    ) -> Array:
        """An empty cell in the row of each cell, in the category of a similar one, as far as one is found.

        With ``own`` the cells are among the lenders, and none lends to itself.
        """
        dataset, variable = self.rows.dataset, self.rows.variable
        varying = np.array([variable, *dependents(dataset, variable)])
        sibling_codes, waiting = [codes[:, :0]], np.arange(keys.size)
        for attempt, window in enumerate(_WINDOWS):
            check_stop()
            report_progress("choosing empty cells", done)
            drawn = scramble(derived(key, f"lender {variable} {attempt}"), keys[waiting])
            apart = _below(drawn, 2 * window) - window
            lender = (place[waiting] + apart + (own & (apart >= 0))) % self.rank.size
            new_codes = codes[:, waiting]
            new_codes[varying] = self.lenders[np.ix_(varying, lender)]
            numbers = cell_numbers(dataset, new_codes)
            good = ~find(taken, numbers)[1] & possible_cells(dataset, new_codes)
            sibling_codes.append(new_codes[:, good])
            waiting = waiting[~good]
        return np.concatenate(sibling_codes, axis=1)
