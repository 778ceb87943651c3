"""Whether the server is up, for monitoring."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

__all__ = ["router"]

router = APIRouter(include_in_schema=False)


@router.get("/health")
def health() -> dict[str, str]:
    """Up. Nothing is said about the data: watching a server must teach nothing about them."""
    return {"status": "ok"}


@router.get("/health/ready")
def ready(request: Request) -> JSONResponse:
    """Whether questions are answered: after the warm-up, and until the server shuts down."""
    good = bool(request.app.state.ready)
    return JSONResponse({"status": "ready" if good else "not ready"}, 200 if good else 503)
