"""A search that takes long says so, and Ctrl-C takes the best safe pattern so far."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

import lustrum
from lustrum.protect.suppression import AxisSums, SuppressionProblem, suppress
from lustrum.publish.suppression import tables as module
from lustrum.publish.suppression.tables import StoppableSearch
from lustrum.runtime import log_lines
from lustrum.runtime.stop import (
    Stopped,
    report_progress,
    reporting_progress,
    still_working,
    stopping,
    taking_best,
)
from protect.suppression.test_suppress import three_way

COUNTS = [[2, 9, 7, 8], [9, 1, 8, 9], [7, 8, 2, 9], [9, 7, 8, 30]]
RECORDS = {
    "a": [f"a{i}" for i, row in enumerate(COUNTS) for n in row for _ in range(n)],
    "b": [f"b{j}" for row in COUNTS for j, n in enumerate(row) for _ in range(n)],
}


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
    assert "goes on" in said[0]
    assert "1,234" not in said[0], "the sentence may go to a log"


def test_a_search_that_is_stopped_gives_a_safe_pattern_with_less_work() -> None:
    rng = np.random.default_rng(5)
    values, relations = three_way(rng.integers(1, 100, (5, 5, 5)))
    cells = np.flatnonzero(values < 100)
    primary = rng.choice(cells, 12, replace=False)
    problem = SuppressionProblem.of(values, relations, primary, values[primary] // 5 + 1)
    whole = suppress(problem, algorithm="exact", work=400)
    told: list[float] = []

    def stop(what: str, cost: float, bound: float) -> bool:
        told.append(cost)
        return True

    stopped = suppress(problem, algorithm="exact", work=400, progress=stop)
    assert stopped.safe
    assert told
    assert stopped.steps < whole.steps
    assert stopped.gap > 0
    assert "The search was stopped" in stopped.why
    assert "limit" not in stopped.why
    # A search that ends by itself, at its limit, was not stopped.
    assert whole.gap > 0
    assert "ended at its limit of 400 steps" in whole.why
    assert "stopped" not in whole.why


def test_a_search_that_is_stopped_in_the_middle_of_a_program_keeps_its_best_pattern() -> None:
    """Programs of the solver ask too; whichever of them is stopped, the pattern is safe and the bound holds."""
    rng = np.random.default_rng(5)
    values, relations = three_way(rng.integers(1, 100, (4, 4, 4)))
    cells = np.flatnonzero(values < 100)
    primary = rng.choice(cells, 8, replace=False)
    problem = SuppressionProblem.of(values, relations, primary, values[primary] // 5 + 1)
    whole = suppress(problem, algorithm="exact", work=300)
    for questions in (0, 3, 40, 100):
        asked: list[bool] = []

        def enough(asked: list[bool] = asked, questions: int = questions) -> bool:
            asked.append(len(asked) >= questions)
            return asked[-1]

        with taking_best(enough):
            stopped = suppress(problem, algorithm="exact", work=300)
        assert any(asked), "the search ended by itself"
        assert stopped.safe
        assert stopped.steps < whole.steps
        assert stopped.lower_bound <= whole.cost <= stopped.cost
        assert stopped.lower_bound < stopped.cost
        assert "The search was stopped" in stopped.why
        assert "limit" not in stopped.why


def test_a_stop_of_everything_is_no_wish_for_the_best_pattern() -> None:
    values, relations = three_way(np.arange(1, 28).reshape(3, 3, 3))
    problem = SuppressionProblem.of(values, relations, [0, 5], [1, 3])
    with taking_best(lambda: False), stopping(lambda: True), pytest.raises(Stopped):
        suppress(problem, algorithm="exact", work=500)


def test_bounds_of_sub_tables_that_were_reached_stay_a_bound() -> None:
    axis = AxisSums(7, ((4, (0, 1)), (5, (2, 3)), (6, (4, 5))))
    inner = np.random.default_rng(3).integers(1, 40, (4, 4))
    up = np.zeros((7, 4), dtype=np.int64)
    up[[0, 1, 2, 3], [0, 1, 2, 3]] = 1
    up[4, :2] = up[5, 2:] = up[6] = 1
    values = (up @ inner @ up.T).ravel()
    number = np.arange(49).reshape(7, 7)
    relations = [
        (int(line[total]), [int(line[p]) for p in parts])
        for lines in (number, number.T)
        for line in lines
        for total, parts in axis.sums
    ]
    problem = SuppressionProblem.of(values, relations, [0, 9, 17], [3, 4, 2], axes=(axis, axis))
    least = suppress(problem, algorithm="exact").cost
    with taking_best(lambda: True):
        stopped = suppress(problem)
    assert stopped.safe
    assert stopped.lower_bound <= least <= stopped.cost


def test_a_search_for_a_frame_can_be_stopped_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C after the sentence takes the best pattern so far, which is safe."""
    monkeypatch.setattr(module, "_SOON", -1.0)
    monkeypatch.setattr(log_lines.sys.stderr, "isatty", lambda: True, raising=False)
    asked: list[bool] = []
    right = StoppableSearch.tell

    def tell(self: StoppableSearch, what: str, cost: float, bound: float) -> bool:
        right(self, what, cost, bound)
        if not self.stopped:
            os.kill(os.getpid(), signal.SIGINT)
        asked.append(self.stopped)
        return self.stopped

    monkeypatch.setattr(StoppableSearch, "tell", tell)
    release = lustrum.suppress(RECORDS, ["a", "b"], {"rule": "threshold", "minimum": 3})
    assert any(asked)
    assert not release.shown.all()
    assert "The search goes on" in capsys.readouterr().err


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
