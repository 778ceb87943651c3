"""Operation: limits, waiting, leaving, logs, figures, large tables, replaced data."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from lustrum.demo import description_path, people
from lustrum.local import local_service
from lustrum.model import InputError
from lustrum.runtime.log_lines import JsonLines
from lustrum.runtime.stop import Stopped, check_stop
from lustrum.server import Settings, create_app
from lustrum.server.http.errors import ProblemError
from lustrum.server.http.middleware import DisconnectWatcher
from lustrum.server.service.questions import Gate
from lustrum.tabulate import FrameSource, Secret, Store, ingest, read_description
from waiting import LONG, until

LINK = "dataset=demo&by=age:ten-year&by=sex"


def made(root: Path, **settings: Any) -> TestClient:
    app = create_app(local_service(root, workers=1), Settings(**settings))
    return TestClient(app, base_url="http://lustrum.test")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"rate": "often"}, "such as 120/minute"),
        ({"seconds": 0}, "'seconds' must be a number above 0"),
        ({"concurrency": -1}, "'concurrency' must be a whole number of 0 or more"),
        ({"patience": "20"}, "'patience' must be a number above 0"),
        ({"other_sites": "some"}, "'other_sites' must be one of bundles, none, all"),
        ({"trusted_proxies": 1}, "'trusted_proxies' must be a text"),
        ({"connections": 0}, "'connections' must be a whole number of 1 or more"),
        ({"records_seconds": 1}, "'records_seconds' must be a number of"),
    ],
)
def test_a_wrong_setting_is_one_sentence(words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Settings(**words)


def test_settings_reach_another_process_as_they_are() -> None:
    settings = Settings(rate="5/second", concurrency=3, trusted_proxies="10.0.0.1")
    assert Settings.from_text(settings.to_text()) == settings
    with pytest.raises(InputError, match="no setting 'rates'"):
        Settings.from_text('{"rates": 3}')


def test_settings_in_a_file_give_way_to_options(tmp_path: Path) -> None:
    file = tmp_path / "server.toml"
    file.write_text('rate = "9/hour"\nseconds = 7\nallowed_host = ["a.example", ".b.example"]')
    found = Settings.from_file(file, rate="5/second")
    assert found == Settings(rate="5/second", seconds=7, allowed_host="a.example,.b.example")
    assert Settings.from_file(None, seconds=7) == Settings(seconds=7)
    for text, sentence in (("rates = 3", "no setting 'rates'"), ("rate", "not valid TOML")):
        file.write_text(text)
        with pytest.raises(InputError, match=sentence):
            Settings.from_file(file)
    with pytest.raises(InputError, match="cannot be read"):
        Settings.from_file(tmp_path / "missing.toml")


def test_who_asks_too_often_is_asked_to_wait_and_told_how_long(root: Path) -> None:
    client = made(root, rate="3/hour")
    for left in (2, 1, 0):
        response = client.get(f"/api/v1/tables?{LINK}")
        assert response.status_code == 200
        assert response.headers["ratelimit-policy"] == '"asks";q=3;w=3600'
        assert response.headers["ratelimit"].startswith(f'"asks";r={left};')
    refused = client.get(f"/api/v1/tables?{LINK}")
    assert refused.status_code == 429
    assert refused.headers["content-type"] == "application/problem+json"
    assert 1 <= int(refused.headers["retry-after"]) <= 3600
    assert client.get("/datasets/demo/table?by=sex").status_code == 429
    # What costs nothing is not counted.
    for path in ("/", "/datasets/demo", "/api/v1/datasets", "/health"):
        assert client.get(path).status_code == 200


def test_without_a_rate_nobody_is_turned_away(root: Path) -> None:
    client = made(root, rate="")
    assert "ratelimit" not in client.get(f"/api/v1/tables?{LINK}").headers


def test_only_so_many_are_answered_at_once_and_nobody_waits_for_ever() -> None:
    gate = Gate(Settings(concurrency=1, patience=0.3))
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with gate.pass_through():
            inside.set()
            leave.wait(LONG)

    thread = threading.Thread(target=stay)
    thread.start()
    assert inside.wait(LONG)
    with pytest.raises(ProblemError) as caught, gate.pass_through():
        raise AssertionError("there was no turn left")
    assert caught.value.problem.status == 503
    assert caught.value.problem.retry
    leave.set()
    thread.join()
    with gate.pass_through():
        assert gate.inside == 1
    assert gate.inside == 0


def test_a_table_that_takes_too_long_is_stopped_with_a_sentence() -> None:
    gate = Gate(Settings(seconds=0.1))

    def work() -> None:
        with gate.pass_through():
            while True:
                check_stop()
                time.sleep(0.01)

    with pytest.raises(ProblemError) as caught:
        work()
    assert "longer than 0.1 seconds" in caught.value.problem.detail


def test_work_stops_when_its_asker_leaves() -> None:
    """The application below works until it is told to stop; the asker leaves after a moment."""
    ended: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        def work() -> None:
            try:
                while True:
                    check_stop()
                    time.sleep(0.01)
            except Stopped:
                ended.append("stopped")
                raise

        await asyncio.to_thread(work)

    async def go() -> None:
        messages = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> Any:
            if messages:
                return messages.pop()
            await asyncio.sleep(0.1)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            raise AssertionError("nobody is there to hear it")

        await DisconnectWatcher(application)({"type": "http"}, receive, send)

    # In a thread of its own: a browser of other tests may have a loop running in this one.
    thread = threading.Thread(target=lambda: asyncio.run(asyncio.wait_for(go(), LONG)))
    thread.start()
    thread.join(LONG)
    assert ended == ["stopped"]


def test_logs_are_lines_of_json_with_questions_but_without_numbers(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = made(root)
    with caplog.at_level(logging.INFO, logger="lustrum.server"):
        body = client.get(f"/api/v1/tables?{LINK}").json()
        client.get("/api/v1/tables?dataset=demo&by=area&by=age")
        client.get("/nowhere/4711")
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    decisions = [line for line in lines if line["event"] == "decision"]
    assert [d["verdict"] for d in decisions] == ["answer", "refusal"]
    assert decisions[0]["query"] == body["query"]
    assert decisions[1]["rules"]
    requests = [line for line in lines if line["event"] == "request"]
    assert [r["route"] for r in requests] == ["/api/v1/tables", "/api/v1/tables", "other"]
    text = json.dumps(lines)
    assert "4711" not in text
    assert "testclient" not in text
    values = {str(v) for v in body["table"]["value"] if v and v > 99}
    assert values
    assert not any(f'"{v}"' in text or f" {v}," in text for v in values)


def test_a_log_can_be_replayed(
    root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from lustrum.answer.replay import read_questions

    client = made(root)
    with caplog.at_level(logging.INFO, logger="lustrum.server"):
        body = client.get(f"/api/v1/tables?{LINK}").json()
    log = tmp_path / "server.log"
    log.write_text("\n".join(JsonLines().format(record) for record in caplog.records))
    assert [q.to_mapping() for q in read_questions(log)] == [body["query"]]


def test_figures_count_requests_by_route_and_decisions_by_verdict(root: Path) -> None:
    client = made(root)
    client.get(f"/api/v1/tables?{LINK}")
    client.get("/api/v1/tables?dataset=demo&by=area&by=age")
    client.get("/fr/datasets/demo")
    registry = client.app.state.metrics.registry  # type: ignore[attr-defined]

    def sample(name: str, **labels: str) -> float | None:
        found: float | None = registry.get_sample_value(name, labels)
        return found

    assert sample("lustrum_requests_total", route="/api/v1/tables", status="2xx") == 2
    assert sample("lustrum_decisions_total", dataset="demo", verdict="answer") == 1
    assert sample("lustrum_decisions_total", dataset="demo", verdict="refusal") == 1
    assert sample("lustrum_request_seconds_count", route="/api/v1/tables") == 2
    assert sample("lustrum_answering") == 0


def test_ready_is_said_after_the_warm_up_and_no_longer_at_the_end(root: Path) -> None:
    app = create_app(local_service(root, workers=1))
    outside = TestClient(app)
    assert outside.get("/health/ready").status_code == 503
    assert outside.get("/health").status_code == 200
    with TestClient(app) as client:
        assert client.get("/health/ready").json() == {
            "status": "ready",
            "datasets": {"businesses": "ready", "demo": "ready"},
        }
    assert outside.get("/health/ready").status_code == 503


def test_a_large_table_is_made_in_the_background_for_programs(root: Path) -> None:
    app = create_app(local_service(root, workers=1), Settings(background_cells=10))
    with TestClient(app, base_url="http://lustrum.test") as client:
        plain = made(root).get(f"/api/v1/tables?{LINK}").json()
        first = client.get(f"/api/v1/tables?{LINK}")
        assert first.status_code == 202
        address = first.headers["location"]
        end = time.monotonic() + LONG
        while (job := client.get(address).json())["state"] != "done" and time.monotonic() < end:
            time.sleep(0.05)
        assert job["share"] == 1
        assert client.get(job["links"]["result"]).json() == plain
        # Asked again, the table is there at once.
        assert client.get(f"/api/v1/tables?{LINK}").json() == plain
        assert client.get(f"/api/v1/tables?{LINK}&format=csv").status_code == 200
        assert client.get("/api/v1/jobs/nowhere").status_code == 404
        asked = client.post("/api/v1/jobs", json={"dataset": "demo", "by": ["sex"]})
        assert asked.status_code == 202
        where, token = asked.headers["location"], asked.json()["token"]
        assert "token" not in client.get(where).json()
        for wrong_token in ({}, {"Cancel-Token": "x" * len(token)}):
            refused = client.delete(where, headers=wrong_token)
            assert refused.status_code == 403
            assert "Only those who asked" in refused.json()["detail"]
        assert client.delete(where, headers={"Cancel-Token": token}).status_code == 204
        assert client.delete(where, headers={"Cancel-Token": token}).status_code == 403
        wrong = client.post("/api/v1/jobs", json={"dataset": "demo", "by": ["sexx"]})
        assert wrong.status_code == 400


def test_a_large_table_is_made_in_the_background_for_people(root: Path) -> None:
    app = create_app(local_service(root, workers=1), Settings(background_cells=10))
    with TestClient(app, base_url="http://lustrum.test", follow_redirects=False) as client:
        link = "/datasets/demo/table?by=age&by=sex&show=row-percent"
        first = client.get(link)
        assert first.status_code == 303
        page = client.get(first.headers["location"])
        end = time.monotonic() + LONG
        while page.status_code == 200 and time.monotonic() < end:
            assert page.headers["refresh"] == "2"
            assert "is being made" in page.text
            time.sleep(0.05)
            page = client.get(first.headers["location"])
        assert page.status_code == 303
        # What the table is to look like is not forgotten on the way.
        assert page.headers["location"].endswith("show=row-percent")
        answer = client.get(page.headers["location"])
        assert answer.status_code == 200
        assert "<table" in answer.text


def test_a_finished_job_is_not_shown_under_another_policy(own_root: Path) -> None:
    app = create_app(local_service(own_root, workers=1), Settings(background_cells=10))
    with TestClient(app, base_url="http://lustrum.test", follow_redirects=False) as client:
        address = client.get(f"/api/v1/tables?{LINK}").headers["location"]
        end = time.monotonic() + LONG
        while (job := client.get(address).json())["state"] != "done" and time.monotonic() < end:
            time.sleep(0.05)
        assert client.get(job["links"]["result"]).status_code == 200
        policy = own_root / "policies" / "demo.toml"
        policy.write_text(policy.read_text().replace("base = 3", "base = 5"))
        stale = client.get(job["links"]["result"])
        assert stale.status_code == 409
        assert "have changed since" in stale.json()["detail"]
        assert client.get(f"/api/v1/tables?{LINK}").status_code == 202
        page = client.get(f"/jobs/{job['id']}")
        assert page.status_code == 303
        assert "/table?" in page.headers["location"]


def test_a_refused_question_is_not_worth_a_job(root: Path) -> None:
    client = made(root, background_cells=10)
    body = client.get("/api/v1/tables?dataset=demo&by=age&by=sex&by=area&by=occupation").json()
    assert body["decision"] == "refusal"


def test_data_may_be_replaced_while_they_are_served(own_root: Path) -> None:
    client = made(own_root, rate="")
    path = f"/api/v1/tables?{LINK}&include="
    old = client.get(path).json()["table"]["value"]
    seen: list[Any] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            response = client.get(path)
            seen.append(response.json()["table"]["value"] if response.status_code == 200 else None)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        until(lambda: seen)
        description = read_description(description_path("demo"))
        secret = Secret(bytes(range(32)))
        ingest(FrameSource(people(8000, 5)), description, Store(own_root), secret=secret)
    finally:
        over.set()
        thread.join()
    new = client.get(path).json()["table"]["value"]
    assert new != old
    assert all(values in (old, new) for values in seen)
    assert old in seen
