"""Whether the server is up, for monitoring."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

router = APIRouter(include_in_schema=False)


@router.get("/health")
def health() -> dict[str, str]:
    """Up. Nothing is said about the data: watching a server must teach nothing about them."""
    return {"status": "ok"}


@router.get("/health/ready")
def ready(request: Request) -> JSONResponse:
    """Whether questions are answered: after the warm-up, until the server shuts down, and about which datasets.

    One dataset that is damaged, or whose records do not answer, does not make the server unready: it answers
    about the others, and shows prepared tables. It is unready where nothing can be answered, also where the
    folder of data is gone.
    """
    if not request.app.state.ready:
        return JSONResponse({"status": "not ready"}, 503)
    service = request.app.state.questions.service
    states = service.states()
    some = "ready" in states.values() or bool(service.prepared_folders.names())
    whole = all(state == "ready" for state in states.values())
    status = ("ready" if whole else "degraded") if some else "not ready"
    return JSONResponse({"status": status, "datasets": states}, 200 if some else 503)
