"""Protected numbers from a bundle: every table is a plain count of the one protected population."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from math import prod

import numpy as np

from lustrum.model import Category, Dataset, Release, Table, TableQuery
from lustrum.model.arrays import Array, Ints, Mask
from lustrum.model.finest import FinestCells, code_type
from lustrum.model.status import CellStatus
from lustrum.model.text import Message, say, say_many
from lustrum.numeric.counting import kernel
from lustrum.numeric.counting.cube import Cube
from lustrum.numeric.counting.engine import KernelEngine, SumEngine, bytes_of
from lustrum.numeric.counting.plan import Chunk
from lustrum.numeric.structure import UNBOUNDED, Atoms
from lustrum.numeric.structure.atoms import listed
from lustrum.numeric.structure.ragged import Lists, pointers
from lustrum.policy import Policy
from lustrum.protect.magnitudes.carriers import own_places
from lustrum.protect.population.channel import PopulationChannel
from lustrum.protect.population.readers import KnownTotals
from lustrum.protect.population.support import Combinations
from lustrum.protect.proven.domain import DomainAxis, axes_of
from lustrum.protect.proven.margins import NoiseMargins
from lustrum.protect.proven.sums import ClippedSums
from lustrum.public.bundle.files import Bundle
from lustrum.public.bundle.shards import LISTED, ShardedCells, counted
from lustrum.public.bundle.sums import Kind, Kinds, SumTables, clipped_release
from lustrum.public.bundle.weighted import WeightedNumbers
from lustrum.public.noise import FactorNoise, SumNoise
from lustrum.public.numbers import CannotProtectError, Graded, Views
from lustrum.runtime.remembered import Remembered
from lustrum.survey import Reliability

_MOST_BYTES = 64 << 20
_SHARED_BYTES = 8 << 20
_MOST_CELLS = 1 << 21
"""Combinations of codes of some variables that are laid out one by one."""


class Marginals:
    """Engines over cells of a dataset, one for each set of variables, all with the same counts and keys."""

    def __init__(self, whole: KernelEngine) -> None:
        self._dataset, self._whole = whole.dataset, whole
        self._rows = sum(chunk.rows for chunk in whole.chunks)
        self._known = Remembered[KernelEngine](_MOST_BYTES, _size, "cells")

    def of(self, query: TableQuery) -> KernelEngine:
        """An engine that counts what a question names; every table of it is the same on the whole."""
        asked = {*(axis.variable for axis in query.by), *(item.variable for item in query.where)}
        names = tuple(v.name for v in self._dataset.variables if v.name in asked)
        shape = [len(self._dataset.variable(name).codes) for name in names]
        if not names or prod(shape) > min(_MOST_CELLS, 4 * self._rows):
            return self._whole
        return self._known.get(names, lambda: self._added_up(names, shape))

    def _added_up(self, names: tuple[str, ...], shape: list[int]) -> KernelEngine:
        # One cell more than there are, as the kernel wants it.
        sums = np.zeros((prod(shape) + 1, 2), dtype=np.uint64)
        for cells in self._whole.parts():
            index = np.zeros(cells.rows, dtype=np.int64)
            for name, size in zip(names, shape, strict=True):
                index = index * size + cells.codes[name]
            assert cells.counts is not None
            assert cells.keys is not None
            kernel.tally_counts(index, cells.counts.view(np.uint64), sums[:, 0])
            kernel.tally_counts(index, cells.keys, sums[:, 1])
        held = np.flatnonzero(sums.any(axis=1))
        counts, keys = (np.ascontiguousarray(column) for column in sums[held].T)
        codes = {}
        for name, column in zip(names, np.unravel_index(held, shape), strict=True):
            kind = code_type(len(self._dataset.variable(name).codes))
            codes[name] = np.ascontiguousarray(column.astype(kind))
        chunk = Chunk(held.size, codes, counts=counts.view(np.int64), keys=keys)
        return self._whole.over(chunk)


def _size(engine: KernelEngine) -> int:
    return sum(map(bytes_of, engine.chunks))


_SAID = ("method", "base", "cells", "empty_share")


@dataclass(frozen=True, eq=False)
class BundleNumbers:
    """The numbers of one bundle; safe to share between threads.

    Cells have no record keys. In their place stands, for every finest cell, the least that it can be in truth,
    and a 1 above it: added up they say how many finest cells a count is made of and the least that it can be.
    """

    bundle: Bundle
    workers: int | None = None
    flags: Reliability | None = None
    """When an estimate is flagged; None: as the policy says that the bundle was made by."""

    def flagged_by(self, policy: Policy) -> BundleNumbers:
        """The same numbers, flagged as a policy says that is in force."""
        flags = None if policy.weights is None else policy.weights.reliability()
        made_by = self.bundle.policy.weights
        if flags is None or made_by is None or flags == (self.flags or made_by.reliability()):
            return self
        return replace(self, flags=flags)

    @property
    def dataset(self) -> Dataset:
        return self.bundle.cells.dataset

    @property
    def mark(self) -> str:
        return self.bundle.digest

    @property
    def in_parts(self) -> bool:
        """Whether cells stay in their file until a question needs them."""
        return isinstance(self.bundle.cells, ShardedCells)

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that the bundle holds protected sums of."""
        held = self.bundle.sums
        return () if held is None else tuple(held.sums.sums)

    @property
    def weights(self) -> tuple[str, ...]:
        return tuple(weight.name for weight in self.dataset.weights)

    @property
    def weighted_measures(self) -> tuple[str, ...]:
        """The measures of which the protected respondents of a survey have values."""
        held = self.bundle.respondents
        return () if held is None else tuple(held.values)

    def quotients(self, over: TableQuery, under: TableQuery, within: str | None) -> Graded | None:
        """Standard errors of quotients of weighted numbers, from the protected respondents."""
        if over.weight is None or self.bundle.respondents is None:
            return None
        estimates = self._weighted.quotients(over, under, within)
        return Graded(estimates, self._weighted.graded(estimates))

    def sum_noise(self, measure: str) -> SumNoise | None:
        """What the bundle states of how contributions were changed."""
        held = self.bundle.sums
        if held is None or isinstance(held.public, ClippedSums):
            return None
        return FactorNoise(held.public, measure)

    def views(self, query: TableQuery) -> Views:
        """Count the protected cells, or add up protected sums, or the weights of protected respondents."""
        if query.weight is not None:
            if self.bundle.respondents is None or query.measure not in (
                None,
                *self.weighted_measures,
            ):
                raise CannotProtectError("The bundle holds no such weighted numbers.")
            estimated = self._weighted.release(query)
            return Views(estimated, None, estimated)
        if query.measure is not None:
            return self._sum_views(query)
        cube = self._engine.of(query).cube(query, unfiltered=True)
        shown = cube.shown()
        return Views(
            self._plain(shown if cube.is_wide else cube.unfiltered(keys=False)),
            self._plain(cube.widened(keys=False)) if query.where else None,
            self._release(cube, shown, query),
        )

    def _sum_views(self, query: TableQuery) -> Views:
        """Sums of a measure; how many records a sum can be made of follows from the counts."""
        held = self.bundle.sums
        if held is None or query.weight is not None:
            raise CannotProtectError("The bundle holds no such protected sums.")
        measured = self.dataset.measure(query.measure or "")
        cube = self._sum_engine.cube(query)
        table = cube.shown()
        if isinstance(held.public, ClippedSums):
            passing = {f.variable.name: f.passing for f in cube.plan.filters}
            shown = clipped_release(held.public, measured, self.dataset, table, passing, self._axes)
            return Views(shown, None, shown)
        counted = replace(query, measure=None)
        most = self._shared_bounds.get(counted, lambda: self._bounds_behind(counted))[1]
        sum_tables = SumTables(held.public, measured, held.negative)
        shown = sum_tables.release(table, most, query, lambda: self._everybody(cube, table))
        return Views(shown, None, shown)

    @cached_property
    def _shared_bounds(self) -> Remembered[tuple[Ints, Ints, list[str]]]:
        """Bounds of counts, which the counts of a table and all its measures share."""
        return Remembered(_SHARED_BYTES, lambda bounds: bounds[0].nbytes + bounds[1].nbytes)

    def _bounds_behind(self, query: TableQuery) -> tuple[Ints, Ints, list[str]]:
        cube = self._engine.of(query).cube(query)
        return self._bounds(cube, cube.shown(), query)

    def _everybody(self, cube: Cube, table: Table) -> Mask:
        """Which cells of a table hold every cell that can be occupied: nothing is carried out of them."""
        passing = {f.variable.name: f.passing for f in cube.plan.filters}
        axes = [(axis.name, axis.categories) for axis in table.axes]
        every = self._combinations.within()
        return np.asarray(self._combinations.within(axes, passing) == every)

    @cached_property
    def _sum_engine(self) -> KernelEngine:
        assert self.bundle.sums is not None
        cells = self.bundle.sums.sums
        nobody = np.zeros(len(cells), dtype=np.int64)
        chunk = Chunk(len(cells), dict(cells.columns()), dict(cells.sums), counts=nobody)
        return SumEngine(self.dataset, [chunk], self.workers)

    @cached_property
    def _weighted(self) -> WeightedNumbers:
        assert self.bundle.respondents is not None
        assert self.bundle.policy.weights is not None
        return WeightedNumbers(
            self.bundle.respondents,
            self.flags or self.bundle.policy.weights.reliability(),
            self.workers,
        )

    @cached_property
    def _kinds(self) -> Kinds:
        return Kinds.of(self.dataset)

    @cached_property
    def _channel_of(self) -> Callable[[Kind], PopulationChannel]:
        """How tables of a kind err, worked out once for each kind."""
        report = self.bundle.report
        return cache(lambda kind: report.channel(kind.variables, own_groups=kind.own_groups))

    @cached_property
    def _combinations(self) -> Combinations:
        return Combinations.of(self.dataset)

    @cached_property
    def _engine(self) -> Marginals:
        cells = self.bundle.cells
        if isinstance(cells, ShardedCells):
            return Marginals(cells.engine(self.workers))
        chunk = counted(dict(cells.columns()), cells.counts, self.bundle.report.support)
        return Marginals(KernelEngine(self.dataset, [chunk], self.workers))

    @cached_property
    def _occupied(self) -> KernelEngine | None:
        """Where everybody may know which finest cells hold units: those, with the least and the most of each.

        The most stands in the place of counts, the least in that of keys. All other cells are empty.
        """
        held = self.bundle.sums
        if held is None or not held.public.existence_public:
            return None
        shown = self.bundle.cells
        assert isinstance(shown, FinestCells)  # bundles with sums have no shards
        row = own_places(self.dataset, held.sums.codes, shown)
        number = np.where(row >= 0, shown.counts[np.maximum(row, 0)], 0)
        low, high = self.bundle.report.support.bounds(number)
        least = np.maximum(low, 1).astype(np.uint64)
        chunk = Chunk(len(held.sums), dict(held.sums.columns()), counts=high, keys=least)
        return KernelEngine(self.dataset, [chunk], self.workers)

    def _plain(self, table: Table) -> Release:
        """What the rules look at: the numbers, without bounds."""
        said = self.bundle.report.method
        return Release(
            axes=table.axes,
            numbers=table.values,
            status=np.full(table.shape, CellStatus.FREE.value),
            method={key: said[key] for key in _SAID if key in said},
            unit=table.unit,
            structural=table.structural,
        )

    def _bounds(self, cube: Cube, table: Table, query: TableQuery) -> tuple[Ints, Ints, list[str]]:
        """The least and the most that every count can be in truth, and notes on public totals behind it."""
        assert table.keys is not None
        report = self.bundle.report
        listed = (table.keys >> np.uint64(LISTED)).astype(np.int64)
        low = (table.keys & np.uint64((1 << LISTED) - 1)).astype(np.int64)
        above = int(report.support.bounds(np.array([report.support.base]))[1][0])
        high = table.values + (above - report.support.base) * listed
        passing = {f.variable.name: f.passing for f in cube.plan.filters}
        axes = [(axis.name, axis.categories) for axis in table.axes]
        if self._occupied is None:
            possible = self._combinations.within(axes, passing)
            low, high = report.support.aggregate(low, high, listed, possible)
        else:
            occupied = self._occupied.cube(replace(query, measure=None)).shown()
            assert occupied.keys is not None
            low, high = occupied.keys.astype(np.int64), occupied.values
        known: list[str] = []
        for totals in report.known:
            most, exact = most_by_totals(self.dataset, totals, axes, passing)
            high = np.minimum(high, most)
            low = np.where(exact, most, low)
            if exact.any():
                labels = ", ".join(
                    self.dataset.variable(name).label for name, _ in totals.axes(self.dataset)
                )
                known.append(
                    say(
                        "Exact totals by {variables} are public elsewhere: the bounds state them beside the "
                        "protected numbers.",
                        variables=labels,
                    )
                )
        return low, high, known

    @cached_property
    def _noise(self) -> NoiseMargins | None:
        """How far cells of a population with a proof are off; bundles of earlier versions do not state it."""
        noise = self.bundle.report.noise
        return None if noise is None else NoiseMargins.from_mapping(noise)

    @cached_property
    def _axes(self) -> Sequence[DomainAxis]:
        return axes_of(self.dataset)

    def _margin(self, kind: Kind, table: Table) -> int | None:
        """A table has one margin of error: that of the largest number in it.

        A population with a proof has none for more variables than were measured together.
        """
        report = self.bundle.report
        if report.proof is not None and kind.variables > int(report.method["max_variables"]):
            return None
        largest = int(table.values.max(initial=0))
        return report.margin(kind.variables, own_groups=kind.own_groups, shown=largest)

    def _margin_notes(
        self, kind: Kind, margin: int | None, margins: Ints | None
    ) -> Iterator[Message]:
        """How far numbers are off, in words."""
        if margin is not None:
            yield say_many(
                "Margin of error: a count by {number} variable is rarely more than {margin} away from "
                "the true one.",
                "Margin of error: a count by {number} variables is rarely more than {margin} away from "
                "the true one.",
                kind.variables,
                margin=margin,
            )
        elif margins is not None and (margins >= 0).any():
            yield say(
                "Every number has a margin of error of its own, here from {least} to {most}; 95 of 100 true "
                "numbers lie within it.",
                least=int(margins[margins >= 0].min()),
                most=int(margins.max()),
            )
        if margin is None and (margins is None or (margins < 0).any()):
            yield say(
                "No margin of error is stated: nobody measured how so many variables go together."
            )

    def _how_made(self) -> tuple[Message, ...]:
        """What every table says of the population that it is counted from."""
        report = self.bundle.report
        if report.proof is None:
            return (
                say(
                    "All tables are counts of one protected population, in which every combination of all "
                    "variables shows 0, {base} or more. So tables add up and agree with each other.",
                    base=report.support.base,
                ),
            )
        promise = say(
            "All tables are counts of people who were made up from noisy tables, so that tables add up and "
            "agree with each other. No bound is certain: a 1 need not exist, and a 0 need not be empty. The "
            "promise is differential privacy with rho {rho:g} for one person's record that is replaced by "
            "another.",
            rho=float(Fraction(report.proof["rho"])),
        )
        if not report.proof.get("earlier_without_proof"):
            return (promise,)
        return (
            promise,
            say(
                "These people were in a release without proof: the promise covers only what this one adds."
            ),
        )

    def _release(self, cube: Cube, table: Table, query: TableQuery) -> Release:
        """What may be shown: the numbers with bounds, a channel and the margin of error."""
        if self.bundle.sums is None:
            low, high, known = self._bounds(cube, table, query)
        else:
            low, high, known = self._shared_bounds.get(
                query, lambda: self._bounds(cube, table, query)
            )
        # An upper end far beyond the number says nothing to anybody; without certainty there is none at all,
        # but for cells that cannot exist.
        far = high - table.values > np.maximum(table.values, 1000)
        high = np.where(
            far | ((high > 0) & (not self.bundle.report.support.certain)), UNBOUNDED, high
        )
        passing = {f.variable.name: f.passing for f in cube.plan.filters}
        axes = [(axis.name, axis.categories) for axis in table.axes]
        kind = self._kinds.kind(axes, passing)
        margin, margins = None, None
        if self._noise is None:
            margin = self._margin(kind, table)
        else:
            margins = self._noise.margins(self.dataset, axes, passing, table.values, self._axes)
            margins = margins if (margins >= 0).any() else None
        measured = margins
        if margins is not None and table.structural is not None:
            measured = margins[~table.structural]
            margins = np.where(table.structural, -1, margins)
        return replace(
            self._plain(table),
            channel=self._channel_of(kind),
            least=low,
            most=high,
            margin=margin,
            margins=margins,
            notes=(*self._how_made(), *self._margin_notes(kind, margin, measured), *known),
        )


