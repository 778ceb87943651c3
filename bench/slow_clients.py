"""A thousand slow clients: whether others are still answered, and how much longer they wait.

python bench/slow_clients.py [--clients 1000] [--connections 1000] [--data FOLDER]

Slow clients send their headers or bodies one byte a second, or ask and do not read the answer. Meanwhile honest
clients ask for a table. Printed: the ratio of their waiting with and without the slow ones, how many
were turned away, and by how much the server grew. Without a folder a small demo is made.
"""

from __future__ import annotations

import argparse
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from parts.figures import record

QUESTION = "/api/v1/tables?dataset=demo&by=sex&by=age:ten-year"
KINDS = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + b"a" * 4000,
    b"POST /api/v1/tables HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999\r\n\r\n"
    + b" " * 4000,
    f"GET {QUESTION} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode(),
)


class Slow:
    """Clients that drip; those that the server lets go come again at once."""

    def __init__(self, address: tuple[str, int], clients: int) -> None:
        self.address, self.clients = address, clients
        self.over = threading.Event()
        self.again = 0
        self.thread = threading.Thread(target=self._run)

    def _open(self, number: int) -> tuple[socket.socket, bytearray]:
        connection = socket.socket()
        connection.setblocking(False)
        connection.connect_ex(self.address)
        return connection, bytearray(KINDS[number % len(KINDS)])

    def _run(self) -> None:
        open_ = {i: self._open(i) for i in range(self.clients)}
        while not self.over.wait(1.0):
            for number, (connection, rest) in list(open_.items()):
                try:
                    # The third kind asks at once and then does not read.
                    size = len(rest) if number % len(KINDS) == 2 else 1
                    del rest[: connection.send(rest[:size]) if rest else 0]
                    if not rest and number % len(KINDS) != 2:
                        raise ConnectionError
                except BlockingIOError:
                    continue
                except OSError:
                    connection.close()
                    self.again += 1
                    open_[number] = self._open(number)
        for connection, _ in open_.values():
            connection.close()


def ask(url: str, questions: int) -> tuple[list[float], int]:
    """How long honest questions take, and how many were not answered."""
    times, failed = [], 0
    for _ in range(questions):
        started = time.perf_counter()
        try:
            with urllib.request.urlopen(url + QUESTION, timeout=60) as response:
                failed += response.status != 200
                response.read()
        except (OSError, urllib.error.HTTPError):
            failed += 1
        times.append(time.perf_counter() - started)
    return times, failed


def memory(process: int) -> float:
    """What a process holds, in MiB."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def main() -> None:
    """Serve, ask without slow clients and with them, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--connections", type=int, default=1000, help="the cap of the server")
    parser.add_argument("--data", type=Path, help="a data folder with the demo census")
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * given.clients + 500), hard))
    with tempfile.TemporaryDirectory(prefix="lustrum-slow-") as folder:
        data = given.data or Path(folder) / "data"
        lustrum = [sys.executable, "-m", "lustrum"]
        if given.data is None:
            subprocess.run(
                [*lustrum, "demo", "--data", str(data), "--persons", "20000"], check=True
            )
        command = [*lustrum, "serve", "--data", str(data), "--port", "0", "--rate", ""]
        command += ["--connections", str(given.connections)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                found = re.search(r"http://([\d.]+):(\d+)", server.stdout.readline())
                assert found, "the server did not start"
                measure(found, server.pid, given.clients, given.questions)
            finally:
                server.terminate()


def measure(found: re.Match[str], server: int, clients: int, questions: int) -> None:
    """Print what honest clients saw."""
    url, address = found[0], (found[1], int(found[2]))
    ask(url, 20)
    alone, lost = ask(url, questions)
    before = memory(server)
    slow = Slow(address, clients)
    slow.thread.start()
    time.sleep(3)
    beside, lost_beside = ask(url, questions)
    after = memory(server)
    slow.over.set()
    slow.thread.join()
    again, lost_after = ask(url, questions // 4)
    ratio = statistics.median(beside) / statistics.median(alone)
    print(f"{clients} slow clients, which came again {slow.again} times; {lost} lost before")
    for what, figure in {
        "honest questions not answered beside them": lost_beside,
        "honest questions not answered afterwards": lost_after,
        "median wait beside them, ratio to without": ratio,
        "median wait afterwards, ratio": statistics.median(again) / statistics.median(alone),
        "longest wait beside them (s)": max(beside),
        "memory before (MiB)": before,
        "memory beside them (MiB)": after,
    }.items():
        record("Slow clients", {"what": what, "measured": figure})
    if lost_beside or not Path(f"/proc/{server}").exists():
        sys.exit("honest clients were turned away")


if __name__ == "__main__":
    main()
