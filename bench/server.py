"""The table server as its visitors meet it: a real process, asked over the loopback.

    python bench/server.py [--data FOLDER] [--requests 200] [--seconds 20] [--questions 20000]

Prints Markdown in three parts. One client asks for the four tables of Shlomo, Antal and Elliot (2015), all five
steps with a JSON answer; raw GROUP BYs of DuckDB on the same people are timed in turn, and the steps by
themselves inside this process. Chromium, if there is one, opens the first pages with a cold cache. Then many
clients ask at once, see ``bench/parts/server_load.py``.

Without --data the demo census of 1.5 million people is made first, which takes some minutes. It is served from
its public bundle, or with --preset keyed-rounding or cell-key from the records.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
from parts.figures import record

from lustrum.answer import TableService, pipeline
from lustrum.answer.question_state import QuestionState
from lustrum.demo.setup import prepare
from lustrum.local import local_service
from lustrum.model import Dataset, Release, Table, TableQuery
from lustrum.policy import PolicyMethod
from lustrum.policy.presets import preset
from lustrum.publish.records import LocalRecordsService
from lustrum.publish.records.protected_input import ProtectedInput
from lustrum.rumap.report import find_chromium

TABLES: tuple[tuple[int, dict[str, Any]], ...] = (
    (2457, {"by": ["age", "education", "occupation"], "where": {"region": ["1"]}}),
    (210, {"by": ["sex", "age", "citizenship"], "where": {"region": ["2"]}}),
    (585, {"by": ["employment", "occupation", "education"], "where": {"sex": ["1"]}}),
    (234, {"by": ["region", "occupation", "education"], "where": {"age": ["10"]}}),
)
"""Cells and questions of section 5.1 of the study."""

STEPS = ("measure", "finish")


@contextmanager
def served(data: Path, workers: int) -> Iterator[str]:
    """The address of a server process on a free port."""
    command = [sys.executable, "-m", "lustrum", "serve", "--data", str(data), "--port", "0"]
    command += ["--rate", "", "--workers", str(workers), "--patience", "60"]
    command += ["--answers-memory", "0"]  # every table is made
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if " at http" not in line:
            raise SystemExit(f"The server did not start: {line!r}")
        yield line.rsplit(" at ", 1)[1].strip()
    finally:
        process.terminate()
        process.wait(timeout=30)


class Asker:
    """One client with one connection that is kept open."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)

    def ask(self, question: dict[str, Any]) -> tuple[int, dict[str, Any], float]:
        """The status, the answer and the seconds from the question to the last byte of the answer."""
        body = json.dumps({"dataset": "demo", **question})
        started = time.perf_counter()
        self._connection.request(
            "POST", "/api/v1/tables", body, {"Content-Type": "application/json"}
        )
        response = self._connection.getresponse()
        raw = response.read()
        taken = time.perf_counter() - started
        return response.status, json.loads(raw), taken


