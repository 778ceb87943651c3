"""Time and size of answers: do they tell what a shown 0 hides?

Many populations that show 0 are asked for, one by one, in an order drawn at random and several times each. If
time or size depended on true counts, those with people in them could be told from those without. Where people
are hidden, more is shown around them, and names are longer or shorter; what the protected numbers of the lines
through a population and the length of the answer explain is taken out of the times first.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from attacks.asker import Codes, HttpAsker, question

__all__ = ["Timed", "times_and_sizes"]

_ROUNDS = 5
_MOST = 150


@dataclass(frozen=True)
class Timed:
    """Populations that show 0, how well time tells those with people (0.5: not at all), and different sizes."""

    empty: int
    occupied: int
    told_by_time: float
    error: float
    sizes: int

    @property
    def telling(self) -> bool:
        """Whether time or size tells anything, at four standard errors."""
        return self.sizes > 1 or abs(self.told_by_time - 0.5) > 4 * self.error


def times_and_sizes(
    asker: HttpAsker,
    codes: Codes,
    variables: tuple[str, str, str],
    truth: Callable[[dict[str, Any]], np.ndarray[Any, Any]],
) -> Timed:
    """Ask for single populations that show 0; hold time and size of each answer against the truth."""
    whole = asker.ask(question(variables))
    if whole is None:
        return Timed(0, 0, 0.5, 1.0, 0)
    true = truth(question(variables))
    shown = [
        place
        for place in product(*(range(n) for n in whole.shown.shape))
        if whole.shown[place] == 0 and whole.high[place] > 0
    ]
    rng = np.random.default_rng(2)
    kinds = [[p for p in shown if (true[p] > 0) == bool(kind)] for kind in (0, 1)]
    few = min(_MOST, *(len(kind) for kind in kinds))
    if few < 10:
        return Timed(len(kinds[0]), len(kinds[1]), 0.5, 1.0, 0)
    kept = [kind[int(i)] for kind in kinds for i in rng.permutation(len(kind))[:few]]
    seconds = np.full((len(kept), _ROUNDS), np.inf)
    sizes: set[int] = set()
    lengths = np.zeros(len(kept))
    for turn in range(_ROUNDS):
        for number in rng.permutation(len(kept)):
            place = kept[int(number)]
            picked = {v: [codes[v][p]] for v, p in zip(variables, place, strict=True)}
            start = time.perf_counter()
            raw = asker.raw(question(variables, codes=picked))
            seconds[number, turn] = time.perf_counter() - start
            # Names of codes are of different lengths, and bounds follow from public facts.
            body = json.loads(raw)
            told = [body["table"]["value"], body["risk"], body["utility"], body["reasons"]]
            sizes.add(len(json.dumps(told)))
            lengths[number] = len(raw)
    explained = [
        [
            lengths[i],
            *place,
            *(whole.shown.sum(axis=axis)[_without(place, axis)] for axis in range(3)),
        ]
        for i, place in enumerate(kept)
    ]
    fastest = _unexplained(seconds.min(axis=1), np.array(explained, dtype=np.float64))
    zero, some = fastest[:few], fastest[few:]
    apart = float((some[:, None] > zero[None, :]).mean() + 0.5 * (some[:, None] == zero).mean())
    error = float(
        np.sqrt((2 * few + 1) / (12 * few * few))
    )  # of the rank statistic, if nothing is told
    return Timed(few, few, apart, error, len(sizes))


def _without(place: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(p for i, p in enumerate(place) if i != axis)


def _unexplained(
    seconds: np.ndarray[Any, Any], known: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """What is left of the times after a straight line through what everybody can see."""
    design = np.column_stack([np.ones(len(known)), np.log1p(known)])
    line, *_ = np.linalg.lstsq(design, np.log(seconds), rcond=None)
    return np.asarray(np.log(seconds) - design @ line)
