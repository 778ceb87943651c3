"""A linear problem, and what a solver promises about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import numpy as np

from lustrum.model.arrays import Floats

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """All x with ``row_low <= matrix @ x <= row_high`` and ``low <= x <= high``.

    A row whose two ends are equal is an equation. Infinite ends bound nothing.
    """

    matrix: Sparse
    row_low: Floats
    row_high: Floats
    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        rows, columns = self.matrix.shape
        for name, size in {
            "row_low": rows,
            "row_high": rows,
            "low": columns,
            "high": columns,
        }.items():
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.shape != (size,):
                raise ValueError(f"{name} has shape {array.shape}; it must be ({size},).")
            if np.isnan(array).any():
                raise ValueError(f"{name} holds a NaN; use an infinity where there is no bound.")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        return f"LinearProblem({rows} rows, {columns} columns)"


class Outcome(StrEnum):
    """How a minimisation ended."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    CUT_SHORT = "cut short"


@dataclass(frozen=True, eq=False)
class Optimum:
    """The end of a minimisation.

    No feasible x is below ``bound``, however the search ended; it is minus infinity where nothing
    is proven. ``point`` is the best x found, within the solver's tolerances, or None. The
    ``multipliers`` of the rows, where there are any, are the solver's reason for the bound; where
    nothing is feasible, they are its reason for that. ``steps`` is how many vertices it went through, or how
    often a search for whole ones looked at its limits, where these are counted.
    """

    outcome: Outcome
    bound: float
    point: Floats | None = None
    multipliers: Floats | None = None
    steps: int = 0


class Loaded(Protocol):
    """A problem inside a solver, which may keep what it learnt from one question to the next."""

    def minimise(
        self,
        cost: Floats,
        *,
        whole: bool = False,
        seconds: float | None = None,
        target: float | None = None,
        steps: int | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Optimum:
        """The least ``cost @ x``, over all x or over whole ones.

        A search for whole ones may end at the first that costs no more than the ``target``. So many ``steps``
        end the work at the same place on every machine: vertices of a linear program, looks at its
        limits of a search for whole ones. ``seconds`` and ``stop`` end it wherever it is, so what was
        found by then must not be published.
        """
        ...

    def again(self) -> Loaded:
        """The same problem once more, to be asked at the same time, with what was learnt so far."""
        ...


class Solver(Protocol):
    """Loads a linear problem."""

    def load(self, problem: LinearProblem) -> Loaded:
        """Take in a problem, to be asked about many times."""
        ...
