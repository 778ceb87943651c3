"""What a method that protects a population must hold, and that the check finds those that do not."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from lustrum.model.finest import FinestCells
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.testing import check_population


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"base": 5, "empty_share": 0.2},
        {"cells": "small", "empty_share": 0.0},
        {"known_totals": (("v2",),)},
    ],
    ids=["default", "wider", "small", "totals"],
)
def test_the_built_in_method_holds_the_contract(words: dict[str, Any]) -> None:
    check_population(ProtectedPopulation(sweeps=1, **words), populations=2)


@dataclass(frozen=True)
class Broken(ProtectedPopulation):
    """A third party's method with a mistake."""

    mistake: str = ""

    def to_mapping(self) -> dict[str, Any]:
        words = {**super().to_mapping(), "method": self.name}
        del words["mistake"]
        return words

    def protect(self, cells: FinestCells, key: bytes, **options: Any) -> PopulationResult:  # type: ignore[override]
        if self.mistake == "fresh":
            key = secrets.token_bytes(32)
        if self.mistake == "no key":
            key = b"always the same key, of 32 bytes"
        result = super().protect(cells, key, **options)
        shown = result.cells
        if self.mistake == "keys":
            return replace(result, cells=replace(shown, keys=np.ones(len(shown), dtype=np.uint64)))
        if self.mistake == "truth":
            return replace(result, cells=FinestCells(cells.dataset, cells.codes, cells.counts))
        if self.mistake == "far":
            return replace(result, cells=replace(shown, counts=shown.counts + 6 * self.base))
        if self.mistake == "words":
            said = {**result.public.method, "records": int(cells.counts.sum())}
            return replace(result, public=replace(result.public, method=said))
        return result


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        ("fresh", "gave other numbers"),
        ("no key", "another key gave the same numbers"),
        ("keys", "have keys of records"),
        ("truth", "came out as they went in"),
        ("far", "does not hold the truth"),
        ("words", "got out in words"),
    ],
)
def test_every_broken_promise_is_found(mistake: str, sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_population(Broken(sweeps=1, mistake=mistake))
