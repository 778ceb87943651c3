"""How many tables a server answers: random one- to three-way tables with figures, asked over the loopback.

    python bench/parts/server_load.py --data FOLDER [--seconds 20] [--clients 10 50] [--workers 1 2]
        [--questions 20000] [--beside CHECKOUT/src]

Each line is a server process of its own, for the census, the businesses and the survey in turn. Tables are all
different, with no answer remembered, unless the line says ``at hand``: then the same few hundred questions are
asked again. The time of the processor is that of the server and all its processes, so that it can be compared
on a busy machine; rates hold for a quiet one.
``--beside`` measures another version in the same run, and ``--questions`` watches the memory of the server.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from figures import record

TICK = os.sysconf("SC_CLK_TCK")


@contextmanager
def served(data: Path, workers: int, source: Path | None, options: list[str]) -> Iterator[Any]:
    """A server process on a free port: its address and its process."""
    command = [sys.executable, "-m", "lustrum", "serve", "--data", str(data), "--port", "0"]
    command += ["--rate", "", "--workers", str(workers), "--patience", "60", *options]
    here = os.environ | ({} if source is None else {"PYTHONPATH": str(source)})
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=here)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if " at http" not in line:
            raise SystemExit(f"The server did not start: {line!r}")
        time.sleep(3 if workers > 1 else 0.5)  # the first process answers; let the others start too
        yield line.rsplit(" at ", 1)[1].strip(), process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


def family(process: int) -> list[int]:
    """A process and all that it has started."""
    try:
        listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [process, *(one for pid in listed for one in family(int(pid)))]


def processor_seconds(process: int) -> float:
    """Seconds of processors that a server has used so far."""
    total = 0
    for pid in family(process):
        words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += int(words[11]) + int(words[12])
    return total / TICK


def memory(process: int) -> float:
    """MiB that a server holds, each shared page once by its share."""
    total = 0
    for pid in family(process):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        total += int(text.split("Pss:")[1].split()[0])
    return total / 1024


class Client:
    """One connection that is kept open, with as little work of its own as can be."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._place = (parts.hostname or "", parts.port or 0)
        self._socket: socket.socket | None = None

    def ask(self, question: dict[str, Any]) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        body = json.dumps(question).encode()
        head = (
            f"POST /api/v1/tables HTTP/1.1\r\nHost: {self._place[0]}:{self._place[1]}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        if self._socket is None:
            self._socket = socket.create_connection(self._place, timeout=120)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(head.encode() + body)
        raw = b""
        while b"\r\n\r\n" not in raw:
            raw += self._more()
        first, _, rest = raw.partition(b"\r\n\r\n")
        lines = first.lower().split(b"\r\n")
        length = next(int(x[15:]) for x in lines if x.startswith(b"content-length:"))
        chunks = [rest]
        while sum(map(len, chunks)) < length:
            chunks.append(self._more())
        if b"connection: close" in lines:
            self._socket.close()
            self._socket = None
        return int(first.split(b" ", 2)[1]), b"".join(chunks)

    def _more(self) -> bytes:
        assert self._socket is not None
        got = self._socket.recv(1 << 16)
        if not got:
            raise ConnectionError("The server closed the connection.")
        return got


DATASETS = ("demo", "businesses", "survey")
SHOWN: dict[str, tuple[dict[str, Any], ...]] = {
    "demo": ({},),
    "businesses": (
        {},
        {"measure": "turnover"},
        {"statistics": ["mean:wages"]},
        {"statistics": ["growth:turnover:turnover_before"]},
    ),
    "survey": (
        {"weight": "weight"},
        {"weight": "weight"},
        {"weight": "weight", "measure": "hours"},
        {"weight": "weight", "statistics": ["count", "share:count:total"]},
    ),
}
"""What the cells of a dataset's tables show, each as often: counts, sums, means, growth, weighted numbers."""


def random_question(
    variables: list[dict[str, Any]], chance: random.Random, dataset: str = "demo"
) -> dict[str, Any]:
    """A table of one to three variables at random levels, with totals or not, of everybody or a selection."""
    chosen = chance.sample(variables, chance.choice((1, 2, 3)) + 1)
    totals = chance.random() < 0.5
    by = []
    for variable in chosen[:-1]:
        levels = [x["name"] for h in variable["hierarchies"] for x in h["levels"] if x["offered"]]
        level = chance.choice([None, *levels])
        axis: dict[str, Any] = {"variable": variable["name"], "total": totals}
        by.append(axis if level is None else axis | {"level": level})
    question: dict[str, Any] = {"dataset": dataset, "by": by, **chance.choice(SHOWN[dataset])}
    if chance.random() < 0.5:
        code = chance.choice(chosen[-1]["categories"])["code"]
        question["where"] = {chosen[-1]["name"]: [code]}
    return question


@dataclass
class Load:
    """What many clients saw."""

    seconds: list[float] = field(default_factory=list)
    outcomes: Counter[int] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)


