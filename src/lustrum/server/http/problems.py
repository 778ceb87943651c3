"""What went wrong, in the one shape of RFC 9457 that every route answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lustrum.model.text import say
from lustrum.server.schemas import ProblemOut

MEDIA_TYPE = "application/problem+json"
_TITLES = {
    400: say("Bad request"),
    403: say("Not allowed"),
    404: say("Not found"),
    405: say("Method not allowed"),
    406: say("Not available in this format"),
    409: say("Not yet"),
    413: say("Body too large"),
    414: say("Address too long"),
    415: say("Not JSON"),
    421: say("Wrong host name"),
    422: say("Too large"),
    429: say("Too many requests"),
    503: say("Not available"),
}


@dataclass(frozen=True)
class Problem:
    """A problem as the asker sees it; ``detail`` is one sentence that says what would be right."""

    kind: str
    title: str
    status: int
    detail: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    retry: int | None = None

    @classmethod
    def of_status(cls, status: int, detail: str, *, retry: int | None = None) -> Problem:
        """A problem that says no more than its HTTP status and a sentence, and when to come again."""
        title = _TITLES.get(status, say("Not answered"))
        return cls(title.lower().replace(" ", "-"), title, status, detail, retry=retry)

    def body(self, instance: str) -> dict[str, Any]:
        """The JSON form."""
        return {
            "type": f"urn:lustrum:problem:{self.kind}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "instance": instance,
            **self.extra,
        }


class ProblemError(Exception):
    """Ends a request with a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.kind)
        self.problem = problem


def not_found(detail: str) -> ProblemError:
    """Ends a request for something that is not there."""
    return ProblemError(Problem.of_status(404, detail))


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems that a route can answer with, for the description of the API."""
    return {
        status: {
            "description": "Problem details (RFC 9457).",
            "content": {MEDIA_TYPE: {"schema": ProblemOut.model_json_schema()}},
        }
        for status in statuses
    }
