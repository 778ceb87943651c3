"""The command line: a thin door to the service."""

from lustrum.cli.application import app, main

__all__ = ["app", "main"]
