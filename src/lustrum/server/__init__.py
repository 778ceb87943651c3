"""The table builder on the web: an HTTP API and pages, thin doors over the desk."""

from lustrum.server.app import create_app
from lustrum.server.run import serve

__all__ = ["create_app", "serve"]
