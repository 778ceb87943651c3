"""Controlled rounding as an integer program over steps of the base."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy import sparse

from lustrum.model import InputError
from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.solve import LinearProblem

Distance = Literal["absolute", "squares"]
# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class RoundingProgram:
    """Columns of 0 or 1, each of which moves a cell by one step of the base.

    A cell starts at the multiple of the base below it. Its first column moves it to the one above; up to
    ``most`` further columns in each direction move it beyond. ``start`` and ``end`` are the errors before
    and after the step of a column. Larger errors cost more, so the columns of a cell are used in order.
    """

    problem: LinearProblem
    floor: Ints
    base: int
    cell: Ints
    sign: Ints
    start: Ints
    end: Ints
    extra: Floats

    @classmethod
    def of(cls, true: Ints, relations: Sparse, base: int, most: int) -> RoundingProgram:
        """The program in which no cell goes more than this many steps beyond its neighbours."""
        floor, residue = true - true % base, true % base
        between = np.flatnonzero(residue)
        parts = [(between, 1, -residue[between], base - residue[between], 0)]
        for k in range(1, most + 1):
            rising = np.flatnonzero(true)
            top = np.where(residue[rising] > 0, base - residue[rising], 0) + (k - 1) * base
            parts.append((rising, 1, top, top + base, 1))
            falling = np.flatnonzero(floor >= k * base)
            bottom = -residue[falling] - (k - 1) * base
            parts.append((falling, -1, bottom, bottom - base, 1))
        cell = np.concatenate([p[0] for p in parts])
        sign = np.concatenate([np.full(p[0].size, p[1], dtype=np.int64) for p in parts])
        whole = relations.astype(np.int64)
        matrix = sparse.csc_array(whole)[:, cell]
        matrix.data *= np.repeat(sign, np.diff(matrix.indptr))
        due = -(whole @ (floor // base)).astype(np.float64)
        columns = cell.size
        return cls(
            problem=LinearProblem(
                sparse.csr_array(matrix), due, due, np.zeros(columns), np.ones(columns)
            ),
            floor=floor,
            base=base,
            cell=cell,
            sign=sign,
            start=np.concatenate([p[2] for p in parts]),
            end=np.concatenate([p[3] for p in parts]),
            extra=np.concatenate([np.full(p[0].size, float(p[4])) for p in parts]),
        )

    def cost(self, weights: Floats, distance: Distance) -> Floats:
        """What the step of each column adds to the distance."""
        if distance == "absolute":
            grown = np.abs(self.end) - np.abs(self.start)
        elif distance == "squares":
            grown = self.end**2 - self.start**2
        else:
            raise InputError(f"The distance is 'absolute' or 'squares', not {distance!r}.")
        costs: Floats = weights[self.cell] * grown
        return costs

    def limited(self, steps: int) -> RoundingProgram:
        """The same with no more than this many steps beyond the neighbours in all."""
        old = self.problem
        problem = LinearProblem(
            sparse.vstack([old.matrix, sparse.csr_array(self.extra[None, :])], format="csr"),
            np.append(old.row_low, 0.0),
            np.append(old.row_high, float(steps)),
            old.low,
            old.high,
        )
        return replace(self, problem=problem)

    def published(self, point: Ints) -> Ints:
        """The cells after the steps of a point."""
        cells = self.floor.copy()
        np.add.at(cells, self.cell, self.base * self.sign * point)
        return cells
