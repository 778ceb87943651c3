"""Weighted counts from protected respondents: sums of shared weights, with standard errors and grades."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from lustrum.arrays import Floats, Ints, Mask
from lustrum.model import Release, TableAxis, TableQuery
from lustrum.model.status import CellStatus
from lustrum.model.text import say
from lustrum.protect.weighted import ProtectedRespondents
from lustrum.structure import TableLayout
from lustrum.survey import Estimates, Reliability
from lustrum.tabulate.chunk import Chunk
from lustrum.tabulate.engine import KernelEngine

__all__ = ["WeightedNumbers"]


@dataclass(frozen=True, eq=False)
class WeightedNumbers:
    """The weighted tables of one survey; safe to share between threads."""

    respondents: ProtectedRespondents
    reliability: Reliability
    workers: int | None = None

    def release(self, query: TableQuery) -> Release:
        """A weighted table: whole numbers that add up, each with its standard error and grade."""
        table = self._engine.tabulate(query)
        found = self._estimates(query)
        shape = table.shape
        scale = 10.0**self.respondents.decimals
        errors = np.ceil(found.standard_errors * scale).astype(np.int64).reshape(shape)
        grades = found.grades(self.reliability).reshape(shape)
        if table.structural is not None:
            # That nobody can be there is no estimate.
            grades = np.where(table.structural, "reliable", grades)
        return Release(
            axes=table.axes,
            published=table.values,
            status=np.full(shape, CellStatus.FREE.value),
            method={"method": "protected-survey"},
            decimals=table.decimals,
            unit=self.respondents.dataset.units,
            structural=table.structural,
            errors=errors,
            grades=grades,
            notes=(
                say(
                    "Weighted numbers are sums over protected respondents, who share the weights of a class; "
                    "nobody's own weight is used."
                ),
                say(
                    "Standard errors include the sampling error and the error that protection adds."
                ),
            ),
        )

    def _estimates(self, query: TableQuery) -> Estimates:
        """Estimates of all cells, category by category, so that categories may overlap."""
        layout = TableLayout.of_query(query, self.respondents.dataset)
        variables = max(len(layout.parts), 1)
        inside, groups = self._places(layout)
        values, variances, held = [], [], []
        for cells, count in groups:
            part = self.respondents.totals(np.where(inside, cells, -1), count, variables)
            values.append(part.values)
            variances.append(part.variances)
            held.append(part.respondents)
        return _added(values, variances, held)

    def _places(self, layout: TableLayout) -> tuple[Mask, list[tuple[Ints, int]]]:
        """Who passes the filters, and the cell of each respondent for each way to lay categories out."""
        codes = dict(
            zip(
                [v.name for v in self.respondents.dataset.variables],
                self.respondents.codes,
                strict=True,
            )
        )
        inside = np.ones(len(self.respondents), dtype=np.bool_)
        for axis in layout.filters:
            inside &= np.isin(codes[axis.name], np.array(axis.categories[0].members))
        ways: list[list[tuple[Ints, int]]] = []
        for axis in layout.axes:
            own = codes[axis.name].astype(np.int64)
            size = int(own.max(initial=0)) + 1
            size = max([size, *(max(c.members) + 1 for c in axis.categories if c.members)])
            layers = []
            for layer in _layers(axis):
                of_code = np.full(size, -1, dtype=np.int64)
                for place in layer:
                    of_code[list(axis.categories[place].members)] = place
                layers.append((of_code[own], len(axis)))
            ways.append(layers)
        return inside, [_crossed(parts) for parts in _product(ways)] or [
            (np.zeros(len(self.respondents), dtype=np.int64), 1)
        ]

    @cached_property
    def _engine(self) -> KernelEngine:
        own = self.respondents
        names = [v.name for v in own.dataset.variables]
        chunk = Chunk(
            rows=len(own),
            codes=dict(zip(names, own.codes, strict=True)),
            numbers={own.name: own.weights},
        )
        return KernelEngine(own.dataset, [chunk], self.workers)


def _layers(axis: TableAxis) -> list[list[int]]:
    """Categories of an axis in layers of which none holds two that overlap."""
    layers: list[tuple[set[int], list[int]]] = []
    for place, category in enumerate(axis.categories):
        members = set(category.members)
        for taken, layer in layers:
            if not taken & members:
                taken |= members
                layer.append(place)
                break
        else:
            layers.append((members, [place]))
    return [layer for _, layer in layers]


def _product(ways: list[list[tuple[Ints, int]]]) -> list[list[tuple[Ints, int]]]:
    return (
        reduce(lambda done, own: [[*d, o] for d in done for o in own], ways, [[]]) if ways else []
    )


def _crossed(parts: list[tuple[Ints, int]]) -> tuple[Ints, int]:
    cells, count = parts[0]
    for own, size in parts[1:]:
        cells = np.where((cells >= 0) & (own >= 0), cells * size + own, -1)
        count *= size
    return cells, count


def _added(values: list[Floats], variances: list[Floats], held: list[Ints]) -> Estimates:
    """Every cell belongs to one way of laying categories side by side; the others hold nothing of it."""
    return Estimates(
        np.add.reduce(values), np.add.reduce(variances), np.add.reduce(held).astype(np.int64)
    )
