"""Serving: ready means ready, a port in use is one sentence, a signal ends it in peace."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import urllib.request
from http.client import HTTPConnection
from pathlib import Path

import pytest

from lustrum.local import local_service
from lustrum.model import InputError
from lustrum.server import serve
from waiting import LONG, until

PROGRAM = """
import sys
import time
from pathlib import Path
from lustrum.local import local_service
from lustrum.server import serve
serve(local_service(Path(sys.argv[1]), workers=1), port=0, ready=lambda url: print(url, flush=True),
      workers=int(sys.argv[2]))
print("ended", flush=True)
"""


def test_a_port_in_use_is_one_clear_sentence(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InputError) as error:
            serve(local_service(tmp_path), port=port)
    assert str(error.value) == f"Port {port} on 127.0.0.1 is in use; choose another with --port."


@pytest.mark.parametrize(
    ("host", "port", "said"),
    [
        ("127.0.0.1", 70_000, "from 0 to 65535"),
        ("192.0.2.1", 0, "no address '192.0.2.1'"),
        ("no such host", 0, "no address 'no such host'"),
    ],
)
def test_an_address_that_cannot_be_is_one_too(
    tmp_path: Path, host: str, port: int, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        serve(local_service(tmp_path), host, port)


def test_it_listens_when_it_says_so_and_ends_at_a_signal(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().decode().strip()
        with urllib.request.urlopen(f"{url}/health", timeout=LONG) as response:
            assert response.status == 200
            assert "Server" not in response.headers
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().decode().strip() == "ended"
        assert process.stderr.read() == b""
        assert process.wait(LONG) == 0


def established(pid: int, port: int) -> int:
    """How many connections to a port a process holds."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    own = {f"socket:[{w[9]}]" for w in lines if w[3] == "01" and w[1].endswith(f":{port:04X}")}
    held = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            held += str(link.readlink()) in own
    return held


@pytest.mark.skipif(sys.platform != "linux", reason="connections are counted as Linux lists them")
def test_a_burst_is_shared_from_its_first_request_no_other_server_takes_the_port_and_it_ends(
    tmp_path: Path,
) -> None:
    """Ten clients ask 30 times each right after the start: 150 requests for each of two processes, always."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), "2"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        contextlib.ExitStack() as kept,
    ):
        kept.callback(process.terminate)
        assert process.stdout is not None
        port = int(process.stdout.readline().decode().strip().rsplit(":", 1)[1])
        clients = [HTTPConnection("127.0.0.1", port, timeout=LONG) for _ in range(10)]
        for client in clients:
            kept.callback(client.close)
        for _ in range(30):
            for client in clients:
                client.request("GET", "/health")
                assert client.getresponse().read() == b'{"status":"ok"}'
        workers = [
            int(pid)
            for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        ]

        def held() -> list[int]:
            return [n for n in (established(pid, port) for pid in workers) if n]

        assert held() == [5, 5]
        # Who has fewer gets the next ones, whichever connections were closed.
        for client in clients[::2]:
            client.close()
        until(lambda: sum(held()) == 5)
        for _ in range(7):
            kept.enter_context(socket.create_connection(("127.0.0.1", port)))
        until(lambda: held() == [6, 6])
        # A server of the same user must not join in.
        for number in (1, 2):
            with pytest.raises(InputError, match=f"Port {port} on 127.0.0.1 is in use"):
                serve(local_service(tmp_path), port=port, workers=number)
        kept.close()
        assert process.stderr is not None
        assert process.stdout.read().decode().strip() == "ended"
        assert process.stderr.read() == b""
        assert process.wait(LONG) == 0


def test_with_several_processes_the_first_one_lets_the_records_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = local_service(tmp_path)
    told: list[str] = []
    monkeypatch.setattr(service._records, "close", lambda: told.append("closed"))
    monkeypatch.setattr("lustrum.server.run.Processes.run", lambda _: told.append("runs"))
    serve(service, port=0, workers=2)
    assert told[:2] == ["closed", "runs"]
