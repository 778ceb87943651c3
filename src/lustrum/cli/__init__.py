"""The command line: a thin door to the service."""

from lustrum.cli.app import app, main

__all__ = ["app", "main"]
