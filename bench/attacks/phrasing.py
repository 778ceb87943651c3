"""One population asked for in many ways: does it ever show two numbers?

Another order of variables, a variable as a filter, a code more or less, totals or not, a coarser level: a
server that draws anew for any of them can be averaged out, and a server that shows two numbers tells why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np

from attacks.asker import TOTAL, Asker, Codes, Key, question

__all__ = ["Phrased", "Split", "rephrase", "splits"]


@dataclass(frozen=True)
class Phrased:
    """Populations that were shown at least twice, and those that showed more than one number."""

    populations: int
    different: int


@dataclass(frozen=True)
class Split:
    """Mean absolute error of single numbers, and of the mean over sums of disjoint parts."""

    cells: int
    single: float
    averaged: float
    different: int


def rephrase(asker: Asker, codes: Codes, names: Sequence[str]) -> Phrased:
    """Ask for the same cells in every way."""
    shown: dict[Key, set[float]] = defaultdict(set)
    times: dict[Key, int] = defaultdict(int)
    for asked in _phrasings(codes, names):
        answer = asker.ask(asked)
        if answer is None:
            continue
        where = {v: c[0] for v, c in asked.get("where", {}).items() if len(c) == 1}
        for place in np.ndindex(*answer.shown.shape):
            if np.isnan(answer.shown[place]):
                continue
            key = dict(where)
            for variable, labels, p in zip(answer.variables, answer.codes, place, strict=True):
                if labels[p] != TOTAL:
                    key[variable] = labels[p]
            population = tuple(sorted(key.items()))
            shown[population].add(float(answer.shown[place]))
            times[population] += 1
    often = [key for key, number in times.items() if number > 1]
    return Phrased(len(often), sum(len(shown[key]) > 1 for key in often))


def _phrasings(codes: Codes, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for size in (1, 2, 3):
        for chosen in combinations(names, size):
            for order in permutations(chosen):
                yield question(order)
                yield question(order, totals=True)
            for name in chosen:
                rest = [v for v in chosen if v != name]
                if not rest or ":" in name:
                    continue
                for code in codes[name]:
                    yield question(rest, {name: [code]})
                    yield question(rest, {name: [code]}, totals=True)
                few = list(codes[name])[: max(1, len(codes[name]) // 2)]
                yield question(chosen, codes={name: few})
                yield question(chosen, codes={name: few}, totals=True)


def splits(
    asker: Asker,
    codes: Codes,
    by: tuple[str, str],
    over: Sequence[str],
    truth: np.ndarray[Any, Any],
    small: int = 10,
) -> Split:
    """Sum the parts of every small cell along other variables, and take the mean of the sums."""
    single = asker.ask(question(by))
    if single is None:
        return Split(0, 0.0, 0.0, 0)
    sums = [single.shown]
    for variable in over:
        answer = asker.ask(question((*by, variable)))
        if answer is not None:
            sums.append(answer.shown.sum(axis=-1))
    stacked = np.stack(sums)
    with np.errstate(invalid="ignore"):
        picked = (single.shown <= small) & ~np.isnan(stacked).any(axis=0)
    if not picked.any():
        return Split(0, 0.0, 0.0, 0)
    spread = stacked[:, picked]
    true = truth[picked]
    return Split(
        int(picked.sum()),
        float(np.abs(spread[0] - true).mean()),
        float(np.abs(spread.mean(axis=0) - true).mean()),
        int((spread != spread[0]).any(axis=0).sum()),
    )
