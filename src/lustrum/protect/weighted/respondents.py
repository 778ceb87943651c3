"""Respondents of a survey, as the agency has them and as everybody may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lustrum.arrays import Array, Floats, Ints, Mask, Words
from lustrum.model import Dataset, InputError
from lustrum.model.finest import FinestCells
from lustrum.survey import Design, Estimates, estimate_ratios, estimate_totals

__all__ = ["ProtectedRespondents", "SurveyRecords"]


@dataclass(frozen=True, eq=False, repr=False)
class SurveyRecords:
    """The respondents: codes of all variables, weights, design and record keys. Confidential.

    ``codes[v, i]`` is the position of respondent ``i`` in the code list of variable ``v``. ``total`` is the
    size of the frame that the weights add up to, where it is known.
    """

    dataset: Dataset
    codes: Array
    design: Design
    keys: Words
    total: int | None = None

    def __post_init__(self) -> None:
        records = self.design.records
        if self.codes.shape != (len(self.dataset.variables), records) or self.keys.shape != (
            records,
        ):
            raise InputError("A survey needs codes of all variables and a key for every record.")
        if records and not bool((self.design.weights > 0).all()):
            raise InputError(
                "A respondent has the weight 0 and stands for nobody; leave such records out."
            )
        if self.total is not None:
            summed = float(self.design.weights.sum())
            if not abs(summed - self.total) <= _NEAR * self.total:
                raise InputError(
                    f"The weights do not sum to the frame of {self.total:,} units within {_NEAR:.1%}; "
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
        """The records in an order that does not depend on how they came."""
        return self._grouped[0]


_NEAR = 0.005


@dataclass(frozen=True, eq=False, repr=False)
class ProtectedRespondents:
    """The public file of a survey: one row for each protected respondent.

    ``weights`` are whole numbers in units of ``10**-decimals``. ``strata`` and ``clusters`` are numbers that
    lead to no place. ``count_errors`` are typical errors of counts by the number of variables,
    ``weight_spread`` is the relative spread of true weights within a class and ``weight_noise`` the largest
    relative noise of a class: together they say what protection adds to the error of sampling.
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

    def __repr__(self) -> str:
        return f"ProtectedRespondents({self.dataset.name!r})"

    def __len__(self) -> int:
        return int(self.weights.size)

    @cached_property
    def design(self) -> Design:
        """The design that standard errors follow from; a stratum that shows one cluster is centred."""
        return Design(
            self.weights / 10.0**self.decimals, self.strata, self.clusters, lonely="centre"
        )

    def totals(self, cells: Ints, count: int, variables: int = 1) -> Estimates:
        """Weighted counts of cells of protected respondents, with errors of sampling and protection together.

        ``cells`` gives the cell of every row, -1 for none. Respondents are counted as the file shows them.
        """
        found = estimate_totals(self.design, cells, count)
        # Respondents of the file come in groups, so their number is not that of independent draws; the error of
        # protecting their number is stated by the file itself.
        return found.with_noise(self._noise(cells, count, variables, found.values))

    def shares(self, cells: Ints, count: int, inside: Mask, variables: int = 1) -> Estimates:
        """The weighted share of some respondents in every cell, with errors of both kinds."""
        found = estimate_ratios(self.design, cells, count, inside.astype(np.float64))
        below = estimate_totals(self.design, cells, count).values
        part = np.where(inside, cells, -1)
        noise = self._noise(
            part, count, variables, estimate_totals(self.design, part, count).values
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return found.with_noise(np.nan_to_num(noise / below**2))

    def _noise(self, cells: Ints, count: int, variables: int, totals: Floats) -> Floats:
        """The variance that protection adds to weighted counts."""
        held = cells >= 0
        weight = self.weights[held] / 10.0**self.decimals
        number = np.bincount(cells[held], minlength=count).astype(np.float64)
        squares = np.bincount(cells[held], weights=weight * weight, minlength=count)
        mean = np.divide(totals, number, out=np.zeros(count), where=number > 0)
        known = sorted(self.count_errors)
        kind = next((k for k in known if k >= variables), known[-1])
        counted = (self.count_errors[kind] * mean) ** 2
        # Uniform noise of at most e has the variance e**2 / 3.
        shared = (self.weight_noise * totals) ** 2 / 3.0
        return np.asarray(counted + self.weight_spread**2 * squares + shared)