def quantile(seconds: Sequence[float], share: float) -> float:
    """The time within which this share of the requests was answered."""
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def in_duckdb(service: TableService) -> duckdb.DuckDBPyConnection:
    """The same people in a table of DuckDB's own, in its smallest types."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {len(os.sched_getaffinity(0))}")
    engine = LocalRecordsService(service.folder).engine("demo")
    names = sorted({n for _, q in TABLES for n in (*q["by"], *q["where"])})
    for place, chunk in enumerate(engine.chunks):
        batch = pa.table({name: chunk.codes[name] for name in names})
        connection.register("batch", batch)
        sql = "CREATE TABLE t AS SELECT * FROM batch" if place == 0 else "INSERT INTO t FROM batch"
        connection.execute(sql)
        connection.unregister("batch")
    return connection


def raw_query(question: dict[str, Any], dataset: Dataset) -> str:
    """The question as DuckDB understands it."""
    axes = ", ".join(question["by"])
    ((name, (code,)),) = question["where"].items()
    position = dataset.variable(name).codes.index(code)
    return f"SELECT {axes}, count(*) FROM t WHERE {name} = {position} GROUP BY {axes}"


def inside(service: TableService, query: TableQuery, repeats: int) -> tuple[float, float]:
    """Median milliseconds of all five steps, and of risk, protection and utility together."""
    found = service.snapshot(query.dataset)
    own = 0.0
    protect = ProtectedInput.protect

    def timed(self: ProtectedInput, table: Table, method: PolicyMethod) -> Release:
        nonlocal own
        started = time.perf_counter()
        try:
            return protect(self, table, method)
        finally:
            own += time.perf_counter() - started

    whole, parts = [], []
    ProtectedInput.protect = timed  # type: ignore[method-assign]
    try:
        for _ in range(repeats):
            own = 0.0
            started = time.perf_counter()
            case = QuestionState(query, found.numbers, found.policy)
            for step in pipeline.STEPS:
                before = time.perf_counter()
                case = step(case)
                if step.__name__ in STEPS:
                    own += time.perf_counter() - before
            assert case.release is not None
            whole.append(time.perf_counter() - started)
            parts.append(own)
    finally:
        ProtectedInput.protect = protect  # type: ignore[method-assign]
    return statistics.median(whole) * 1e3, statistics.median(parts) * 1e3


def one_client(service: TableService, address: str, requests: int) -> None:
    """Part one: the four tables."""
    connection = in_duckdb(service)
    dataset = service.dataset("demo")
    for cells, question in TABLES:
        sql = raw_query(question, dataset)
        asker = Asker(address)  # the server closes a connection that nobody uses
        asker.ask(question)
        connection.sql(sql).fetchall()
        ours, theirs = [], []
        for _ in range(requests):
            status, body, taken = asker.ask(question)
            assert status == 200
            assert body["decision"] == "answer"
            assert len(body["table"]["value"]) == cells
            ours.append(taken)
            started = time.perf_counter()
            connection.sql(sql).fetchall()
            theirs.append(time.perf_counter() - started)
        query = TableQuery.from_mapping({"dataset": "demo", **question})
        whole, own = inside(service, query, min(requests, 50))
        median, raw = statistics.median(ours), statistics.median(theirs)
        record(
            "Server: one client",
            {
                "table": " x ".join(question["by"]),
                "cells": cells,
                "median (ms)": median * 1e3,
                "99th percentile (ms)": quantile(ours, 0.99) * 1e3,
                "DuckDB (ms)": raw * 1e3,
                "ratio": median / raw,
                "five steps inside (ms)": whole,
                "risk, protection and utility (ms)": own,
            },
        )
    print(
        "\nTargets: median under 60 ms, p99 under 200 ms; risk, protection and utility under 10 ms."
    )


def under_load(data: Path, given: argparse.Namespace) -> None:
    """Part two: many at once."""
    script = Path(__file__).parent / "parts" / "server_load.py"
    words = ["--seconds", str(given.seconds), "--questions", str(given.questions)]
    words += [] if given.beside is None else ["--beside", str(given.beside)]
    subprocess.run([sys.executable, str(script), "--data", str(data), *words], check=True)


def first_pages(address: str) -> None:
    """Part three: what a browser loads, and how soon the page can be used."""
    path = find_chromium()
    if path is None:
        print("No Chromium here; name one in LUSTRUM_CHROMIUM.")
        return
    from playwright.sync_api import sync_playwright

    pages = {
        "catalogue": "/",
        "builder": "/datasets/demo",
        "answer": "/datasets/demo/table?by=age:ten-year&by=sex&totals=on",
    }
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for name, place in pages.items():
            loaded, sent, times = 0, 0, []
            for _ in range(5):
                loaded, sent, usable = opened(browser.new_context, address + place)
                times.append(usable)
            record(
                "Server: first pages in Chromium",
                {
                    "page": name,
                    "loaded (kB)": loaded / 1000,
                    "compressed (kB)": sent / 1000,
                    "usable, best of five (ms)": min(times),
                    "median (ms)": statistics.median(times),
                },
            )
        browser.close()
    print("\nTarget: at most 300 kB. A page is usable once it is parsed and its scripts have run.")


def opened(new_context: Callable[[], Any], address: str) -> tuple[int, int, float]:
    """Bytes before and after compression, and milliseconds until the scripts have run."""
    context = new_context()
    page = context.new_page()
    found: list[Any] = []
    page.on("requestfinished", lambda request: found.append(request))
    page.goto(address, wait_until="load")
    usable = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    kinds = [r for r in found if r.resource_type in ("document", "script", "stylesheet")]
    loaded = sum(len(request.response().body()) for request in kinds)
    sent = sum(request.sizes()["responseBodySize"] for request in kinds)
    context.close()
    return loaded, sent, float(usable)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, help="a folder with the demo data")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20.0, help="of every line under load")
    parser.add_argument("--questions", type=int, default=20_000, help="while memory is watched")
    parser.add_argument(
        "--beside", type=Path, help="the sources of another version to compare with"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes of the server")
    parser.add_argument(
        "--preset", help="serve the demo made here under keyed-rounding or cell-key"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = given.data or Path(folder) / "data"
        if given.data is None:
            print("Making the demo census …", file=sys.stderr)
            prepare(data)
            if given.preset:
                (data / "policies" / "demo.toml").write_text(preset(given.preset, "demo"))
        service = local_service(data)
        load = ", ".join(f"{share:.1f}" for share in os.getloadavg())
        print(
            f"{len(os.sched_getaffinity(0))} processors, {given.workers} server process(es); "
            f"load of the machine before: {load}"
        )
        with served(data, given.workers) as address:
            one_client(service, address, given.requests)
            first_pages(address)
        under_load(data, given)
        load = ", ".join(f"{share:.1f}" for share in os.getloadavg())
        print(f"\nLoad of the machine after: {load}")


if __name__ == "__main__":
    main()
