"""How often an address may ask for tables, stated in the headers of the IETF's rate limit draft."""

from __future__ import annotations

import math
import time

from limits import RateLimitItem, parse_many
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.model.text import say
from lustrum.server.http.askers import asker_of
from lustrum.server.http.errors import response
from lustrum.server.http.problems import Problem
from lustrum.server.http.templating import Pages


class Rates:
    """Counts what costs something: tables and hints. Pages, descriptions and files are free."""

    def __init__(
        self, app: ASGIApp, rate: str, pages: Pages, hits: MemoryStorage | None = None
    ) -> None:
        self.app = app
        self.pages = pages
        self._items: list[RateLimitItem] = parse_many(rate) if rate else []
        self._limiter = MovingWindowRateLimiter(hits or MemoryStorage())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if its address has not asked too often."""
        if scope["type"] != "http" or not self._items or not _costs(scope):
            await self.app(scope, receive, send)
            return
        asker = asker_of(scope)
        hits = [self._limiter.hit(item, asker) for item in self._items]
        allowed = all(hits)
        item, left, wait = min(
            ((i, *self._left(i, asker)) for i in self._items),
            key=lambda limit_state: limit_state[1],
        )
        policy = f'"asks";q={item.amount};w={item.get_expiry()}'
        if not allowed:
            sentence = say(
                "Too many tables were asked for from this address; please wait {seconds} seconds.",
                seconds=wait,
            )
            refused = response(
                Request(scope), Problem.of_status(429, sentence, retry=wait), self.pages
            )
            refused.headers["RateLimit-Policy"] = policy
            refused.headers["RateLimit"] = f'"asks";r=0;t={wait}'
            await refused(scope, receive, send)
            return

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["RateLimit-Policy"] = policy
                headers["RateLimit"] = f'"asks";r={left};t={wait}'
            await send(message)

        await self.app(scope, receive, tell)

    def _left(self, item: RateLimitItem, asker: str) -> tuple[int, int]:
        """How many more may be asked for, and in how many seconds there will be more."""
        stats = self._limiter.get_window_stats(item, asker)
        return max(0, stats.remaining), max(1, math.ceil(stats.reset_time - time.time()))


def _costs(scope: Scope) -> bool:
    """Whether something is counted to answer it; a form that was filled in shows a hint, too."""
    path: str = scope["path"]
    if path.startswith(("/api/v1/tables", "/api/v1/hints", "/api/v1/jobs")):
        return True
    if not path.startswith("/datasets/"):
        return False
    form = path.count("/") == 2 and bool(scope["query_string"])
    return form or path.endswith(("/table", "/hint"))