# What exact totals that are public elsewhere say of the cells of a table.


Axes = Sequence[tuple[str, Sequence[Category]]]


def most_by_totals(
    dataset: Dataset, totals: KnownTotals, axes: Axes, passing: Mapping[str, frozenset[int]]
) -> tuple[Ints, Mask]:
    """The most that each cell can hold by some totals, and which cells are exactly that.

    A cell holds at most the totals of all groups that it overlaps, and exactly those where it is made of
    whole groups: no filter, and no other variable, takes a part of them away.
    """
    known = totals.axes(dataset)
    names = [name for name, _ in known]
    most = np.array(totals.values, dtype=np.int64).reshape([len(groups) for _, groups in known])
    exact = np.ones((), dtype=np.bool_)
    on_axis = dict(axes)
    for index, (name, groups) in enumerate(known):
        size = len(dataset.variable(name).codes)
        passes = np.ones(size, dtype=np.bool_)
        if name in passing:
            passes[:] = False
            passes[list(passing[name])] = True
        shown = on_axis.get(name, (Category("_T", "", tuple(range(size))),))
        touched, whole = _touched(size, groups, shown, passes)
        most = touched.roll_up(most, index)
        exact = exact[..., None] & whole
    for name, codes in passing.items():
        if name not in names and len(codes) < len(dataset.variable(name).codes):
            exact = exact & False
    # Lay the known variables along the axes of the table; others have one cell there.
    shape = [len(categories) if name in names else 1 for name, categories in axes]
    shown_axes = [index for index, name in enumerate(names) if name in on_axis]
    dropped = tuple(index for index in range(len(names)) if index not in shown_axes)
    there = [n for n, _ in axes]
    order = np.argsort([there.index(names[index]) for index in shown_axes], kind="stable")
    full = tuple(len(categories) for _, categories in axes)

    def laid(array: Array) -> Array:
        small = array.squeeze(axis=dropped).transpose(order) if shown_axes else array.squeeze()
        return np.broadcast_to(small.reshape(shape), full)

    covers = np.ones(full, dtype=np.bool_)
    for index, (name, categories) in enumerate(axes):
        if name not in names:
            size = len(dataset.variable(name).codes)
            total = np.array([len(c.members) == size for c in categories])
            covers &= total.reshape([-1 if p == index else 1 for p in range(len(axes))])
    return np.asarray(laid(most), dtype=np.int64), np.asarray(laid(exact) & covers, dtype=np.bool_)


def _touched(
    codes: int, groups: Sequence[Category], shown: Sequence[Category], passes: Mask
) -> tuple[Atoms, Mask]:
    """The groups that each category overlaps among those who pass, and whether it holds them whole."""
    group_of = np.full(codes, -1, dtype=np.int64)
    group_lists = listed([group.members for group in groups])
    group_of[group_lists.items] = group_lists.rows
    members = listed([category.members for category in shown])
    passing = passes[members.items]
    pairs, held = np.unique(
        members.rows[passing] * len(groups) + group_of[members.items[passing]], return_counts=True
    )
    rows, group_index = np.divmod(pairs, len(groups))
    whole = np.ones(len(shown), dtype=np.bool_)
    whole[rows[held < group_lists.lengths[group_index]]] = False
    lists = Lists(pointers(np.bincount(rows, minlength=len(shown))), group_index)
    return Atoms(group_of, len(groups), lists), whole
