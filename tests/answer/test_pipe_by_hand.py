"""The pipe to the process of the records, with another side whose replies are written down."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from lustrum.answer import records_line, separate_process
from lustrum.answer.records_line import FAILURES, MODULE
from lustrum.answer.separate_process import SeparateRecordsService
from lustrum.model import DatasetError, PolicyError, QueryError
from lustrum.model.errors import NotReadyError
from lustrum.public.numbers import CannotProtectError, Described
from lustrum.runtime import log_lines
from lustrum.runtime.stop import Stopped, stopping
from public_room.test_bundle_numbers import DATASET
from waiting import LONG, until

Reply = Callable[[int, tuple[Any, ...]], list[object]]


class OtherSide:
    """Stands in for the process: notes what it gets, and replies with what is written down."""

    pid = -1  # of which the system knows nothing

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.heard: list[tuple[Any, ...]] = []
        self.command: list[str] = []
        self.options: dict[str, Any] = {}
        self.waited: list[float | None] = []
        self.killed = self.ends_by_itself = False
        self.closed = threading.Event()
        self.stop_heard = threading.Event()
        self.closing = threading.Lock()

    def __call__(self, command: list[str], **options: Any) -> OtherSide:
        """Start, as ``subprocess.Popen`` does."""
        self.command, self.options = command, options
        (handle,) = options["pass_fds"]
        self.pipe = Connection(os.dup(handle))
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def _serve(self) -> None:
        try:
            while True:
                number, *words = pickle.loads(self.pipe.recv_bytes())
                self.heard.append((number, *words))
                if words == ["stop"]:
                    self.stop_heard.set()
                for answer in self.reply(number, tuple(words)):
                    raw = answer if isinstance(answer, bytes) else pickle.dumps(answer)
                    self.pipe.send_bytes(raw)
        except (EOFError, OSError):
            self.closed.set()
            with self.closing:
                self.pipe.close()

    def wait(self, timeout: float | None = None) -> int:
        self.waited.append(timeout)
        if timeout is not None and not self.ends_by_itself:
            raise subprocess.TimeoutExpired("records", timeout)
        return 0

    def kill(self) -> None:
        self.killed = True
        # While the pipe is closed its number may stand for the pipe of the next process already.
        with (
            self.closing,
            contextlib.suppress(OSError),
            socket.socket(fileno=os.dup(self.pipe.fileno())) as end,
        ):
            end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """A service whose processes are the given other sides, one after the other."""
    services: list[SeparateRecordsService] = []

    def started(
        *others: OtherSide, workers: int | None = None, silence: float = 60.0
    ) -> SeparateRecordsService:
        left = list(others)
        monkeypatch.setattr(
            records_line.subprocess,
            "Popen",
            lambda command, **options: left.pop(0)(command, **options),
        )
        for other in others:
            other.ends_by_itself = True
        services.append(SeparateRecordsService(tmp_path, workers, silence))
        return services[-1]

    yield started
    for service in services:
        service.close()


def question(service: SeparateRecordsService) -> Any:
    """What the other side says to a question of no further meaning."""
    return service._ask("names")


def answering(value: object) -> Reply:
    return lambda number, _: [(number, "answer", value)]


@pytest.mark.parametrize(
    ("workers", "level", "more"),
    [
        (None, None, []),
        (3, None, ["--workers", "3"]),
        (None, "info", ["--logs", "info"]),
        (1, "error", ["--workers", "1", "--logs", "error"]),
    ],
)
def test_the_process_gets_one_end_of_the_pipe_the_folder_and_the_settings(
    start: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    workers: int | None,
    level: str | None,
    more: list[str],
) -> None:
    monkeypatch.setattr(records_line, "level_in_force", lambda: level)
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/notify")
    monkeypatch.setenv("LUSTRUM_ANYTHING", "kept")
    other = OtherSide(answering(["town"]))
    assert question(start(other, workers=workers)) == ["town"]
    (handle,) = other.options["pass_fds"]
    assert other.command == [sys.executable, "-m", MODULE, str(handle), str(tmp_path), *more]
    # No terminal: neither its input nor an interrupt reaches the process.
    assert other.options["stdin"] == subprocess.DEVNULL
    assert other.options["start_new_session"] is True
    # Only those that serve may say to the system that the server lives.
    assert "NOTIFY_SOCKET" not in other.options["env"]
    assert other.options["env"]["LUSTRUM_ANYTHING"] == "kept"
    assert log_lines.level_in_force() is None


def test_answers_in_another_order_reach_those_who_asked(start: Any) -> None:
    kept: list[tuple[int, tuple[Any, ...]]] = []

    def both(number: int, words: tuple[Any, ...]) -> list[object]:
        kept.append((number, words))
        if len(kept) < 2:
            return []
        return [(n, "answer", w[1]) for n, w in reversed(kept)]

    service = start(OtherSide(both))
    found: dict[str, Any] = {}
    threads = [
        threading.Thread(target=lambda name=name: found.update({name: service.describe(name)}))
        for name in ("town", "county")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"town": "town", "county": "county"}


class Version:
    """A description of which only the version counts."""

    def __init__(self, version: str) -> None:
        self.version = version


def test_a_description_comes_once_for_each_version(start: Any) -> None:
    now = ["a"]

    def describe(number: int, words: tuple[Any, ...]) -> list[object]:
        if words == ("names",):
            return [(number, "answer", ["town", "county"])]
        _, name, known = words
        fresh = None if name != "town" or known == now[0] else Version(now[0])
        return [(number, "answer", fresh)]

    other = OtherSide(describe)
    service = start(other)
    first = service.describe("town")
    assert service.describe("town") is first
    now[0] = "b"
    assert service.describe("town").version == "b"
    assert service.describe("town").version == "b"
    assert [words[3] for words in other.heard] == [None, "a", "a", "b"]
    with pytest.raises(QueryError, match="There is no dataset 'county'"):
        service.describe("county")


@pytest.mark.parametrize(
    ("kind", "error", "sentence"),
    [
        ("protect", CannotProtectError, "cannot protect such a table"),
        ("size", QueryError, "more cells than can be counted"),
        ("policy", PolicyError, "policy cannot protect the input"),
        ("checking", NotReadyError, "still being checked"),
        ("data", DatasetError, "records of the dataset cannot be read"),
        ("broken", DatasetError, "protected numbers cannot be made"),
        ("a kind that nobody knows", DatasetError, "protected numbers cannot be made"),
        ("stopped", Stopped, "^$"),
    ],
)
def test_a_kind_of_failure_has_its_own_sentence_and_drops_what_came_with_it(
    start: Any, kind: str, error: type[Exception], sentence: str
) -> None:
    service = start(OtherSide(lambda number, _: [(number, kind, "17 people")]))
    with pytest.raises(error, match=sentence) as raised:
        question(service)
    assert "17" not in str(raised.value)


def test_a_question_whose_asker_leaves_is_stopped_on_the_other_side(start: Any) -> None:
    waiting: list[int] = []

    def reply(number: int, words: tuple[Any, ...]) -> list[object]:
        if words == ("views",):
            waiting.append(number)
            return []
        if words == ("stop",):
            return [(number, "stopped", None)]  # nobody waits for it any more
        return [(number, "answer", ["town"])]

    other = OtherSide(reply)
    service = start(other)
    with stopping(lambda: bool(waiting)), pytest.raises(Stopped):
        service._ask("views")
    assert other.stop_heard.wait(LONG)
    assert other.heard == [(waiting[0], "views"), (waiting[0], "stop")]
    assert question(service) == ["town"]


@pytest.mark.parametrize(
    "raw",
    [
        (1, "answer"),
        (1, "answer", [], "more"),
        17,
        b"no pickle",
        b"clustrum.nothing\nNobody\n.",  # a name that cannot be imported
    ],
    ids=["two", "four", "one", "no-pickle", "unknown-class"],
)
def test_a_reply_that_cannot_be_read_breaks_the_pipe_and_the_next_question_starts_again(
    start: Any, raw: object
) -> None:
    broken, whole = OtherSide(lambda *_: [raw]), OtherSide(answering(["town"]))
    service = start(broken, whole)
    with pytest.raises(DatasetError, match="protected numbers cannot be made"):
        question(service)
    assert question(service) == ["town"]
    assert broken.closed.wait(LONG)
    assert len(broken.heard) == len(whole.heard) == 1


def test_every_question_under_way_ends_where_the_process_dies(start: Any) -> None:
    asked: list[int] = []
    both = threading.Event()

    def die(number: int, _: tuple[Any, ...]) -> list[object]:
        asked.append(number)
        if len(asked) == 2:
            both.set()
            raise EOFError
        return []

    service = start(OtherSide(die), OtherSide(answering(["town"])))
    ended: list[str] = []

    def ask() -> None:
        try:
            question(service)
        except DatasetError as error:
            ended.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert both.is_set()
    assert ended == ["The protected numbers cannot be made at the moment."] * 2
    assert question(service) == ["town"]


def test_a_line_ends_only_after_the_thread_that_listens(start: Any) -> None:
    """Otherwise that thread could read from the next pipe, which gets the same number."""
    service = start(OtherSide(answering([])))
    question(service)
    line = service._line
    hold, entered = threading.Event(), threading.Event()

    def busy() -> None:
        entered.set()
        hold.wait(LONG)

    line._broke = busy  # type: ignore[method-assign]
    ending = threading.Thread(target=service.close)
    ending.start()
    assert entered.wait(LONG)
    ending.join(0.2)
    still_open = ending.is_alive() and not line._pipe.closed
    hold.set()
    ending.join(LONG)
    assert still_open
    assert line._pipe.closed


def test_a_process_that_does_not_end_by_itself_is_ended(start: Any) -> None:
    calm, stubborn = OtherSide(answering([])), OtherSide(answering([]))
    service = start(calm)
    question(service)
    service.close()
    assert calm.closed.wait(LONG)
    assert not calm.killed
    assert len(calm.waited) == 1
    assert calm.waited[0] >= 3
    service = start(stubborn)
    question(service)
    stubborn.ends_by_itself = False
    service.close()
    assert stubborn.closed.wait(LONG)
    assert stubborn.killed
    assert len(stubborn.waited) == 2
    assert None not in stubborn.waited  # one that cannot be killed holds nobody up
    service.close()  # a second time: nothing is left to end


SIGN = (0, "alive", None)
SILENT = "does not answer and is started again"


def test_a_process_that_is_silent_is_ended_and_the_next_question_starts_another(
    start: Any, caplog: pytest.LogCaptureFixture
) -> None:
    hung = OtherSide(lambda number, words: [SIGN] if words == ("hello",) else [])
    service = start(hung, OtherSide(answering(["town"])), silence=1.0)
    begun = time.monotonic()  # before the sign, from which on silence is counted
    with stopping(lambda: service._line._signs > 0), pytest.raises(Stopped):
        service._ask("hello")
    with pytest.raises(NotReadyError, match=SILENT):
        question(service)
    assert time.monotonic() - begun >= 1.0
    assert hung.killed
    assert "is silent; it is started again" in caplog.text
    assert question(service) == ["town"]


def test_long_work_is_waited_for_while_there_are_signs_of_life(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sign comes after each look at the process, however busy the machine is."""
    looks, begun, done = itertools.count(), threading.Event(), threading.Event()

    def look(pid: int) -> None:
        if begun.is_set():
            signs = service._line._signs
            busy.pipe.send_bytes(pickle.dumps(SIGN))
            until(lambda: service._line._signs > signs or done.is_set(), pause=0.001)
            if next(looks) == 20:
                done.set()

    def work(number: int, _: tuple[Any, ...]) -> list[object]:
        begun.set()
        assert done.wait(LONG)
        return [(number, "answer", ["town"])]

    monkeypatch.setattr(records_line, "_WATCH", 0.05)
    monkeypatch.setattr(records_line, "_processor_time", look)
    busy = OtherSide(work)
    service = start(busy, silence=0.2)  # five times as long, in looks
    assert question(service) == ["town"]
    assert not busy.killed


