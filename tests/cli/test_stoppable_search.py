"""A search that takes long says so, and Ctrl-C takes the best safe pattern so far."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from lustrum.cli.terminal import search as module
from lustrum.cli.terminal.search import StoppableSearch
from lustrum.protect.suppression import SuppressionProblem, suppress
from protect.suppression.test_suppress import three_way


def test_an_interrupt_stops_the_search_once_that_was_offered_and_otherwise_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = iter([0.0, 1.0, 25.0])
    monkeypatch.setattr(module.time, "process_time", lambda: next(now))
    search = StoppableSearch(lambda words: None, lambda words: None)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with search.listening():
        assert not search.tell("cut", 10, 5)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert not search.tell("cut", 10, 5)
        os.kill(os.getpid(), signal.SIGINT)
        assert search.tell("cut", 10, 5)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


def test_a_long_search_says_once_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    now = iter([0.0, 1.0, 25.0, 26.0])
    monkeypatch.setattr(module.time, "process_time", lambda: next(now))
    search = StoppableSearch(lambda words: None, said.append)
    for _ in range(3):
        assert not search.tell("search", 1234, 5)
    assert len(said) == 1
    assert "1,234" in said[0]


def test_a_search_that_is_stopped_gives_a_safe_pattern_with_less_work() -> None:
    rng = np.random.default_rng(5)
    values, relations = three_way(rng.integers(1, 100, (6, 6, 6)))
    cells = np.flatnonzero(values < 100)
    primary = rng.choice(cells, 12, replace=False)
    problem = SuppressionProblem.of(values, relations, primary, values[primary] // 5 + 1)
    whole = suppress(problem, algorithm="exact", work=3000)
    told: list[float] = []

    def stop(what: str, cost: float, bound: float) -> bool:
        told.append(cost)
        return True

    stopped = suppress(problem, algorithm="exact", work=3000, progress=stop)
    assert stopped.safe
    assert told
    assert stopped.steps < whole.steps
