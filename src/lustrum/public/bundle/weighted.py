"""Weighted counts and sums from protected respondents, and quotients of these, with errors and grades."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from lustrum.model import InputError, Release, Table, TableAxis, TableQuery
from lustrum.model.arrays import Ints, Mask
from lustrum.model.status import CellStatus
from lustrum.model.text import say
from lustrum.model.variable import TOTAL_CODE
from lustrum.numeric.counting.engine import KernelEngine, SumEngine
from lustrum.numeric.counting.plan import Chunk
from lustrum.numeric.structure import TableLayout
from lustrum.protect.weighted import ProtectedRespondents, RespondentMoments, RespondentSums
from lustrum.risk.batch import risks_of_many
from lustrum.risk.counts import Cells, cells_of, check_scale
from lustrum.risk.population import LogLinear, PolyaUrn, PopulationModel
from lustrum.runtime.remembered import Remembered
from lustrum.survey import Estimates, Reliability

_MOMENT_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class WeightedNumbers:
    """The weighted tables of one survey; safe to share between threads."""

    respondents: ProtectedRespondents
    reliability: Reliability
    workers: int | None = None

    def release(self, query: TableQuery) -> Release:
        """A weighted table: whole numbers that add up, each with its standard error and grade."""
        table = self._engine.tabulate(query)
        layout = TableLayout.of_query(query, self.respondents.dataset)
        variables = max(len(layout.parts), 1)
        if self.respondents.replicates is not None:
            estimates = self.respondents.totals_of(self._moments(query), variables)
        else:
            ways = [
                (self.respondents.totals(way.part(query.measure), variables), way)
                for way in self._ways(layout)
            ]
            estimates = _joined(ways, layout.axes)
        shape = table.shape
        errors = np.ceil(estimates.standard_errors * 10.0**table.decimals).astype(np.int64)
        grades = estimates.grades(self.reliability).reshape(shape)
        if table.structural is not None:
            # A structural zero is known, not estimated.
            grades = np.where(table.structural, "reliable", grades)
        return Release(
            axes=table.axes,
            numbers=table.values,
            status=np.full(shape, CellStatus.FREE.value),
            method={"method": "protected-survey"},
            decimals=table.decimals,
            unit=table.unit if query.measure else self.respondents.dataset.units,
            structural=table.structural,
            errors=errors.reshape(shape),
            grades=grades,
            notes=(
                say(
                    "Weighted numbers are sums over protected respondents, who share the weights of a class; "
                    "nobody's own weight is used."
                ),
                *self._about_values(query),
                say(
                    "Standard errors include the sampling error and the error that protection adds."
                ),
                *self._about_sample(query, table, estimates),
            ),
        )

    def quotients(
        self, over: TableQuery, under: TableQuery, within: str | None = None
    ) -> Estimates:
        """Every number of one table in proportion to one of another with the same axes.

        Without ``within`` that is the number of the same cell. Otherwise it is the total along all variables
        except the one that ``within`` names, which may be none of the table's.
        """
        layout = TableLayout.of_query(over, self.respondents.dataset)
        below = TableLayout.of_query(under, self.respondents.dataset)
        variables = max(len(layout.parts), 1)
        base = _bases(layout.axes, within)
        if self.respondents.replicates is not None:
            return self.respondents.quotients_of(
                self._moments(over),
                self._moments(under),
                base,
                variables,
                nested=_total_holds_all(layout.axes, within),
            )
        estimates = []
        for way, other in zip(self._ways(layout), self._ways(below), strict=True):
            beside = other if within is None else self._total(below, other, within)
            estimate = self.respondents.quotients(
                way.part(over.measure), beside.part(under.measure), base, variables
            )
            estimates.append((estimate, way))
        return _joined(estimates, layout.axes)

    def graded(self, estimates: Estimates) -> np.ndarray:
        return estimates.grades(self.reliability)

    def _moments(self, query: TableQuery) -> RespondentMoments:
        """The moments of all cells: each respondent is counted once, in the atom that it lies in."""
        return self._known_moments.get(query, lambda: self._counted_moments(query))

    def _counted_moments(self, query: TableQuery) -> RespondentMoments:
        plan = self._engine.plan(query)
        inside = np.ones(len(self.respondents), dtype=np.bool_)
        for item in plan.filters:
            inside &= item.passes[self._codes[item.variable.name]]
        places = tuple(a.atoms.of_code[self._codes[a.variable.name]] for a in plan.axes)
        found = self.respondents.moments(_Way((), places, plan.shape, inside).part(query.measure))
        rows = found.rows.reshape(*plan.shape, -1)
        for index, axis in enumerate(plan.axes):
            rows = axis.shown_atoms.roll_up(rows, index)
        return replace(found, rows=rows.reshape(-1, found.rows.shape[1]))

    @cached_property
    def _known_moments(self) -> Remembered[RespondentMoments]:
        """By question: what a table shows and the errors of its shares follow from the same moments."""
        return Remembered(_MOMENT_BYTES, lambda moments: moments.rows.nbytes, "respondents")

    def _about_sample(
        self, query: TableQuery, table: Table, estimates: Estimates
    ) -> tuple[str, ...]:
        """What sampling protects by itself, where it can be measured; from public numbers alone."""
        if query.measure is not None or not all(_are_apart(axis) for axis in table.axes):
            return ()
        inner = table.take([np.flatnonzero(axis.inner) for axis in table.axes])
        counts = estimates.respondents.reshape(table.shape)[table.inner].reshape(inner.shape)
        risk = sample_risk(
            replace(inner, values=counts), int(inner.values.sum()) // 10**table.decimals
        )
        if risk is None:
            return ()
        return (
            say(
                "Drawing a sample protects too, since few readers know who was asked. A measure made for "
                "samples, other than the stated risk, is about {part:.2f} here and would be about {whole:.2f} "
                "with answers of all {people:,} {units}; from 0 to 1, lower is safer. Both are estimated from "
                "{respondents:,} protected respondents.",
                people=risk.people,
                units=self.respondents.dataset.units,
                whole=risk.everybody,
                respondents=risk.respondents,
                part=risk.sample,
            ),
        )

    def _about_values(self, query: TableQuery) -> tuple[str, ...]:
        if query.measure is None:
            return ()
        return (
            say(
                "Values of {measure} are means of classes of respondents, without the largest values; nobody's "
                "own value is used.",
                measure=self.respondents.dataset.measure(query.measure).label,
            ),
        )

    def _ways(self, layout: TableLayout) -> list[_Way]:
        """Ways to lay categories side by side, so that in none of them two overlap."""
        inside = np.ones(len(self.respondents), dtype=np.bool_)
        for axis in layout.filters:
            inside &= np.isin(self._codes[axis.name], np.array(axis.categories[0].members))
        layers = [_layers(axis) for axis in layout.axes]
        return [
            _Way(
                tuple(tuple(layer) for layer in chosen),
                tuple(
                    self._placed(axis, layer)
                    for axis, layer in zip(layout.axes, chosen, strict=True)
                ),
                tuple(len(axis) for axis in layout.axes),
                inside,
            )
            for chosen in product(*layers)
        ]

    def _total(self, layout: TableLayout, way: _Way, within: str) -> _Way:
        """The same with the totals along all variables but one."""
        places = [
            category if axis.name == within else self._placed(axis, [axis.codes.index(TOTAL_CODE)])
            for axis, category in zip(layout.axes, way.places, strict=True)
        ]
        return replace(way, places=tuple(places))

    def _placed(self, axis: TableAxis, layer: list[int]) -> Ints:
        """The category of each respondent among those of a layer, -1 for none."""
        codes = self._codes[axis.name].astype(np.int64)
        size = int(codes.max(initial=0)) + 1
        size = max([size, *(max(c.members) + 1 for c in axis.categories if c.members)])
        of_code = np.full(size, -1, dtype=np.int64)
        for index in layer:
            of_code[list(axis.categories[index].members)] = index
        return of_code[codes]

    @cached_property
    def _codes(self) -> dict[str, Ints]:
        names = [v.name for v in self.respondents.dataset.variables]
        return dict(zip(names, self.respondents.codes, strict=True))

    @cached_property
    def _engine(self) -> KernelEngine:
        respondents = self.respondents
        chunk = Chunk(
            rows=len(respondents),
            codes=self._codes,
            numbers={respondents.name: respondents.weights, **respondents.values},
        )
        return SumEngine(respondents.dataset, [chunk], self.workers)


@dataclass(frozen=True, eq=False)
class _Way:
    """One layer of categories of every axis, and the category of each respondent in it."""

    layers: tuple[tuple[int, ...], ...]
    places: tuple[Ints, ...]
    shape: tuple[int, ...]
    inside: Mask

    def part(self, measure: str | None) -> RespondentSums:
        """The cell of every respondent, -1 for none."""
        cells = np.where(self.inside, 0, -1)
        for category, size in zip(self.places, self.shape, strict=True):
            cells = np.where((cells >= 0) & (category >= 0), cells * size + category, -1)
        return RespondentSums(
            cells.astype(np.int64), int(np.prod(self.shape, dtype=np.int64)), measure
        )

    @property
    def held_cells(self) -> Ints:
        """The cells of the table that this way holds."""
        if not self.layers:
            return np.zeros(1, dtype=np.int64)
        grid = np.ix_(*(np.array(layer, dtype=np.int64) for layer in self.layers))
        return np.ravel_multi_index(grid, self.shape).ravel().astype(np.int64)


def _layers(axis: TableAxis) -> list[list[int]]:
    """Categories of an axis in layers of which none holds two that overlap."""
    layers: list[tuple[set[int], list[int]]] = []
    for index, category in enumerate(axis.categories):
        members = set(category.members)
        for taken, layer in layers:
            if not taken & members:
                taken |= members
                layer.append(index)
                break
        else:
            layers.append((members, [index]))
    return [layer for _, layer in layers]


def _are_apart(axis: TableAxis) -> bool:
    """Whether nobody is in two of the smallest categories."""
    member_sets = [
        set(c.members) for c, inner in zip(axis.categories, axis.inner, strict=True) if inner
    ]
    return sum(map(len, member_sets)) == len(set().union(*member_sets))


def _bases(axes: tuple[TableAxis, ...], within: str | None) -> Ints:
    """The cell that each cell is compared with."""
    shape = tuple(len(axis) for axis in axes)
    cells = int(np.prod(shape, dtype=np.int64))
    if within is None or not axes:
        return np.arange(cells, dtype=np.int64)
    places = list(np.unravel_index(np.arange(cells), shape))
    for position, axis in enumerate(axes):
        if axis.name != within:
            places[position] = np.full(cells, axis.codes.index(TOTAL_CODE))
    return np.ravel_multi_index(tuple(places), shape).astype(np.int64)


def _total_holds_all(axes: tuple[TableAxis, ...], within: str | None) -> bool:
    """Whether the total that each cell is compared with holds all codes of the cell."""
    for axis in axes:
        if within is not None and axis.name != within:
            total = set(axis.categories[axis.codes.index(TOTAL_CODE)].members)
            if not all(total.issuperset(category.members) for category in axis.categories):
                return False
    return True


def _joined(estimates: list[tuple[Estimates, _Way]], axes: tuple[TableAxis, ...]) -> Estimates:
    """Every cell from the way that holds it."""
    cells = int(np.prod([len(axis) for axis in axes], dtype=np.int64))
    values, variances = np.zeros(cells), np.zeros(cells)
    held = np.zeros(cells, dtype=np.int64)
    for estimate, way in estimates:
        cell_mask = way.held_cells
        values[cell_mask], variances[cell_mask] = (
            estimate.values[cell_mask],
            estimate.variances[cell_mask],
        )
        held[cell_mask] = estimate.respondents[cell_mask]
    return Estimates(values, variances, held)


# The risk of a table from a sample, with estimated populations: what sampling protects by itself.
#
# Antal, Shlomo and Elliot (2015) measure a table of a sample by ``R2`` against the population that it is from.
# The population is not known, so it is estimated many times over from the sample's table. Here that table is of
# protected respondents, and the size of the population is the sum of their shared weights: both are public, and
# so is the figure. The less favourable of two models counts.
#
# The figure is stated and never loosens a rule: others can know that somebody took part in a survey, and for
# them the sample is the population.


_DRAWS = 40
_SEED = 2015
_known = Remembered[tuple[float, float]](1 << 14)
"""By the digest of a table: many questions show the same counts with other totals or statistics."""
_MOST = 1000
"""Cells of a table whose populations are estimated."""


@dataclass(frozen=True)
class PublishedSampleRisk:
    """The risk of a table from a sample, and that of the same table of everybody."""

    respondents: int
    people: int
    sample: float
    everybody: float


def sample_risk(respondents: Table | Ints, people: int) -> PublishedSampleRisk | None:
    """The risk of a table of protected respondents from this many people; None where it is not measured.

    Cells of a table that cannot exist do not count.

    >>> found = sample_risk(np.array([[20, 3], [11, 0]]), 340)
    >>> found.sample < found.everybody
    True
    """
    counts = respondents.values if isinstance(respondents, Table) else np.asarray(respondents)
    number = int(counts.sum())
    if not 2 <= counts.size <= _MOST or not 0 < number < people:
        return None
    try:
        cells = cells_of(respondents, "sample")
        check_scale(cells.measured, "sample")
        held = repr(counts.shape).encode() + cells.counts.tobytes() + cells.possible.tobytes()
        risk, everybody = _known.get(
            (hashlib.sha256(held).digest(), people), lambda: _worse(cells, people)
        )
    except InputError:
        return None  # a table in which a model cannot be fitted
    return PublishedSampleRisk(number, people, risk, everybody)


def _worse(cells: Cells, people: int) -> tuple[float, float]:
    """``R2`` and ``R1``, each by the less favourable model, from the same populations."""
    models: tuple[PopulationModel, ...] = (LogLinear(), PolyaUrn())
    risks = []
    for model, stream in zip(models, np.random.default_rng(_SEED).spawn(2), strict=True):
        drawn = model.draw(cells, people, stream, _DRAWS)[:, cells.possible]
        risks.append([float(values.mean()) for values in risks_of_many(drawn, cells.measured)])
    everybody, sample = (max(model_risks) for model_risks in zip(*risks, strict=True))
    return sample, everybody
