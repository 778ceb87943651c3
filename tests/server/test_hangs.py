"""A records process that stops or dies holds up nobody but its own questions, and these not for ever."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from lustrum.answer import TableService
from lustrum.answer.separate_process import SeparateRecordsService
from lustrum.server import Settings, create_app
from server.conftest import STRICT, fill, served

SILENCE = 8.0
# Far longer than any of these takes on a busy machine, far shorter than for ever.
SOON = 60.0
BUNDLED = "/api/v1/tables?dataset=demo&by=sex"
KEYED = "/api/v1/tables?dataset=businesses&by=size"
AT_ONCE = ("/", "/api/v1/datasets", "/health", "/health/ready", "/datasets/demo", BUNDLED)
pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")


@pytest.fixture
def both(tmp_path: Path, bundle: Path) -> Path:
    """A census served from its bundle, and a register served from its records."""
    root = fill(tmp_path / "data", 2000)
    shutil.copytree(bundle, root / "bundles" / "demo")
    (root / "policies" / "demo.toml").write_text(STRICT)
    return root


@contextmanager
def running(root: Path, silence: float = SILENCE) -> Iterator[tuple[SeparateRecordsService, str]]:
    service = TableService(root, workers=1, silence=silence)
    records = service._records
    assert isinstance(records, SeparateRecordsService)
    try:
        # Nothing is remembered: an answer at hand would not have to wait for its turn.
        # How busy the machine is decides nothing: only the silence of the process ends a wait.
        settings = Settings(
            rate="", concurrency=1, answers_memory=0, seconds=3600.0, patience=3600.0
        )
        with served(create_app(service, settings)) as url:
            yield records, url
    finally:
        service.close()


def pid_of(records: SeparateRecordsService) -> int:
    assert records._line is not None
    return records._line._process.pid


def get(url: str) -> httpx.Response:
    return httpx.get(url, timeout=120)


def until(condition: Callable[[], Any], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@contextmanager
def load(url: str) -> Iterator[list[tuple[str, int, float, float, str]]]:
    """Somebody asks for every page all the time; what came, and how long it took."""
    seen: list[tuple[str, int, float, float, str]] = []
    over = threading.Event()

    def ask(path: str) -> None:
        while not over.is_set():
            begun = time.monotonic()
            answer = get(url + path)
            seen.append((path, answer.status_code, begun, time.monotonic(), answer.text))
            over.wait(0.1)

    threads = [threading.Thread(target=ask, args=(path,)) for path in (*AT_ONCE, KEYED, KEYED)]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_everybody_else_is_answered_while_a_question_waits_for_a_process_that_hangs(
    both: Path,
) -> None:
    # Nothing ends the wait: the process stays as it is until the test lets it go on.
    with running(both, 3600.0) as (records, url):
        right = get(url + KEYED)
        assert right.status_code == 200
        hung = pid_of(records)
        line = records._line
        assert line is not None
        answers: list[str] = []
        waits = threading.Thread(
            target=lambda: answers.append(httpx.get(url + KEYED, timeout=600).text)
        )
        os.kill(hung, signal.SIGSTOP)
        try:
            waits.start()
            # It holds the only turn of questions to records.
            until(lambda: any(not answer.done() for answer in list(line._waiting.values())))
            for path in (*AT_ONCE, *AT_ONCE):
                assert get(url + path).status_code == 200, path
                assert waits.is_alive(), path
        finally:
            os.kill(hung, signal.SIGCONT)
        waits.join(timeout=120)
        assert answers == [right.text]
        assert pid_of(records) == hung


@pytest.mark.parametrize("how", ["SIGSTOP", "SIGKILL"])
def test_nobody_waits_for_a_records_process_that_is_gone_and_it_comes_back(
    both: Path, how: str
) -> None:
    with running(both) as (records, url):
        right = get(url + KEYED)
        assert right.status_code == 200
        first = pid_of(records)
        with load(url) as seen:
            until(lambda: {path for path, *_ in seen} == {*AT_ONCE, KEYED})
            before = len(seen)
            os.kill(first, getattr(signal, how))
            killed = time.monotonic()
            if how == "SIGSTOP":
                # Readiness tells which records do not answer; the list of datasets has them all.
                datasets = {"businesses": "starting", "demo": "ready"}
                said = {"status": "degraded", "datasets": datasets}
                assert get(f"{url}/health/ready").json() == said
                listed = get(f"{url}/api/v1/datasets").json()["datasets"]
                assert {dataset["name"] for dataset in listed} == {*datasets}
            until(lambda: pid_of(records) != first)
            replaced = time.monotonic()
            until(lambda: get(url + KEYED).status_code == 200)
        assert not Path(f"/proc/{first}/cmdline").exists() or how == "SIGKILL"
        assert replaced - killed < SILENCE + SOON
        for path, status, begun, end, text in seen[before:]:
            seconds = end - begun
            if path == KEYED:
                assert status in (200, 503)
                assert status == 503 or text == right.text
                assert status == 200 or "please try again" in text
                assert seconds < SILENCE + 2 * SOON
            else:
                assert status == 200, path
                assert seconds < SOON, path
        assert get(url + KEYED).text == right.text
        assert get(f"{url}/health/ready").json()["status"] == "ready"


def test_a_server_that_can_answer_nothing_is_not_ready_and_recovers_by_itself(
    tmp_path: Path,
) -> None:
    root = fill(tmp_path / "data", 2000)
    with running(root) as (records, url):
        assert get(f"{url}/health/ready").status_code == 200
        os.kill(pid_of(records), signal.SIGSTOP)
        said = get(f"{url}/health/ready")
        assert said.status_code == 503
        assert said.json()["datasets"] == {"businesses": "starting", "demo": "starting"}
        assert get(f"{url}/health").status_code == 200
        # Asking whether it is ready is enough to start the process again.
        until(lambda: get(f"{url}/health/ready").status_code == 200)
        assert get(url + KEYED).status_code == 200
