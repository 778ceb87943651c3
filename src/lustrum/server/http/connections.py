"""Connections: how many there may be, and how long each may take to send, to read and to say nothing.

The web server closes a connection that is idle between two requests, but waits without limit for the
rest of a request, and for a client that does not read its answer; uvicorn has no setting for either. Here
every phase of a connection has an end. Where there are too many connections, the one that has kept the server
waiting longest gives way.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, replace
from typing import Any

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from lustrum.server.settings import Settings

_SPARE_FILES = 256
"""Files that a process needs besides connections: data, databases, pipes, libraries."""

_FEWEST = 16
_TURNS = 200
_SLOW = b"The request took too long to arrive.\n"
_FULL = b"There are too many connections at the moment; please try again soon.\n"
_order = itertools.count()


@dataclass(frozen=True)
class ConnectionLimits:
    """Seconds for each phase of a connection, and the most connections of one process.

    ==========  ============================================================================
    ``most``    connections at the same time
    ``header``  from the first moment of a request to the end of its headers
    ``body``    from the end of the headers to the end of the body
    ``idle``    between an answer and the next request on the same connection
    ``send``    for the client to take what was sent; then the connection is cut
    ``grace``   in which a connection need not give way to another; a request that has just come is not lost
                in a burst, for which there may be twice as many connections
    ``turns``   requests on one connection, after which the client is asked to open another; 0: any number
    ==========  ============================================================================
    """

    most: int = 1000
    header: float = 10.0
    body: float = 20.0
    idle: float = 5.0
    send: float = 30.0
    grace: float = 1.0
    turns: int = 0

    @classmethod
    def of(cls, settings: Settings, workers: int = 1) -> ConnectionLimits:
        """The limits that the settings give; connections spread anew over several processes now and then."""
        return cls(
            settings.connections,
            settings.header_seconds,
            settings.body_seconds,
            settings.idle_seconds,
            settings.send_seconds,
            turns=_TURNS if workers > 1 else 0,
        )

    def within_open_files(self) -> ConnectionLimits:
        """Allow this process as many open files as the connections need, or else fewer connections."""
        try:
            import resource
        except ImportError:  # pragma: no cover - a system without such limits
            return self
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = 2 * self.most + _SPARE_FILES
        unlimited = resource.RLIM_INFINITY
        if soft != unlimited and soft < needed:
            soft = needed if hard == unlimited else min(needed, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if soft == unlimited or soft >= needed:
            return self
        return replace(self, most=max(_FEWEST, (soft - _SPARE_FILES) // 2))


class _StrictConnection(h11.Connection):
    """Refuses a request that states its length in two ways: servers may disagree where it ends."""

    def next_event(self) -> Any:
        """The next event, as h11 reads it."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name.lower() for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("Two lengths of one body.")
        return event


class BoundedProtocol(H11Protocol):
    """One connection, whose every phase has an end."""

    def __init__(self, *args: Any, limits: ConnectionLimits, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = _StrictConnection(h11.SERVER, self.conn._max_incomplete_event_size)
        self.limits = limits
        self.timeout_keep_alive = limits.idle  # type: ignore[assignment]  # a float serves as well
        self._phase: str | None = None
        self._since = (0.0, 0)
        self._timer: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._turns = 0
        if limits.turns:
            self.app = self._counted(self.app)

    def _counted(self, app: ASGIApp) -> ASGIApp:
        """The application; after enough requests each response closes the connection, as if asked for."""

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            self._turns += 1
            if self._turns >= self.limits.turns and CLOSE_HEADER not in scope["headers"]:
                scope["headers"].append(CLOSE_HEADER)
            await app(scope, receive, send)

        return counted

    @property
    def keeps_waiting(self) -> bool:
        """Whether the next move is the client's."""
        return self._phase is not None or self.timeout_keep_alive_task is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or turn it away where there are too many and none can give way."""
        super().connection_made(transport)
        self._since = (self.loop.time(), next(_order))
        if len(self.connections) > self.limits.most and not self._make_room():
            self._refuse(503, _FULL)
            return
        self._enter("header")

    def data_received(self, data: bytes) -> None:
        """Take what has arrived, and see which phase it leads to."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._follow()

    def on_response_complete(self) -> None:
        """An answer is complete: an idle connection, or the next request."""
        super().on_response_complete()
        self._follow()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing came for a while after an answer."""
        super().timeout_keep_alive_handler()
        self._cut_unread()

    def shutdown(self) -> None:
        super().shutdown()
        if self.transport.is_closing():
            self._cut_unread()

    def pause_writing(self) -> None:
        """The client does not read as fast as we write."""
        super().pause_writing()
        self._cut_unread()

    def resume_writing(self) -> None:
        """The client has read on."""
        super().resume_writing()
        if self._unread is not None and not self.transport.is_closing():
            self._unread.cancel()
            self._unread = None

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._timer, self._unread):
            if timer is not None:
                timer.cancel()
        self._timer = self._unread = None
        self._phase = None
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def _follow(self) -> None:
        if self.transport.is_closing():
            self._enter(None)
            self._cut_unread()
            return
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            self._enter("body")
        elif state is h11.IDLE and self.timeout_keep_alive_task is None:
            self._enter("header")
        else:
            self._enter(None)

    def _enter(self, phase: str | None) -> None:
        if phase == self._phase:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._phase = phase
        self._since = (self.loop.time(), next(_order))
        if phase is not None:
            seconds = self.limits.header if phase == "header" else self.limits.body
            self._timer = self.loop.call_later(seconds, self._refuse, 408, _SLOW)

    def _make_room(self) -> bool:
        """Whether there is room: the connection that has kept the server waiting longest gives way."""
        others: list[BoundedProtocol] = [
            other
            for other in self.connections
            if isinstance(other, BoundedProtocol)
            and other is not self
            and other.keeps_waiting
            and not other.transport.is_closing()
        ]
        if not others:
            return False
        oldest = min(others, key=lambda other: other._since)
        if self.loop.time() - oldest._since[0] >= self.limits.grace:
            oldest.give_way()
            return True
        return len(self.connections) <= 2 * self.limits.most

    def give_way(self) -> None:
        """Close this connection at once, for another one."""
        self._leave_request()
        self._enter(None)
        self.transport.abort()

    def _refuse(self, status: int, sentence: bytes) -> None:
        """End the connection with a sentence, if no answer has begun."""
        if self.transport.is_closing():
            return
        self._leave_request()
        self._enter(None)
        if status == 503 and "turned_away" in self.app_state:
            self.app_state["turned_away"].labels("503", "connections").inc()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(sentence)).encode()),
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),
        ]
        try:
            head = self.conn.send(h11.Response(status_code=status, headers=headers))
            body = self.conn.send(h11.Data(data=sentence))
            self.transport.write((head or b"") + (body or b""))
        except h11.LocalProtocolError:
            pass  # an answer has begun, or is complete: the connection just ends
        self.transport.close()
        self._cut_unread()

    def _leave_request(self) -> None:
        """What works on the request learns that its asker is gone; whatever it still sends is dropped."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()

    def _cut_unread(self) -> None:
        """Cut the connection after a while, even if the client has not taken what was sent."""
        if self._unread is None:
            self._unread = self.loop.call_later(self.limits.send, self.transport.abort)