def test_work_that_uses_the_processor_is_no_silence(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop that holds the interpreter's lock keeps the thread of signs waiting."""
    ticks = itertools.count()
    monkeypatch.setattr(records_line, "_processor_time", lambda pid: next(ticks))

    def work(number: int, _: tuple[Any, ...]) -> list[object]:
        busy.pipe.send_bytes(pickle.dumps(SIGN))
        time.sleep(0.9)
        return [(number, "answer", ["town"])]

    busy = OtherSide(work)
    assert question(start(busy, silence=0.3)) == ["town"]
    assert not busy.killed


def test_a_process_that_has_not_begun_yet_has_more_time(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(number: int, _: tuple[Any, ...]) -> list[object]:
        time.sleep(0.9)
        return [(number, "answer", ["town"])]

    slow = OtherSide(late)
    assert question(start(slow, silence=0.3)) == ["town"]
    assert not slow.killed
    monkeypatch.setattr(records_line, "START", 0.5)
    never = OtherSide(lambda *_: [])
    with pytest.raises(NotReadyError, match=SILENT):
        question(start(never, silence=0.2))
    assert never.killed


def test_what_is_known_of_a_dataset_is_said_while_the_process_is_silent(
    start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One question in vain is enough for a doubt, which holds until the next sign of life."""
    monkeypatch.setattr(records_line, "_QUIET", 3600.0)

    def once(number: int, words: tuple[Any, ...]) -> list[object]:
        return [(number, "answer", Version("a"))] if len(hung.heard) == 1 else []

    hung = OtherSide(once)
    service = start(hung)
    first = service.describe("town")
    assert service.answering
    assert service.describe("town") is first  # nobody answers any more
    assert not service.answering
    heard = len(hung.heard)
    assert service.describe("town") is first
    assert len(hung.heard) == heard  # not even asked
    hung.pipe.send_bytes(pickle.dumps(SIGN))
    until(lambda: service.answering)


class Scripted:
    """A line that does what it is told to."""

    def __init__(self, *_: object) -> None:
        self.is_broken, self.is_lively, self.doubted, self.ended = False, True, 0, 0
        self.reply: Any = None

    def ask(self, words: tuple[Any, ...]) -> Any:
        if isinstance(self.reply, BaseException):
            raise self.reply
        return self.reply

    def doubt(self) -> None:
        self.doubted += 1

    def end(self) -> None:
        self.ended += 1


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SeparateRecordsService:
    monkeypatch.setattr(separate_process, "RecordsLine", Scripted)
    return SeparateRecordsService(tmp_path, 1)


def test_a_line_that_is_broken_is_replaced_and_one_that_cannot_be_started_is_told(
    scripted: SeparateRecordsService, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert scripted.revive()
    assert scripted._line is None, "nobody has asked for records, so nothing is started"
    first: Any = scripted._current()
    assert scripted.revive()
    assert scripted._current() is first
    first.is_broken = True
    assert scripted.revive()
    assert scripted._current() is not first
    until(lambda: first.ended == 1)

    class Broken(Scripted):
        is_broken = property(lambda self: True, lambda self, value: None)  # type: ignore[assignment]

    monkeypatch.setattr(separate_process, "RecordsLine", Broken)
    scripted._current().is_broken = True  # type: ignore[misc]
    assert not scripted.revive()

    def cannot(*_: object) -> Any:
        raise OSError

    monkeypatch.setattr(separate_process, "RecordsLine", cannot)
    assert not scripted.revive()


def test_a_description_is_forgotten_only_where_the_dataset_is_refused(
    scripted: SeparateRecordsService,
) -> None:
    line: Any = scripted._current()
    known = Described("first", DATASET)
    line.reply = known
    assert scripted.describe("town") is known
    # Silence, or work that is not done, changes nothing of what is known.
    for silence in (Stopped(), None):
        line.reply = silence
        assert scripted.describe("town") is known
    assert line.doubted == 1
    line.reply = NotReadyError("not yet")
    with pytest.raises(NotReadyError):
        scripted.describe("town")
    line.is_lively = False
    assert scripted.describe("town") is known
    line.is_lively = True
    for error in (DatasetError("damaged"), PolicyError("wrong")):
        line.reply = known
        scripted.describe("town")
        line.reply = error
        with pytest.raises(type(error)):
            scripted.describe("town")
        line.is_lively = False
        with pytest.raises(type(error)):
            scripted.describe("town")  # it is not said from memory any more
        line.is_lively = True
    # Of a dataset that was never known, silence is told as silence, unless the asker has left.
    line.reply = Stopped()
    with pytest.raises(type(FAILURES["silent"])):
        scripted.describe("town")
    with stopping(lambda: True), pytest.raises(Stopped):
        scripted.describe("town")
