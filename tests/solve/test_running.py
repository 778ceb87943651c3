"""A stop is heard in the middle of a program, and asking for it changes nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from lustrum.numeric.solve import Highs, LinearProblem, Outcome
from lustrum.numeric.solve.highs import SIMPLEX, Program
from lustrum.runtime.stop import Stopped, stopping

GENEROUS = 600.0  # seconds


def covering(rows: int) -> tuple[Any, ...]:
    """A covering program; one of 3,000 rows takes a processor of today far more than ten seconds."""
    luck = np.random.default_rng(0)
    matrix = sparse.random(rows, 2 * rows, density=5 / rows, random_state=luck, format="csc")
    matrix.data[:] = luck.integers(1, 9, matrix.nnz)
    side = np.minimum(10.0, 4.0 * np.asarray(matrix.sum(axis=1)).ravel())
    ends = np.zeros(2 * rows), np.full(2 * rows, 9.0)
    return matrix, (side, np.full(rows, np.inf)), ends, luck.random(2 * rows) + 1.0


def split() -> Any:
    """A search for whole numbers that does not end: parts of equal size by seven measures at once."""
    sizes = np.random.default_rng(1).integers(0, 100, (7, 60)).astype(np.float64)
    half = np.floor(sizes.sum(axis=1) / 2)
    ends = np.zeros(60), np.ones(60)
    return Program(sparse.csr_array(sizes), (half, half), ends, whole=np.arange(60))


def long_program(kind: str) -> Any:
    return split() if kind == "whole" else Program(*covering(3000), **SIMPLEX)


@pytest.fixture
def plain_interrupts() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("kind", ["linear", "whole"])
def test_a_stop_from_another_thread_ends_a_program_that_is_under_way(kind: str) -> None:
    model, under_way, stop = long_program(kind), threading.Event(), threading.Event()
    heard: list[str] = []

    def asked() -> bool:
        under_way.set()
        return stop.is_set()

    def work() -> None:
        with stopping(asked):
            try:
                model.run()
            except Stopped:
                heard.append("stopped")

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    assert under_way.wait(GENEROUS)
    assert worker.is_alive()
    stop.set()
    worker.join(GENEROUS)
    assert not worker.is_alive()
    # A program that had ended by itself would not have raised.
    assert heard == ["stopped"]


@pytest.mark.parametrize("kind", ["linear", "whole"])
def test_ctrl_c_is_heard_in_the_middle_of_a_program(kind: str, plain_interrupts: None) -> None:
    model = long_program(kind)

    def asked() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return False

    with stopping(asked), pytest.raises(KeyboardInterrupt):
        model.run()


def test_a_handler_of_ctrl_c_that_goes_on_changes_nothing() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))

    def asked() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        return False

    try:
        model, plain = (Program(*covering(60), **SIMPLEX) for _ in range(2))
        with stopping(asked):
            model.run()
    finally:
        signal.signal(signal.SIGINT, before)
    plain.model.run()
    assert seen
    assert model.ended == plain.ended == "optimal"
    assert list(model.point) == list(plain.point)


@pytest.mark.parametrize("options", [SIMPLEX, {}, {"solver": "ipm"}, {"whole": np.arange(24)}])
def test_a_program_that_nobody_stops_takes_the_same_way(options: dict[str, Any]) -> None:
    asked, plain = (Program(*covering(12), **options) for _ in range(2))
    calls: list[bool] = []

    def never() -> bool:
        calls.append(False)
        return calls[-1]

    with stopping(never):
        asked.run()
    plain.model.run()
    assert calls or "presolve" not in options
    one, other = asked.model.getInfo(), plain.model.getInfo()
    for count in ("simplex_iteration_count", "ipm_iteration_count", "mip_node_count"):
        assert getattr(one, count) == getattr(other, count)
    assert asked.ended == plain.ended == "optimal"
    assert list(asked.point) == list(plain.point)


def test_a_model_that_was_stopped_answers_the_next_question_rightly() -> None:
    model, plain = (Program(*covering(60), **SIMPLEX) for _ in range(2))
    with stopping(lambda: True), pytest.raises(Stopped):
        model.run()
    model.run()
    plain.model.run()
    assert list(model.point) == list(plain.point)


@pytest.mark.parametrize("whole", [False, True])
def test_a_question_that_its_asker_ends_is_cut_short_and_proves_nothing_false(whole: bool) -> None:
    matrix, (low, high), ends, cost = covering(12)
    problem = LinearProblem(matrix.tocsr(), low, high, *ends)
    loaded = Highs().load(problem)
    short = loaded.minimise(cost, whole=whole, stop=lambda: True)
    assert short.outcome is Outcome.CUT_SHORT
    right = Highs().load(problem).minimise(cost, whole=whole)
    assert right.outcome is Outcome.OPTIMAL
    assert short.bound <= right.bound + 1e-6
    after = loaded.minimise(cost, whole=whole)
    assert after.outcome is Outcome.OPTIMAL
    assert after.bound == pytest.approx(right.bound)


def test_outside_the_main_thread_handlers_are_left_alone(plain_interrupts: None) -> None:
    handlers: list[Any] = []
    model = Program(*covering(60), **SIMPLEX)

    def asked() -> bool:
        handlers.append(signal.getsignal(signal.SIGINT))
        return False

    def work() -> None:
        with stopping(asked):
            model.run()

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert handlers
    assert set(handlers) == {signal.default_int_handler}
