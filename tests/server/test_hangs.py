"""A records process that stops or dies holds up nobody but its own questions, and these not for ever."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from lustrum.answer import TableService, separate_process
from lustrum.answer.records_line import RecordsLine
from lustrum.answer.separate_process import SeparateRecordsService
from lustrum.server import Settings, create_app
from lustrum.server.service.catalogue import catalogue
from server.conftest import STRICT, served
from waiting import LONG, has_ended, until

SILENCE = 5.0
# Far longer than any of these takes on a busy machine, far shorter than for ever.
SOON = 200.0
BUNDLED = "/api/v1/tables?dataset=demo&by=sex"
KEYED = "/api/v1/tables?dataset=businesses&by=size"
AT_ONCE = ("/", "/api/v1/datasets", "/health", "/health/ready", "/datasets/demo", BUNDLED)
pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")


@pytest.fixture(scope="module")
def both(small_root: Path, bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A census served from its bundle, and a register served from its records."""
    data = Path(shutil.copytree(small_root, tmp_path_factory.mktemp("both") / "data"))
    shutil.copytree(bundle, data / "bundles" / "demo")
    (data / "policies" / "demo.toml").write_text(STRICT)
    return data


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


Running = tuple[SeparateRecordsService, str]


@pytest.fixture(scope="module")
def patient(both: Path) -> Iterator[Running]:
    """A server that waits for ever for a process that is silent; each test lets it go on."""
    with running(both, 3600.0) as found:
        yield found


def pid_of(records: SeparateRecordsService) -> int:
    assert records._line is not None
    return records._line._process.pid


def answered(url: str) -> httpx.Response:
    """The answer, once the process has started, which takes long on a busy machine."""
    return until(lambda: found if (found := get(url)).status_code == 200 else None)


def get(url: str) -> httpx.Response:
    return httpx.get(
        url, timeout=LONG, verify=False
    )  # to load certificates takes a tenth of a second


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
            over.wait(0.3)

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
    patient: Running,
) -> None:
    # Nothing ends the wait: the process stays as it is until the test lets it go on.
    records, url = patient
    right = answered(url + KEYED)
    hung = pid_of(records)
    line = records._line
    assert line is not None
    answers: list[str] = []
    waits = threading.Thread(target=lambda: answers.append(get(url + KEYED).text))
    os.kill(hung, signal.SIGSTOP)
    try:
        waits.start()
        # It holds the only turn of questions to records.
        until(lambda: any(not answer.done() for answer in list(line._waiting.values())))
        for path in (*AT_ONCE, *AT_ONCE):
            assert get(url + path).status_code == 200, path
            assert waits.is_alive(), path
        # Readiness tells which records do not answer; the list of datasets has them all.
        datasets = {"businesses": "starting", "demo": "ready"}
        said = {"status": "degraded", "datasets": datasets}
        until(lambda: get(f"{url}/health/ready").json() == said)
        listed = get(f"{url}/api/v1/datasets").json()
        assert {dataset["name"] for dataset in listed["datasets"]} == {*datasets}
        assert listed["opening"] == []
    finally:
        os.kill(hung, signal.SIGCONT)
    waits.join(timeout=LONG)
    assert answers == [right.text]
    assert pid_of(records) == hung


@pytest.mark.parametrize("how", ["SIGSTOP", "SIGKILL"])
def test_nobody_waits_for_a_records_process_that_is_gone_and_it_comes_back(
    both: Path, how: str
) -> None:
    with running(both) as (records, url):
        right = answered(url + KEYED)
        first = pid_of(records)
        with load(url) as seen:
            until(lambda: {path for path, *_ in seen} == {*AT_ONCE, KEYED})
            before = len(seen)
            os.kill(first, getattr(signal, how))
            killed = time.monotonic()
            until(lambda: pid_of(records) != first)
            replaced = time.monotonic()
            until(lambda: get(url + KEYED).status_code == 200)
        until(lambda: has_ended(first))
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
        until(lambda: get(f"{url}/health/ready").json()["status"] == "ready")


