"""Protected numbers: all that the part that answers ever sees of the people.

The pipeline, the server and the pages work on these types alone. None of them holds a true count, a record
key or an engine, so that nothing they say can depend on one. Numbers come from a public bundle, or from the
part that holds the records, which counts, protects and hands out releases; see
:mod:`lustrum.publish.records`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lustrum.model import Dataset, LustrumError, Release, TableQuery
from lustrum.policy import Policy
from lustrum.protect.cell_key import CellKeyMagnitude
from lustrum.public.noise import KeyedNoise, SumNoise
from lustrum.survey import Estimates


class CannotProtectError(LustrumError):
    """The method of the policy is not for such a table, whatever its numbers are."""


@dataclass(frozen=True, eq=False)
class Graded:
    """Estimates of the cells of a table, and how reliable each is."""

    estimates: Estimates
    grades: npt.NDArray[np.str_]


@dataclass(frozen=True)
class Views:
    """The protected numbers of one question, as the rules look at them.

    ``everybody`` is the table without filters and with every choice of codes undone. ``selected`` is that of
    the selected population, absent where nobody is left out. ``shown`` is the table that was asked for.
    The rules judge counts only: of a sum nothing but ``shown`` is looked at, and the others may repeat it.
    """

    everybody: Release
    selected: Release | None
    shown: Release


class ProtectedNumbers(Protocol):
    """Answers a question with protected numbers only."""

    @property
    def dataset(self) -> Dataset: ...

    @property
    def mark(self) -> str:
        """Names the numbers: while it is the same, a question gets the same ones."""
        ...

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures whose sums are protected, and can therefore be asked for."""
        ...

    @property
    def weights(self) -> tuple[str, ...]:
        """The weights with which weighted numbers are protected."""
        ...

    @property
    def weighted_measures(self) -> tuple[str, ...]: ...

    def quotients(self, over: TableQuery, under: TableQuery, within: str | None) -> Graded | None:
        """Standard errors of weighted numbers in proportion to others; None where there are no weighted ones.

        Numbers are compared with those of the same cell, or with the totals within a variable.
        """
        ...

    def sum_noise(self, measure: str) -> SumNoise | None:
        """What the public knows of how the sums of a measure were protected; None where that is nothing."""
        ...

    def views(self, query: TableQuery) -> Views:
        """The protected counts of a question, or the sums of its measure.

        The same people show the same number in every table. Statistics are worked out from such numbers, and
        a question that names any is not for here.
        """
        ...


@dataclass(frozen=True)
class Described:
    """A dataset as the part that holds the records describes it."""

    version: str
    dataset: Dataset


class RecordsService(Protocol):
    """The part that holds records: it describes them and gives protected numbers, and nothing else."""

    @property
    def answering(self) -> bool:
        """Whether it answers now; where not, descriptions are what was known last."""
        ...

    def revive(self) -> bool:
        """Start it again where it has ended; whether it lives or is being started."""
        ...

    def names(self) -> list[str]: ...

    def describe(self, name: str) -> Described: ...

    def views(self, query: TableQuery, policy: Policy) -> Views:
        """Count and protect what a question needs."""
        ...

    def check_in_background(self) -> None:
        """Check large datasets in the background from now on, as a server does."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class KeyedSource(ABC):
    """What numbers offer that are protected by record keys, wherever they are counted."""

    policy: Policy

    @property
    @abstractmethod
    def dataset(self) -> Dataset:
        """The public description."""

    @property
    def measures(self) -> tuple[str, ...]:
        """All measures, where the policy says how sums are protected."""
        return () if self.policy.sums is None else tuple(m.name for m in self.dataset.measures)

    @property
    def weights(self) -> tuple[str, ...]:
        """The weight of the policy, whose means of classes multiply protected counts."""
        return () if self.policy.weights is None else (self.policy.weights.weight,)

    @property
    def weighted_measures(self) -> tuple[str, ...]:
        """None: record keys do not protect weighted sums."""
        return ()

    def quotients(self, over: TableQuery, under: TableQuery, within: str | None) -> Graded | None:
        """None: means of classes state no errors."""
        return None

    def sum_noise(self, measure: str) -> SumNoise | None:
        return keyed_noise(self.policy, self.dataset, measure)


@dataclass(frozen=True)
class KeyedNumbers(KeyedSource):
    """Numbers that the records service protects by record keys, question by question."""

    records: RecordsService
    policy: Policy
    described: Described

    @property
    def dataset(self) -> Dataset:
        return self.described.dataset

    @property
    def mark(self) -> str:
        """The version of the records, which is a random word."""
        return self.described.version

    def views(self, query: TableQuery) -> Views:
        return self.records.views(query, self.policy)


def keyed_noise(policy: Policy, dataset: Dataset, measure: str) -> SumNoise | None:
    """The noise of sums that are protected by record keys; None where the method does not state it."""
    spec = None if policy.sums is None else policy.sums.spec
    if not isinstance(spec, CellKeyMagnitude):
        return None
    return KeyedNoise(spec, dataset.measure(measure).decimals)
