"""A start waits for records that take long to open, but not for ever, and never for one that is checked."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lustrum.answer import TableService
from lustrum.answer.records_line import START
from lustrum.demo import description_path
from lustrum.demo.draws import SHIPPED
from lustrum.model import Dataset, LustrumError, TableQuery
from lustrum.model.errors import NotAnsweringError, NotReadyError
from lustrum.runtime.stop import Stopped
from lustrum.server.operation import lifecycle as warmup
from lustrum.tabulate import read_description

DEMO = read_description(description_path("demo"))


class Records(TableService):
    """Datasets whose descriptions come after so many tries; each try in vain takes a minute of the clock."""

    def __init__(self, clock: Any, error: type[Exception], tries: dict[str, int]) -> None:
        super().__init__(folder=Path())
        self.clock, self.error, self.tries = clock, error, tries
        self.asked: list[str] = []
        self.answered: list[str] = []

    def names(self) -> list[str]:
        return list(self.tries)

    def dataset(self, name: str) -> Dataset:
        self.asked.append(name)
        if self.asked.count(name) <= self.tries[name]:
            self.clock.now += START
            raise self.error("It does not answer.")
        return DEMO

    def answer(self, query: TableQuery) -> Any:
        self.answered.append(query.dataset)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    hands = SimpleNamespace(**vars(time), now=1000.0)
    hands.monotonic = lambda: hands.now
    monkeypatch.setattr(warmup, "time", hands)
    return hands


def test_records_that_take_more_than_a_minute_to_open_are_waited_for(clock: Any) -> None:
    service = Records(clock, NotAnsweringError, {"slow": 1, "quick": 0})
    warmup.warm_up(service)
    assert service.asked == ["slow", "quick", "slow"]
    assert len(service.answered) == 4


@pytest.mark.parametrize("error", [NotAnsweringError, Stopped])
def test_records_that_never_answer_do_not_keep_a_server_from_starting(
    clock: Any, error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    service = Records(clock, error, {f"d{number}": 99 for number in range(5)})
    with caplog.at_level("WARNING", logger="lustrum.server"):
        warmup.warm_up(service)
    assert service.answered == []
    assert sorted(set(service.asked)) == service.names()
    said = {f"dataset {name} is still being opened" for name in service.names()}
    assert set(caplog.messages) == said
    # Where time is over each has a moment; the clock of this test takes a minute for that too.
    assert len(service.asked) <= warmup.PATIENCE / START + 5


def test_a_dataset_that_is_being_checked_is_not_waited_for(
    clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    service = Records(clock, NotReadyError, {"large": 99, "quick": 0})
    warmup.warm_up(service)
    assert service.asked == ["large", "quick"]
    assert "dataset large is not served: It does not answer." in caplog.messages


@pytest.mark.parametrize("seconds", [10.0, -10.0])
def test_a_description_has_the_time_that_is_left_or_a_moment(
    clock: Any, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    real = warmup.within
    monkeypatch.setattr(warmup, "within", lambda time: (given.append(time), real(time))[1])
    service = Records(clock, NotAnsweringError, {"one": 0})
    monkeypatch.setattr(warmup, "PATIENCE", seconds)
    warmup.warm_up(service)
    assert given == [max(seconds, 1.0)]


def test_a_start_hears_which_records_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    service = TableService(folder=Path())
    errors: dict[str, Exception] = {
        "silent": Stopped(),
        "checked": NotReadyError("Still being checked."),
        "broken": LustrumError("Broken."),
    }

    def snapshot(name: str) -> None:
        if name in errors:
            raise errors[name]

    monkeypatch.setattr(service, "names", lambda: [*errors, "good"])
    monkeypatch.setattr(service, "snapshot", snapshot)
    found = service.not_served()
    assert list(found) == ["silent", "checked", "broken"]
    assert isinstance(found["silent"], NotAnsweringError)
    assert not isinstance(found["broken"], NotReadyError)


FIRST_ANSWERS = """
import sys
from pathlib import Path
from lustrum.answer import TableService
from lustrum.model import Axis, TableQuery
import lustrum.server.app
from lustrum.numeric import compiled
from lustrum.server.operation.lifecycle import load_loops, warm_up

folder = Path(sys.argv[1])
service = TableService(bundles=[*folder.iterdir()], folder=Path(sys.argv[2]))
def answers():
    questions = [TableQuery(name, (Axis(service.dataset(name).variables[1].name, total=True),))
                 for name in sorted(service.names())]
    return [(d.release.published.tolist(), d.risk_before, d.risk_after, d.utility)
            for d in map(service.answer, questions)]
warm_up(service)
heavy = ["numba", "pandas", "scipy.sparse", "duckdb", "openpyxl"]
print([name for name in heavy if name in sys.modules])
compiled._plain_work_left = 10**12
first = answers()
print("numba" in sys.modules)
load_loops(service)
print("numba" in sys.modules, len(first), first == answers())
"""


def test_first_answers_load_no_compiler_and_are_those_that_compiled_loops_give(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_ANSWERS, str(SHIPPED), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["[]", "False", "True 4 True"]
