"""Packages that only some commands need."""

from __future__ import annotations

from importlib import import_module

from lustrum.model import InputError

SERVER = ("babel", "fastapi", "jinja2", "limits", "prometheus_client", "uvicorn")
"""The extra ``server``."""


def need_server(what: str) -> None:
    """One sentence where the packages of a web server are not installed."""
    for name in SERVER:
        try:
            import_module(name)
        except ImportError:
            raise InputError(
                f"{what} needs a web server, and the package {name!r} is missing; install them with: "
                "pip install 'lustrum[server]'."
            ) from None
