"""The largest respondents of every cell, as the concentration rules see them.

Contributions count by their absolute size, holdings as one respondent each (Hundepool et al. 2024,
section 4.2.1; the engines have merged their records already).

*Weights.* With ``"expanded"``, as in tau-ARGUS (Hundepool et al. 2024, section 4.2.1), a respondent of
value ``x`` and weight ``w`` stands for ``w`` respondents of value ``x``; the fraction of a weight is a
part of a respondent. With ``"sample"`` the respondents of the sample themselves are set against the
weighted total. The weight of a holding is the mean over its records, kept to three more decimals.

*Absolute total.* A table holds the net total ``X`` and the largest contributions ``x_i`` only. Then
``sum |x_i| + |X - sum x_i|`` is the total of the absolute values when nothing negative is hidden
below the ranks, and else a lower bound of it: a rule may call a cell sensitive that is not, never
safe when it is not. With weights but no negative contribution in sight it is ``|X|``.

*Waivers* (Hundepool et al. 2024, section 4.2.1). ``s`` is the largest respondent without a waiver; the
sums below are over ``s`` and the largest of all others. Where everybody in sight waived and others
are hidden below the ranks, ``s`` is taken as large as a hidden one can be. A measure counts as one that
can be negative if anything negative is in sight anywhere in the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import Contributions, InputError, Table
from lustrum.model.arrays import Indices, Ints, Mask
from lustrum.sensitivity.rule import NOTHING, Background, check_whole

Weights = Literal["expanded", "sample"]
Exact = npt.NDArray[Any]
"""Whole numbers: 64 bits where all products fit, Python's own where they might not."""

_SAFE = 2**62


