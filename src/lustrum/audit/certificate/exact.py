"""Knowledge in Python's whole numbers, and two checks without a solver: of a table, and of a proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, lcm
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from lustrum.audit.knowledge.facts import Knowledge
from lustrum.model.arrays import Floats, Indices
from lustrum.numeric.structure import UNBOUNDED

Pairs: TypeAlias = tuple[tuple[int, int], ...]
Ends: TypeAlias = tuple[int | None, int | None]
Boxes: TypeAlias = Mapping[int, Ends]
"""The cells that branching has bounded further, and how."""


@dataclass(frozen=True)
class WitnessTable:
    """A value for each cell: whole numbers over a common denominator."""

    over: int
    values: tuple[int, ...]

    def value(self, cell: int) -> Fraction | int:
        return self.values[cell] if self.over == 1 else Fraction(self.values[cell], self.over)


@dataclass(frozen=True)
class Leaf:
    """Multipliers of facts over a common denominator; with ``empty`` they prove that a branch is empty."""

    over: int
    facts: Pairs
    empty: bool = False


@dataclass(frozen=True)
class Split:
    """A whole cell is at most ``at``, or at least ``at + 1``; the proofs of the two sides follow in turn."""

    cell: int
    at: int


def table_of(values: Sequence[Fraction | int]) -> WitnessTable:
    """The values over their common denominator.

    >>> table_of([Fraction(27, 2), 1])
    WitnessTable(over=2, values=(27, 2))
    """
    exact = [Fraction(v) for v in values]
    over = lcm(*(v.denominator for v in exact))
    return WitnessTable(over, tuple(v.numerator * (over // v.denominator) for v in exact))


def as_leaf(multipliers: Mapping[int, Fraction], *, empty: bool = False) -> Leaf:
    """The multipliers over their common denominator, without zeros."""
    used = {i: y for i, y in sorted(multipliers.items()) if y}
    over = lcm(*(y.denominator for y in used.values()))
    return Leaf(
        over, tuple((i, y.numerator * (over // y.denominator)) for i, y in used.items()), empty
    )


@dataclass(frozen=True, eq=False)
class FactSystem:
    """The facts of a :class:`Knowledge` in Python's own numbers; None for no bound."""

    names: tuple[str, ...]
    boxes: tuple[Ends, ...]
    facts: tuple[Pairs, ...]
    ends: tuple[Ends, ...]
    whole: bool = True
    decimals: int = 0

    @classmethod
    def of(cls, known: Knowledge) -> FactSystem:
        """The facts of some knowledge, and nothing else.

        >>> FactSystem.of(Knowledge.of(["x", "y"]).fact({"x": 1, "y": 2}, high=7)).facts
        (((0, 1), (1, 2)),)
        """
        matrix = known.matrix.astype(np.int64)  # Knowledge keeps cells in order and drops zeros
        starts = matrix.indptr.tolist()
        cells, weights = matrix.indices.tolist(), matrix.data.tolist()
        facts = [tuple(zip(cells[a:b], weights[a:b], strict=True)) for a, b in pairwise(starts)]
        return cls(
            names=tuple(known.names),
            boxes=_ends(known.low.tolist(), known.high.tolist()),
            facts=tuple(facts),
            ends=_ends(known.fact_low.tolist(), known.fact_high.tolist()),
            whole=known.whole,
            decimals=known.decimals,
        )

    @cached_property
    def columns(self) -> tuple[Pairs, ...]:
        """For each cell, the facts it is in and its weight there."""
        columns: list[list[tuple[int, int]]] = [[] for _ in self.names]
        for number, fact in enumerate(self.facts):
            for cell, weight in fact:
                columns[cell].append((number, weight))
        return tuple(tuple(column) for column in columns)

    @cached_property
    def open(self) -> tuple[int, ...]:
        """The cells whose value is not given."""
        return tuple(j for j, (low, high) in enumerate(self.boxes) if low is None or low != high)

    @cached_property
    def lean(self) -> tuple[tuple[Ends, Pairs], ...]:
        """The facts about open cells alone; fixed cells are subtracted from their ends."""
        wanted = set(self.open)
        facts = []
        for fact, (low, high) in zip(self.facts, self.ends, strict=True):
            given = sum(w * (self.boxes[c][0] or 0) for c, w in fact if c not in wanted)
            ends = None if low is None else low - given, None if high is None else high - given
            facts.append((ends, tuple((c, w) for c, w in fact if c in wanted)))
        return tuple(facts)

    @cached_property
    def reduced(self) -> FactSystem:
        """The open cells as a system of their own, with as many facts in the same order."""
        index = {cell: number for number, cell in enumerate(self.open)}
        return FactSystem(
            tuple(self.names[c] for c in self.open),
            tuple(self.boxes[c] for c in self.open),
            tuple(tuple((index[c], w) for c, w in fact) for _, fact in self.lean),
            tuple(ends for ends, _ in self.lean),
            self.whole,
            self.decimals,
        )

    def expanded(self, values: npt.ArrayLike) -> Floats:
        """Values of all cells: the open ones given here, and the fixed ones."""
        out = self._lows.copy()
        out[self._open_index] = values
        return out

    @cached_property
    def _lows(self) -> Floats:
        return np.array([low or 0 for low, _ in self.boxes], dtype=np.float64)

    @cached_property
    def _open_index(self) -> Indices:
        return np.array(self.open, dtype=np.intp)

    @cached_property
    def cone(self) -> FactSystem:
        """The directions in which tables are unbounded, cut off at 1 and -1."""

        def cut(ends: Ends) -> Ends:
            return (-1 if ends[0] is None else 0), (1 if ends[1] is None else 0)

        def flat(ends: Ends) -> Ends:
            return (None if ends[0] is None else 0), (None if ends[1] is None else 0)

        boxes, ends = tuple(map(cut, self.boxes)), tuple(map(flat, self.ends))
        return FactSystem(self.names, boxes, self.facts, ends, whole=False)

    def fits(self, table: WitnessTable) -> bool:
        """Whether a table satisfies every bound and fact, exactly."""
        over, values = table.over, table.values
        if self.whole and over != 1:
            return False
        inside = all(_inside(x, box, over) for x, box in zip(values, self.boxes, strict=True))
        return inside and all(
            _inside(sum(w * values[c] for c, w in fact), ends, over) for ends, fact in self.lean
        )

    def shown(self, leaf: Leaf, cell: int, sign: int, boxes: Boxes) -> Fraction | None:
        """The bound that weak duality proves: ``sign`` times the cell is never below it.

        None where the multipliers use a bound that does not exist. Rounded up for whole cells.
        """
        total = 0
        reduced = {} if leaf.empty else {cell: sign * leaf.over}
        for number, times in leaf.facts:
            ends, fact = self.lean[number]
            end = ends[0 if times > 0 else 1]
            if end is None:
                return None
            total += times * end
            for open_cell, weight in fact:
                reduced[open_cell] = reduced.get(open_cell, 0) - times * weight
        for open_cell, factor in reduced.items():
            if factor:
                end = boxes.get(open_cell, self.boxes[open_cell])[0 if factor > 0 else 1]
                if end is None:
                    return None
                total += factor * end
        bound = Fraction(total, leaf.over)
        return Fraction(ceil(bound)) if self.whole and not leaf.empty else bound


def _ends(low: list[int], high: list[int]) -> tuple[Ends, ...]:
    return tuple(
        (None if lo <= -UNBOUNDED else lo, None if hi >= UNBOUNDED else hi)
        for lo, hi in zip(low, high, strict=True)
    )


def _inside(x: int, ends: Ends, over: int) -> bool:
    low, high = ends
    return (low is None or x >= low * over) and (high is None or x <= high * over)
