"""What stands in the cells: published values, or percentages of them. Nothing else is ever looked at.

A percentage is of the published total where one is shown, otherwise of the sum of the published cells.
Where that base is 0 or not shown there is no percentage.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lustrum.answer.statistics import quotient_margin
from lustrum.model import Release, TableAxis
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.numeric.structure import UNBOUNDED

THIN_SPACE = "\u202f"
NO_PERCENTAGE = "\u2013"
MINUS = "\u2212"
INDEX_DECIMALS = 1


@dataclass(frozen=True, eq=False)
class CellFigures:
    """A figure for each cell of a release.

    ``units`` are whole numbers of ``10**-decimals``, exact for counts; ``known`` says which of them there are.
    ``low`` and ``high`` are in the same units, infinite where nothing is known, and absent where the method
    says nothing. ``based_on`` tells of percentages whether their base is a published ``total`` or a ``sum``,
    and ``blurred`` which differences are no larger than protection may have made them. True values are rarely
    further away than ``margins``, in the same units, NaN where nothing is stated.
    """

    units: Ints
    known: Mask
    decimals: int
    low: Floats | None = None
    high: Floats | None = None
    based_on: frozenset[str] = frozenset()
    blurred: Mask | None = None
    margins: Floats | None = None

    @cached_property
    def values(self) -> Floats:
        """The figures as numbers to compare and draw; NaN where there is none."""
        return np.where(self.known, self.units / 10**self.decimals, np.nan)


def figures(release: Release, show: str, over: Collection[int], decimals: int = 1) -> CellFigures:
    """The figures of a release: its values, percentages of the sum over some axes, or comparisons along one."""
    if show == "row-rate":  # the same digits as percentages with one decimal more
        return replace(figures(release, "row-percent", over, decimals + 1), decimals=decimals)
    low, high = _ends(release)
    if show == "difference":
        return _differences(release, *over)
    if show == "index":
        return _index(release, *over)
    if show == "counts":
        return CellFigures(
            release.numbers,
            release.known,
            release.decimals,
            low,
            high,
            margins=_margins_of(release),
        )
    values = np.where(release.known, release.numbers, np.nan)
    base = _summed(values, release.axes, over)
    scale = 10**decimals
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(base == 0, np.nan, 100 * scale * (values / base))
    if low is not None and high is not None:
        low, high = _share_ends(low, high, release.axes, over, scale)
    kinds = frozenset(
        "total" if whole(release.axes[i]) is not None else "sum"
        for i in over
        if len(release.axes[i]) > 1
    )
    known = np.isfinite(shares)
    units = np.rint(np.where(known, shares, 0)).astype(np.int64)
    margins = _margins_of(release)
    if margins is None and release.errors is not None:
        errors = np.where(release.errors < 0, np.nan, release.errors)
        of_base = np.zeros(1) if "sum" in kinds else _summed(errors, release.axes, over)
        far = _estimate_margin(values, base, errors, of_base)
        margins = np.where(known, np.ceil(100 * scale * far + 0.5 * (far > 0)), np.nan)
    elif margins is not None:
        # A base that was added up is as far off as its parts together; a true share is from 0 to 100.
        far = quotient_margin(values, base, margins, _summed(margins, release.axes, over))
        most = np.maximum(units, 100 * scale - units)
        margins = np.where(known, np.minimum(np.ceil(100 * scale * far + 0.5), most), np.nan)
    return CellFigures(units, known, decimals, low, high, kinds, margins=margins)


def _estimate_margin(values: Floats, base: Floats, errors: Floats, of_base: Floats) -> Floats:
    """Two standard errors of the share of a part in an estimate: its variance less that of the base in it.

    The share is taken to be as good where the base is far off as where it is not. Where that leaves less than
    nothing, both variances are added, as the American Community Survey does. A base without a standard error of
    its own takes nothing away.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        share = values / base
        own, through = errors**2, (share * of_base) ** 2
        return 2 * np.sqrt(np.where(own < through, own + through, own - through)) / np.abs(base)


def _margins_of(release: Release) -> Floats | None:
    """The margins of error of the published values, NaN where there is none."""
    margins = release.error_margins
    return None if margins is None else np.where(margins < 0, np.nan, margins)


