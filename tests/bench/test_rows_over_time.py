"""Rows of several releases: what each reader names, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from attacks.releases.attributes import rows_of_all
from attacks.releases.series import Joined

from protect.population.worlds import town


def test_readers_of_rows_name_the_last_the_most_frequent_and_the_lasting_category() -> None:
    # Two rows of three categories; the last variable is unknown.
    shown = np.array([[3, 0, 0, 0, 3, 0], [3, 0, 0, 0, 3, 0], [0, 3, 0, 0, 3, 0]])
    true = np.zeros((3, 6), dtype=np.int64)
    true[-1] = [2, 1, 0, 1, 1, 0]
    joined = Joined(np.arange(6, dtype=np.uint64), shown, true, np.zeros((3, 6), dtype=np.uint64))
    found = dict(rows_of_all(joined, town((2, 3), zeros=False), 3))

    def of(reader: str, variable: str) -> tuple[int, float]:
        own = [risk for risk in found[reader] if risk.variable == variable]
        people = sum(risk.people for risk in own)
        return people, sum(risk.people * risk.named for risk in own) / max(people, 1)

    assert of("last release", "v1") == (5, pytest.approx(2 / 5))
    assert of("most often shown", "v1") == (5, pytest.approx(3 / 5))
    assert of("the same in all", "v1") == (2, pytest.approx(1 / 2))
    assert of("no other ever", "v1") == (2, pytest.approx(1 / 2))
    # Of the first variable the last release shows two categories in the only row that shows anybody.
    assert of("last release", "v0") == (0, 0.0)
    # Both rows show the second category, and so does a guess from the other row.
    assert all(r.guessed == pytest.approx(r.named) for r in found["last release"] if r.people)
