"""The same request again: its answer is sent without asking anything, while data and policy are what they were.

A repeated request has passed all that stands before it, among this the limit on how often an address may ask.
Two files are looked at, the policy and the manifest of the bundle; if one has changed, the request goes on and
is answered anew.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.answer import Snapshot
from lustrum.runtime.remembered import Remembered
from lustrum.server.http.languages import current
from lustrum.server.service.questions import Questions
from lustrum.server.service.remembered_answers import Key, Written

ROUTE = "/api/v1/tables"
_MOST = 20_000  # requests that are recognised


@dataclass(frozen=True)
class Answered:
    """What a request was answered with: the snapshot, and where the answer is kept."""

    snapshot: Snapshot
    key: Key


class RepeatedRequests:
    """Stands before the routes and sends answers that are at hand."""

    def __init__(self, app: ASGIApp, questions: Questions) -> None:
        self.app = app
        self._questions = questions
        self._known = Remembered[Answered](_MOST)
        self._in_force: dict[str, Snapshot] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what is known, or pass a request on and remember where its answer is."""
        if scope["type"] != "http" or scope["path"] != ROUTE or not self._questions.answers.on:
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        message = await receive() if scope["method"] == "POST" else None
        # A body in several pieces is not recognised: its first piece may begin another question.
        whole = message is None or not message.get("more_body", False)
        request = _recognised(scope, message)
        answer = self._at_hand(request) if whole else None
        if answer is not None:
            scope.get("lustrum.route", []).append(ROUTE)
            self._questions.count(answer, time.perf_counter() - started)
            await response(answer)(scope, receive, send)
            return
        noted: list[Answered] = []
        scope["lustrum.answered"] = noted
        given = message

        async def replay() -> Message:
            nonlocal given
            if given is None:
                return await receive()
            first, given = given, None
            return first

        await self.app(scope, replay, send)
        if noted and whole:
            self._remember(request, noted[0])

    def _remember(self, request: bytes, answered: Answered) -> None:
        """Requests of numbers or a policy that were replaced are let go; they would hold them in memory."""
        name = answered.snapshot.dataset.name
        if self._in_force.get(name) is not answered.snapshot:
            self._in_force[name] = answered.snapshot
            self._known.clear()
        self._known.keep(request, answered)

    def _at_hand(self, request: bytes) -> Written | None:
        known = self._known.find(request)
        if known is None:
            return None
        now = self._questions.service.standing(known.snapshot.dataset.name)
        return self._questions.answers.at_hand(known.key) if now is known.snapshot else None


def response(written: Written) -> Response:
    """An answer on its way."""
    headers = {"Content-Disposition": written.disposition} if written.disposition else None
    return Response(written.body, media_type=written.media_type, headers=headers)


def _recognised(scope: Scope, message: Message | None) -> bytes:
    """A digest of all of a request that its answer can depend on: the request itself may be large."""
    header_names = (b"host", b"accept", b"content-type", b"content-encoding")
    request_parts = (
        scope["method"],
        scope["scheme"],
        scope.get("root_path", ""),
        tuple(scope.get("server") or ()),
        scope["query_string"],
        current().code,
        tuple((name, value) for name, value in scope["headers"] if name in header_names),
        None if message is None else message.get("body", b""),
    )
    return hashlib.sha256(repr(request_parts).encode()).digest()
