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

from lustrum.server.operation.lifecycle import feed_watchdog, notify, watchdog_seconds
from server.conftest import run_alone
from server.test_signals import SERVER
from waiting import LONG

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP")


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """The socket of a system that waits two seconds for a sign."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(tmp_path / "notify"))
        heard.settimeout(LONG)
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
        heard.settimeout(LONG)


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
    state = ["lives"]
    asked: list[str] = []

    def lives() -> bool:
        asked.append(state[0])
        return state[0] == "lives"

    async def fed() -> None:
        await asyncio.wait_for(asyncio.to_thread(system.recv, 100), LONG)

    async def watched() -> list[bytes]:
        feeding = asyncio.create_task(feed_watchdog(lives))
        await fed()
        state[0] = "dead"
        # What was said of an earlier question came before the next one was asked.
        while asked.count("dead") < 2:
            await asyncio.sleep(0.01)
        messages(system)
        while asked.count("dead") < 4:
            await asyncio.sleep(0.01)
        dead = messages(system)
        state[0] = "lives"
        await fed()
        messages(system)
        time.sleep(1.3)  # the loop stands still
        stuck = messages(system)
        feeding.cancel()
        return dead + stuck

    assert run_alone(asyncio.wait_for(watched(), LONG)) == []


def test_without_a_watchdog_nothing_is_fed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WATCHDOG_USEC", raising=False)
    run_alone(feed_watchdog(lambda: pytest.fail("nobody asked")))


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.deep)])
def test_a_server_says_that_it_is_ready_and_alive_and_that_it_stops(
    tmp_path: Path, own_root: Path, system: socket.socket, workers: str
) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    command = [sys.executable, str(script), str(own_root), workers, "0"]
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
            assert process.wait(LONG) == 0
        finally:
            process.kill()
