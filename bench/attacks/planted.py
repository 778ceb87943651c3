"""Leaks put in front of a safe server on purpose: an attack that misses them is no attack."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

import numpy as np

from attacks.asker import Answer, Asker, Key
from lustrum.model import Table
from lustrum.risk import EntropyRisk

__all__ = ["SecondDraw", "TrueCell", "TrueFigure"]

Truth = Callable[[dict[str, Any]], np.ndarray[Any, Any]]


@dataclass
class TrueCell(Asker):
    """Shows the true count of one population wherever it appears, and says so in the bounds."""

    inner: Asker
    key: Key
    truth: int

    def ask(self, asked: dict[str, Any]) -> Answer | None:
        """The answer with the cell replaced."""
        answer = self.inner.ask(asked)
        if answer is None:
            return None
        where = {v: c[0] for v, c in asked.get("where", {}).items() if len(c) == 1}
        if len(where) != len(asked.get("where", {})):
            return answer
        wanted = dict(self.key)
        if {*where, *answer.variables} != set(wanted) or any(wanted[v] != where[v] for v in where):
            return answer
        try:
            place = tuple(
                labels.index(wanted[v])
                for v, labels in zip(answer.variables, answer.codes, strict=True)
            )
        except ValueError:
            return answer
        shown, low, high = answer.shown.copy(), answer.low.copy(), answer.high.copy()
        shown[place] = low[place] = high[place] = self.truth
        return replace(answer, shown=shown, low=low, high=high)


@dataclass
class TrueFigure(Asker):
    """Shows the risk of the true table, rounded to a step."""

    inner: Asker
    truth: Truth
    risk: EntropyRisk
    step: float

    def ask(self, asked: dict[str, Any]) -> Answer | None:
        """The answer with the figure of the true table."""
        answer = self.inner.ask(asked)
        if answer is None:
            return None
        true = self.truth(asked).astype(np.int64)
        if true.size < 2 or not true.any():
            return answer
        exact = self.risk.before(Table.from_counts(true))
        told = round(exact / self.step) * self.step
        return replace(answer, figures={**answer.figures, "before": told})


@dataclass
class SecondDraw(Asker):
    """Draws anew for every phrasing of a question."""

    inner: Asker

    def ask(self, asked: dict[str, Any]) -> Answer | None:
        """The answer with fresh noise."""
        answer = self.inner.ask(asked)
        if answer is None:
            return None
        rng = np.random.default_rng(crc32(repr(asked).encode()))
        noise = 3 * rng.integers(-1, 2, size=answer.shown.shape)
        return replace(answer, shown=np.maximum(answer.shown + noise, 0))
