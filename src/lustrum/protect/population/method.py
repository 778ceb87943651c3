"""One protected population: the finest cells are changed once, and every table is a plain count of the
result.

No count below the base is left at the finest level, every finest cell shows a number next to its true one,
and the tables of up to three variables stay close to the truth. All answers then add up and agree with each
other, and nothing that is published says more than the one file. The idea is that of SAFE (Höhne; Giessing
and Höhne 2011, SORT 35, 3-22), with which Germany published its census of 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.finest import FinestCells
from lustrum.model.keys import scramble
from lustrum.model.parameters import checks_parameters, parameter
from lustrum.model.stop import reporting_progress
from lustrum.protect.abilities import Abilities
from lustrum.protect.method import Stage
from lustrum.protect.population.agency import AgencyReport, table_errors, true_counts
from lustrum.protect.population.layout import Plan, plan_tables
from lustrum.protect.population.public import PublicReport, coarse_error, coarse_share
from lustrum.protect.population.search import Cooling, Problem, Searched, search
from lustrum.protect.population.start import (
    cell_numbers,
    derived,
    empty_candidates,
    options,
    start_up,
)
from lustrum.protect.population.support import Support

__all__ = ["PopulationResult", "ProtectedPopulation"]

Ints = npt.NDArray[np.int64]
Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False, repr=False)
class PopulationResult:
    """Protected cells with two reports: ``cells`` and ``public`` may leave the house, the rest may not.

    ``memory`` holds what every cell shows beside the keys of its records, for the next release.
    """

    cells: FinestCells
    public: PublicReport
    agency: AgencyReport
    memory: FinestCells

    def __repr__(self) -> str:
        return f"PopulationResult({self.cells.dataset.name!r})"


@dataclass(frozen=True)
class ProtectedPopulation:
    """Change finest cells once so that every table of the result is protected, additive and close to the
    truth.

    ``base`` is the smallest number above 0 that a finest cell shows, and the step between shown numbers; with
    ``cells="small"`` counts from the base up stay as they are. ``empty_share`` is the share of cells
    showing the base that are empty in truth, at least. ``ways`` says up to how many variables tables are
    controlled, ``tables`` which others (``("area:district", "sex", ...)``), ``weights`` how much tables of
    0, 1, 2, ... variables count, ``own_weight`` how much the agency's own. ``sweeps`` is how often the
    search visits every cell.
    """

    name: ClassVar[str] = "protected-population"
    stages: ClassVar[tuple[Stage, ...]] = ("population",)
    abilities: ClassVar[Abilities] = Abilities(repeatable=True, one_number=True)
    base: int = parameter(3, "Finest cells become multiples of this.", least=2)
    cells: Literal["all", "small"] = parameter(
        "all", "Whether all finest cells are changed, or small ones only."
    )
    empty_share: float = parameter(
        0.1, "The share of shown cells that are empty in truth.", least=0, below=1
    )
    ways: int = parameter(3, "Tables of up to so many variables are kept close.", least=1)
    tables: tuple[tuple[str, ...], ...] = parameter(
        (), "The agency's own tables that are kept close too."
    )
    weights: tuple[int, ...] = parameter(
        (1, 1, 1, 1),
        "How much an error costs in tables of one, two, three and more variables.",
        least=0,
    )
    own_weight: int = parameter(1, "How much an error costs in the agency's own tables.", least=0)
    sweeps: int = parameter(30, "How often all finest cells are gone through.", least=1)

    @checks_parameters("A protected population")
    def __post_init__(self) -> None:
        if type(self.base) is not int or not 2 <= self.base <= 1000:
            raise InputError(f"The base must be a whole number from 2 to 1000, not {self.base!r}.")
        if self.cells not in ("all", "small"):
            raise InputError(f"The cells to move are 'all' or 'small', not {self.cells!r}.")
        if not 0 <= self.empty_share <= 0.5:
            raise InputError(
                f"The share of empty cells among the smallest shown must be from 0 to 0.5, "
                f"not {self.empty_share!r}."
            )
        if type(self.ways) is not int or not 1 <= self.ways <= 4:
            raise InputError(f"Tables of 1 to 4 variables can be controlled, not {self.ways!r}.")
        if type(self.sweeps) is not int or self.sweeps < 1:
            raise InputError(f"The search needs at least one sweep, not {self.sweeps!r}.")
        for weight in (*self.weights, self.own_weight):
            if type(weight) is not int or not 0 <= weight <= 1000:
                raise InputError(f"Weights are whole numbers from 0 to 1000, not {weight!r}.")
        if not self.weights:
            raise InputError("There must be at least one weight for the controlled tables.")

    @property
    def support(self) -> Support:
        """What a shown number leaves open, as everybody may know."""
        return Support(self.base, self.cells == "small", self.empty_share > 0)

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file."""
        return {
            "method": self.name,
            "base": self.base,
            "cells": self.cells,
            "empty_share": self.empty_share,
            "ways": self.ways,
            "tables": [list(words) for words in self.tables],
            "weights": list(self.weights),
            "own_weight": self.own_weight,
            "sweeps": self.sweeps,
        }

    def protect(
        self,
        cells: FinestCells,
        key: bytes,
        *,
        previous: FinestCells | None = None,
        progress: Progress | None = None,
    ) -> PopulationResult:
        """Protect the finest cells of a dataset; all chance comes from the key and the record keys."""
        if len(key) < 16:
            raise InputError("The key of a protected population must have at least 16 bytes.")
        if progress is not None:
            with reporting_progress(progress):
                return self._protect(cells, key, previous)
        return self._protect(cells, key, previous)

    def _protect(
        self, cells: FinestCells, key: bytes, previous: FinestCells | None
    ) -> PopulationResult:
        if previous is not None:
            raise InputError("A second release of a protected population is not supported yet.")
        if not cells.possible.all():
            raise InputError("A record has a combination that the description says cannot exist.")
        plan = plan_tables(cells.dataset, self.ways, self.weights, self.tables, self.own_weight)
        problem, every = self._problem(cells, key, plan)
        seed = int.from_bytes(derived(key, "search")[:8], "big")
        found = search(problem, self._cooling(plan), seed)
        shown, memory = _shown(every, problem, found)
        return PopulationResult(
            shown,
            self._public(plan, problem, every, memory, found, key),
            self._agency(plan, problem, every, memory, found),
            memory,
        )

    def _cooling(self, plan: Plan) -> Cooling:
        tables = sum(t.weight for t in plan.tables)
        scale = tables * self.base**2 * 200.0
        return Cooling(self.sweeps, hot=0.25 * scale, cold=0.01 * scale, quadratic=200.0)

    def _problem(self, cells: FinestCells, key: bytes, plan: Plan) -> tuple[Problem, FinestCells]:
        """The movable cells, and all cells that hold anybody or may show somebody."""
        choice = options(cells.counts, self.base, self.cells == "small")
        residue, low = choice.residue, choice.low
        # Expected number of cells that show the base, by the unbiased start.
        smallest = float(
            (residue[low == 0] / self.base).sum()
            + (1 - residue[low == self.base] / self.base).sum()
        )
        wanted = ceil(_CANDIDATES * self.empty_share / (1 - self.empty_share) * smallest)
        extra = empty_candidates(cells, wanted, key)
        keys = (
            None
            if cells.keys is None
            else np.concatenate([cells.keys, np.zeros(extra.shape[1], dtype=np.uint64)])
        )
        every = FinestCells(
            cells.dataset,
            np.concatenate([cells.codes, extra.astype(cells.codes.dtype)], axis=1),
            np.concatenate([cells.counts, np.zeros(extra.shape[1], dtype=np.int64)]),
            keys,
        )
        choice = options(every.counts, self.base, self.cells == "small")
        empty = every.counts == 0
        movable = choice.movable | empty
        up = start_up(every, choice, key) & choice.movable
        up |= empty & _keyed_third(every, key)
        low = choice.low
        share = round(self.empty_share * 1000)
        problem = Problem(
            plan=plan,
            movable=movable,
            codes=every.codes[:, movable],
            residue=choice.residue[movable],
            step=self.base,
            up=up[movable],
            is_empty=empty[movable],
            low=low[movable],
            group=np.full(int(movable.sum()), -1, dtype=np.int64),
            fixed_smallest=int((low[~movable] == self.base).sum()),
            empty_share=(share, 1000),
        )
        return problem, every

    def _public(
        self,
        plan: Plan,
        problem: Problem,
        every: FinestCells,
        memory: FinestCells,
        found: Searched,
        key: bytes,
    ) -> PublicReport:
        truth = true_counts(plan, every.codes, every.counts)
        squares: dict[int, list[float]] = {}
        for table in plan.tables:
            places = table.places().ravel()
            seen = (truth[places] > 0) | (found.errors[places] != 0)
            entry = squares.setdefault(max(len(table.levels), 1), [0.0, 0.0])
            entry[0] += float((found.errors[places].astype(np.float64) ** 2).sum())
            entry[1] += float(seen.sum())
        errors: dict[int, float] = {}
        most = 0.0
        for variables in sorted(squares):
            total, count = squares[variables]
            error = coarse_error((total / max(count, 1.0)) ** 0.5, key, f"error {variables}")
            most = errors[variables] = max(most, error)
        occupied = every.counts > 0
        changed = float((memory.counts != every.counts)[occupied].mean()) if occupied.any() else 0.5
        return PublicReport(
            method=self.to_mapping(),
            support=self.support,
            changed=coarse_share(changed, key, "changed"),
            errors=errors,
        )

    def _agency(
        self,
        plan: Plan,
        problem: Problem,
        every: FinestCells,
        memory: FinestCells,
        found: Searched,
    ) -> AgencyReport:
        truth = true_counts(plan, every.codes, every.counts)
        transitions: dict[int, dict[int, int]] = {}
        for true in range(0, 3 * self.base):
            values, counts = np.unique(memory.counts[every.counts == true], return_counts=True)
            transitions[true] = {int(v): int(c) for v, c in zip(values, counts, strict=True)}
        smallest = memory.counts == self.base
        return AgencyReport(
            tables=tuple(table_errors(t, found.errors, truth) for t in plan.tables),
            transitions=transitions,
            empty_share=float((every.counts[smallest] == 0).mean()) if smallest.any() else 0.0,
            figures={"movable": int(problem.up.size), "moves": found.moves.tolist()},
        )


_CANDIDATES = 3


def _keyed_third(every: FinestCells, key: bytes) -> npt.NDArray[np.bool_]:
    words = scramble(derived(key, "empty start"), cell_numbers(every.dataset, every.codes))
    return np.asarray((words >> np.uint64(32)) * np.uint64(_CANDIDATES) < np.uint64(2**32))


def _shown(
    every: FinestCells, problem: Problem, found: Searched
) -> tuple[FinestCells, FinestCells]:
    """The protected cells, and the same with the keys of their records and with those that show 0."""
    choice_low = every.counts.copy()
    choice_low[problem.movable] = problem.low + problem.step * found.up
    memory = FinestCells(every.dataset, every.codes, choice_low, every.keys)
    seen = choice_low > 0
    return FinestCells(every.dataset, every.codes[:, seen], choice_low[seen]), memory
