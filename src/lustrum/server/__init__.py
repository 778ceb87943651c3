"""The table builder: pages for people, an API for programs."""

from lustrum.server.app import create_app
from lustrum.server.run import serve
from lustrum.server.settings import Settings

__all__ = ["Settings", "create_app", "serve"]
