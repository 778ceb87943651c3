"""Logs for machines: one JSON object a line, without a count, a key or an address of an asker.

Questions are logged with what became of them, so that ``lustrum policy try`` can replay them under another
policy. Of the answer only the verdict and the names of the rules are said.
"""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from starlette.types import Scope

from lustrum.model import Decision

__all__ = ["JsonLines", "log_decision", "log_request", "set_up"]

log = logging.getLogger("lustrum.server")
_OWN = "lustrum_fields"


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, event, and the fields that came with it; an exception's text stays out."""
        made = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{made}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update(getattr(record, _OWN, {}))
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False)


def set_up(level: str = "info") -> None:
    """Write the server's log to standard error as lines of JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("lustrum", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(level.upper())


def log_request(scope: Scope, status: int, seconds: float) -> None:
    """A request by its route."""
    fields = {
        "method": scope["method"],
        "route": scope["route_name"],
        "status": status,
        "milliseconds": round(seconds * 1000, 1),
    }
    log.info("request", extra={_OWN: fields})


def log_decision(decision: Decision, seconds: float) -> None:
    """A question and what became of it."""
    fields = {
        "query": decision.query.to_mapping(),
        "verdict": decision.verdict.value,
        "rules": [reason.rule for reason in decision.reasons],
        "milliseconds": round(seconds * 1000, 1),
    }
    log.info("decision", extra={_OWN: fields})
