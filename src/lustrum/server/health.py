"""Whether the server is up, for whoever watches it."""

from __future__ import annotations

from fastapi import APIRouter

__all__ = ["router"]

router = APIRouter(include_in_schema=False)


@router.get("/health")
def health() -> dict[str, str]:
    """Up. Nothing is said about the data: watching a server must teach nothing about them."""
    return {"status": "ok"}