def _differences(release: Release, position: int) -> CellFigures:
    """Each figure less the first one along an axis; it is off by both margins together at most."""
    base = np.take(release.numbers, [0], axis=position)
    units = release.numbers - base
    known = release.known & np.take(release.known, [0], axis=position)
    blurred = None
    if release.errors is not None:
        errors = np.maximum(release.errors, 0).astype(np.int64)
        first = np.take(errors, [0], axis=position)
        blurred = units * units <= 4 * (errors * errors + first * first)  # two standard errors
    margins = _margins_of(release)
    if margins is not None:
        margins = margins + np.take(margins, [0], axis=position)
        blurred = np.abs(units) <= margins
    if blurred is not None:
        itself = np.arange(release.shape[position]) == 0
        shape = [1] * len(release.shape)
        shape[position] = -1
        blurred = blurred & ~itself.reshape(shape)
        margins = None if margins is None else np.where(itself.reshape(shape), 0.0, margins)
    return CellFigures(units, known, release.decimals, blurred=blurred, margins=margins)


def _index(release: Release, position: int) -> CellFigures:
    """Each figure per hundred of the first one along an axis; the marks are those of the differences."""
    apart = _differences(release, position)
    base = np.take(release.numbers, [0], axis=position)
    known = apart.known & (base > 0)
    scale = 10**INDEX_DECIMALS
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(known, 100 * scale * (release.numbers / base), 0.0)
    units = np.rint(shares).astype(np.int64)
    margins = _margins_of(release)
    if margins is not None:
        first = np.take(margins, [0], axis=position)
        far = np.ceil(100 * scale * quotient_margin(release.numbers, base, margins, first) + 0.5)
        margins = np.where(apart.margins == 0, 0.0, np.where(known & np.isfinite(far), far, np.nan))
    return CellFigures(units, known, INDEX_DECIMALS, blurred=apart.blurred, margins=margins)


class Signs(NamedTuple):
    """What a language writes before decimals and between thousands."""

    point: str = "."
    group: str = ","


ENGLISH_SIGNS = Signs()


def number(value: int, decimals: int = 0, signs: Signs = ENGLISH_SIGNS) -> str:
    r"""A figure with its thousands apart.

    >>> number(1234567), number(1234567, signs=Signs(",", "."))
    ('1,234,567', '1.234.567')
    >>> ascii(number(-1250, 2))
    "'\\u221212.50'"
    """
    units, rest = divmod(abs(value), 10**decimals)
    sign = MINUS if value < 0 else ""
    fraction = f"{signs.point}{rest:0{decimals}d}" if decimals else ""
    whole_part = f"{units:,}".replace(",", signs.group)
    return f"{sign}{whole_part}{fraction}"


def whole(axis: TableAxis) -> int | None:
    """The position of the category that holds all the others, if there is one."""
    everybody = frozenset().union(*(c.member_set for c in axis.categories))
    for position, category in enumerate(axis.categories):
        if not axis.inner[position] and category.member_set == everybody:
            return position
    return None


def _ends(release: Release) -> tuple[Floats | None, Floats | None]:
    if release.least is None or release.most is None:
        return None, None
    low = np.where(release.least <= -UNBOUNDED, -np.inf, release.least)
    high = np.where(release.most >= UNBOUNDED, np.inf, release.most)
    return low, high


def _summed(values: Floats, axes: tuple[TableAxis, ...], over: Collection[int]) -> Floats:
    """The published total over some axes, or the sum where there is none; NaN where a part is not shown."""
    for position in over:
        axis = axes[position]
        total = whole(axis)
        if total is not None:
            known = np.take(values, [total], axis=position)
            # A total that is not shown leaves the sum of what is.
            values = np.where(np.isnan(known), _added(values, axis, position), known)
            continue
        values = _added(values, axis, position)
    return values


def _added(values: Floats, axis: TableAxis, position: int) -> Floats:
    """The sum of the inner cells along one axis; categories that overlap partly have none."""
    inner = np.flatnonzero(axis.inner)
    members = [m for i in inner for m in axis.categories[i].members]
    out = np.take(values, inner, axis=position).sum(axis=position, keepdims=True)
    return np.full_like(out, np.nan) if len(set(members)) < len(members) else out


def _share_ends(
    low: Floats, high: Floats, axes: tuple[TableAxis, ...], over: Collection[int], scale: int
) -> tuple[Floats | None, Floats | None]:
    """What percentages the true values can have: the cell at one end, its base at the other."""
    if np.any(low < 0):
        return None, None
    least, most = _summed(low, axes, over), _summed(high, axes, over)
    with np.errstate(divide="ignore", invalid="ignore"):
        bottom = np.where(np.isfinite(most) & (most > 0), 100 * (low / most), 0.0)
        top = np.where(np.isfinite(high) & (least > 0), 100 * (high / least), 100.0)
    # A hair is allowed for, so that what is exact in fractions stays so in floating point.
    return (
        np.floor(np.minimum(bottom, 100.0) * scale + 1e-9),
        np.ceil(np.minimum(top, 100.0) * scale - 1e-9),
    )
