"""Pages from templates: everything is escaped, and a name that is missing is an error."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

__all__ = ["STATIC", "Pages"]

_HERE = Path(__file__).parent
STATIC = _HERE / "static"


class Pages:
    """Renders the templates of this package."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        # An address that changes with the file lets a browser keep the file for long.
        self._environment.globals["asset"] = {
            path.name: f"/static/{path.name}?v={_digest(path)}" for path in sorted(STATIC.iterdir())
        }

    def render(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A page."""
        text = self._environment.get_template(template).render(**values)
        return HTMLResponse(text, status_code=status)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
