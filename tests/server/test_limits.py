"""Limits of a question: its turn in a fair queue, and the memory it may need."""

from __future__ import annotations

import asyncio
import io
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.types import Scope

from lustrum.answer import TableService
from lustrum.demo import description_path
from lustrum.model import Axis, TableQuery
from lustrum.runtime.stop import Stopped, stopping
from lustrum.server import Settings, create_app
from lustrum.server.http import middleware as askers
from lustrum.server.http.errors import ProblemError
from lustrum.server.service import suggestions as estimating
from lustrum.server.service.questions import MOST_OF_ONE, Gate
from lustrum.server.service.suggestions import available_memory, estimate
from lustrum.server.urls import forms
from lustrum.tabulate import read_description
from server.conftest import started
from waiting import LONG, until

DEMO = read_description(description_path("demo"))


class Queue:
    """Questions of askers that wait at a gate, one thread each, in a known order."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.order: list[str] = []
        self.threads: list[threading.Thread] = []

    def ask(self, asker: str, name: str, **options: Any) -> None:
        def pass_through() -> None:
            askers._asker.set(asker)
            with self.gate.pass_through(**options):
                self.order.append(name)

        thread = threading.Thread(target=pass_through)
        thread.start()
        self.threads.append(thread)
        until(lambda: self.gate.waiting == len(self.threads), pause=0.001)

    def join(self) -> None:
        for thread in self.threads:
            thread.join(LONG)


def test_askers_take_turns() -> None:
    queue = Queue(Gate(Settings(concurrency=1)))
    with queue.gate.pass_through():
        for i in range(4):
            queue.ask("many", f"many {i}")
        queue.ask("one", "one")
        queue.ask("two", "two 0")
        queue.ask("two", "two 1")
    queue.join()
    assert queue.order == ["many 0", "one", "two 0", "many 1", "two 1", "many 2", "many 3"]
    assert queue.gate.inside == 0
    assert queue.gate.waiting == 0


def test_one_asker_cannot_hold_all_places() -> None:
    queue = Queue(Gate(Settings(concurrency=1)))
    with queue.gate.pass_through():
        for i in range(MOST_OF_ONE):
            queue.ask("many", str(i))
        token = askers._asker.set("many")
        with pytest.raises(ProblemError) as caught, queue.gate.pass_through():
            raise AssertionError
        askers._asker.reset(token)
        assert caught.value.problem.status == 503
        assert caught.value.problem.retry
        queue.ask("other", "other")
    queue.join()
    assert queue.order[1] == "other"


def test_an_asker_who_leaves_gives_the_place_up() -> None:
    gate = Gate(Settings(concurrency=1))
    gone = threading.Event()
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            with stopping(gone.is_set), gate.pass_through():
                raise AssertionError
        except Stopped as error:
            raised.append(error)

    with gate.pass_through():
        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: gate.waiting, pause=0.001)
        gone.set()
        thread.join(LONG)
        assert len(raised) == 1
        assert gate.waiting == 0
    assert gate.inside == 0


def test_the_work_for_a_request_knows_its_asker() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        seen.append(await asyncio.to_thread(askers.current_asker))

    scope = {"type": "http", "client": ("192.0.2.1", 5)}
    # In a thread of its own: a browser of other tests may keep a loop running in this one.
    with ThreadPoolExecutor(1) as pool:
        work = askers.AskerContext(app)(scope, None, None)  # type: ignore[arg-type]
        pool.submit(asyncio.run, work).result()
    assert seen == ["192.0.2.1"]
    assert askers.current_asker() == ""


def test_the_estimate_counts_what_is_worked_on_and_never_looks_at_data() -> None:
    plain = estimate(TableQuery("demo", (Axis("age"), Axis("sex"))), DEMO)
    assert plain.cells == 22 * 3
    # Some categories are protected beside all the others.
    few = TableQuery("demo", (Axis("age", codes=("1",)), Axis("sex")))
    assert estimate(few, DEMO) == plain
    # In a bundle the others are looked at, but neither protected nor written.
    chosen = estimate(few, DEMO, from_bundle=True)
    assert (chosen.cells, chosen.written) == (plain.cells, 2)
    assert 2 * 1024 + (plain.cells - 2) * 45 < chosen.memory() < plain.memory() / 2
    # What is written a group of rows at a time needs least; of records nothing less is promised.
    kinds = ("job", "parquet", "csv", "json", "page", "xlsx", "a form of somebody else")
    needs = [estimate(few, DEMO, from_bundle=True).memory(kind) for kind in kinds]
    assert needs == sorted(needs)
    assert needs[0] < needs[-1] == needs[-2]
    assert {plain.memory(kind) for kind in kinds} == {plain.memory()}
    assert estimate(TableQuery("demo", ()), DEMO).cells == 1


def test_a_question_that_needs_too_much_memory_is_refused_in_words(root: Path) -> None:
    app = create_app(started(TableService(root, workers=1)), Settings(rate="", memory=1))
    client = TestClient(app, base_url="http://lustrum.test")
    link = "by=age&by=occupation&by=education"
    for method, path in (
        ("GET", f"/api/v1/tables?dataset=demo&{link}"),
        ("GET", f"/api/v1/hints?dataset=demo&{link}"),
        ("GET", f"/datasets/demo/table?{link}"),
        ("GET", f"/fr/datasets/demo/table?{link}"),
        ("POST", "/api/v1/jobs"),
        ("POST", "/api/v1/tables"),
    ):
        body = {"dataset": "demo", "by": ["age", "occupation", "education"]}
        response = client.request(method, path, json=body if method == "POST" else None)
        assert response.status_code == 422, path
        assert "3,080" in response.text or "3 080" in response.text.replace("\u202f", " ")
    assert client.get("/api/v1/tables?dataset=demo&by=age&by=sex").status_code == 200
    # What the policy refuses is refused by the policy, with its reasons.
    body = client.get("/api/v1/tables?dataset=demo&by=age&by=occupation&by=area&by=sex").json()
    assert body["decision"] == "refusal"


def test_a_table_that_is_too_large_for_a_page_is_had_as_parquet(bundle: Path) -> None:
    from pyarrow import parquet

    service = TableService(bundles=[bundle], workers=1)
    query = forms.read([("by", "area"), ("by", "age"), ("by", "occupation")], "demo")
    snapshot = service.published("demo")
    assert snapshot is not None
    needed = estimate(query, snapshot.dataset, from_bundle=True)
    room = needed.memory("parquet") // 2**20 + 1
    assert needed.memory("csv") > room * 2**20
    app = create_app(service, Settings(rate="", memory=room, background_cells=1000))
    link = f"dataset=demo&{forms.write(query)}"
    with TestClient(app, base_url="http://lustrum.test") as client:
        said = client.get(f"/api/v1/tables?{link}")
        assert said.status_code == 422
        assert "format=parquet" in said.text
        assert f"{needed.written:,}" in said.text
        assert client.get(f"/datasets/demo/table?{forms.write(query)}").status_code == 422
        assert client.get(f"/api/v1/tables?{link}&format=csv").status_code == 422
        waiting = client.get(f"/api/v1/tables?{link}&format=parquet")
        assert waiting.status_code == 202
        own = waiting.json()["links"]["self"]
        until(lambda: client.get(own).json()["state"] == "done")
        # What the job has found is as large in the same forms as before.
        assert client.get(f"{own}/result").status_code == 422
        file = client.get(f"/api/v1/tables?{link}&format=parquet")
        assert file.status_code == 200
        assert file.headers["content-type"] == "application/vnd.apache.parquet"
        column = parquet.read_table(io.BytesIO(file.content)).column("value").to_numpy()
    release = service.answer(query).release
    assert release is not None
    assert column.tolist() == release.published.ravel().tolist()
    service.close()


def test_the_memory_of_a_process_is_the_least_of_all_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = available_memory()
    assert 2**28 < found <= 8 * 2**30
    group = tmp_path / "memory.max"
    monkeypatch.setattr(estimating, "_CGROUPS", (group, tmp_path / "none"))
    group.write_text("max\n")
    assert available_memory() >= found
    group.write_text(f"{2**29}\n")
    assert available_memory() == 2**29
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (2**28, 2**40))
    assert available_memory() == 2**28
