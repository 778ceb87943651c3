"""Several processes, and what ends a server and what does not: hangups, dead workers, a killed parent."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lustrum.runtime.log_lines import MOST_A_MINUTE
from waiting import LONG, has_ended, unshared_port, until

SERVER = """
import sys
from pathlib import Path
from lustrum.answer import TableService
from lustrum.server import Settings, run, serve
if __name__ == "__main__":
    run.SIGN_OF_LIFE = 3600  # on a busy machine a worker may be silent for long, and none hangs here
    serve(TableService(Path(sys.argv[1]), workers=1), port=0, workers=int(sys.argv[2]), logs="info",
          settings=Settings(rate=""), ready=lambda url: print(url, flush=True),
          metrics_port=int(sys.argv[3]) or None)
"""
QUESTION = "/api/v1/tables?dataset=demo&by=age:ten-year&by=sex"


@contextmanager
def serving(
    root: Path, workers: int, metrics_port: int = 0
) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    script, log = root.parent / "server.py", root.parent / "server.log"
    script.write_text(SERVER)
    command = [sys.executable, str(script), str(root), str(workers), str(metrics_port)]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url.startswith("http://"), log.read_text()
            yield process, url, log
        finally:
            process.kill()


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=LONG) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


def body(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=LONG) as response:
        found: bytes = response.read()
    return found


def workers_of(parent: int) -> set[int]:
    """The processes of a server, by what the system says of them."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            spawned = b"spawn_main" in (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == parent and spawned and fields[0] != "Z":
            found.add(int(folder.name))
    return found


def test_a_hangup_reads_the_policies_again_and_ends_nothing(own_root: Path) -> None:
    with serving(own_root, 1) as (process, url, log):
        until(lambda: status(f"{url}/health/ready") == 200)
        port = int(url.rpartition(":")[2])
        for _ in range(2 * MOST_A_MINUTE):  # nobody fills the log by what is no request
            with socket.create_connection(("127.0.0.1", port)) as asker:
                asker.sendall(b"no request\r\n\r\n")
                assert asker.recv(100).startswith(b"HTTP/1.1 400")
        assert log.read_text().count("Invalid HTTP request") == MOST_A_MINUTE
        for times in range(1, 4):
            process.send_signal(signal.SIGHUP)
            until(lambda times=times: log.read_text().count("policy of demo read again") == times)
            until(lambda: status(f"{url}/health/ready") == 200)
        broken = own_root / "policies" / "businesses.toml"
        broken.write_text("dataset = [")
        process.send_signal(signal.SIGHUP)
        until(lambda: "policy of businesses refused" in log.read_text())
        assert status(f"{url}/health") == 200
        process.terminate()
        assert process.wait(LONG) == 0
        assert f"{MOST_A_MINUTE} more within a minute like: Invalid HTTP" in log.read_text()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_answer_alike_are_replaced_hear_hangups_and_leave_with_their_parent(
    own_root: Path,
) -> None:
    metrics_port = unshared_port()
    with serving(own_root, 2, metrics_port) as (process, url, log):
        host, _, port = url.removeprefix("http://").partition(":")
        first = workers_of(process.pid)
        assert len(first) == 2
        # Whoever answers, the answer is the same; figures and logs are those of all.
        assert len({body(url + QUESTION) for _ in range(12)}) == 1
        figures = body(f"http://127.0.0.1:{metrics_port}/metrics").decode().splitlines()
        answered = [line for line in figures if 'verdict="answer"' in line]
        assert sum(float(line.split()[-1]) for line in answered) == 12
        lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
        assert sum(json.loads(line)["event"] == "decision" for line in lines) == 12
        # One dies: the other answers, and there are two again.
        # It was silent before, so that its parent was asking for a sign of life, which may take an hour.
        os.kill(min(first), signal.SIGSTOP)
        time.sleep(2)
        os.kill(min(first), signal.SIGKILL)
        # What waits in the queue of a process that is going away is lost with it, and its sockets stay
        # open until its last thread has ended: only then does its parent hear of it, and /proc forgets it.
        until(lambda: not Path(f"/proc/{min(first)}").exists())
        for _ in range(5):
            assert status(url + QUESTION) == 200
        second = until(
            lambda: len(found := workers_of(process.pid)) == 2 and min(first) not in found and found
        )
        until(lambda: status(f"{url}/health/ready") == 200)
        figures = body(f"http://127.0.0.1:{metrics_port}/metrics").decode().splitlines()
        assert 'lustrum_worker_restarts_total{why="died"} 1.0' in figures
        assert "lustrum_answering 0.0" in figures
        assert 'lustrum_dataset_state{dataset="demo",state="ready"} 1.0' in figures
        # A hangup reaches those that are up, and ends none of them.
        process.send_signal(signal.SIGHUP)
        until(lambda: "policy of demo read again" in log.read_text())
        assert status(url + QUESTION) == 200
        assert workers_of(process.pid) == second
        # The parent is killed: its workers leave, and the port is free.
        process.kill()
        process.wait(LONG)
        until(lambda: all(has_ended(pid) for pid in second))

        def port_is_free() -> bool:
            with socket.socket() as again:
                again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with contextlib.suppress(OSError):
                    again.bind((host, int(port)))
                    return True
            return False

        until(port_is_free)
