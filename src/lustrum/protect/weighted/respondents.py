"""Respondents of a survey: the agency's confidential records, and the protected public file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Array, Floats, Ints, Words
from lustrum.model.finest import FinestCells
from lustrum.model.variable import FRAME_ROOM
from lustrum.protect.population.public import of_kind
from lustrum.protect.weighted.replicates import HUNDREDTHS, GivenReplicates, ReplicateFactors
from lustrum.survey import (
    Design,
    Estimates,
    ReplicateWeights,
    Sums,
    estimate_quotients,
    estimate_totals,
)
from lustrum.survey.linearised import add_weighted, spread_around


@dataclass(frozen=True, eq=False, repr=False)
class SurveyRecords:
    """The respondents: codes of all variables, weights, design and record keys. Confidential.

    ``codes[v, i]`` is the position of respondent ``i`` in the code list of variable ``v``. ``total`` is the
    size of the frame that the weights add up to, where it is known. ``measures`` are the values of every
    measure, in units of its last decimal. ``replicates`` are the replicate weights, where the sample has them.
    """

    dataset: Dataset
    codes: Array
    design: Design
    keys: Words
    total: int | None = None
    measures: Mapping[str, Ints] = field(default_factory=dict)
    replicates: GivenReplicates | None = None

    def __post_init__(self) -> None:
        records = self.design.records
        if self.codes.shape != (len(self.dataset.variables), records) or self.keys.shape != (
            records,
        ):
            raise InputError("A survey needs codes of all variables and a key for every record.")
        if any(values.shape != (records,) for values in self.measures.values()):
            raise InputError("A survey needs a value of each measure for every record.")
        if self.replicates is not None and len(self.replicates.columns) != records:
            raise InputError("A survey needs replicate weights for every record.")
        if records and not bool((self.design.weights > 0).all()):
            raise InputError("A respondent has the weight 0; leave such records out.")
        if self.total is not None:
            summed = float(self.design.weights.sum())
            if not abs(summed - self.total) <= FRAME_ROOM * self.total:
                raise InputError(
                    f"The weights do not sum to the frame of {self.total:,} units within {FRAME_ROOM:.1%}; "
                    "calibrate them, or state another 'total'."
                )

    def __repr__(self) -> str:
        return f"SurveyRecords({self.dataset.name!r})"

    def cells(self) -> FinestCells:
        """The finest cells with the number of their respondents."""
        order, starts = self._grouped
        counts = np.diff(np.append(starts, order.size))
        keys = np.add.reduceat(self.keys[order], starts) if starts.size else self.keys[:0]
        return FinestCells(self.dataset, self.codes[:, order[starts]], counts, keys)

    @cached_property
    def _grouped(self) -> tuple[Ints, Ints]:
        """Records in ascending order of their codes and keys, and where each finest cell begins."""
        order = np.lexsort((self.keys, *self.codes[::-1])).astype(np.int64)
        ordered = self.codes[:, order]
        new = np.ones(order.size, dtype=np.bool_)
        new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
        return order, np.flatnonzero(new).astype(np.int64)

    @property
    def order(self) -> Ints:
        """The records in an order that does not depend on the file."""
        return self._grouped[0]


@dataclass(frozen=True, eq=False)
class RespondentSums:
    """Sums over cells: the cell of every protected respondent or -1, and a measure, or None for counts."""

    cells: Ints
    count: int
    measure: str | None = None


@dataclass(frozen=True, eq=False)
class RespondentMoments:
    """What estimates of cells and their errors follow from: one row a cell, or a part of cells.

    Column by column these are the number of respondents and their sums of ``w y``, ``(w y)**2``, ``w**2`` and
    ``w |y|``; with replicates, then those of ``w y`` by hundredths of each. Rows of parts add up to those of
    cells.
    """

    rows: Floats
    measure: str | None = None

    @property
    def totals(self) -> Floats:
        """The sums of ``w y``, side by side in memory: loops are compiled for such arrays."""
        return np.ascontiguousarray(self.rows[:, 1])

    @property
    def replicates(self) -> Floats:
        return self.rows[:, _PLAIN:] / HUNDREDTHS


_PLAIN = 5
"""Columns of moments before those of replicates."""


@dataclass(frozen=True, eq=False, repr=False)
class ProtectedRespondents:
    """The public file of a survey: one row for each protected respondent.

    ``weights`` are whole numbers in units of ``10**-decimals``. ``strata`` and ``clusters`` are those of
    variance units, with random numbers. ``count_errors`` are typical errors of counts by the number of
    variables, ``weight_spread`` is the relative spread of true weights within a class and ``weight_noise`` the
    largest relative noise of a class: together they say what protection adds to the error of sampling.
    ``values`` are those of measures, shared by a class too, with their spread in proportion to the mean over
    all respondents, and ``value_noise`` their largest relative noise. With ``replicates`` standard errors
    follow from the spread of the replicates, and otherwise from strata and clusters, of which ``joined``
    says how many each unit is made of.
    """

    dataset: Dataset
    codes: Array
    weights: Ints
    strata: Ints
    clusters: Ints
    count_errors: Mapping[int, float]
    weight_spread: float
    weight_noise: float
    decimals: int = 0
    name: str = "weight"
    label: str = ""
    classes: Ints | None = field(default=None)
    values: Mapping[str, Ints] = field(default_factory=dict)
    value_spreads: Mapping[str, float] = field(default_factory=dict)
    value_noise: float = 0.0
    replicates: ReplicateFactors | None = None
    joined: Ints | None = None

    def __repr__(self) -> str:
        return f"ProtectedRespondents({self.dataset.name!r})"

    def __len__(self) -> int:
        return int(self.weights.size)

    @cached_property
    def sample(self) -> Design | ReplicateWeights:
        """What standard errors follow from; a stratum that shows one cluster is centred."""
        weights = self.weights / float(10**self.decimals)
        if self.replicates is None:
            joined = None if self.joined is None else self.joined[self.clusters]
            return Design(weights, self.strata, self.clusters, lonely="centre", joined=joined)
        factors = self.replicates.of_units(self.clusters)
        return ReplicateWeights(weights, weights[:, None] * factors, self.replicates.scale)

    def totals(self, part: RespondentSums, variables: int = 1) -> Estimates:
        """Weighted counts or sums, with errors of sampling and protection together.

        Respondents are counted as in the file.
        """
        contributions = self._amounts(part.measure)
        estimates = estimate_totals(self.sample, part.cells, part.count, contributions)
        # Respondents of the file come in groups, so their number is not that of independent draws; the error of
        # protecting their number is stated by the file itself.
        return estimates.with_noise(self._noise(self._plain_moments(part), variables))

    def moments(self, part: RespondentSums) -> RespondentMoments:
        """The moments of cells or of their parts, with those of replicates, which the file must have."""
        assert self.replicates is not None
        plain = self._plain_moments(part)
        held = np.flatnonzero(part.cells >= 0)
        sums = np.zeros((part.count, self.replicates.factors.shape[1]))
        amounts = self._weighted_amounts(part.measure)[0][held]
        factors = self.replicates.factors.astype(np.float64)
        add_weighted(part.cells[held], self.clusters[held], factors, amounts, sums)
        return RespondentMoments(np.hstack([plain.rows, sums]), part.measure)

    def totals_of(self, moments: RespondentMoments, variables: int = 1) -> Estimates:
        """What :meth:`totals` gives, from the moments of cells."""
        estimates = self._replicated(moments, moments.totals, moments.replicates)
        return estimates.with_noise(self._noise(moments, variables))

    def quotients_of(
        self,
        over: RespondentMoments,
        under: RespondentMoments,
        base: Ints,
        variables: int = 1,
        *,
        nested: bool,
    ) -> Estimates:
        """What :meth:`quotients` gives, from the moments of cells of one table.

        With ``nested`` all respondents of every cell are also in the cell that it is compared with.
        """
        below = under.totals[base]
        with np.errstate(divide="ignore", invalid="ignore"):
            full = np.where(below == 0, np.nan, over.totals / below)
            beside = under.replicates[base]
            each = np.where(beside == 0, np.nan, over.replicates / beside)
        estimates = self._replicated(over, full, each)
        same = np.array_equal(base, np.arange(base.size))
        return self._noisy_quotients(
            estimates, over, under, base, variables, same=same, nested=nested
        )

    def _replicated(self, moments: RespondentMoments, full: Floats, each: Floats) -> Estimates:
        """Estimates whose variance is the spread of the replicates around them."""
        assert self.replicates is not None
        spread = spread_around(full, np.ascontiguousarray(each), np.ones(each.shape[1]))
        number = moments.rows[:, 0].astype(np.int64)
        return Estimates(full, self.replicates.scale * spread, number)

    def quotients(
        self, over: RespondentSums, under: RespondentSums, base: Ints, variables: int = 1
    ) -> Estimates:
        """Sums in proportion to others, with errors of both kinds: means, ratios, shares and growth.

        If numerator and denominator are over the same respondents, their number and weights do not affect
        the quotient, and only values add an error of protection. A share ``a / (a + b)`` moves by
        ``1 - R`` with ``a`` and by ``R`` with ``b``. Otherwise each side adds its own error.
        """
        estimates = estimate_quotients(
            self.sample,
            Sums(over.cells, over.count, self._amounts(over.measure)),
            Sums(under.cells, under.count, self._amounts(under.measure)),
            base,
        )
        same = over.cells is under.cells or np.array_equal(over.cells, under.cells)
        return self._noisy_quotients(
            estimates,
            self._plain_moments(over),
            self._plain_moments(under),
            base,
            variables,
            same=same,
            nested=_nested(over, under, base),
        )

    def _noisy_quotients(
        self,
        estimates: Estimates,
        over: RespondentMoments,
        under: RespondentMoments,
        base: Ints,
        variables: int,
        *,
        same: bool,
        nested: bool,
    ) -> Estimates:
        """Quotients with the error of protection; see :meth:`quotients`."""
        rate = np.nan_to_num(estimates.values)
        if same:
            noise = self._value_noise(over) + rate**2 * self._value_noise(under)[base]
        elif over.measure == under.measure and nested:
            part, whole = self._noise(over, variables), self._noise(under, variables)[base]
            noise = (1.0 - rate) ** 2 * part + rate**2 * whole
        else:
            noise = self._noise(over, variables) + rate**2 * self._noise(under, variables)[base]
        with np.errstate(divide="ignore", invalid="ignore"):
            below = under.totals[base]
            return estimates.with_noise(np.nan_to_num(noise / below**2, posinf=0.0))

    def _amounts(self, measure: str | None) -> Floats | None:
        if measure is None:
            return None
        return self.values[measure] / float(10 ** self.dataset.measure(measure).decimals)

    @cached_property
    def _amounts_known(self) -> dict[str | None, tuple[Floats, Floats, Floats, Floats]]:
        return {}

    def _weighted_amounts(self, measure: str | None) -> tuple[Floats, Floats, Floats, Floats]:
        """Of every respondent ``w y``, ``(w y)**2``, ``w**2`` and ``w |y|``; ``y`` is 1 for counts."""
        known = self._amounts_known.get(measure)
        if known is None:
            w = self.weights / float(10**self.decimals)
            y = self._amounts(measure)
            wy = w if y is None else w * y
            known = wy, wy * wy, w * w, np.abs(wy)
            self._amounts_known[measure] = known
        return known

    def _plain_moments(self, part: RespondentSums) -> RespondentMoments:
        """The moments without those of replicates."""
        held = np.flatnonzero(part.cells >= 0)
        cells = part.cells[held]
        rows = np.empty((part.count, _PLAIN))
        rows[:, 0] = np.bincount(cells, minlength=part.count)
        for column, amounts in enumerate(self._weighted_amounts(part.measure), start=1):
            rows[:, column] = np.bincount(cells, weights=amounts[held], minlength=part.count)
        return RespondentMoments(rows, part.measure)

    def _noise(self, moments: RespondentMoments, variables: int) -> Floats:
        """The variance that protection adds to weighted counts or sums."""
        number, totals, squares = moments.rows[:, :3].T
        mean = np.divide(totals, number, out=np.zeros(number.size), where=number > 0)
        counted = (of_kind(self.count_errors, variables) * mean) ** 2
        # Uniform noise of at most e has the variance e**2 / 3.
        shared = (self.weight_noise * totals) ** 2 / 3.0
        weighted = counted + self.weight_spread * self.weight_spread * squares + shared
        return np.asarray(weighted + self._value_noise(moments))

    def _value_noise(self, moments: RespondentMoments) -> Floats:
        """The variance that shared values add: their spread within a class, and the noise of the class."""
        measure = moments.measure
        contributions = self._amounts(measure)
        if contributions is None or measure is None:
            return np.zeros(len(moments.rows))
        apart = self.value_spreads[measure] * (
            float(np.abs(contributions).mean()) if contributions.size else 0.0
        )
        squares, totals = moments.rows[:, 3:_PLAIN].T
        return np.asarray(apart * apart * squares + (self.value_noise * totals) ** 2 / 3.0)


def _nested(over: RespondentSums, under: RespondentSums, base: Ints) -> bool:
    """Whether all respondents of every cell are also in the cell that it is compared with."""
    held = over.cells >= 0
    return bool((base[over.cells[held]] == under.cells[held]).all())