@dataclass(frozen=True, eq=False, repr=False)
class Ranked:
    """Cells in one row each; amounts in units of the table divided by ``scale``."""

    value: Exact
    """Absolute size of each rank, as reported."""
    copies: Exact
    """How much of a respondent each rank is, in parts of ``whole``."""
    whole: int
    scale: int
    total: Exact
    last: Exact
    """The size of the last rank, which none below it exceeds."""
    hidden: Exact
    """How much the respondents below the ranks have together, at most; 0 if there are none."""
    present: Mask
    waived: Mask
    more: Mask
    """Whether there are contributors below the ranks."""
    signed: bool
    """Whether anything negative is in sight in the table, so that values need not be 0 or more."""
    net: Exact

    @classmethod
    def of(
        cls,
        table: Table,
        background: Background,
        *,
        rule: str,
        ranks: int,
        weights: Weights,
        factor: int,
    ) -> Ranked:
        """Read a table; ``factor`` is the largest whole number that amounts get multiplied with."""
        contributions = _contributions(table, rule, ranks)
        seen = contributions.value.shape[-1]
        flat = contributions.value.reshape(-1, seen)
        held = contributions.holding.reshape(-1, seen)
        scale, unit, weight = _weights(contributions, seen)
        # A respondent of weight 0 stands for nobody and adds nothing.
        present = (held >= 0) & (weight > 0)
        heaviest = max(int(weight.max(initial=1)), unit)
        largest = int(np.abs(flat).max(initial=0)) * heaviest * (seen + ranks + 1)
        largest = max(largest, int(np.abs(table.values).max(initial=0)) * scale)
        dtype: type = np.int64 if 4 * largest * factor < _SAFE else object
        amount: Exact = np.where(present, flat, 0).astype(dtype)
        value, weight = np.abs(amount), np.where(present, weight, 0).astype(dtype)
        net: Exact = table.values.reshape(-1).astype(dtype) * scale
        negative = (flat < 0).any(axis=1)
        sized = (value * weight).sum(axis=1)
        rest = net - (amount * weight).sum(axis=1)
        total = sized + np.abs(rest)
        if contributions.weight is not None:
            total = np.where(negative, total, np.abs(net))
        count = table.contributors
        full = np.asarray((held >= 0).all(axis=1))
        more = full if count is None else count.reshape(-1) > seen
        signed = bool(negative.any() or (net < 0).any())
        signed = signed or (contributions.weight is None and bool((rest < 0).any()))
        last: Exact = np.abs(flat[:, -1]).astype(dtype)
        # What is hidden may cancel out where values can be negative; then only their size bounds it.
        below = last * (unit * ranks) if signed else np.maximum(total - sized, 0)
        whole = unit * np.ones_like(weight)
        return cls(
            value=value,
            copies=weight if weights == "expanded" else np.where(present, whole, 0),
            whole=unit,
            scale=scale,
            total=total,
            last=last,
            hidden=np.where(more, below, 0),
            present=present,
            waived=background.has_waived(held) & present,
            more=more,
            signed=signed,
            net=net,
        )

    @cached_property
    def _open(self) -> Mask:
        return self.present & ~self.waived

    @cached_property
    def _unseen(self) -> Mask:
        """Cells whose largest respondent without a waiver may be below the ranks."""
        return ~self._open.any(axis=1) & self.more

    @cached_property
    def protected(self) -> Mask:
        """Cells with somebody who did not waive protection."""
        return np.asarray(self._open.any(axis=1) | self.more)

    @cached_property
    def _first(self) -> Indices:
        return np.asarray(np.argmax(self._open, axis=1))

    @cached_property
    def one(self) -> Exact:
        """``x_s``: one whole respondent, the largest who did not waive."""
        largest = self._at_first(self.value) * self.whole
        below = self.last * self.whole
        if self.scale == 1 and self.whole == 1:
            below = np.minimum(below, self.hidden)
        return np.where(self._unseen, below, np.where(self._open.any(axis=1), largest, 0))

    def taken(self, number: int) -> Exact:
        """How much of each rank is among this many respondents: ``s`` and the largest others."""
        part = self._part
        rest = self.copies.copy()
        rows = np.arange(rest.shape[0])
        rest[rows, self._first] = rest[rows, self._first] - part
        before = np.cumsum(rest, axis=1) - rest
        room = np.where(self._unseen, number * self.whole - self.whole, number * self.whole - part)
        take = np.minimum(np.maximum(room[:, None] - before, 0), rest)
        take[rows, self._first] = take[rows, self._first] + part
        return np.asarray(take)

    def largest(self, number: int) -> Exact:
        """What ``s`` and the largest others, this many respondents in all, contribute together."""
        take = self.taken(number)
        room = number * self.whole - take.sum(axis=1)
        below = np.minimum(self.last * room, self.hidden)
        return np.asarray((self.value * take).sum(axis=1) + below)

    def units(self, amount: Exact, divisor: int = 1) -> Exact:
        return np.asarray(-((-amount) // (divisor * self.scale)))

    @cached_property
    def _part(self) -> Exact:
        part = np.minimum(self._at_first(self.copies), self.whole)
        return np.where(self._open.any(axis=1), part, 0)

    def _at_first(self, array: Exact) -> Exact:
        return np.take_along_axis(array, self._first[:, None], axis=1)[:, 0]

    def downwards(self, upper: Exact) -> Exact:
        """The lower level for an upper one: the same, but not below 0 where nothing is negative."""
        return upper if self.signed else np.minimum(upper, self.net // self.scale)


def _contributions(table: Table, rule: str, ranks: int) -> Contributions:
    contributions = table.contributions
    if contributions is None or contributions.value.shape[-1] < ranks:
        there = "none" if contributions is None else f"only {contributions.value.shape[-1]}"
        raise InputError(
            f"The rule {rule!r} needs the {ranks} largest contributions of every cell, and the table has "
            f"{there}; a file gives them in columns x1 to x{ranks}, an engine for a measure with ranks={ranks}."
        )
    return contributions


def _weights(contributions: Contributions, ranks: int) -> tuple[int, int, Exact]:
    """The scale of amounts, one respondent in units of weight, and the weights in these units."""
    shape = (-1, ranks)
    if contributions.weight is None:
        return 1, 1, np.ones(contributions.value.shape, dtype=np.int64).reshape(shape)
    raw = np.where(contributions.present, contributions.weight, 0.0).reshape(shape)
    if (raw < 0).any():
        raise InputError("A weight is negative; sampling weights are 0 or more.")
    scale = 1 if bool((raw == np.rint(raw)).all()) else 1000
    return scale, scale * 10**contributions.weight_decimals, np.rint(raw * scale).astype(np.int64)


# How closely an insider can bound the largest contributor (Robertson and Ethier 2002).
#
# An insider who knows some contributions subtracts them from the published total; what is left bounds every
# other contribution from above. The closest bound of the largest comes from the largest others::
#
#     x_1 <= X - (x_2 + ... + x_{m+1})
#
# Robertson and Ethier use it to show that dominance can call the worse of two cells safe.


def insider_bounds(
    table: Table,
    coalition: int = 1,
    background: Background = NOTHING,
    weights: Weights = "expanded",
) -> Ints:
    """The coalition's upper bound of the largest contribution in each cell, in units of the table.

    >>> from lustrum.sensitivity.examples import table_of
    >>> insider_bounds(table_of([[59, 40, 1], [61, 20, 19]])).tolist()
    [60, 80]
    """
    check_whole(coalition, "The coalition of insiders", 1)
    ranked = Ranked.of(
        table, background, rule="insider", ranks=coalition + 1, weights=weights, factor=1
    )
    known = ranked.largest(coalition + 1) - ranked.one
    bounds = ranked.units(ranked.total - known)
    return bounds.astype(np.int64).reshape(table.shape)
