"""Figures beside a table: does a risk or a utility tell what a shown 0 hides?

Each question holds two cells, a large one and one that shows 0. A figure made from true counts differs for 0, 1
and 2 people; the attack works it out for each and keeps the values that fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attacks.asker import Answer, Asker, Codes, question
from lustrum.model import Table
from lustrum.risk import EntropyRisk

__all__ = ["Figured", "chosen_codes"]


@dataclass(frozen=True)
class Figured:
    """Cells that show 0, those of which one value is left, how many of these claims are right.

    ``telling`` counts questions whose published numbers are the same while their figures differ.
    """

    cells: int
    claims: int
    right: int
    telling: int

    def __add__(self, other: Figured) -> Figured:
        return Figured(
            self.cells + other.cells,
            self.claims + other.claims,
            self.right + other.right,
            self.telling + other.telling,
        )

    @property
    def certain(self) -> int:
        """Claims of an attack that is never wrong; one that errs proves nothing."""
        return self.claims if self.claims == self.right else 0


def chosen_codes(
    asker: Asker,
    codes: Codes,
    by: Sequence[str],
    where: Codes,
    risk: EntropyRisk,
    step: float,
    truth: Callable[[dict[str, Any]], np.ndarray[Any, Any]],
) -> Figured:
    """Ask about every cell that shows 0 beside the largest cell of its line."""
    whole = asker.ask(question(by, where))
    if whole is None:
        return Figured(0, 0, 0, 0)
    cells = claims = right = 0
    seen: dict[tuple[float, ...], set[tuple[float | None, ...]]] = defaultdict(set)
    *outer, last = by
    for line in np.ndindex(*whole.shown.shape[:-1]):
        anchor = int(np.nanargmax(whole.shown[line]))
        if not whole.shown[line][anchor]:
            continue  # nobody is shown beside the cell
        for target in np.flatnonzero(whole.shown[line] == 0):
            picked = {v: [codes[v][p]] for v, p in zip(outer, line, strict=True)}
            order = sorted((anchor, int(target)))
            picked[last] = [codes[last][p] for p in order]
            asked = question(by, where, codes=picked)
            answer = asker.ask(asked)
            if answer is None:
                continue
            cells += 1
            place = order.index(int(target))
            shown = tuple(answer.shown.ravel())
            seen[(*shown, place)].add(tuple(answer.figures.values()))
            left = _left(answer, place, risk, step)
            if len(left) == 1:
                claims += 1
                right += left[0] == int(truth(asked).ravel()[place])
    return Figured(cells, claims, right, sum(len(told) > 1 for told in seen.values()))


def _left(answer: Answer, place: int, risk: EntropyRisk, step: float) -> list[int]:
    """The values of the target for which the figure before protection fits."""
    told = answer.figures["before"]
    if told is None:
        return [0, 1, 2]
    large = float(answer.shown.ravel()[1 - place])
    left = []
    for value in (0, 1, 2):
        pair = [large, large]
        pair[place] = value
        exact = risk.before(Table.from_counts(np.array(pair, dtype=np.int64)))
        if abs(exact - told) < step:
            left.append(value)
    return left
