"""Connections: slow and silent clients are let go, cut bodies are no questions, a full server makes room."""

from __future__ import annotations

import asyncio
import resource
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

import pytest
from starlette.types import Receive, Scope, Send

from lustrum.server.http.connections import BoundedProtocol, ConnectionLimits
from lustrum.server.settings import Settings
from server.conftest import served
from waiting import LONG, until

# What a test does not wait for takes so long that no busy machine comes near it.
EVER = 3600.0
QUICK = ConnectionLimits(most=8, header=0.8, body=0.8, idle=EVER, send=0.8)
PATIENT = ConnectionLimits(most=8, header=EVER, body=EVER, idle=EVER, send=EVER, grace=0)
GET = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"


class App:
    """Answers with what it was sent; a path of digits is the size of its answer."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.ends: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = b""
        async for part in self._parts(receive):
            body += part
        self.bodies.append(body)
        size = int(scope["path"][1:] or 0)
        parts = size // 65536
        length = str(parts * 65536 + len(body)).encode()
        headers = [(b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for _ in range(parts):
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        await send({"type": "http.response.body", "body": body})
        self.ends.append("sent")

    async def _parts(self, receive: Receive) -> AsyncIterator[bytes]:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.ends.append("cut")
                raise asyncio.CancelledError
            yield message.get("body", b"")
            if not message.get("more_body"):
                return


@contextmanager
def running(limits: ConnectionLimits) -> Iterator[tuple[App, tuple[str, int]]]:
    app = App()
    with served(app, http=partial(BoundedProtocol, limits=limits), log_config=None) as url:  # type: ignore[arg-type]
        yield app, ("127.0.0.1", int(url.rpartition(":")[2]))


def opened(address: tuple[str, int], stack: ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection(address, timeout=LONG))


def read(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    found = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return found
        if not part:
            return found
        found += part


def answered(address: tuple[str, int]) -> None:
    """Ask until there is an answer: this side, too, may be too slow for a server of short limits."""

    def ask() -> bool:
        with ExitStack() as stack:
            connection = opened(address, stack)
            connection.sendall(GET)
            return connection.recv(100).startswith(b"HTTP/1.1 200")

    until(ask)


def dripping(connection: socket.socket, data: bytes, over: threading.Event) -> None:
    for byte in data:
        if over.wait(0.2):
            return
        try:
            connection.sendall(bytes([byte]))
        except OSError:
            return


SLOW = [
    (b"", b""),
    (b"GET / HTTP/1.1\r\nHost: a", b""),
    (b"", GET * 9),
    (b"GET / HTTP/1.1\r\nHost: a\r\n", b"x-more: yes\r\n" * 99),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n{", b""),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n", b" " * 999),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 99),
]
"""What somebody sends at once, and what drips after it."""


def test_requests_that_do_not_end_are_ended() -> None:
    over = threading.Event()
    with running(QUICK) as (app, address), ExitStack() as stack:

        def asked(sent: bytes, drip: bytes) -> bytes:
            connection = opened(address, stack)
            connection.sendall(sent)
            threading.Thread(target=dripping, args=(connection, drip, over)).start()
            return read(connection)

        with ThreadPoolExecutor(len(SLOW)) as pool:
            answers = list(pool.map(asked, *zip(*SLOW, strict=True)))
        over.set()
        for case, said in zip(SLOW, answers, strict=True):
            assert said.startswith(b"HTTP/1.1 408"), case
            assert b"took too long to arrive" in said, case
        assert app.bodies == []
        # Others are answered as before.
        answered(address)


def test_an_idle_connection_is_closed_without_a_word() -> None:
    limits = replace(PATIENT, idle=0.8)
    with running(limits) as (_, address), ExitStack() as stack:
        connection = opened(address, stack)
        # At once, so that no pause of this side is taken for idleness.
        connection.sendall(GET * 3)
        assert read(connection).count(b"HTTP/1.1 ") == 3
    with running(PATIENT) as (_, address), ExitStack() as stack:
        connection = opened(address, stack)
        for _ in range(3):
            connection.sendall(GET)
            assert connection.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_second_request_on_a_connection_has_an_end_too() -> None:
    with running(QUICK) as (app, address), ExitStack() as stack:
        connection = opened(address, stack)
        connection.sendall(GET)
        until(lambda: app.ends == ["sent"])
        connection.sendall(GET[:20])  # however late: an idle connection stays open here
        assert b"408" in read(connection)


def test_a_body_that_goes_on_after_its_answer_is_ended() -> None:
    """A GET is answered at once; its body could go on for ever."""

    class Early(App):
        async def _parts(self, receive: Receive) -> AsyncIterator[bytes]:
            for _ in ():
                yield b""

    app = Early()
    protocol = partial(BoundedProtocol, limits=QUICK)
    with served(app, http=protocol, log_config=None) as url, ExitStack() as stack:  # type: ignore[arg-type]
        connection = opened(("127.0.0.1", int(url.rpartition(":")[2])), stack)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n")
        over = threading.Event()
        thread = threading.Thread(target=dripping, args=(connection, b" " * 900, over))
        thread.start()
        assert read(connection).startswith(b"HTTP/1.1 200")
        over.set()
        thread.join()


@pytest.mark.parametrize("size", [0, 64 * 2**20])
def test_a_client_that_does_not_read_is_cut_off(size: int) -> None:
    with running(QUICK) as (app, address), ExitStack() as stack:
        connection = stack.enter_context(socket.socket())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(LONG)
        connection.connect(address)
        connection.sendall(f"GET /{size} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        until(lambda: app.ends == ["sent"])
        time.sleep(1.2)
        assert len(read(connection)) < max(size, 4096)


def test_a_cut_body_is_no_question() -> None:
    with running(PATIENT) as (app, address), ExitStack() as stack:
        connection = opened(address, stack)
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\n{}")
        time.sleep(0.1)
        connection.close()
        until(lambda: app.ends == ["cut"])
        assert app.bodies == []


def test_where_there_are_too_many_connections_the_most_silent_one_gives_way() -> None:
    with running(PATIENT) as (_, address), ExitStack() as stack:
        silent = [opened(address, stack) for _ in range(PATIENT.most)]
        for late in range(3):
            connection = opened(address, stack)
            connection.sendall(GET)
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
            assert read(silent[late]) == b""
        silent[3].sendall(GET)
        assert silent[3].recv(100).startswith(b"HTTP/1.1 200")


def test_where_all_are_being_answered_a_new_connection_is_told_to_come_again() -> None:
    with running(PATIENT) as (_, address), ExitStack() as stack:
        for _ in range(PATIENT.most):
            busy = stack.enter_context(socket.socket())
            busy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            busy.connect(address)
            busy.sendall(b"GET /67108864 HTTP/1.1\r\nHost: a\r\n\r\n")
            assert busy.recv(8) == b"HTTP/1.1"
        assert read(opened(address, stack)).startswith(b"HTTP/1.1 503")


def test_a_burst_does_not_push_out_a_request_that_has_just_come() -> None:
    limits = replace(PATIENT, grace=EVER)
    with running(limits) as (_, address), ExitStack() as stack:
        honest = opened(address, stack)
        for _ in range(15):
            opened(address, stack)
        # There may be twice as many for a while, and then no more.
        assert read(opened(address, stack)).startswith(b"HTTP/1.1 503")
        honest.sendall(GET)
        assert honest.recv(100).startswith(b"HTTP/1.1 200")


def test_many_slow_clients_do_not_keep_others_out() -> None:
    limits = replace(PATIENT, most=60, grace=0.2)
    with running(limits) as (_, address), ExitStack() as stack:
        for i in range(150):
            slow = opened(address, stack)
            slow.sendall(GET[: 5 + i % 20])
        # Connections are taken in their order: once this one is answered, all others have been taken.
        answered(address)
        time.sleep(0.3)
        for _ in range(20):
            connection = opened(address, stack)
            connection.sendall(GET)
            assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_limits_follow_the_settings_and_the_open_files_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = ConnectionLimits.of(Settings(connections=500, header_seconds=3, idle_seconds=2))
    assert (limits.most, limits.header, limits.idle) == (500, 3, 2)
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, both: set_to.append(both))
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, 4096))
    assert limits.within_open_files() == limits
    assert set_to == [(1256, 4096)]
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, 356))
    assert limits.within_open_files().most == 50
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (64, 64))
    assert limits.within_open_files().most == 16


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"transfer-encoding: chunked\r\ncontent-length: 0\r\n",
    ],
)
def test_a_request_with_two_lengths_gets_one_refusal(head: bytes) -> None:
    """What follows would be a second request to this server and a body to the one before it."""
    with running(PATIENT) as (app, address), ExitStack() as stack:
        connection = opened(address, stack)
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\n" + head + b"\r\n0\r\n\r\n" + GET)
        said = read(connection)
        assert said.startswith(b"HTTP/1.1 400 ")
        assert said.count(b"HTTP/1.1 ") == 1
        assert app.bodies == []


def test_a_connection_is_opened_anew_after_enough_requests_where_processes_share_the_work() -> None:
    assert ConnectionLimits.of(Settings()).turns == 0
    assert ConnectionLimits.of(Settings(), 2).turns > 0
    limits = replace(PATIENT, turns=3)
    with running(limits) as (_, address), ExitStack() as stack:
        connection = opened(address, stack)
        for number in (1, 2, 3):
            connection.sendall(GET)
            answer = connection.recv(1000).lower()
            assert answer.startswith(b"http/1.1 200")
            assert (b"connection: close" in answer) == (number == 3)
        assert read(connection) == b""
