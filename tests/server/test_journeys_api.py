"""Programs on their way through the API: with the client, with jobs, and while many others ask."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient

from lustrum.answer import Snapshot, TableService
from lustrum.client import Client, ServerError
from lustrum.local import local_service
from lustrum.server import Settings, create_app
from lustrum.server.http.errors import ProblemError
from lustrum.server.http.languages import ENGLISH, languages
from lustrum.server.run import _bound  # a port that is known before the server starts
from lustrum.server.service.jobs import Jobs
from lustrum.server.service.questions import Gate
from waiting import LONG, until


@pytest.fixture(scope="module")
def own(root: Path, tmp_path_factory: pytest.TempPathFactory) -> TableService:
    """A service whose jobs are nobody else's."""
    folder = tmp_path_factory.mktemp("journeys") / "data"
    shutil.copytree(root, folder, ignore=shutil.ignore_patterns("jobs.sqlite*"))
    return local_service(folder, workers=1)


@pytest.fixture(scope="module")
def small(own: TableService) -> Iterator[Client]:
    """A client of a real server that makes all but the smallest tables in the background."""
    with _bound("127.0.0.1", 0) as listening:
        app = create_app(own, Settings(rate="", background_cells=20))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", server_header=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        until(lambda: server.started or not thread.is_alive())
        yield Client(f"http://127.0.0.1:{listening.getsockname()[1]}")
        server.should_exit = True
        thread.join(timeout=LONG)


def test_from_the_catalogue_to_a_file(small: Client) -> None:
    assert "demo" in [dataset["name"] for dataset in small.datasets()]
    described = small.dataset("demo")
    assert {"sex", "region"} <= {variable["name"] for variable in described["variables"]}
    codes = [category["code"] for category in small.categories("demo", "region")]
    hint = small.hint("demo", ["sex"], {"region": codes[0]})
    assert hint.passes
    answer = small.table("demo", ["sex"], {"region": codes[0]}, totals=True)
    assert not answer.refused
    lines = small.download(answer, "csv").decode().splitlines()
    for cell in answer.cells():
        assert any(f"{cell.value:g}" in line for line in lines)


def test_the_client_waits_for_a_table_that_is_made_in_the_background(small: Client) -> None:
    answer = small.table("demo", ["sex", "age"], include=("bounds",))
    assert answer.decision == "answer"
    assert answer.bounds is not None
    assert answer.utility is None
    again = small.table("demo", ["sex", "age"])
    assert [cell.value for cell in again.cells()] == [cell.value for cell in answer.cells()]


def test_the_client_says_what_became_of_a_job_that_failed(
    small: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("holds data")

    monkeypatch.setattr(Snapshot, "answer", broken)
    with pytest.raises(ServerError) as caught:
        small.table("demo", ["region", "age"])
    assert "our mistake" in caught.value.detail
    assert "holds data" not in caught.value.detail


def test_small_packets_are_not_held_back() -> None:
    """An answer is a head and a body; held back, each would wait 40 ms for the other side's word."""
    with _bound("127.0.0.1", 0) as listening:
        near = socket.create_connection(listening.getsockname())
        far, _ = listening.accept()
        # asyncio looks at the name of the protocol before it sets the option itself.
        assert far.proto == socket.IPPROTO_TCP
        assert far.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        near.close()
        far.close()


def test_requests_are_answered_in_the_order_they_came() -> None:
    gate = Gate(Settings(concurrency=1))
    order: list[int] = []

    def ask(number: int) -> None:
        with gate.pass_through():
            order.append(number)

    threads = []
    with gate.pass_through():
        for number in range(12):
            threads.append(threading.Thread(target=ask, args=(number,)))
            threads[-1].start()
            until(lambda number=number: gate.waiting == number + 1)
    for thread in threads:
        thread.join()
    assert order == list(range(12))
    assert gate.inside == 0


def test_a_request_that_gives_up_leaves_its_turn_to_the_next() -> None:
    gate = Gate(Settings(concurrency=1, patience=0.2))
    got = threading.Event()

    def patient() -> None:
        with gate.pass_through(patience=LONG):
            got.set()

    with gate.pass_through():
        with pytest.raises(ProblemError), gate.pass_through():
            raise AssertionError("there was no turn left")
        thread = threading.Thread(target=patient)
        thread.start()
    assert got.wait(LONG)
    thread.join()
    assert gate.inside == 0


def test_everything_else_is_answered_while_many_wait_for_tables(own: TableService) -> None:
    app = create_app(own, Settings(rate="", concurrency=1))
    gate = app.state.questions._gate
    with TestClient(app, base_url="http://lustrum.test") as client:

        def ask(_: int) -> int:
            return int(client.get("/api/v1/tables?dataset=demo&by=sex").status_code)

        with ThreadPoolExecutor(60) as pool:
            with gate.pass_through():
                asked = pool.map(ask, range(60))
                until(lambda: gate.waiting == 60)
                for path in ("/health", "/health/ready", "/api/v1/datasets"):
                    assert client.get(path).status_code == 200
            assert set(asked) == {200}


def test_hints_count_as_questions_however_they_are_asked_for(own: TableService) -> None:
    asked = ["/datasets/demo?by=sex"]
    asked += [f"/{code}/datasets/demo?by=sex" for code in languages() if code != ENGLISH]
    for path in asked:
        app = create_app(own, Settings(rate="2/day"))
        client = TestClient(app, base_url="http://lustrum.test")
        statuses = [client.get(path).status_code for _ in range(3)]
        assert statuses == [200, 200, 429]
        for free in ("/", "/datasets/demo", "/api/v1/datasets/demo", "/health"):
            assert client.get(free).status_code == 200


def test_a_job_waits_for_its_turn_longer_than_any_asker(root: Path, tmp_path: Path) -> None:
    # A folder for this test alone: another server of the same folder would take the job.
    shutil.copytree(root, tmp_path / "data", ignore=shutil.ignore_patterns("jobs.sqlite*"))
    settings = Settings(rate="", concurrency=1, patience=0.2)
    app = create_app(local_service(tmp_path / "data", workers=1), settings)
    questions = app.state.questions
    jobs: Jobs = questions.jobs
    jobs.start()
    try:
        with questions._gate.pass_through():
            question = {"dataset": "demo", "by": ["employment", "sex"]}
            client = TestClient(app, base_url="http://lustrum.test")
            name = client.post("/api/v1/jobs", json=question).json()["id"]
            time.sleep(1.0)  # several times the patience of an asker
            assert client.get(f"/api/v1/jobs/{name}").json()["state"] in ("waiting", "running")

        def ended() -> str:
            state: str = client.get(f"/api/v1/jobs/{name}").json()["state"]
            return state if state in ("done", "failed") else ""

        assert until(ended) == "done"
    finally:
        jobs.stop()
