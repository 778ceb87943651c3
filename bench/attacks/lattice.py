"""All tables up to three variables, and three within a fourth: bounds passed from table to table.

A true count is the sum of its parts along every variable, whatever was published. Under keyed noise there is
one rule more: the same people always show the same number, so a total that shows another number than one of
its parts has at least one person in the other parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from attacks.asker import Asker, Codes, question
from lustrum.model.arrays import Floats

__all__ = ["Found", "Lattice", "gather"]

Variables = tuple[str, ...]
Truth = Callable[[Variables], npt.NDArray[Any]]

_ROUNDS = 60


@dataclass(frozen=True)
class Found:
    """What the attack is certain of, held against the truth."""

    cells: int
    certain: int
    small: int
    alone: int
    wrong: int


@dataclass
class Lattice:
    """Shown numbers and bounds of every combination of variables that was answered."""

    shown: dict[Variables, Floats]
    low: dict[Variables, Floats]
    high: dict[Variables, Floats]

    def propagate(self, *, keyed: bool) -> int:
        """Pass bounds along all sums until nothing moves; gives the number of rounds."""
        links = [
            (whole, parts, parts.index(name))
            for parts in self.low
            for name in parts
            if (whole := tuple(v for v in parts if v != name)) in self.low
        ]
        for done in range(_ROUNDS):
            moved = sum(self._pass(*link, keyed) for link in links)
            if not moved:
                return done
        return _ROUNDS

    def _pass(self, whole: Variables, parts: Variables, axis: int, keyed: bool) -> bool:
        low, high, least, most = (
            self.low[whole],
            self.high[whole],
            self.low[parts],
            self.high[parts],
        )
        before = (
            low.sum(),
            least.sum(),
            np.minimum(high, 1e12).sum(),
            np.minimum(most, 1e12).sum(),
        )
        np.maximum(low, least.sum(axis=axis), out=low)
        np.minimum(high, most.sum(axis=axis), out=high)
        others = least.sum(axis=axis, keepdims=True) - least
        np.minimum(most, np.expand_dims(high, axis) - others, out=most)
        unbounded = np.isinf(most)
        finite = np.where(unbounded, 0.0, most)
        count = unbounded.sum(axis=axis, keepdims=True)
        room = finite.sum(axis=axis, keepdims=True) - finite
        room = np.where(count - unbounded > 0, np.inf, room)
        np.maximum(least, np.expand_dims(low, axis) - room, out=least)
        if keyed:
            shown = np.expand_dims(self.shown[whole], axis)
            with np.errstate(invalid="ignore"):
                other = shown != self.shown[parts]
            other &= ~np.isnan(shown) & ~np.isnan(self.shown[parts])
            np.minimum(most, np.where(other, np.expand_dims(high, axis) - 1, np.inf), out=most)
            np.maximum(low, np.where(other, least + 1, 0).max(axis=axis), out=low)
        after = (low.sum(), least.sum(), np.minimum(high, 1e12).sum(), np.minimum(most, 1e12).sum())
        return before != after

    def against(self, truth: Truth, possible: Truth, *, small: int = 2) -> Found:
        """How many cells are certain, how many of them are small, and how many claims are wrong.

        Cells that cannot hold anybody are empty to everybody's knowledge, and do not count.
        """
        cells = certain = few = alone = wrong = 0
        for variables, low in self.low.items():
            true = truth(variables)
            high = self.high[variables]
            open_cells = possible(variables)
            pinned = (low == high) & open_cells
            cells += int(open_cells.sum())
            certain += int(pinned.sum())
            few += int((pinned & (true >= 1) & (true <= small)).sum())
            alone += int((pinned & (true == 1)).sum())
            wrong += int(((true < low) | (true > high)).sum())
        return Found(cells, certain, few, alone, wrong)


def gather(asker: Asker, codes: Codes, within: Sequence[str] = ()) -> Lattice:
    """Ask for all tables up to three variables, and for all three-way tables in each code of some."""
    lattice = Lattice({}, {}, {})
    names = sorted(codes)
    for size in (1, 2, 3):
        for chosen in combinations(names, size):
            answer = asker.ask(question(chosen))
            if answer is not None:
                _keep(lattice, chosen, answer.shown, answer.low, answer.high)
    everybody = asker.ask(question(names[:1], totals=True))
    if everybody is not None:
        last = (..., -1)
        _keep(lattice, (), everybody.shown[last], everybody.low[last], everybody.high[last])
    for inside in within:
        for three in combinations([n for n in names if n != inside], 3):
            answers = [asker.ask(question(three, {inside: [code]})) for code in codes[inside]]
            if all(answer is None for answer in answers):
                continue
            shape = next(a.shown.shape for a in answers if a is not None)
            unknown = (np.full(shape, np.nan), np.zeros(shape), np.full(shape, np.inf))
            parts = [unknown if a is None else (a.shown, a.low, a.high) for a in answers]
            four = tuple(sorted((*three, inside)))
            stacked = [np.stack(part, axis=four.index(inside)) for part in zip(*parts, strict=True)]
            _keep(lattice, four, *stacked)
    return lattice


def _keep(lattice: Lattice, key: Variables, shown: Floats, low: Floats, high: Floats) -> None:
    if key in lattice.low:
        # Asked for in two ways: both are true.
        lattice.low[key] = np.maximum(lattice.low[key], low)
        lattice.high[key] = np.minimum(lattice.high[key], high)
        lattice.shown[key] = np.where(np.isnan(lattice.shown[key]), shown, lattice.shown[key])
        return
    lattice.shown[key] = np.array(shown, dtype=float)
    lattice.low[key] = np.array(low, dtype=float)
    lattice.high[key] = np.where(np.isnan(high), np.inf, high)
