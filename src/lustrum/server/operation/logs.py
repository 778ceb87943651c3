"""What the server logs of requests and questions: no count, no key and no address of an asker.

Questions are logged with what became of them, so that ``lustrum policy try`` can replay them under another
policy. Of the answer only the verdict and the names of the rules are said.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from starlette.types import Scope

from lustrum.model import Decision
from lustrum.runtime.log_lines import FIELDS

log = logging.getLogger("lustrum.server")


def log_request(scope: Scope, status: int, seconds: float) -> None:
    """A request by its route."""
    fields = {
        "method": scope["method"],
        "route": scope["route_name"],
        "status": status,
        "milliseconds": round(seconds * 1000, 1),
    }
    log.info("request", extra={FIELDS: fields})


def log_decision(decision: Decision, seconds: float) -> None:
    """A question and what became of it."""
    fields = {
        "query": decision.query.to_mapping(),
        "verdict": decision.verdict.value,
        "rules": [reason.rule for reason in decision.reasons],
        "milliseconds": round(seconds * 1000, 1),
    }
    log.info("decision", extra={FIELDS: fields})


def log_repeat(question: str, verdict: str, rules: Sequence[str], seconds: float) -> None:
    """A question whose answer was remembered, and what became of it."""
    if not log.isEnabledFor(logging.INFO):
        return
    fields = {
        "query": json.loads(question),
        "verdict": verdict,
        "rules": list(rules),
        "milliseconds": round(seconds * 1000, 1),
        "remembered": True,
    }
    log.info("decision", extra={FIELDS: fields})
