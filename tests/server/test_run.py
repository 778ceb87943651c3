"""Serving: ready means ready, a port in use is one sentence, a signal ends it in peace."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from lustrum.local import local_service
from lustrum.model import InputError
from lustrum.server import serve

PROGRAM = """
import sys
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


@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, 1), (signal.SIGTERM, 2)])
def test_it_listens_when_it_says_so_and_ends_at_a_signal(
    tmp_path: Path, number: int, workers: int
) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = process.stdout.readline().decode().strip()
        with urllib.request.urlopen(f"{url}/health", timeout=90) as response:
            assert response.status == 200
            assert "Server" not in response.headers
        process.send_signal(number)
        assert process.stdout.read().decode().strip() == "ended"
        assert process.stderr.read() == b""
        assert process.wait(90) == 0