def test_a_server_that_can_answer_nothing_is_not_ready_and_recovers_by_itself(
    own_root: Path,
) -> None:
    with running(own_root, 3600.0) as (records, url):
        until(lambda: get(f"{url}/health/ready").status_code == 200)
        os.kill(pid_of(records), signal.SIGSTOP)
        # A sign of life may have been under way.
        until(lambda: get(f"{url}/health/ready").status_code == 503)
        said = get(f"{url}/health/ready")
        assert said.json()["datasets"] == {"businesses": "starting", "demo": "starting"}
        assert get(f"{url}/health").status_code == 200
        assert records._line is not None
        records._line._silence = SILENCE
        # Asking whether it is ready is enough to start the process again.
        until(lambda: get(f"{url}/health/ready").status_code == 200)
        assert get(url + KEYED).status_code == 200


@contextmanager
def stopped(records: SeparateRecordsService) -> Iterator[RecordsLine]:
    """The process stands still, and nobody takes it for lively any more."""
    line, pid = records._line, pid_of(records)
    assert line is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: not line.is_lively)
        yield line
    finally:
        os.kill(pid, signal.SIGCONT)


def test_what_is_known_is_said_without_a_question_to_a_process_that_is_silent(
    patient: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even for a moment: a page for which each dataset waits a little waits long."""
    records, url = patient
    answered(url + KEYED)
    with stopped(records) as line:
        asked: list[object] = []
        monkeypatch.setattr(line, "ask", asked.append)
        for path in (*AT_ONCE, "/datasets/businesses", "/api/v1/datasets/businesses"):
            assert get(url + path).status_code == 200, path
        assert asked == []
        monkeypatch.undo()


def test_a_description_that_is_known_is_asked_for_again_only_for_a_moment(
    patient: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process has just fallen silent and nobody knows it yet; a new one would have long to start."""
    monkeypatch.setattr(separate_process, "START", 3600.0)
    records, url = patient
    answered(url + KEYED)
    with stopped(records):
        monkeypatch.setattr(RecordsLine, "is_lively", True)
        for path in ("/datasets/businesses", "/", "/health/ready"):
            assert get(url + path).status_code == 200, path
        monkeypatch.undo()


def test_a_dataset_whose_records_are_still_being_opened_is_named_and_holds_nobody_up(
    both: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server in its first seconds, or one to which a dataset was added while the process hangs."""
    monkeypatch.setattr(separate_process, "START", 3600.0)  # nobody waits for that
    service = TableService(both, workers=1, silence=3600.0)
    records = service._records
    assert isinstance(records, SeparateRecordsService)
    try:
        records._current()
        with stopped(records):
            # Without its life the server does not wait for the records at its start.
            app = create_app(service, Settings(rate=""))
            app.state.ready = True
            with served(app, lifespan="off") as url:
                page = get(f"{url}/en/").text
                cards = page.split('<ul class="cards">')[1].split("</ul>")[0].split("</li>")
                (card,) = [card for card in cards if "being prepared" in card]
                # By the title of its policy; what cannot be asked about yet is no link.
                assert "Demo business register, public tables" in card
                assert "href" not in card
                assert "not available at the moment" not in page
                assert "/datasets/demo" in page
                assert "est en préparation" in get(f"{url}/fr/").text
                assert "being prepared" in get(f"{url}/en/?q=register").text
                assert "being prepared" not in get(f"{url}/en/?q=nothing").text
                said = get(f"{url}/api/v1/datasets").json()
                assert [dataset["name"] for dataset in said["datasets"]] == ["demo"]
                assert said["opening"] == ["businesses"]
                assert get(f"{url}/api/v1/datasets?q=x").json()["opening"] == []
                ready = get(f"{url}/health/ready").json()
                assert ready["datasets"] == {"businesses": "starting", "demo": "ready"}
        # The process goes on: all that was said of it becomes true without a restart.
        until(lambda: not catalogue(service).opening)
        assert [d.name for d in catalogue(service).datasets] == ["businesses", "demo"]
    finally:
        service.close()
