"""Multiplicative noise on magnitudes: every holding's value times a number near, never at, one.

Evans, Zayatz and Slanta (1998) give each holding a multiplier of its own, 10 percent up or down, say; a
cell with one holding changes by the full factor, a cell with many hardly at all, because ups and downs
cancel. Massell and Funk (2007) make them cancel sooner by choosing directions within cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Indices, Ints, Words
from lustrum.model.chance import Chance
from lustrum.model.keys import scramble
from lustrum.model.parameters import parameter
from lustrum.model.records import Records
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities
from lustrum.protect.method import RecordMethodSpec, Stage, released, uniform_words
from lustrum.protect.totals.inner_table import InnerTable

_SLIVER = 1e-12  # keeps bounds true where a division was rounded


@dataclass(frozen=True)
class MultiplicativeNoise(RecordMethodSpec):
    """Multipliers between ``1 + low`` and ``1 + high`` or between ``1 - high`` and ``1 - low``.

    Up and down are equally likely, so every number is right on average. ``shape`` spreads the distance from
    1 evenly or, ``triangular``, mostly near ``low``.

    On a table, ``level = "holding"`` multiplies the largest contributions that the table holds, each by
    its holding's own multiplier, and all that is left of a cell by one of the cell; it needs a
    generator, which must be the same for all tables of a release. ``level = "cell"`` multiplies whole cells,
    by generator or record keys. Totals are added up. On records, ``measure`` is multiplied, and with
    ``balance`` directions cancel within the cells of these variables.

    >>> axis = Table.from_counts([1, 1]).axes
    >>> table = Table(axis, np.array([1000, 500]), kind="magnitude")
    >>> release = MultiplicativeNoise(level="cell").apply(table, np.random.default_rng(5))
    >>> release.published.tolist(), release.low.tolist(), release.high.tolist()
    ([1111, 555], [967, 483], [1307, 652])
    """

    name: ClassVar[str] = "multiplicative-noise"
    stages: ClassVar[tuple[Stage, ...]] = ("microdata", "table")
    abilities: ClassVar[Abilities] = Abilities(repeatable=True)
    low: float = parameter(0.05, "The least share by which a value changes.", least=0, below=1)
    high: float = parameter(0.15, "The largest share by which a value changes.", above=0, below=1)
    shape: Literal["uniform", "triangular"] = parameter(
        "uniform", "How shares are spread between the two."
    )
    level: Literal["holding", "cell"] = parameter(
        "holding", "Whether contributions of holdings are multiplied or whole cells."
    )
    measure: str = parameter("", "The measure to multiply, on records.", brief=True)
    balance: tuple[str, ...] = parameter(
        (), "On records, variables within whose cells directions cancel.", brief=True
    )

    def check_together(self) -> None:
        """The least share is not above the largest."""
        if self.low > self.high:
            raise InputError(
                "Multiplicative noise needs 0 <= low <= high < 1 and high above 0, "
                f"not {self.low!r} and {self.high!r}."
            )

    def draw(self, table: Table, rng: Chance) -> Release:
        """Multiply the inner cells of a table of magnitudes, and add its totals up."""
        if table.kind != "magnitude":
            raise InputError("Multiplicative noise protects magnitudes; this table holds counts.")
        inner = InnerTable.of(table.axes, "Multiplicative noise")
        values = inner.counts(table)
        if values.size and int(values.min()) < 0:
            raise InputError("Multiplicative noise needs magnitudes of 0 or more in every cell.")
        if self.level == "cell":
            random_words = inner.take(uniform_words(table, rng, self._purpose())).astype(np.uint64)
            noisy = values + self._noise(values, random_words)
        else:
            noisy = self._by_holding(table, inner, values, rng)
        return self._released(table, inner.added_up(noisy))

    def change(self, records: Records, rng: np.random.Generator) -> Records:
        """Multiply a measure of all records, holding by holding."""
        if not self.measure:
            raise InputError("Multiplicative noise on records needs the name of a 'measure'.")
        described = records.dataset.measure(self.measure)
        values = records.numbers[self.measure].astype(np.int64)
        if values.size and int(values.min()) < 0:
            raise InputError(f"Multiplicative noise needs values of 0 or more in {self.measure!r}.")
        owner = np.arange(values.size)
        if described.holding is not None:
            owner = np.unique(records.ids[described.holding], return_inverse=True)[1].ravel()
        random_words = rng.integers(0, 2**64, size=int(owner.max(initial=-1)) + 1, dtype=np.uint64)
        away, sign = shares_away(random_words, self.low, self.high, self.shape)
        if self.balance:
            cell = _cells([records.codes[v] for v in self._variables(records)])
            sign = balanced_directions(values, owner, cell, away, sign)
        noisy = values + sign[owner] * np.floor(values * away[owner]).astype(np.int64)
        return replace(records, numbers={**records.numbers, self.measure: noisy})

    def publish(self, table: Table) -> Release:
        """A table made from noisy records; counts are not touched by this method."""
        if table.kind == "magnitude":
            return self._released(table, table.values)
        note = say("Counts are unchanged; noise was added to magnitudes only.")
        ends = table.values
        return released(table, self, ends, low=ends, high=ends, notes=(note,))

    def _by_holding(
        self, table: Table, inner: InnerTable, values: Ints, rng: np.random.Generator | None
    ) -> Ints:
        contributions = table.contributions
        if contributions is None:
            raise InputError(
                "Multiplicative noise by holding needs a table with its largest contributions; "
                "ask for them, or use level 'cell'."
            )
        if contributions.weight is not None:
            raise InputError("Multiplicative noise by holding is for tables without weights.")
        if rng is None:
            raise InputError(
                "Multiplicative noise by holding needs a random generator ('rng'): record keys do "
                "not tell holdings apart."
            )
        secret = rng.bytes(16)
        rest, noisy = values.copy(), values.copy()
        for rank in range(contributions.value.shape[-1]):
            part = inner.take(contributions.value[..., rank]).astype(np.int64)
            holding = inner.take(contributions.holding[..., rank]).astype(np.int64)
            part = np.where(holding >= 0, part, 0)
            rest -= part
            if bool((part < 0).any()) or bool((rest < 0).any()):
                raise InputError(
                    "Multiplicative noise by holding needs contributions of 0 or more."
                )
            noisy += self._noise(part, scramble(secret, holding.astype(np.uint64)))
        random_words = rng.integers(0, 2**64, size=values.shape, dtype=np.uint64)
        return noisy + self._noise(rest, random_words)

    def _noise(self, values: Ints, random_words: Words) -> Ints:
        """The noise, truncated towards 0, so that the bounds of the multiplier hold for whole numbers too."""
        away, sign = shares_away(random_words, self.low, self.high, self.shape)
        return sign * np.floor(values * away).astype(np.int64)

    def _released(self, table: Table, published: Ints) -> Release:
        shown = np.maximum(published, 0).astype(np.float64)
        low = np.ceil(shown / (1 + self.high) * (1 - _SLIVER)).astype(np.int64)
        high = np.floor(shown / (1 - self.high) * (1 + _SLIVER)).astype(np.int64)
        return released(
            table,
            self,
            published,
            low=low,
            high=high,
            notes=(
                say(
                    "Values were multiplied by random numbers that differ from 1 by {low:.4g} to "
                    "{high:.4g}, up or down; every number is right on average.",
                    low=self.low,
                    high=self.high,
                ),
                say(
                    "A true number lies between the published one over {most:.6g} and over {least:.6g}.",
                    most=1 + self.high,
                    least=1 - self.high,
                ),
            ),
        )

    def _variables(self, records: Records) -> tuple[str, ...]:
        for name in self.balance:
            records.dataset.variable(name)
        return self.balance

    def _purpose(self) -> str:
        return f"{self.name} {float(self.low)!r} {float(self.high)!r} {self.shape}"


def shares_away(random_words: Words, low: float, high: float, shape: str) -> tuple[Floats, Ints]:
    """How far from 1 each multiplier is, and on which side."""
    sign = np.where(random_words >> np.uint64(63), 1, -1).astype(np.int64)
    unit = ((random_words << np.uint64(1)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    if shape == "triangular":
        unit = 1 - np.sqrt(1 - unit)
    return low + (high - low) * unit, sign


def balanced_directions(
    values: Ints, owner: Indices, cell: Indices, away: Floats, sign: Ints
) -> Ints:
    """A direction for each holding so that noise cancels within cells.

    In every cell the largest holding keeps its random direction; each next smaller one goes against the
    noise that the cell has so far. A holding in several cells is counted where it is largest. Reversing all
    random directions reverses all results, so the noise is unbiased.
    """
    holdings = away.size
    if holdings == 0:
        return sign.copy()
    pair, inverse = np.unique(cell.astype(np.int64) * holdings + owner, return_inverse=True)
    sums = np.bincount(inverse.ravel(), weights=values, minlength=pair.size)
    home, who = pair // holdings, pair % holdings
    order = np.lexsort((home, -sums, who))
    first = np.r_[True, who[order][1:] != who[order][:-1]]
    order = order[first]
    order = order[np.lexsort((who[order], -sums[order], home[order]))]
    out = sign.copy()
    noise, here = 0.0, -1
    for k in order.tolist():
        if home[k] != here:
            noise, here = 0.0, int(home[k])
        holder = int(who[k])
        if noise != 0:
            out[holder] = -1 if noise > 0 else 1
        noise += float(out[holder] * np.floor(sums[k] * away[holder]))
    return out


def _cells(columns: Sequence[npt.NDArray[Any]]) -> Indices:
    """One number for every combination of codes."""
    out = np.zeros(columns[0].size, dtype=np.int64)
    for column in columns:
        wide = out * (int(column.max(initial=0)) + 1) + column.astype(np.int64)
        out = np.unique(wide, return_inverse=True)[1].ravel().astype(np.int64)
    return out.astype(np.intp)