def load(
    address: str, clients: int, seconds: float, most: int, draw: Any, seed: int = 0
) -> tuple[Load, float]:
    """Ask from many clients for a while, or so often: what they saw, and how long. Another seed asks other
    questions."""
    seen, left = Load(), [most]
    begin = time.monotonic()
    end = begin + seconds

    def client(seed: int) -> None:
        asker, chance = Client(address), random.Random(seed)
        while time.monotonic() < end and left[0] > 0:
            question = draw(chance)
            started = time.monotonic()
            status, _ = asker.ask(question)
            with seen.lock:
                seen.seconds.append(time.monotonic() - started)
                seen.outcomes[status] += 1
                left[0] -= 1

    first = 7919 * clients + 104_729 * seed
    threads = [threading.Thread(target=client, args=(first + n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen, time.monotonic() - begin


def described(address: str, dataset: str = "demo") -> list[dict[str, Any]]:
    """The variables of a dataset."""
    from urllib.request import urlopen

    with urlopen(f"{address}/api/v1/datasets/{dataset}") as response:
        found: list[dict[str, Any]] = json.load(response)["variables"]
    return found


def measured(
    name: str,
    data: Path,
    clients: int,
    workers: int,
    given: argparse.Namespace,
    *,
    source: Path | None = None,
    at_hand: bool = False,
    dataset: str = "demo",
) -> None:
    """One line of the table."""
    with served(data, workers, source, [] if at_hand or source else ["--answers-memory", "0"]) as (
        address,
        process,
    ):
        variables = described(address, dataset)
        draw: Any = lambda chance: random_question(variables, chance, dataset)  # noqa: E731
        if at_hand:
            chance = random.Random(5)
            known = [random_question(variables, chance, dataset) for _ in range(300)]
            asker = Client(address)
            for _ in range(workers * 4):
                for question in known:
                    asker.ask(question)
            draw = lambda chance: chance.choice(known)  # noqa: E731
        else:
            load(address, clients, given.warm, 10**9, draw, 1)  # what is worked out once by shape
        before = processor_seconds(process)
        seen, taken = load(address, clients, given.seconds, 10**9, draw)
        used = processor_seconds(process) - before
    ordered = sorted(seen.seconds)
    wrong = sum(count for status, count in seen.outcomes.items() if status != 200)
    record(
        "Server: under load",
        {
            "tables": f"{dataset}, {name}",
            "processes": workers,
            "clients": clients,
            "answered (a second)": len(ordered) / taken,
            "median (ms)": statistics.median(ordered) * 1e3,
            "99th percentile (ms)": ordered[int(0.99 * len(ordered))] * 1e3,
            "CPU a table (ms)": used / len(ordered) * 1e3,
            "not 200": wrong,
        },
        "server",
    )


def burst(data: Path, questions: int = 300) -> None:
    """The first questions of ten clients after a start: what each of two processes works on them."""
    for dataset in DATASETS:
        with served(data, 2, None, ["--answers-memory", "0"]) as (address, process):
            variables = described(address, dataset)
            workers = [pid for pid in family(process)[1:] if "spawn_main" in command_of(pid)]
            before = {pid: processor_seconds(pid) for pid in workers}
            draw: Any = lambda chance: random_question(variables, chance, dataset)  # noqa: B023, E731
            seen, _ = load(address, 10, 3600.0, questions, draw)
            used = sorted(processor_seconds(pid) - before[pid] for pid in workers)
        ordered = sorted(seen.seconds)
        record(
            "Server: the first questions after a start, two processes",
            {
                "dataset": dataset,
                "questions": len(ordered),
                "CPU of one process (s)": used[0],
                "CPU of the other (s)": used[-1],
                "median (ms)": statistics.median(ordered) * 1e3,
                "99th percentile (ms)": ordered[int(0.99 * len(ordered))] * 1e3,
            },
            "server",
        )


def command_of(process: int) -> str:
    """The words that a process was started with."""
    return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")


class Different:
    """Questions of which none was asked before: of everybody, of one category, then also of several."""

    def __init__(self, variables: list[dict[str, Any]]) -> None:
        self._variables = variables
        self._asked: set[int] = set()

    def __call__(self, chance: random.Random) -> dict[str, Any]:
        """The next one."""
        while True:
            question = random_question(self._variables, chance)
            name = chance.choice(self._variables)["name"]
            if chance.random() < 0.5 and name not in {axis["variable"] for axis in question["by"]}:
                codes = [
                    c["code"] for v in self._variables if v["name"] == name for c in v["categories"]
                ]
                some = sorted(chance.sample(codes, chance.randint(1, min(len(codes), 4))))
                question["where"] = question.get("where", {}) | {name: some}
            mark = hash(json.dumps(question))
            if mark not in self._asked:
                self._asked.add(mark)
                return question


def watch_memory(data: Path, questions: int) -> None:
    """Ask many different questions, and look at the memory of the server meanwhile."""
    with served(data, 1, None, []) as (address, process):
        draw = Different(described(address))
        sizes = [memory(process)]
        outcomes: Counter[int] = Counter()
        for part in range(10):
            seen, _ = load(address, 10, 3600.0, questions // 10, draw, part)
            outcomes += seen.outcomes
            sizes.append(memory(process))
            print(f"{(part + 1) * questions // 10:,}: {sizes[-1]:.0f} MiB", file=sys.stderr)
        entries = sum(1 for path in (data / ".answers").glob("*/*/*/*"))
    for part, size in enumerate(sizes):
        figures = {"questions": part * questions // 10, "memory (MiB)": size}
        record("Server: memory after different questions", figures, "server")
    print(f"Statuses {dict(outcomes)}; {entries:,} answers on disk.")


def shares(data: Path, tables: int) -> None:
    """Where the time of the processor goes, step by step, in this process and without the network."""
    from lustrum.answer import TableService, pipeline
    from lustrum.answer.question_state import QuestionState
    from lustrum.model import TableQuery
    from lustrum.server.service.answers import ServedAnswer

    service = TableService(data)
    found = service.snapshot("demo")
    variables = [
        {
            "name": v.name,
            "categories": [{"code": code} for code in v.codes],
            "hierarchies": [
                {"levels": [{"name": x.name, "offered": True} for x in h.levels]}
                for h in v.hierarchies
            ],
        }
        for v in found.dataset.variables
    ]
    spent: Counter[str] = Counter()
    chance = random.Random(1)
    for number in range(3 * tables):
        question = random_question(variables, chance)
        if number == 2 * tables:
            spent.clear()  # what is remembered by shape is there
        last = time.thread_time()

        def passed(step: str) -> None:
            nonlocal last
            now = time.thread_time()
            spent[step] += now - last  # type: ignore[assignment]
            last = now

        query = TableQuery.from_mapping(question)
        snapshot = service.snapshot("demo")
        passed("read the question, take the snapshot")
        case = QuestionState(query, snapshot.numbers, snapshot.policy)
        for step in pipeline.STEPS:
            case = step(case) if case.open else case
            passed(step.__name__)
        json.dumps(ServedAnswer(case.decision(), snapshot).body("http://localhost"))
        passed("write JSON")
    service.close()
    whole = sum(spent.values())
    for step, seconds in (*spent.items(), ("all", whole)):
        figures = {"step": step, "CPU a table (ms)": seconds / tables * 1e3}
        record("Server: steps of a table", figures | {"share (%)": 100 * seconds / whole}, "server")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="a folder with the demo data")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--warm", type=float, default=15.0, help="seconds of questions beforehand")
    parser.add_argument("--clients", type=int, nargs="*", default=[10])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--questions", type=int, default=0)
    parser.add_argument("--beside", type=Path, help="the sources of another version")
    given = parser.parse_args()
    busy = ", ".join(f"{share:.1f}" for share in os.getloadavg())
    print(f"\n{len(os.sched_getaffinity(0))} processors, load of the machine: {busy}")
    burst(given.data)
    for dataset in DATASETS:
        for clients in given.clients:
            if given.beside is not None:
                measured(
                    "before", given.data, clients, 1, given, source=given.beside, dataset=dataset
                )
            for workers in given.workers:
                measured("different", given.data, clients, workers, given, dataset=dataset)
        for workers in given.workers:
            measured("at hand", given.data, 10, workers, given, at_hand=True, dataset=dataset)
    shares(given.data, 200)
    if given.questions:
        watch_memory(given.data, given.questions)


if __name__ == "__main__":
    main()
