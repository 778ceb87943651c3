"""The cell key method for counts (Fraser and Wooton 2005; Marley and Leaver 2011; Giessing and Tent 2019).

Every record has a secret key. The keys of the records of a cell add up to the cell's key, and the cell's key
and its count together are looked up in a perturbation table, the *ptable*, which says what is added. The
same people always make the same published number: in every table, on every engine, today and in a year.
Asking ten thousand times tells no more than asking once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.arrays import Ints, Words
from lustrum.model import Dataset, InputError, Release, Table
from lustrum.model.chance import Seed
from lustrum.model.channel import SHLOMO_2015, MatrixChannel
from lustrum.model.errors import choices
from lustrum.model.keys import cell_words
from lustrum.model.parameters import check_parameters, parameter
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities
from lustrum.protect.cell_key.additive import additive_release
from lustrum.protect.cell_key.channel import longest_step, support_of
from lustrum.protect.cell_key.layouts import (
    Layout,
    LayoutName,
    layout_of,
    moves_zeros,
    public_channel,
    rows_right_on_average,
)
from lustrum.protect.cell_key.ptable import PTable, read_ptable
from lustrum.protect.cell_key.zeros import ZeroKeys
from lustrum.protect.method import TABULAR, Stage, checked_input, released, whole_counts
from lustrum.protect.perturbation.design import Monotone, design
from lustrum.protect.totals.safe import hidden_totals, safe_totals
from lustrum.protect.totals.summed import Published

__all__ = ["CellKey"]


_PURPOSE = "cell-key"
_PRESETS = {"shlomo-2015": SHLOMO_2015}
_OWN = ("designed", "matrix")


@dataclass(frozen=True)
class CellKey:
    """Every cell, totals included, is changed by what the ptable says for its count and its cell key.

    ``ptable`` is the name of a preset, ``designed`` with the parameters of
    :class:`~lustrum.protect.perturbation.design.PerturbationDesign`,
    ``matrix`` with ``matrix`` and ``residue_base``, the path of a CSV file with the columns ``pcv``, ``ckey``
    and ``pvalue``, or a :class:`~lustrum.protect.cell_key.PTable` or transition matrix itself.

    Where the ptable moves zeros, empty cells need :meth:`with_zeros`; without it they stay 0, and the
    notes say so. ``totals="guarded"`` keeps totals from pinning inner cells; ``"own"`` keeps every total as
    its own key perturbs it, and lets it tell what it tells. ``additive`` makes the table add up.

    >>> table = Table.from_counts([[1, 5], [7, 0]], keys=[[11, 12], [13, 0]])
    >>> release = CellKey().apply(table)
    >>> int(release.published[1, 1]), release.low.tolist()[1][1]
    (0, 0)
    >>> bool((CellKey().apply(table).published == release.published).all())
    True
    """

    name: ClassVar[str] = "cell-key"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
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
        least=1, most=16, group="lookup table",
    )  # fmt: skip
    version: str = parameter("1", "The version of the table, published.", group="lookup table")
    key_version: int = parameter(
        1, "The version of the record keys, published.", group="lookup table"
    )
    # A matrix of one's own: ptable "matrix"
    matrix: tuple[tuple[float, ...], ...] = parameter(
        (), "The rows of a transition matrix.", least=0, most=1, group="ptable 'matrix'"
    )
    residue_base: int = parameter(
        1, "How counts above the last row move.", least=1, group="ptable 'matrix'"
    )
    # A design: ptable "designed"
    largest_change: int = parameter(
        3, "No count changes by more than this.", least=1, group="ptable 'designed'"
    )
    variance: float = parameter(
        1.0, "The variance of the change of a large count.", above=0, group="ptable 'designed'"
    )
    blocked: tuple[int, ...] = parameter(
        (), "Counts that are never published.", least=1, group="ptable 'designed'"
    )
    stay: float | None = parameter(
        None, "The probability that a count stays; any without it.",
        least=0, most=1, group="ptable 'designed'",
    )  # fmt: skip
    monotone: Monotone = parameter(
        "no",
        "Whether smaller changes are more probable than larger ones.",
        group="ptable 'designed'",
    )
    # Totals
    totals: Literal["guarded", "own"] = parameter(
        "guarded",
        "Whether totals that pin an inner cell are hidden, or left alone.",
        group="totals",
    )
    additive: bool = parameter(
        False, "Whether the table is made to add up, with the least change.", group="totals"
    )
    max_shift: int = parameter(
        5, "The largest change that makes a table add up.", least=0, group="totals"
    )
    steps: int = parameter(500, "How much work that may be, in steps.", least=1, group="totals")
    zero_keys: ZeroKeys | None = parameter(None, "Keys for empty cells.", secret=True)

    def __post_init__(self) -> None:
        if self.zero_keys is not None and not isinstance(self.zero_keys, ZeroKeys):
            raise InputError("A policy cannot set keys for empty cells; use 'with_zeros'.")
        check_parameters(self, "The cell key method")
        _ = self._layout

    @property
    def abilities(self) -> Abilities:
        """A table that is made to add up moves a cell for the sake of others; a guard only hides totals."""
        alone = not self.additive
        return Abilities(repeatable=True, keyed_per_cell=alone, one_number=alone)

    def with_zeros(self, secret: bytes, dataset: Dataset) -> CellKey:
        """The same method, with what it takes to perturb empty cells alike in every table.

        The secret is kept out of everything that is shown or written.
        """
        return replace(self, zero_keys=ZeroKeys(secret, dataset))

    def apply(self, table: Table, rng: Seed = None) -> Release:
        """Perturb a table of counts."""
        rng = checked_input(table, rng)
        counts = whole_counts(table, "The cell key method")
        zeros = self._zeros_move and (rng is not None or self.zero_keys is not None)
        perturbed = self._perturbed(table, counts, zeros, rng)
        channel = public_channel(self._layout, zeros)
        if self.additive:
            _, published = additive_release(
                table.axes,
                perturbed,
                channel,
                max_shift=self.max_shift,
                structural=table.structural,
                steps=self.steps,
            )
        elif self.totals == "guarded":
            published = safe_totals(
                table.axes,
                perturbed,
                support_of(channel),
                table.structural,
                keyed=rng is None,
            )
        else:
            low, high = support_of(channel).support(perturbed)
            if table.structural is not None:
                low, high = (np.where(table.structural, 0, end) for end in (low, high))
            published = Published(perturbed, low, high)
        for array in (published.values, published.low, published.high):
            array.setflags(write=False)  # so that the release need not copy them
        return released(
            table,
            self,
            published.values,
            low=published.low,
            high=published.high,
            status=published.status,
            channel=None if self.additive else channel,
            notes=self._notes(zeros, keyed=rng is None),
        )

    def perturbed(self, table: Table, rng: Seed = None) -> Ints:
        """Every cell as its own key perturbs it, before totals are seen to."""
        rng = checked_input(table, rng)
        counts = whole_counts(table, "The cell key method")
        zeros = self._zeros_move and (rng is not None or self.zero_keys is not None)
        return self._perturbed(table, counts, zeros, rng)

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file; no key and no secret is among them."""
        given = self.ptable
        out: dict[str, Any] = {"method": self.name}
        if isinstance(given, str):
            out["ptable"] = given
        else:
            out["ptable"] = given.name if isinstance(given, PTable) else "matrix"
        if self.layout is not None:
            out["layout"] = self.layout
        if self.layout in ("abs", "ons"):
            out["bits"] = self.bits
        if out["ptable"] == "matrix":
            rows = given.matrix.tolist() if isinstance(given, MatrixChannel) else self.matrix
            out["matrix"] = [list(row) for row in rows]
            base = given.residue_base if isinstance(given, MatrixChannel) else self.residue_base
            out |= {} if base is None else {"residue_base": base}
        if given == "designed":
            out |= {"largest_change": self.largest_change, "variance": self.variance}
            out |= {"blocked": list(self.blocked)} if self.blocked else {}
            out |= {} if self.stay is None else {"stay": self.stay}
            out["monotone"] = self.monotone
        out["totals"] = self.totals
        if self.additive:
            out |= {"additive": True, "max_shift": self.max_shift, "steps": self.steps}
        return out | {"version": self.version, "key_version": self.key_version}

    @cached_property
    def _layout(self) -> Layout:
        return layout_of(self._source(), self.layout, self.bits)

    def _source(self) -> PTable | MatrixChannel:
        given = self.ptable
        if isinstance(given, (PTable, MatrixChannel)):
            return given
        if not isinstance(given, str):
            raise InputError(
                "A ptable is a name, the path of a CSV file, a PTable or a transition matrix, not "
                f"{type(given).__name__}."
            )
        if given in _PRESETS:
            return _PRESETS[given]
        if given == "matrix":
            return _explicit(self.matrix, self.residue_base)
        if given == "designed":
            return _designed(
                self.largest_change,
                self.variance,
                tuple(self.blocked),
                self.stay,
                self.monotone,
            )
        if given.endswith(".csv"):
            return read_ptable(Path(given))
        raise InputError(
            f"There is no ptable {given!r}; {choices(given, [*_PRESETS, *_OWN])}, or give a file "
            "ending in .csv."
        )

    @property
    def _zeros_move(self) -> bool:
        return moves_zeros(self._layout.channel)

    def _perturbed(
        self, table: Table, counts: Ints, zeros: bool, rng: np.random.Generator | None
    ) -> Ints:
        words = self._words(table, counts, zeros, rng)
        out = self._layout.perturb(counts, words)
        if not zeros:
            return np.where(counts == 0, 0, out) if self._zeros_move else out
        return out if table.structural is None else np.where(table.structural, 0, out)

    def _words(
        self, table: Table, counts: Ints, zeros: bool, rng: np.random.Generator | None
    ) -> Words:
        """The word of each cell; whatever the ptable, the same, so that a second one tells little new."""
        if rng is not None:
            return rng.integers(0, 2**64, size=table.shape, dtype=np.uint64)
        if table.keys is None:
            raise InputError("The table has no record keys; give a random generator ('rng').")
        words = table.keys if self._layout.summed else cell_words(table.keys, _PURPOSE)
        if not zeros or self.zero_keys is None:
            return words
        return np.where(counts == 0, self.zero_keys.words(table, _PURPOSE), words)

    def _notes(self, zeros: bool, keyed: bool) -> tuple[str, ...]:
        channel, given = self._layout.channel, Path(self.to_mapping()["ptable"]).name
        table = getattr(self._layout, "table", None)
        mark = f", {table.digest}" if isinstance(table, PTable) else ""
        notes: list[str] = [
            say(
                "Every number is perturbed by the cell key method (ptable {ptable}, version {version}; "
                "record keys version {keys}): the same people always make the same number.",
                ptable=given,
                version=f"{self.version}{mark}",
                keys=self.key_version,
            )
        ]
        if not self.additive:
            notes.append(
                say("No number is changed by more than {most}.", most=longest_step(channel))
            )
            if rows_right_on_average(channel):
                notes.append(say("The numbers are right on average."))
        notes.append(_zero_note(zeros, self._zeros_move))
        if self.additive:
            notes.append(
                say(
                    "The perturbed numbers were changed once more, as little as possible and by at most "
                    "{most}, so that they add up; where that was not possible totals are sums. A cell "
                    "may therefore differ between tables.",
                    most=self.max_shift,
                )
            )
        elif self.totals == "guarded" and keyed:
            notes.append(hidden_totals())
        elif self.totals == "guarded":
            notes.append(
                say(
                    "Totals are perturbed on their own, so the numbers may not add up to them; a total "
                    "that does add up may be the sum of the perturbed numbers."
                )
            )
        else:
            notes.append(
                say("Totals are perturbed on their own, so the numbers may not add up to them.")
            )
        return tuple(notes)


def _zero_note(zeros: bool, wanted: bool) -> str:
    if zeros:
        return say("Empty cells may be perturbed too, but for combinations that cannot exist.")
    if wanted:
        return say(
            "Empty cells stay 0: the ptable would change them, but there are no keys for them."
        )
    return say("Empty cells stay 0.")


def _explicit(rows: tuple[tuple[float, ...], ...], base: int) -> MatrixChannel:
    if not rows or len({len(row) for row in rows}) != 1:
        raise InputError("The ptable 'matrix' needs 'matrix', rows of equal length.")
    return MatrixChannel(rows, residue_base=base)


@lru_cache(maxsize=64)
def _designed(
    change: int, variance: float, blocked: tuple[int, ...], stay: float | None, monotone: Monotone
) -> MatrixChannel:
    return design(change, variance, blocked, stay, monotone)
