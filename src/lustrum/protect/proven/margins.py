"""Margins of error of every cell: the known noise in closed form, times a factor that a bootstrap measures.

In the linear estimate the error of a cell has a variance that follows from the plan alone, by how many codes of
each axis the cell holds. People who were made up keep to it nearly: small cells err less, since none is
negative. By how much is measured on the people themselves, measured again with new noise: the *factor*, by how
many axes limit a cell and by how many standard deviations its number is, is what 95 of 100 cells keep.

What was made up is smoother than the truth, and is followed more closely when it is measured again. How far it
is from the linear estimate everybody can see, here and after each new draw; the squares by which both are
further apart here are added to those of the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import fsum, prod, sqrt
from typing import Any

import numpy as np

from lustrum.model import Category, Dataset, InputError
from lustrum.model.arrays import Array, Floats, Ints
from lustrum.protect.proven.domain import Domain, DomainAxis, Placed, Subset, axes_of
from lustrum.protect.proven.plan import LinearEstimate, MeasurementPlan

_ENDS, _SIZES = (0.5, 1.0, 2.0, 4.0, 8.0), (100, 1000, 10_000)
"""Where the next class of numbers begins: in standard deviations, and of larger ones in people or bounds."""
_CLASSES = len(_ENDS) + len(_SIZES) + 1
NORMAL = 1.96
"""Noise is within so many standard deviations in 95 of 100 draws."""
_COVERED, _MANY, _FEW = 0.955, 300, 30
"""The share of cells that a margin is to cover, and from how many cells on a factor follows from it; errors of
fewer are taken for normal, and those of very few belong to the next class."""
_NORMAL_COVERED = 2.005
"""That share of normal errors is within so many standard deviations."""

Effect = tuple[tuple[str, ...], ...]
"""The axes of an effect, each by the names of its variables."""


@dataclass(frozen=True, eq=False, repr=False)
class FittedNumbers:
    """People or sums that were made up, and the linear estimate of the noisy tables behind them."""

    numbers: Placed
    estimate: LinearEstimate


@dataclass(frozen=True)
class NoiseMargins:
    """The variances of effects of the linear estimate, and the factors by axes and class of number.

    A ``unit`` is the most that one record counts. Without factors every cell has that of plain noise.
    """

    variances: Mapping[Effect, float]
    unit: int = 1
    factors: Mapping[int, tuple[float, ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        domain: Domain,
        plan: MeasurementPlan,
        made: FittedNumbers,
        again: Iterable[FittedNumbers],
        seed: int,
        bound: int | None = None,
    ) -> NoiseMargins:
        """From what was made up, and what was made of that ``again`` with new noise.

        Sums have a ``bound``, and a total that was measured as well; the number of people is public.
        """
        names = _names(domain.dataset, domain.axes)
        precision = dict(plan.precision)
        if bound is not None:
            precision[()] = plan.precision_of_total
        unit = bound or 1
        variances = {tuple(names[a] for a in e): unit**2 / p for e, p in precision.items()}
        plain, rng = cls(variances, unit), np.random.default_rng(seed)
        return replace(plain, factors=_factors(domain, plain, made, again, rng))

    @property
    def most(self) -> int:
        """How many axes may limit a cell that has a margin."""
        return max(map(len, self.variances))

    def margins(
        self,
        dataset: Dataset,
        axes: Sequence[tuple[str, Sequence[Category]]],
        passing: Mapping[str, frozenset[int]],
        shown: Array,
        own: Sequence[DomainAxis] | None = None,
    ) -> Ints:
        """How far each number of a table rarely is off, -1 for cells by more axes than were measured.

        ``own`` are the axes of the dataset, which take a millisecond to find.
        """
        asked = {name for name, _ in axes} | set(passing)
        limiting = [
            axis
            for axis in own or axes_of(dataset)
            if any(dataset.variables[v].name in asked for v in axis.variables)
        ]
        inside = [_inside(dataset, axis, axes, passing) for axis in limiting]
        sizes = [len(axis) for axis in limiting]
        deviation = self.deviations(_names(dataset, limiting), sizes, inside, shown.shape)
        limited = np.zeros(shown.shape, dtype=np.int64)
        for size, codes in zip(sizes, inside, strict=True):
            limited = limited + (codes < size)
        return np.where(limited <= self.most, self.rounded(deviation, limited, shown), -1)

    def rounded(self, deviation: Floats, limited: Array, shown: Array) -> Ints:
        """Whole margins, of 1 or more where anything was measured."""
        class_of = self.classes(shown, deviation)
        factor = np.full(np.shape(shown), NORMAL)
        for number, factors in self.factors.items():
            factor = np.where(limited == number, np.array(factors)[class_of], factor)
        return np.maximum(np.rint(factor * deviation), deviation > 0).astype(np.int64)

    def classes(self, shown: Array, deviation: Floats) -> Ints:
        """By how many standard deviations a number is, and of large ones by their size."""
        known = deviation > 0
        ratio = np.divide(shown, deviation, out=np.zeros(np.shape(shown)), where=known)
        near = np.searchsorted(_ENDS, ratio, side="right")
        size = len(_ENDS) + np.searchsorted(_SIZES, shown // self.unit, side="right")
        return np.where(near < len(_ENDS), near, size).astype(np.int64)

    def deviations(
        self,
        names: Sequence[tuple[str, ...]],
        sizes: Sequence[int],
        inside: Sequence[Array],
        shape: Sequence[int],
    ) -> Floats:
        """The standard deviation of each cell, which holds so many codes of these axes and all of the others.

        Along an axis of ``n`` codes, a group of ``m`` keeps the share ``m / n`` of an effect without the axis,
        and ``m - m * m / n`` times the variance of one with it, since effects add up to 0.
        """
        total = np.zeros(tuple(shape))
        for effect, variance in self.variances.items():
            if not set(effect) <= set(names):
                continue
            total = total + variance * prod(
                m - m * m / n if name in effect else (m / n) ** 2
                for name, n, m in zip(names, sizes, inside, strict=True)
            )
        return np.sqrt(np.maximum(total, 0.0))

    def to_mapping(self) -> dict[str, Any]:
        """As plain values, for a bundle."""
        return {
            "variances": [[list(map(list, e)), v] for e, v in self.variances.items()],
            "unit": self.unit,
            "factors": {str(k): list(v) for k, v in self.factors.items()},
        }

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> NoiseMargins:
        """What :meth:`to_mapping` wrote; bundles of earlier versions have no factors."""
        try:
            factors = {int(k): tuple(map(float, v)) for k, v in mapping.get("factors", {}).items()}
            variances = {tuple(map(tuple, e)): float(v) for e, v in mapping["variances"]}
            unit = int(mapping.get("unit", 1))
            if unit < 1 or any(len(one) != _CLASSES for one in factors.values()) or not variances:
                raise ValueError
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError("The public words of margins of error are damaged.") from None
        return cls(variances, unit, factors)


def compared(
    domain: Domain, margins: NoiseMargins, true: Placed, shown: Placed
) -> Iterator[tuple[Subset, Ints, Ints, Floats]]:
    """All tables at all levels of both: the axes, the possible cells of either that are not empty in both, and
    the standard deviations of these."""
    for subset, (one, other), deviation in _levels(
        domain, margins, lambda s: (true.table(domain, s), shown.table(domain, s))
    ):
        yield subset, one, other, deviation


def _levels(
    domain: Domain, margins: NoiseMargins, tables_of: Callable[[Subset], tuple[Array, ...]]
) -> Iterator[tuple[Subset, list[Array], Floats]]:
    """The cells of all tables at all levels that can hold anything, and do in one of the first two."""
    names = _names(domain.dataset, domain.axes)
    groups = [list(axis.groups(domain.dataset).values()) for axis in domain.axes]
    for subset in ((), *domain.subsets(margins.most)):
        possible = domain.possible_table(subset).astype(np.int64)
        finest, sizes = (*tables_of(subset), possible), [domain.sizes[axis] for axis in subset]
        for chosen in product(*(groups[axis] for axis in subset)):
            *tables, can_hold = (_grouped(table, chosen) for table in finest)
            inside = []
            for place, group in enumerate(chosen):
                along = [-1 if other == place else 1 for other in range(len(subset))]
                inside.append(np.bincount(group).reshape(along))
            deviation = margins.deviations(
                [names[axis] for axis in subset], sizes, inside, can_hold.shape
            )
            seen = ((tables[0] != 0) | (tables[1] != 0)) & (can_hold > 0)
            yield subset, [table[seen] for table in tables], deviation[seen]


class _Class:
    """Errors of the cells of one class in standard deviations, and squares of what lies beside them."""

    def __init__(self) -> None:
        self.errors: list[Floats] = [np.zeros(0)]
        self.here, self.there, self.square = ([0.0, 0.0] for _ in range(3))

    def join(self, other: _Class) -> _Class:
        joined = _Class()
        joined.errors = [*self.errors, *other.errors]
        for name in ("here", "there", "square"):
            pairs = zip(getattr(self, name), getattr(other, name), strict=True)
            setattr(joined, name, [one + two for one, two in pairs])
        return joined

    def factor(self) -> float | None:
        """What 95 of 100 cells keep; None if they are few."""
        errors = np.sort(np.concatenate(self.errors))
        if errors.size < _FEW:
            return None
        here, there, square = (
            total / max(cells, 1.0) for total, cells in (self.here, self.there, self.square)
        )
        more = max(here - there, 0.0) / square if square > 0 else 0.0
        if errors.size < _MANY:
            kept = _NORMAL_COVERED * sqrt(fsum((errors**2).tolist()) / errors.size)
        else:
            kept = float(errors[int(_COVERED * errors.size)])
        return round(kept * sqrt(1.0 + more), 3)


def _factors(
    domain: Domain,
    margins: NoiseMargins,
    made: FittedNumbers,
    again: Iterable[FittedNumbers],
    rng: np.random.Generator,
) -> dict[int, tuple[float, ...]]:
    """What 95 of 100 cells keep. Classes of few cells have the factor of the next larger ones."""
    found: dict[int, list[_Class]] = {}
    draws = list(again)
    for draw in (made, *draws) if draws else ():

        def tables_of(subset: Subset, draw: FittedNumbers = draw) -> tuple[Array, ...]:
            both = (fitted.numbers.table(domain, subset) for fitted in (made, draw))
            return (*both, draw.estimate.table(subset))

        for subset, (one, other, linear), deviation in _levels(domain, margins, tables_of):
            classes = found.setdefault(len(subset), [_Class() for _ in range(_CLASSES)])
            if not deviation.all():
                continue  # the number of people, which is public
            class_of = margins.classes(other, deviation)
            # An error of a whole number stands for half a person to either side.
            off = (np.abs(other - one) - rng.uniform(-0.5, 0.5, one.size)) / deviation
            apart, squared = ((other - linear) / deviation) ** 2, ((other - one) / deviation) ** 2
            for number, of in enumerate(classes):
                chosen = class_of == number
                there = chosen & (other > 0)
                for total, squares in (
                    (of.here if draw is made else of.there, apart),
                    *(() if draw is made else ((of.square, squared),)),
                ):
                    total[0] += fsum(squares[there].tolist())
                    total[1] += int(there.sum())
                if draw is not made:
                    of.errors.append(off[chosen])
    return {number: _in_turn(classes) for number, classes in found.items() if number}


def _in_turn(classes: Sequence[_Class]) -> tuple[float, ...]:
    factors: list[float] = []
    beside, after = _Class(), NORMAL
    for one in reversed(classes):
        beside = beside.join(one)
        found = beside.factor()
        if found is not None:
            beside, after = _Class(), found
        factors.append(after)
    return tuple(reversed(factors))


def _grouped(table: Array, groups: Sequence[Ints]) -> Array:
    """A table with the codes of each axis added up by group."""
    for along, group in enumerate(groups):
        if np.array_equal(group, np.arange(group.size)):
            continue
        moved = np.moveaxis(table, along, 0)
        summed = np.zeros((int(group.max()) + 1, *moved.shape[1:]), dtype=table.dtype)
        np.add.at(summed, group, moved)
        table = np.moveaxis(summed, 0, along)
    return table


def _names(dataset: Dataset, axes: Sequence[DomainAxis]) -> list[tuple[str, ...]]:
    return [tuple(dataset.variables[v].name for v in axis.variables) for axis in axes]


def _inside(
    dataset: Dataset,
    axis: DomainAxis,
    axes: Sequence[tuple[str, Sequence[Category]]],
    passing: Mapping[str, frozenset[int]],
) -> Floats:
    """How many codes of an axis lie in each cell of a table, of length 1 along what does not limit them."""
    inside: Array = np.ones((*[1] * len(axes), len(axis)), dtype=np.bool_)
    for place, row in zip(axis.variables, axis.codes, strict=True):
        name = dataset.variables[place].name
        if name in passing:
            inside = inside & np.isin(row, list(passing[name]))
        for number, (other, categories) in enumerate(axes):
            if other == name:
                within = np.array([np.isin(row, list(c.members)) for c in categories])
                shape = [1] * len(axes) + [len(axis)]
                shape[number] = len(categories)
                inside = inside & within.reshape(shape)
    return np.asarray(inside.sum(axis=-1, dtype=np.float64))
