"""Tables of protected sums: the numbers with certain bounds and a margin of error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np

from lustrum.audit.contribution import exact_for
from lustrum.model import Category, Dataset, Measure, Release, Table, TableQuery
from lustrum.model.arrays import Ints, Mask
from lustrum.model.status import CellStatus
from lustrum.model.text import say
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.magnitudes.report import PublicFactors
from lustrum.protect.population.search.levels import controlled_levels, root_functions
from lustrum.protect.proven.domain import DomainAxis
from lustrum.protect.proven.sums import ClippedSums
from lustrum.public.noise import FactorNoise
from lustrum.runtime.remembered import Remembered

_SAID = ("method", "p", "directions", "existence")


def sum_bounds(published: Ints, records: Ints, most: Fraction) -> tuple[Ints, Ints]:
    """The least and the most that a true sum of nothing negative can be, for certain.

    A record of ``x`` changes by ``ceil(b x)`` or by 2 at most. With ``n`` records or fewer, a sum ``X``
    therefore shows from ``(1 - b) X - 2 n`` to ``(1 + b) X + 2 n``.

    >>> from lustrum.numeric.structure import UNBOUNDED
    >>> low, high = sum_bounds(np.array([1200, 1200]), np.array([5, UNBOUNDED]), Fraction(1, 5))
    >>> low.tolist(), (high < UNBOUNDED).tolist()
    ([992, 0], [True, False])
    """
    known = records < UNBOUNDED
    up, down = 1 + most, 1 - most
    twice = 2 * np.where(known, records, 0)
    y, twice = exact_for(up / down, published, twice)
    least = -((-(y - twice) * up.denominator) // up.numerator)
    furthest = ((y + twice) * down.denominator) // down.numerator
    low = np.where(known, np.maximum(least, 0), 0)
    high = np.where(known & (furthest < UNBOUNDED), furthest, UNBOUNDED)
    return low.astype(np.int64), high.astype(np.int64)


def _plain(
    table: Table, measure: Measure, method: Mapping[str, Any], said: Sequence[str]
) -> Release:
    return Release(
        axes=table.axes,
        numbers=table.values,
        status=np.full(table.shape, CellStatus.FREE.value),
        method={key: method[key] for key in said if key in method},
        decimals=measure.decimals,
        unit=table.unit,
        structural=table.structural,
    )


def clipped_release(
    public: ClippedSums,
    measure: Measure,
    dataset: Dataset,
    table: Table,
    passing: Mapping[str, frozenset[int]],
    own: Sequence[DomainAxis],
) -> Release:
    """Sums with a proof: no bound is certain, and each cell has a margin of its own."""
    one = public.measures[measure.name]
    axes = [(axis.name, axis.categories) for axis in table.axes]
    margins = one.noise.margins(dataset, axes, passing, table.values, own)
    unknown = (
        ()
        if (margins >= 0).all()
        else (
            say(
                "No margin of error of {measure} is stated by so many variables: nobody measured them.",
                measure=measure.label,
            ),
        )
    )
    return replace(
        _plain(table, measure, public.method, ("method", "rho")),
        least=np.full(table.shape, -UNBOUNDED, dtype=np.int64),
        most=np.full(table.shape, UNBOUNDED, dtype=np.int64),
        margins=np.where(table.structural, -1, margins)
        if table.structural is not None
        else margins,
        notes=(
            say(
                "All sums of {measure} were made up from noisy tables, so that tables add up. Somebody with "
                "more than {bound} counts as {bound}, and somebody below 0 as 0. That was so for about "
                "{clipped} people, rarely more than {margin} away from it, and changes sums by an amount that "
                "is not published.",
                measure=measure.label,
                bound=one.bound / 10**measure.decimals,
                clipped=one.clipped,
                margin=one.clipped_margin,
            ),
            *unknown,
        ),
    )


@dataclass(frozen=True)
class SumTables:
    """Releases of one measure's sums; ``negative`` names the measures that can be below 0."""

    public: PublicFactors
    measure: Measure
    negative: frozenset[str]

    def plain(self, table: Table) -> Release:
        """The numbers, without bounds."""
        return _plain(table, self.measure, self.public.method, _SAID)

    def release(
        self, table: Table, most: Ints, query: TableQuery, everybody: Callable[[], Mask]
    ) -> Release:
        """What may be shown; ``most`` is the most records that each cell can be made of.

        Where existence is secret, a cell may carry records of others, and others may carry its own, unless it
        holds ``everybody``: what is carried has no bounds.
        """
        if self.measure.name in self.negative:
            low = np.full(table.shape, -UNBOUNDED, dtype=np.int64)
            high = np.full(table.shape, UNBOUNDED, dtype=np.int64)
        else:
            # A measure with parts changes part by part.
            pieces = max(len(self.measure.parts), 1)
            records = np.where(most < UNBOUNDED // pieces, most * pieces, UNBOUNDED)
            low, high = sum_bounds(table.values, records, self.public.factors.most)
            if not self.public.existence_public:
                low = np.where(everybody(), low, 0)
                high = np.where(everybody(), high, UNBOUNDED)
        variables = {axis.variable for axis in query.by} | {f.variable for f in query.where}
        tied = (
            ()
            if self.public.existence_public
            else (
                say(
                    "Sums are tied to the protected counts: where a combination of all variables shows a count "
                    "of 0, near ones carry its sums."
                ),
                say(
                    "What attackers can say is stated as if every cell had the sums of its own contributors "
                    "alone. Where sums are moved to near cells, attackers know less."
                ),
            )
        )
        losses = (
            (
                say(
                    "Gains and losses were changed one by one: where they cancel, a sum errs by such a share "
                    "of all of them, and not of what is left."
                ),
            )
            if self.measure.name in self.negative
            else ()
        )
        release = self.plain(table)
        return replace(
            release,
            least=low,
            most=high,
            notes=(
                *tied,
                say(
                    "All sums are sums of contributions that were changed once, by {low:.3g} to {high:.3g} "
                    "percent, up or down. So tables add up and agree with each other.",
                    low=100 * float(self.public.factors.least),
                    high=100 * float(self.public.factors.most),
                ),
                say(
                    "Margin of error of {measure}: the sums of this table are typically {error:.3g} percent "
                    "away from the true ones, small sums more and large sums less.",
                    measure=self.measure.label,
                    error=self._typical(release, max(len(variables), 1)),
                ),
                *losses,
            ),
        )

    def _typical(self, release: Release, variables: int) -> float:
        """The mean of the expected errors of the cells shown, as the figures by size state them."""
        shown = release.numbers[release.inner & (release.numbers > 0)]
        if not shown.size:
            return self.public.error(self.measure.name, variables)
        noise = FactorNoise(self.public, self.measure.name)
        return float(noise.error(shown.astype(np.float64), variables).mean())


# The kind of a question, however it is phrased: by how many variables, and whether the search controls it.
#
# A variable that is a function of another one, such as the region of an area, says something of that other
# one. What a question fixes of each such *root* is a set of its codes for every cell: axes, levels, groups
# and filters together. All codes fix nothing. The codes of one category of a level are controlled; other
# sets are the reader's own groups.

Codes = frozenset[int]

_MOST_CODES = 1 << 20


def _groups(group_of: Ints, size: int) -> Iterator[Codes]:
    """The codes of every group, in time that grows with the codes and not with the groups."""
    order = np.argsort(group_of, kind="stable")
    ends = np.searchsorted(group_of[order], np.arange(size + 1)).tolist()
    codes = order.tolist()
    return (frozenset(codes[first:last]) for first, last in pairwise(ends))


@dataclass(frozen=True)
class Kind:
    """How many variables a question crosses, at least 1, and whether it has groups of its own."""

    variables: int
    own_groups: bool


@dataclass(frozen=True, eq=False)
class Kinds:
    """The groups of codes that tables at published levels have; worked out once for a dataset."""

    functions: Mapping[str, tuple[str, Ints]]
    controlled: Mapping[str, frozenset[Codes]]

    @classmethod
    def of(cls, dataset: Dataset) -> Kinds:
        """Lay out the controlled levels of a dataset."""
        return cls(
            root_functions(dataset),
            {
                root: frozenset(
                    codes for level in levels for codes in _groups(level.group_of, level.size)
                )
                for root, levels in controlled_levels(dataset).items()
            },
        )

    def kind(
        self, axes: Sequence[tuple[str, Sequence[Category]]], passing: Mapping[str, frozenset[int]]
    ) -> Kind:
        """The kind of a table with these categories, of the codes that pass its filters."""
        filters: dict[str, list[Codes]] = {}
        for name, codes in passing.items():
            root, members = self._root(name, codes)
            filters.setdefault(root, []).append(members)
        along: dict[str, list[list[Codes]]] = {root: [] for root in filters}
        for name, categories in axes:
            root = self.functions[name][0]
            code_sets = [self._root(name, category.member_set)[1] for category in categories]
            along.setdefault(root, []).append(code_sets)
        variables, own_groups = 0, False
        for root, lists in along.items():
            if root not in self.controlled:  # a single code
                continue
            every = self._every[root]
            within = every.intersection(*filters[root]) if root in filters else every
            sets = {within.intersection(*chosen) for chosen in product(*map(set, lists))}
            sets -= {frozenset(), every}
            variables += bool(sets)
            own_groups = own_groups or not sets <= self.controlled[root]
        return Kind(max(variables, 1), own_groups)

    @cached_property
    def _every(self) -> Mapping[str, Codes]:
        return {root: frozenset(range(self.functions[root][1].size)) for root in self.controlled}

    def _root(self, name: str, codes: frozenset[int]) -> tuple[str, Codes]:
        """The codes of the root that have one of these codes of a variable."""
        root, function = self.functions[name]
        if root == name:
            return root, codes
        return root, self._known.get(
            (name, codes),
            lambda: frozenset(np.flatnonzero(np.isin(function, list(codes))).tolist()),
        )

    @cached_property
    def _known(self) -> Remembered[Codes]:
        """The codes of roots, by those of the variables that are functions of them."""
        return Remembered(_MOST_CODES, len)
