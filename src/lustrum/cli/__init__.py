"""The command line: a thin door to the desk."""

from lustrum.cli.app import app, main

__all__ = ["app", "main"]
