"""The cell key method in a policy file: one flat list of parameters.

In Python the parameters come in groups: the source of the ptable, its lookup, the treatment of totals, and
the published versions. A policy file lists them side by side; this class reads and writes that list.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Words
from lustrum.model.channel import MatrixChannel
from lustrum.model.parameters import DeclaredSpec, parameter
from lustrum.protect.cell_key.channel import LookupChannel, zeros_stay
from lustrum.protect.cell_key.ptable import PTable
from lustrum.protect.perturbation.design import Monotone, PerturbationDesign
from lustrum.protect.perturbation.lookup import perturb_by_words

Source: TypeAlias = str | PTable | MatrixChannel | PerturbationDesign
"""What a ptable is made from: a preset or a file by name, the table, a transition matrix, a design."""

_WHAT = "The cell key method"
_MATRIX: dict[str, Any] = {"group": "ptable 'matrix'", "only": ("ptable", "matrix")}
_DESIGNED: dict[str, Any] = {"group": "ptable 'designed'", "only": ("ptable", "designed")}
_ADDITIVE: dict[str, Any] = {"group": "totals", "only": ("additive", True)}


@dataclass(frozen=True)
class Lookup(DeclaredSpec):
    """How a cell key is looked up: the layout of the table, and its 2 to the power of ``bits`` keys."""

    what: ClassVar[str] = _WHAT
    layout: LayoutName | None = parameter(None, "How a key is looked up.")
    bits: int = parameter(8, "2 to the power of this many keys.", least=1, most=16)


@dataclass(frozen=True)
class Additive(DeclaredSpec):
    """The table is made to add up, by the least change and by at most ``max_shift`` in a cell."""

    what: ClassVar[str] = _WHAT
    max_shift: int = parameter(5, "The largest change of a cell.", least=0)
    steps: int = parameter(500, "The most steps of the search for that change.", least=1)


@dataclass(frozen=True)
class Versions(DeclaredSpec):
    """The versions of the ptable and of the record keys that a release states."""

    what: ClassVar[str] = _WHAT
    ptable: str = parameter("1", "The version of the ptable.")
    keys: int = parameter(1, "The version of the record keys.")


@dataclass(frozen=True)
class CellKeyWords(DeclaredSpec):
    """The parameters of :class:`~lustrum.protect.cell_key.CellKey` as a policy file names them."""

    what: ClassVar[str] = _WHAT
    # The lookup table
    ptable: str | PTable | MatrixChannel = parameter(
        "shlomo-2015",
        "A preset, 'designed', 'matrix', the path of a CSV file, or the table itself.",
        group="lookup table",
    )
    layout: LayoutName | None = parameter(
        None, "How a key is looked up; by default as the table is made.", group="lookup table"
    )
    bits: int = parameter(
        8, "A table made from a matrix has 2 to the power of this many keys.",
        least=1, most=16, group="lookup table", only=("layout", "abs", "ons"),
    )  # fmt: skip
    version: str = parameter("1", "The version of the table, published.", group="lookup table")
    key_version: int = parameter(
        1, "The version of the record keys, published.", group="lookup table"
    )
    # A user's own matrix: ptable "matrix"
    matrix: tuple[tuple[float, ...], ...] = parameter(
        (), "The rows of a transition matrix.", least=0, most=1, **_MATRIX
    )
    residue_base: int = parameter(
        1, "How counts above the last row move.", least=1, most=10_000, **_MATRIX
    )
    # A design: ptable "designed"
    largest_change: int = parameter(
        3, "No count changes by more than this.", least=1, most=100, **_DESIGNED
    )
    variance: float = parameter(
        1.0, "The variance of the change of a large count.", above=0, **_DESIGNED
    )
    blocked: tuple[int, ...] = parameter(
        (), "Counts that are never published.", least=1, most=100, **_DESIGNED
    )
    stay: float | None = parameter(
        None, "The probability that a count stays; without it, any.",
        least=0, most=1, **_DESIGNED,
    )  # fmt: skip
    monotone: Monotone = parameter(
        "no", "Whether smaller changes are more probable than larger ones.", **_DESIGNED
    )
    # Totals
    totals: Literal["guarded", "own"] = parameter(
        "guarded",
        "Whether totals that disclose an inner cell are hidden, or shown.",
        group="totals",
    )
    additive: bool = parameter(
        False, "Whether the table is made to add up, with the least change.", group="totals"
    )
    max_shift: int = parameter(
        5, "The largest change that makes a table add up.", least=0, **_ADDITIVE
    )
    steps: int = parameter(
        500, "The most steps of the search for that change.", least=1, **_ADDITIVE
    )

    def source(self) -> Source:
        if self.ptable == "matrix":
            if not self.matrix or len({len(row) for row in self.matrix}) != 1:
                raise InputError("The ptable 'matrix' needs 'matrix', rows of equal length.")
            return MatrixChannel(self.matrix, residue_base=self.residue_base)
        if self.ptable == "designed":
            return PerturbationDesign(
                self.largest_change, self.variance, self.blocked, self.stay, self.monotone
            )
        return self.ptable


def source_words(source: Source) -> dict[str, Any]:
    """The source of the ptable in the words of a policy file, or its matrix where these do not suffice."""
    if isinstance(source, str):
        return {"ptable": source}
    if isinstance(source, PTable):
        return {"ptable": source.name}
    if isinstance(source, PerturbationDesign):
        if source.cap is None and not isinstance(source.stay, tuple):
            mapping: dict[str, Any] = {"ptable": "designed"}
            mapping |= {"largest_change": source.largest_change, "variance": source.variance}
            mapping |= {"blocked": list(source.blocked)} if source.blocked else {}
            mapping |= {} if source.stay is None else {"stay": source.stay}
            return mapping | {"monotone": source.monotone}
        source = source.channel()
    mapping = {"ptable": "matrix", "matrix": source.matrix.tolist()}
    return (
        mapping if source.residue_base is None else {**mapping, "residue_base": source.residue_base}
    )


# Three layouts of lookup tables, from which an agency chooses.
#
# ``inverse-cdf``   the whole uniform word of the cell against the cumulated row of a transition matrix, as the
#                   ptables of Destatis and the European census are used (Giessing and Tent 2019)
# ``abs``           some bits of the uniform word as the column of a table of fixed size (Fraser and Wooton
#                   2005; Marley and Leaver 2011)
# ``ons``           the sum of the record keys modulo the number of columns, as it is, which is what the Office
#                   for National Statistics does with record keys from 0 to 255

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
