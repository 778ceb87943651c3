"""Semi-controlled random rounding (Shlomo, Antal and Elliot 2015, section 3.2).

Random rounding of each cell by itself changes the total of a table at random. Here the number of cells of
each residue that go up is fixed at its expectation, for the whole table or for each slice of it; only the
choice of these cells is random. The paper rounds an expected number to the nearest; here systematic
sampling rounds it up or down without bias. So

- every cell goes up with probability residue / base, exactly as in plain random rounding,
- of each residue, the expected number of cells, rounded up or down, goes up,
- the total of the table, or of each slice, becomes a multiple of the base next to the true one, and
  does not change if it is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Ints, Words
from lustrum.model.chance import Chance
from lustrum.model.errors import choices
from lustrum.model.keys import cell_words
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities, changed_by_rounding
from lustrum.protect.additive.apportion import systematic
from lustrum.protect.entropy_left import left_between_multiples
from lustrum.protect.method import TABULAR, MethodSpec, Stage, released, uniform_words, whole_counts
from lustrum.protect.rounding.cells import RoundingChannel, round_randomly
from lustrum.protect.totals.summed import AxisParts, added_totals


@dataclass(frozen=True)
class SemiControlledRounding(MethodSpec):
    """Random rounding that keeps the total of the table, or of each category of some axes.

    ``over`` is ``"table"``, or the names of the axes whose totals are kept: ``("area",)`` keeps the total
    of every area, ``("area", "sex")`` that of every sex in every area. With ``overall`` the total of all
    slices is kept too; the rounding of a slice then depends on the other slices.

    Totals are the sums of the rounded cells. Random numbers come from the table's cell keys or from a
    generator. With keys the same slice is rounded alike in every table (without ``overall``), but a cell
    may differ between tables that slice it differently.

    >>> table = Table.from_counts([[1, 1, 1], [2, 2, 2]], names=["area", "faith"])
    >>> method = SemiControlledRounding(base=3, over=("area",))
    >>> method.apply(table, rng=np.random.default_rng(1)).published.sum(axis=1).tolist()
    [3, 6]
    """

    name: ClassVar[str] = "semi-controlled-rounding"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    base: int = parameter(3, "Numbers are published as multiples of this.", least=2)
    over: Literal["table"] | tuple[str, ...] = parameter(
        "table",
        "The totals that are kept: of the whole table, or of each category of these variables.",
    )
    overall: bool = parameter(False, "Whether the total of all slices is kept too.")

    def check_together(self) -> None:
        """Slices need a variable."""
        if not self.over:
            raise InputError(
                "Semi-controlled rounding keeps the totals over the whole 'table' or over a list of names of "
                "axes; this list is empty."
            )

    @property
    def abilities(self) -> Abilities:
        """Inner cells below the base become multiples of it."""
        return Abilities(
            repeatable=True,
            changed=changed_by_rounding(self.base),
            entropy=left_between_multiples(self.base),
        )

    def draw(self, table: Table, rng: Chance) -> Release:
        counts = whole_counts(table, "Semi-controlled rounding")
        random_words = uniform_words(table, rng, f"{self.name} {self.base}")
        slice_axes = self._kept(table)
        published = round_randomly(
            counts, self.base, random_words
        )  # totals without parts in the table
        inner = table.inner
        slices, number = _slices(table, slice_axes)
        starts, order = self._starts(table, slices, number, rng)
        published[inner] = round_by_slices(
            counts[inner], self.base, slices, random_words[inner], starts, order
        )
        channel = RoundingChannel(self.base)
        added = added_totals(table.axes, published, *channel.support(published))
        radius = (self.base - 1) * self._kept_sums(table, slice_axes)
        where = (
            say("the whole table")
            if self.over == "table"
            else say("each of {names}", names=" x ".join(self.over))
        )
        return released(
            table,
            self,
            added.values,
            low=np.maximum(added.low, added.values - radius),
            high=np.minimum(added.high, added.values + radius),
            channel=channel,
            notes=(
                say(
                    "Every number is randomly rounded to a multiple of {base}: it is less than {base} "
                    "away from the true one, and right on average.",
                    base=self.base,
                ),
                say("Totals are the sums of the rounded numbers."),
                say(
                    "The total of {where} is less than {base} away from the true one.",
                    where=where,
                    base=self.base,
                ),
                *((say("The same holds for the total of all of them."),) if self.overall else ()),
            ),
        )

    def _kept(self, table: Table) -> tuple[int, ...]:
        """The positions of the axes whose totals are kept."""
        names = [axis.name for axis in table.axes]
        wanted = () if self.over == "table" else self.over
        for name in wanted:
            if name not in names:
                raise InputError(
                    f"The table has no axis {name!r} over which to keep totals; "
                    f"{choices(name, names)}."
                )
        return tuple(names.index(name) for name in wanted)

    def _starts(
        self, table: Table, slices: Ints, number: int, rng: np.random.Generator | None
    ) -> tuple[Ints, Ints | None]:
        """Where sampling starts in each slice; with ``overall``, one start and the order of the slices."""
        if rng is not None:
            if self.overall:
                return rng.integers(0, self.base, size=1), rng.permutation(number)
            return rng.integers(0, self.base, size=number), None
        assert table.keys is not None  # the words came from them
        keys = np.zeros(number, dtype=np.uint64)
        np.add.at(keys, slices, table.keys[table.inner])
        purpose = f"{self.name} {self.base} start"
        if self.overall:
            places = np.argsort(cell_words(keys, purpose), kind="stable")
            order = np.empty(number, dtype=np.int64)
            order[places] = np.arange(number)
            return self._below_base(cell_words(keys.sum(keepdims=True), purpose)), order
        return self._below_base(cell_words(keys, purpose)), None

    def _below_base(self, random_words: Words) -> Ints:
        return np.array([(int(word) * self.base) >> 64 for word in random_words], dtype=np.int64)

    def _kept_sums(self, table: Table, slice_axes: tuple[int, ...]) -> Ints:
        """For each cell, of how many kept totals or single cells it is the sum."""
        cells = np.ones((), dtype=np.int64)
        sums = np.ones((), dtype=np.int64)
        whole = np.ones((), dtype=np.bool_)
        everything = np.ones((), dtype=np.bool_)
        for position, axis in enumerate(table.axes):
            parts = AxisParts.of(axis)
            held = np.array([max(len(h), 1) for h in parts.held], dtype=np.int64)
            full = held == parts.inner.size
            cells = cells[..., None] * held
            sums = sums[..., None] * (held if position in slice_axes else 1)
            whole = whole[..., None] & (True if position in slice_axes else full)
            everything = everything[..., None] & full
        if self.overall:
            sums = np.where(everything, 1, sums)
        return np.asarray(np.where(whole, sums, cells))


def round_by_slices(
    values: Ints,
    base: int,
    slices: Ints,
    random_words: Words,
    starts: Ints,
    order: Ints | None = None,
) -> Ints:
    """Round counts to adjacent multiples so that the total of each slice becomes an adjacent one.

    Within a slice the cells are sorted by residue, and by word within a residue; ``starts`` says where
    sampling begins in each slice. With ``order``, the place of each slice among all, it begins once, and
    the total of all slices becomes an adjacent multiple too.
    """
    residue = values % base
    down = values - residue
    if not values.size:
        return down
    group = slices if order is None else order[slices]
    ranked = np.argsort(random_words, kind="stable")
    ranked = ranked[np.argsort((group * base + residue)[ranked], kind="stable")]
    sizes = residue[ranked]
    if order is None:
        before = np.cumsum(sizes) - sizes
        ranked_groups = group[ranked]
        first = np.searchsorted(ranked_groups, ranked_groups, side="left")
        start: int | Ints = starts[ranked_groups] - before[first]
    else:
        start = int(starts[0])
    up = np.empty(values.size, dtype=np.bool_)
    up[ranked] = systematic(sizes, base, start)
    return np.asarray(down + np.where(up, base, 0))


def _slices(table: Table, slice_axes: tuple[int, ...]) -> tuple[Ints, int]:
    """The number of the slice of each inner cell, and how many slices there are."""
    slices = np.zeros((1,) * len(table.axes), dtype=np.int64)
    number = 1
    for position in slice_axes:
        inner = table.axes[position].inner
        shape = [1] * len(table.axes)
        shape[position] = inner.size
        slices = slices * int(inner.sum()) + (np.cumsum(inner) - 1).reshape(shape)
        number *= int(inner.sum())
    return np.broadcast_to(slices, table.shape)[table.inner], number
