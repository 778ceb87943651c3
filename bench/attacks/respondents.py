"""Attacks on a survey: the weight of a single respondent, and what a standard error tells.

Everything that a server says of a survey must follow from the public file of protected respondents. The attack
holds weighted counts and standard errors against that file, and both against true weights.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from attacks.asker import Answer, Asker, HttpAsker
from lustrum.model import Axis, TableQuery
from lustrum.model.records import Records
from lustrum.public.bundle import BundleNumbers

__all__ = ["PlantedWeight", "Weighed", "standard_errors", "weights"]

Floats = np.ndarray[Any, Any]


@dataclass
class Weighed:
    """What weighted tables of up to three variables tell.

    ``single`` are cells with one true respondent; ``exact`` those whose weighted count is its weight to the
    last decimal, ``near`` those within one percent, and ``near_by_chance`` how many would be if the respondents
    of all such cells had changed places. ``fractions`` are numbers with more decimals than the file's weights
    have. ``outside_file`` are weighted counts and standard errors that do not follow from the public file.
    """

    tables: int = 0
    single: int = 0
    exact: int = 0
    near: int = 0
    near_by_chance: float = 0.0
    fractions: int = 0
    compared: int = 0
    outside_file: int = 0


def weights(asker: Asker, records: Records, numbers: BundleNumbers, weight: str) -> Weighed:
    """Ask for all weighted tables of two and three variables that the policy allows."""
    found = Weighed()
    dataset = records.dataset
    own = records.numbers[weight] / 10.0 ** dataset.weight(weight).decimals
    sizes = {v.name: len(v.codes) for v in dataset.variables}
    rng = np.random.default_rng(5)
    decimals = 0 if numbers.bundle.respondents is None else numbers.bundle.respondents.decimals
    for ways in (2, 3):
        for names in combinations(sizes, ways):
            answer = asker.ask({"by": list(names), "weight": weight})
            if answer is None:
                continue
            found.tables += 1
            shown = answer.shown.ravel()
            cell = np.ravel_multi_index(
                tuple(records.codes[n].astype(np.int64) for n in names),
                tuple(sizes[n] for n in names),
            )
            count = np.bincount(cell, minlength=shown.size)
            true = np.bincount(cell, weights=own, minlength=shown.size)
            one = (count == 1) & (shown > 0)
            found.single += int(one.sum())
            found.exact += int((np.abs(shown - true)[one] < 0.005).sum())
            found.near += int((np.abs(shown - true)[one] < 0.01 * true[one]).sum())
            mixed = rng.permutation(true[one])
            found.near_by_chance += float((np.abs(shown[one] - mixed) < 0.01 * mixed).sum())
            scaled = shown * 10**decimals
            found.fractions += int((np.abs(scaled - np.rint(scaled)) > 1e-6)[shown > 0].sum())
            if ways == 2:
                query = TableQuery(dataset.name, tuple(Axis(n) for n in names), weight=weight)
                file = numbers.views(query).shown
                found.compared += shown.size
                found.outside_file += int((file.published.ravel() / 10**decimals != shown).sum())
    return found


def standard_errors(asker: HttpAsker, numbers: BundleNumbers, weight: str) -> tuple[int, int]:
    """How many standard errors of two-way tables there are, and how many do not follow from the public file."""
    dataset = numbers.dataset
    seen = other = 0
    for names in combinations([v.name for v in dataset.variables], 2):
        raw = json.loads(asker.raw({"by": list(names), "weight": weight}))
        given = ((raw.get("table") or {}).get("extension") or {}).get("standard_error")
        if given is None:
            continue
        query = TableQuery(dataset.name, tuple(Axis(n) for n in names), weight=weight)
        file = numbers.views(query).shown
        assert file.errors is not None
        expected = file.errors.ravel() / 10.0**file.decimals
        there = np.array([v is not None for v in given])
        values = np.array([0.0 if v is None else v for v in given])
        seen += int(there.sum())
        other += int((np.abs(values - expected) > 1e-6)[there].sum())
    return seen, other


@dataclass
class PlantedWeight(Asker):
    """Shows the true weight in every cell with one respondent of one table."""

    inner: Asker
    records: Records
    weight: str
    names: tuple[str, ...]

    def ask(self, asked: dict[str, Any]) -> Answer | None:
        """The answer with true weights in it."""
        answer = self.inner.ask(asked)
        if answer is None or asked["by"] != list(self.names):
            return answer
        shape = tuple(len(self.records.dataset.variable(n).codes) for n in self.names)
        places = tuple(self.records.codes[n].astype(np.int64) for n in self.names)
        cell = np.ravel_multi_index(places, shape)
        own = (
            self.records.numbers[self.weight]
            / 10.0 ** self.records.dataset.weight(self.weight).decimals
        )
        size = int(np.prod(shape))
        one = np.bincount(cell, minlength=size) == 1
        true = np.bincount(cell, weights=own, minlength=size)
        shown = np.where(one, true, answer.shown.ravel())
        return replace(answer, shown=shown.reshape(answer.shown.shape))
