"""What an operator sees: figures of datasets and processes, ids of requests, and logs that nobody fills."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import threading
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from examples import examples
from lustrum.local import local_service
from lustrum.runtime import log_lines
from lustrum.runtime.log_lines import MOST_A_MINUTE, JsonLines, LimitedLines
from lustrum.server import Settings, create_app
from lustrum.server.http.errors import ProblemError
from lustrum.server.operation.metrics import Metrics, ServerCollector
from lustrum.server.service.questions import Gate
from waiting import LONG, until

TABLE = "/api/v1/tables?dataset=demo&by=sex"


def test_figures_tell_the_state_and_the_age_of_every_dataset(own_root: Path) -> None:
    service = local_service(own_root, workers=1)
    with TestClient(create_app(service, metrics=(metrics := Metrics()))):

        def sample(name: str, **labels: str) -> float | None:
            return metrics.registry.get_sample_value(name, labels)

        def state(name: str, state: str) -> float | None:
            return sample("lustrum_dataset_state", dataset=name, state=state)

        until(lambda: sample("lustrum_jobs_at_hand", state="waiting") == 0)
        assert (state("demo", "ready"), state("demo", "unavailable")) == (1, 0)
        for kind, path in (("records", "demo/current"), ("policy", "policies/demo.toml")):
            seen = sample("lustrum_changed_timestamp_seconds", dataset="demo", kind=kind)
            assert seen == (own_root / path).stat().st_mtime
        assert sample("lustrum_unsealed_policies") == len(service.unsealed())
        (own_root / "policies" / "demo.toml").write_text("dataset = [")
        (own_root / "policies" / "businesses.toml").unlink()
        metrics.look(service, dict)
        assert (state("demo", "ready"), state("demo", "unavailable")) == (0, 1)
        assert state("businesses", "ready") == 0  # it is gone


def test_who_is_turned_away_is_counted_by_why(root: Path) -> None:
    metrics = Metrics()
    app = create_app(local_service(root, workers=1), Settings(rate="1/hour"), metrics)
    client = TestClient(app, base_url="http://lustrum.test")
    assert [client.get(TABLE).status_code for _ in range(3)] == [200, 429, 429]
    labels = {"status": "429", "reason": "rate"}
    assert metrics.registry.get_sample_value("lustrum_turned_away_total", labels) == 2


def test_those_who_wait_are_counted_until_they_leave() -> None:
    metrics, over = Metrics(), threading.Event()
    gate = Gate(Settings(concurrency=1, patience=0.5), metrics)
    ended: list[str] = []

    def late() -> None:
        with pytest.raises(ProblemError) as caught, gate.pass_through():
            pass
        ended.append(caught.value.problem.reason)
        over.set()

    def waiting() -> float | None:
        return metrics.registry.get_sample_value("lustrum_waiting")

    with gate.pass_through():
        threading.Thread(target=late).start()
        until(lambda: waiting() == 1)
        assert over.wait(LONG)
    assert (waiting(), ended) == (0, ["queue"])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_the_first_process_speaks_for_all_that_it_started() -> None:
    whole = ServerCollector(registry := CollectorRegistry())
    alone = registry.get_sample_value("process_resident_memory_bytes")
    assert alone is not None
    cpu = registry.get_sample_value("process_cpu_seconds_total")
    child = os.fork()
    if child == 0:
        threading.Event().wait(LONG)
        os._exit(0)
    try:
        both = registry.get_sample_value("process_resident_memory_bytes")
        assert both is not None
        assert both > 1.05 * alone
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
    later = registry.get_sample_value("process_cpu_seconds_total")
    assert cpu is not None
    assert later is not None
    assert later >= cpu
    whole.restarts.labels("died").inc()
    assert registry.get_sample_value("lustrum_worker_restarts_total", {"why": "died"}) == 1
    assert registry.get_sample_value("lustrum_worker_restarts_total", {"why": "silent"}) == 0
    names = {metric.name for metric in registry.collect()}
    assert {"lustrum_build", "process_open_fds", "process_start_time_seconds"} <= names


FAIR = re.compile(r"[A-Za-z0-9._-]{1,64}")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def test_a_request_keeps_its_id_where_it_is_one_and_gets_one_otherwise(root: Path) -> None:
    client = TestClient(create_app(local_service(root, workers=1)), base_url="http://lustrum.test")
    headers = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=80)

    @settings(max_examples=examples(20, 200), deadline=None)
    @given(st.one_of(headers, st.text("aZ09._-", min_size=1, max_size=64)))
    def tried(given_id: str) -> None:
        answer = client.get("/api/v1/nowhere", headers={"X-Request-ID": given_id})
        stated = answer.headers["x-request-id"]
        fair = FAIR.fullmatch(given_id.strip())
        assert stated == given_id.strip() if fair else re.fullmatch("[0-9a-f]{32}", stated)
        assert answer.json()["request_id"] == stated
        assert "trace_id" not in answer.json()

    tried()
    assert len({client.get("/health").headers["x-request-id"] for _ in range(3)}) == 3


@pytest.mark.parametrize(
    ("traceparent", "trace"),
    [
        (f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
        (f"ff-{TRACE}-00f067aa0ba902b7-01", None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-00f067aa0ba902b7-01\tx", None),
    ],
)
def test_all_lines_of_a_request_and_its_problem_name_its_trace(
    root: Path, caplog: pytest.LogCaptureFixture, traceparent: str, trace: str | None
) -> None:
    client = TestClient(create_app(local_service(root, workers=1)), base_url="http://lustrum.test")
    lines: list[dict[str, str]] = []
    listening = logging.Handler()
    listening.emit = lambda record: lines.append(json.loads(JsonLines().format(record)))  # type: ignore[method-assign]
    logger = logging.getLogger("lustrum.server")
    logger.addHandler(listening)
    try:
        with caplog.at_level(logging.INFO, logger="lustrum.server"):
            headers = {"X-Request-ID": "ours", "traceparent": traceparent}
            client.get(TABLE, headers=headers)
            problem = client.get("/api/v1/nowhere", headers=headers).json()
    finally:
        logger.removeHandler(listening)
    # The decision is logged by a thread, the requests by the loop.
    assert [line["event"] for line in lines] == ["decision", "request", "request"]
    for line in (*lines, problem):
        assert line["request_id"] == "ours"
        assert line.get("trace_id") == trace


def test_nobody_fills_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "_MINUTE", 3600)
    handler = LimitedLines(out := io.StringIO())
    log = logging.Logger("flood")
    log.addHandler(handler)
    for number in range(100):
        log.warning("malformed %d", number)
        log.info("asked for %d", number)
    log.error("something else")
    lines = out.getvalue().splitlines()
    assert sum(line.startswith("malformed") for line in lines) == MOST_A_MINUTE
    assert sum(line.startswith("asked") for line in lines) == 100
    assert "something else" in lines
    handler.next_minute()
    left = 100 - MOST_A_MINUTE
    said = f"{left} more within a minute like: malformed {MOST_A_MINUTE}"
    assert out.getvalue().splitlines()[len(lines) :] == [said]
    # The next minute begins anew, and has nothing to say where nothing was left out.
    log.warning("malformed again")
    handler.close()
    assert out.getvalue().splitlines()[len(lines) + 1 :] == ["malformed again"]
