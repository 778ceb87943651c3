"""Long work says now and then that it goes on, counted in sorts of cells and not in seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lustrum.protect.population import public
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.runtime.stop import (
    Stopped,
    report_progress,
    reporting_progress,
    still_working,
    stopping,
)
from protect.population.worlds import KEY, cells_of, town

SORTS = ("argsort", "lexsort", "unique", "isin")


def test_hardly_more_than_two_sorts_of_all_cells_lie_between_two_words_of_progress(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    cells = cells_of(town((40, 9, 4, 3, 2), zeros=False), rng.poisson(0.5, (40, 9, 4, 3, 2)))
    sorted_since = [0]
    silent: list[tuple[int, str]] = []

    def counted(name: str, plain: Any) -> Any:
        def sort(values: Any, *words: Any, **more: Any) -> Any:
            sorted_since[0] += np.size(values[0] if name == "lexsort" else values)
            return plain(values, *words, **more)

        return sort

    def heard(step: str, _share: float) -> None:
        silent.append((sorted_since[0], step))
        sorted_since[0] = 0

    for name in SORTS:
        monkeypatch.setattr(np, name, counted(name, getattr(np, name)))
    monkeypatch.setattr(public, "MANY_CODES", 40)
    method = ProtectedPopulation(sweeps=1, extra_tables=20)
    result = method.protect(cells, KEY, progress=heard)
    every = len(result.memory)
    assert max(silent)[0] <= 2.5 * every, max(silent)
    assert sum(cells for cells, _ in silent) > 20 * every
    steps = {step for _, step in silent}
    assert {
        "choosing empty cells",
        "laying out cells",
        "adding up tables",
        "protecting",
        "measuring errors",
        "measuring attributes",
    } <= steps


def test_work_that_does_not_know_its_step_says_the_last_one_again_and_stops() -> None:
    said: list[tuple[str, float]] = []
    still_working()
    with reporting_progress(lambda *words: said.append(words)):
        still_working()
        assert not said
        report_progress("counting", 0.5)
        still_working()
    still_working()
    assert said == [("counting", 0.5)] * 2
    with stopping(lambda: True), pytest.raises(Stopped):
        still_working()
