"""The command line: a thin layer over the library and the server."""

from lustrum.cli.importing import without_collection

with without_collection():
    from lustrum.cli.application import app, main

__all__ = ["app", "main"]
