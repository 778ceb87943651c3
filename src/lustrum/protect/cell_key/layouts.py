"""Three layouts of lookup tables, from which an agency chooses.

``inverse-cdf``   the whole uniform word of the cell against the cumulated row of a transition matrix, as the
                  ptables of Destatis and the European census are used (Giessing and Tent 2019)
``abs``           some bits of the uniform word as the column of a table of fixed size (Fraser and Wooton
                  2005; Marley and Leaver 2011)
``ons``           the sum of the record keys modulo the number of columns, as it is, which is what the Office
                  for National Statistics does with record keys from 0 to 255
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Words
from lustrum.model.channel import MatrixChannel
from lustrum.protect.cell_key.channel import LookupChannel, zeros_stay
from lustrum.protect.cell_key.ptable import PTable
from lustrum.protect.perturbation.lookup import perturb_by_words

LayoutName: TypeAlias = Literal["inverse-cdf", "abs", "ons"]
AnyChannel: TypeAlias = MatrixChannel | LookupChannel


class LookupLayout(Protocol):
    """How a count and a word become a published count."""

    @property
    def summed(self) -> bool:
        """Whether the word is the plain sum of the record keys instead of a cipher of it."""
        ...

    @property
    def channel(self) -> AnyChannel: ...

    def perturb(self, values: Ints, random_words: Words) -> Ints:
        """Look up the published count of each true one."""
        ...


@dataclass(frozen=True, eq=False)
class InverseCdf:
    """The whole word against the cumulated row of a matrix."""

    channel: MatrixChannel
    summed: bool = False

    def perturb(self, values: Ints, random_words: Words) -> Ints:
        """The larger the word, the larger the published count."""
        return perturb_by_words(values, self.channel, random_words)


@dataclass(frozen=True, eq=False)
class FixedColumns:
    """A table of fixed size: the column is the high bits of a ciphered word, or the low bits of a key sum."""

    table: PTable
    summed: bool

    @property
    def channel(self) -> LookupChannel:
        return self.table.channel

    def perturb(self, values: Ints, random_words: Words) -> Ints:
        """Row by count, column by key."""
        keys = np.uint64(self.table.keys)
        if self.summed:
            columns = random_words % keys
        elif self.table.keys == 1:
            columns = np.zeros_like(random_words)
        else:
            columns = random_words >> np.uint64(64 - (self.table.keys.bit_length() - 1))
        return self.table.perturb(values, columns.astype(np.int64))


@lru_cache(maxsize=64)
def moves_zeros(channel: AnyChannel) -> bool:
    """Whether an empty cell can be published as another count."""
    row = channel.transitions(np.zeros(1, dtype=np.int64))
    return bool((row.published > 0).any())


@lru_cache(maxsize=64)
def rows_right_on_average(channel: AnyChannel) -> bool:
    """Whether every row keeps its count on average."""
    true = np.arange(channel.cap + 1, dtype=np.int64)
    rows = channel.transitions(true)
    mean = np.bincount(rows.origin, rows.probability * rows.published, minlength=true.size)
    return bool((np.abs(mean - true) < 1e-6).all())


def public_channel(layout: LookupLayout, zeros: bool) -> AnyChannel:
    """The channel of a layout; without keys for empty cells, zeros stay."""
    return layout.channel if zeros else zeros_stay(layout.channel)


def layout_of(source: PTable | MatrixChannel, name: LayoutName | None, bits: int) -> LookupLayout:
    """A matrix or a table in the given layout; by default inverse-cdf for a matrix and ons for a table."""
    if name not in (None, "inverse-cdf", "abs", "ons"):
        raise InputError(
            f"The cell key method has the layouts 'inverse-cdf', 'abs' and 'ons', not {name!r}."
        )
    if isinstance(source, PTable):
        if name == "inverse-cdf":
            raise InputError(
                f"The ptable {source.name!r} has columns by key; its layout is 'abs' or 'ons'."
            )
        return FixedColumns(source, summed=name != "abs")
    if source.residue_base is not None and source.residue_base > source.cap:
        raise InputError(
            "The row of 0 is for empty cells only; the residue base of a matrix must leave it out."
        )
    if name in (None, "inverse-cdf"):
        return InverseCdf(source)
    return FixedColumns(PTable.of_matrix("matrix", source, bits), summed=name == "ons")
