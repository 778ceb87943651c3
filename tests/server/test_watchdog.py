"""systemd hears that the server is ready and answers, and hears nothing where it does not."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lustrum.server.operation.watchdog import feed_watchdog, notify, watchdog_seconds
from server.conftest import fill, run_alone
from server.test_signals import SERVER

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The socket of a system that waits two seconds for a sign."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        heard.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "2000000")
        yield heard


def messages(heard: socket.socket) -> list[bytes]:
    """What has come and was not read yet."""
    found = []
    heard.setblocking(False)
    try:
        while True:
            found.append(heard.recv(100))
    except BlockingIOError:
        return found
    finally:
        heard.settimeout(60)


def test_a_message_is_a_datagram_also_to_an_abstract_socket(
    system: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert notify("READY=1")
    assert system.recv(100) == b"READY=1"
    if sys.platform == "linux":
        name = f"lustrum-{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as abstract:
            abstract.bind(f"\0{name}")
            monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
            assert notify("STOPPING=1")
            assert abstract.recv(100) == b"STOPPING=1"


@pytest.mark.parametrize("place", ["", "relative", "/nowhere/at/all", "vsock:2:1"])
def test_where_nobody_listens_nothing_fails(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", place)
    assert not notify("READY=1")


@pytest.mark.parametrize(
    ("words", "seconds"), [("", None), ("0", None), ("no", None), ("-5", None), ("3000000", 3.0)]
)
def test_the_time_of_the_watchdog_is_that_of_the_unit(
    words: str, seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", words)
    assert watchdog_seconds() == seconds


def test_the_watchdog_is_fed_only_while_the_loop_turns_and_the_records_live(
    system: socket.socket,
) -> None:
    lives = True

    async def watched() -> list[int]:
        nonlocal lives
        feeding = asyncio.create_task(feed_watchdog(lambda: lives))
        await asyncio.sleep(1.3)
        first = len(messages(system))
        lives = False
        await asyncio.sleep(0.7)
        messages(system)
        await asyncio.sleep(1.3)
        dead = len(messages(system))
        lives = True
        await asyncio.sleep(1.3)
        again = len(messages(system))
        time.sleep(1.3)  # the loop stands still
        stuck = len(messages(system))
        feeding.cancel()
        return [first, dead, again, stuck]

    first, dead, again, stuck = run_alone(watched())
    assert first >= 1
    assert dead == 0
    assert again >= 1
    assert stuck == 0


def test_without_a_watchdog_nothing_is_fed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    run_alone(feed_watchdog(lambda: pytest.fail("nobody asked")))


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_server_says_that_it_is_ready_and_alive_and_that_it_stops(
    tmp_path: Path, system: socket.socket, workers: str
) -> None:
    root = fill(tmp_path / "data", 2000)
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    command = [sys.executable, str(script), str(root), workers, "0"]
    system.settimeout(120)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            heard = {system.recv(100)}
            while heard != {b"READY=1", b"WATCHDOG=1"}:
                heard.add(system.recv(100))
                assert heard <= {b"READY=1", b"WATCHDOG=1"}
            if workers == "1":
                process.send_signal(signal.SIGSTOP)
                time.sleep(0.5)
                messages(system)
                time.sleep(2)
                assert messages(system) == []  # what hangs is not fed
                process.send_signal(signal.SIGCONT)
                assert system.recv(100) == b"WATCHDOG=1"
            process.terminate()
            while system.recv(100) != b"STOPPING=1":
                pass
            assert process.wait(90) == 0
        finally:
            process.kill()
